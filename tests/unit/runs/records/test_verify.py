"""Whether a line of records is replayable, against the definition: the log holds each message in flight."""

from __future__ import annotations

from itertools import chain, combinations
from pathlib import Path

import pytest

from cklog.model.question import Question
from cklog.run import open_run
from tests.builders.native import checkpoint, write

CHANNEL = "a/0->b/0"


@pytest.mark.parametrize("logged", list(chain.from_iterable(combinations(range(1, 4), n) for n in range(1, 4))))
def test_a_line_is_replayable_exactly_if_the_log_holds_all_that_is_in_flight(
    logged: tuple[int, ...], tmp_path: Path
) -> None:
    """At the line, a/0 has sent 0 to 2 and b/0 has received 0: 1 and 2 are in flight, 3 is nobody's concern."""
    senders = [checkpoint("a/0", 1, sent={CHANNEL: 3})]
    write(tmp_path, "checkpoints", [*senders, checkpoint("b/0", 1, received={CHANNEL: 1})])
    write(tmp_path, "channels", [{"channel": CHANNEL, "seq": n, "time": n, "bytes": 1} for n in logged])
    with open_run(str(tmp_path)) as run:
        answer = run.verify({"a/0": 1, "b/0": 1}, False, Question())
    [check] = [c for c in answer.result.checks if c.check == "replayable"]
    assert check.holds is ({1, 2} <= set(logged))
    if check.holds:
        assert check.because == "2 messages in flight, all of them in the logs"


@pytest.mark.parametrize("place", ["checkpoints/a.jsonl", "channels/part.jsonl"])
def test_damage_that_cannot_touch_the_line_is_no_error_of_its_proof(place: str, tmp_path: Path) -> None:
    """The line is at the second checkpoints: nothing is in flight, and of the first ones nobody needs anything."""
    for operator, end in (("a", "sent"), ("b", "received")):
        rows = [checkpoint(f"{operator}/0", n, **{end: {CHANNEL: n}}) for n in (1, 2)]
        write(tmp_path, "checkpoints", rows, f"{operator}.jsonl")
    write(tmp_path, "channels", [{"channel": CHANNEL, "seq": n, "time": n, "bytes": 1} for n in range(2)])
    path = tmp_path / place
    path.write_bytes(b"#" + path.read_bytes()[1:])
    with open_run(str(tmp_path)) as run:
        line = run.recovery_line(Question())
        proof = run.verify({"a/0": 2, "b/0": 2}, False, Question())
    assert [(f.id, f.severity) for f in line.findings] == [("bad-record", "warning")]
    assert [(f.id, f.severity) for f in proof.findings] == [("bad-record", "warning")]
    assert (line.exit_code, proof.exit_code) == (0, 0)
