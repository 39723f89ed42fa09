"""What `verify` says of a line: numbers of orphan messages, and lines that it cannot be asked about."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest

from cklog.model.question import Question
from cklog.run import open_run
from tests.builders.native import checkpoint, write
from tests.program import Ended, cklog

CHANNEL = "a/0->b/0"


def verified(folder: Path, line: object) -> Ended:
    file = folder / "line.json"
    file.write_text(json.dumps(line))
    return cklog("verify", folder, "--line", file, "--json")


@pytest.mark.parametrize(("sent", "received"), list(itertools.product(range(4), repeat=2)))
def test_the_sentence_numbers_exactly_the_messages_that_nobody_sent(sent: int, received: int, tmp_path: Path) -> None:
    """Watermarks are exclusive: `sent` 2 means messages 0 and 1."""
    write(
        tmp_path,
        "checkpoints",
        [checkpoint("a/0", 1, sent={CHANNEL: sent}), checkpoint("b/0", 1, received={CHANNEL: received})],
    )
    ended = verified(tmp_path, {"a/0": 1, "b/0": 1})
    answer = json.loads(ended.out)
    orphans = sorted(set(range(received)) - set(range(sent)))
    told = [f["message"] for f in answer["findings"] if f["id"] == "orphan-messages"]
    [check] = [c for c in answer["result"]["checks"] if c["check"] == "consistent"]
    assert check["holds"] == (not orphans)
    assert len(told) == (1 if orphans else 0)
    for text in told:
        several = f"messages {orphans[0]} to {orphans[-1]} were"
        one = f"message {orphans[0]} was"
        assert text == f"{CHANNEL}: {several if len(orphans) > 1 else one} received but never sent"
    if orphans:
        assert check["because"] == f"1 channel has orphan messages; {CHANNEL}: {orphans[0]} to {orphans[-1]}"
    assert (ended.code == 3) == bool(orphans)


@pytest.mark.parametrize("entry", [{"subtask": 0, "checkpoint": 1}, 7, None, "a/0", [], {}])
def test_an_entry_that_names_no_operator_is_wrong_usage(entry: object, tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", [checkpoint("a/0", 1)])
    ended = verified(tmp_path, {"result": {"line": [entry]}})
    assert ended.code == 2, ended.err
    assert re.match(r"cklog: --line .*: an entry of the line has no operator\n", ended.err)
    assert list(json.loads(ended.out)) == ["error"]


def test_an_entry_without_a_subtask_is_the_first(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", [checkpoint("a/0", 1), checkpoint("a/0", 2)])
    assert verified(tmp_path, {"result": {"line": [{"operator": "a", "checkpoint": 2}]}}).code == 0


_WATERMARKS = [pair for pair in itertools.product(range(3), repeat=2) if pair[0] <= pair[1]]


@pytest.mark.parametrize(("sent", "received"), list(itertools.product(_WATERMARKS, repeat=2)))
def test_a_line_is_maximal_exactly_if_no_consistent_one_is_above_it(
    sent: tuple[int, int], received: tuple[int, int], tmp_path: Path
) -> None:
    """Each of two subtasks has checkpoints 0, 1 and 2: every line is held against every other."""
    rows = [checkpoint("a/0", k, sent={CHANNEL: sent[k - 1]}) for k in (1, 2)]
    write(
        tmp_path, "checkpoints", [*rows, *(checkpoint("b/0", k, received={CHANNEL: received[k - 1]}) for k in (1, 2))]
    )
    lines = itertools.product(range(3), repeat=2)
    consistent = [(a, b) for a, b in lines if (0, *received)[b] <= (0, *sent)[a]]
    for a, b in consistent:
        above = [other for other in consistent if other != (a, b) and other[0] >= a and other[1] >= b]
        with open_run(str(tmp_path)) as run:
            answer = run.verify({"a/0": a, "b/0": b}, True, Question())
        [check] = [c for c in answer.result.checks if c.check == "maximal"]
        assert check.holds is (not above), (a, b)
        assert ("not-maximal" in [f.id for f in answer.findings]) == bool(above)
        assert (answer.exit_code == 3) == bool(above)
