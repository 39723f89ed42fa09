"""What sinks take again after a restart from the line, against what they had really taken."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from hypothesis import given, settings

from cklog.impact.answer import ImpactQuestion
from cklog.impact.sinks.model import SinkImpact
from cklog.model.question import Question
from cklog.run import Options, open_run
from tests.builders.executions import failed_runs, manifest, tables, write
from tests.examples import examples
from tests.oracles.lines import Execution, latest_line


def taken_again(execution: Execution, line: dict[str, int]) -> dict[str, set[int]]:
    """By channel: messages that were received after the checkpoint on the line; a survivor's current state is last.

    Of a channel that delivers out of order a watermark hides those below it that were not there yet.
    """
    taken: dict[str, set[int]] = {name: set() for name in execution.channels}
    mark = dict.fromkeys(execution.channels, 0)
    checkpoints = dict.fromkeys(execution.subtasks, 0)
    for event in execution.events:
        if event.kind == "ckpt":
            checkpoints[event.subtask] += 1
        elif event.kind == "recv":
            if checkpoints[event.subtask] >= line[event.subtask]:
                taken[event.channel].add(event.seq)
            else:
                mark[event.channel] = max(mark[event.channel], event.seq + 1)
    return {channel: {m for m in messages if m >= mark[channel]} for channel, messages in taken.items()}


def sinks(execution: Execution) -> set[str]:
    """Operators that no other one reads from."""
    pairs = [(a.partition("/")[0], b.partition("/")[0]) for a, b in execution.channels.values()]
    return {s.partition("/")[0] for s in execution.subtasks} - {a for a, b in pairs if a != b}


def in_order(execution: Execution, channel: str) -> bool:
    got = [e.seq for e in execution.events if e.kind == "recv" and e.channel == channel]
    return got == list(range(len(got)))


@settings(max_examples=examples(60))
@given(failed_runs())
def test_sinks_take_again_what_they_took_after_the_line(
    case: tuple[Execution, frozenset[str], random.Random],
) -> None:
    execution, failed, rng = case
    with tempfile.TemporaryDirectory() as name:
        manifest(Path(name), execution)
        write(Path(name), tables(execution, failed, rng), rng)
        with open_run(name, Options(split_bytes=97)) as run:
            found = run.impact(ImpactQuestion(), Question(failed=tuple(sorted(failed)))).result
    assert isinstance(found, SinkImpact)
    again = taken_again(execution, latest_line(execution, failed))
    rows = {row.of: row for row in found.intervals if row.why in ("rolled-back", "taken-since")}
    for channel, (_, receiver) in execution.channels.items():
        truth = again[channel] if receiver.partition("/")[0] in sinks(execution) else set()
        row = rows.pop(channel, None)
        if row is None:
            assert not truth
            continue
        assert row.sink == receiver
        told = set(range(row.from_, row.to)) if row.to is not None else set()
        assert truth <= told
        if in_order(execution, channel):
            assert truth == told
        assert row.most is None or row.most >= (row.to or row.from_)
    assert not rows
