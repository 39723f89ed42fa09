"""Useless checkpoints belong to what happened: all are named whatever failed, if something tells of all receipts."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings

from cklog.graphs.z_cycles import ZCycleQuestion
from cklog.model.question import Question
from cklog.model.zigzag import ZCycles
from cklog.run import Options, open_run
from tests.builders.executions import failed_runs, manifest, write
from tests.examples import examples
from tests.oracles.lines import (
    Execution,
    checkpoint_records,
    event_records,
    message_records,
    useless_by_enumeration,
    useless_by_zigzag,
    without_lost_receipts,
)

Case = tuple[Execution, frozenset[str], random.Random]


def z_cycles(folder: Path, failed: frozenset[str]) -> ZCycles:
    with open_run(str(folder), Options()) as run:
        return run.z_cycles(Question(failed=tuple(sorted(failed))), ZCycleQuestion(limit=0)).result


def named(found: ZCycles) -> set[tuple[str, int]]:
    return {(f"{c.operator}/{c.subtask}", c.checkpoint) for c in found.useless}


@pytest.mark.parametrize("evidence", ["events", "events beside watermarks", "volatile"])
@settings(max_examples=examples(60), deadline=None)
@given(case=failed_runs())
def test_all_useless_checkpoints_are_named_whatever_failed(case: Case, evidence: str) -> None:
    execution, failed, rng = case
    silent = set(execution.subtasks) - {event.subtask for event in execution.events}
    told = {
        "events": {"events": event_records(execution)},
        "events beside watermarks": {
            "checkpoints": checkpoint_records(execution, silent),
            "events": event_records(execution),
        },
        "volatile": {"checkpoints": checkpoint_records(execution, execution.subtasks)},
    }[evidence]
    if not any(told.values()):
        return
    with tempfile.TemporaryDirectory() as name:
        manifest(Path(name), execution)
        write(Path(name), {"channels": message_records(execution), **told}, rng)
        found = z_cycles(Path(name), failed)
    assert named(found) == useless_by_zigzag(execution) == useless_by_enumeration(execution)
    assert all(one.witness for one in found.useless)
    assert set(found.unseen) <= (silent if evidence == "events" else set())


@settings(max_examples=examples(60), deadline=None)
@given(case=failed_runs())
def test_without_evidence_the_answer_says_of_whom_later_receipts_are_not_in_it(case: Case) -> None:
    execution, failed, rng = case
    alive = sorted(set(execution.subtasks) - failed)
    records = checkpoint_records(execution, alive)
    if not records:
        return
    with tempfile.TemporaryDirectory() as name:
        manifest(Path(name), execution)
        write(Path(name), {"checkpoints": records}, rng)
        found = z_cycles(Path(name), failed)
    assert named(found) == useless_by_zigzag(without_lost_receipts(execution, failed))
    assert set(found.unseen) == set(failed)
