"""What records say of a beginning: numbers that a trimmed log no longer tells, subtasks without a number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cklog.model.question import Question
from cklog.model.verdict import Answer
from cklog.run import open_run
from tests.builders.native import checkpoint, write

AB = "a/0->b/0"


def events(subtask: str, told: str) -> list[dict[str, Any]]:
    """`s0` sends message 0 of the channel, `r0` receives it, `C1` is checkpoint 1."""
    operator, _, index = subtask.partition("/")
    kinds = {"s": "send", "r": "receive", "C": "checkpoint"}
    return [
        {
            "event": kinds[word[0]],
            "operator": operator,
            "subtask": int(index),
            "lsn": lsn,
            **({"checkpoint": int(word[1:])} if word[0] == "C" else {"channel": AB, "seq": int(word[1:])}),
        }
        for lsn, word in enumerate(told.split())
    ]


def ask(folder: Path) -> Answer[Any]:
    with open_run(str(folder)) as run:
        return run.recovery_line(Question())


@pytest.mark.parametrize("trimmed", range(4))
def test_what_a_trimmed_sender_no_longer_tells_was_not_received_by_that(trimmed: int, tmp_path: Path) -> None:
    """At its checkpoint the receiver had 1 and 2, of 0 to 3: 0 and 3 are replayed, however much the sender forgot."""
    sent = events("a/0", "s0 s1 s2 s3 C1 s4")[trimmed:]
    write(tmp_path, "events", [*sent, *events("b/0", "r1 r2 C1 r0 r3")])
    answer = ask(tmp_path)
    assert [(e.subtask, e.checkpoint) for e in answer.result.line] == [(0, 1), (0, 1)]
    ranges = [(row.replay_from, row.replay_to) for row in answer.result.channels]
    assert ranges == [(0, 1), (3, 4)]
    assert [(r.resent_from, r.resent_to) for r in answer.result.channels] == [(4, 5), (None, None)]


@pytest.mark.parametrize("whole", [True, False])
def test_a_receiver_whose_beginning_is_gone_may_have_received_from_a_sender_that_nothing_tells_of(
    whole: bool, tmp_path: Path
) -> None:
    """The sender restarts at its initial state and sends all again: what the receiver may have, it would get twice."""
    write(tmp_path, "events", [{**event, "lsn": event["lsn"] + 2 * (not whole)} for event in events("b/0", "C4 C5")])
    (tmp_path / "job.json").write_text(
        json.dumps({"operators": [{"name": "a"}, {"name": "b"}], "channels": [{"channel": AB}]})
    )
    answer = ask(tmp_path)
    assert {e.operator: e.checkpoint for e in answer.result.line} == {"a": 0, "b": 5 if whole else 0}


def test_nothing_is_sent_again_where_nothing_was_sent_after_the_line(tmp_path: Path) -> None:
    write(tmp_path, "events", [*events("a/0", "s0 C1"), *events("b/0", "C1 r0")])
    [row] = ask(tmp_path).result.channels
    assert (row.replay_from, row.replay_to, row.resent_from, row.resent_to) == (0, 1, None, None)


def test_a_record_without_a_subtask_is_of_the_first(tmp_path: Path) -> None:
    """Its chain too: a delta whose parent is missing is on no line, whether its record says subtask 0 or nothing."""
    rows = [checkpoint("a/0", 1, form="base"), checkpoint("a/0", 3, form="delta", parent=2)]
    write(tmp_path / "said", "checkpoints", rows)
    write(tmp_path / "unsaid", "checkpoints", [{k: v for k, v in row.items() if k != "subtask"} for row in rows])
    said, unsaid = ask(tmp_path / "said"), ask(tmp_path / "unsaid")
    assert [e.checkpoint for e in said.result.line] == [1]
    assert [f.id for f in said.findings] == [f.id for f in unsaid.findings] != []
    assert said.result == unsaid.result
