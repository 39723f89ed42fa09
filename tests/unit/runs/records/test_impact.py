"""The impact of a restart by records: what its own reading finds does not change what the line says to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from cklog.impact.answer import ImpactQuestion
from cklog.impact.sinks.model import SinkImpact
from cklog.model.question import Question
from cklog.run import open_run
from tests.builders.native import checkpoint, write

CHANNEL = "a/0->b/0"


@pytest.mark.parametrize("needed", [False, True])
def test_damaged_events_change_the_action_only_where_the_line_needs_them(needed: bool, tmp_path: Path) -> None:
    """With watermarks in the checkpoints no line needs raw events, and results may be more than what is counted."""
    marks = {"a": {} if needed else {"sent": {CHANNEL: 1}}, "b": {} if needed else {"received": {CHANNEL: 1}}}
    for name, mark in marks.items():
        write(tmp_path, "checkpoints", [checkpoint(f"{name}/0", 1, **mark)], f"{name}.jsonl")
    common = {"operator": "b", "subtask": 0, "channel": CHANNEL, "event": "receive"}
    events = [{**common, "seq": n, "lsn": n, "time": 100 * n} for n in range(3)]
    path = write(tmp_path, "events", events)
    path.write_bytes(b"#" + path.read_bytes()[1:])
    with open_run(str(tmp_path)) as run:
        line = run.recovery_line(Question())
        impact = run.impact(ImpactQuestion())
    [error] = [f for f in impact.findings if f.id == "bad-record"]
    assert isinstance(impact.result, SinkImpact)
    assert impact.result.action == line.result.action
    assert impact.exit_code >= 3
    assert (error.effect != "none") == needed
