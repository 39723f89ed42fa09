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
