"""Batches whose commits are lost, and a Delta table that `--sink` names: its txn actions say which batches it has.

Delta's sink asks the table for the newest batch of the query's id, and skips every batch up to that one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from cklog.inputs.sink_tables import SinkTable, Stamp, TableCommit, Writer
from cklog.parsers.spark.parser import SparkCheckpoint
from cklog.runs.batches.plan import BatchPlan, plan_of
from cklog.sink_tables.fitting import NamedTable
from tests.builders.spark import Memory, sample

ALL = range(6)


def query(state: bool = True) -> Memory:
    """The word count, which plans batch 6, without any commit, and without its file sink."""
    root = sample()
    for path in [path for path in root.files if path.startswith("out/")]:
        del root.files[path]
    for n in ALL:
        root.remove(f"ck/commits/{n}")
    if not state:
        root.remove("ck/state/0/1/6.delta")
    return root


def table(
    root: Memory, batches: Iterable[int], undone: Iterable[int] = (), writer: str = "", expired: bool = False
) -> NamedTable:
    id = writer or json.loads(root.files["ck/metadata"])["id"]
    by, gone = Writer(id, "batch"), {*undone}
    commits = tuple(TableCommit(f"{n}", 1 << 50, "append", 1, (Stamp(by, n),), undone=n in gone) for n in batches)
    remembers = {by: max(batches, default=-1)}
    found = SinkTable("/lake/words", "delta", "main", commits, None, {}, remembers, expired=expired)
    return NamedTable("words", found, ("words",))


def plan(root: Memory, *tables: NamedTable) -> BatchPlan:
    return plan_of(SparkCheckpoint(root), tables=True, written=tables)


def about(found: BatchPlan) -> tuple[str, str]:
    [finding] = [f for f in found.findings if (f.id, f.subject) == ("missing-batch-file", "ck/commits/0")]
    return finding.severity, finding.message


@pytest.mark.parametrize("last", [5, 6])
def test_batches_that_the_table_and_the_state_show_to_be_done_need_no_commit(last: int) -> None:
    root = query()
    found = plan(root, table(root, range(last + 1)))
    assert (found.committed, found.planned, found.fails, found.skips) == (5, 6, False, False)
    severity, message = about(found)
    assert severity == "warning"
    assert "The Delta table words has batches 0 to 5, and all that batch 6 needs of the state is there" in message
    assert found.proof == (
        "ck/commits/5 is missing, but the Delta table words has the batch, and the state after it is there"
    )


def test_without_the_state_the_table_says_what_to_keep() -> None:
    root = query(state=False)
    found = plan(root, table(root, ALL))
    assert found.committed == -1
    assert "The Delta table words has batches 0 to 5, so leave the offsets as they are." in about(found)[1]


def test_a_batch_that_the_table_does_not_have_is_run_again() -> None:
    root = query()
    found = plan(root, table(root, range(4)))
    severity, message = about(found)
    assert (severity, found.committed, found.skips) == ("error", -1, True)
    assert "The Delta table words does not have batch 4, so its results are lost." in message
    assert "remove the offsets above 4, all with their .crc: a restart then runs batch 4." in message
    assert "Check whether" not in message


def test_a_batch_that_was_taken_back_and_is_skipped_is_lost() -> None:
    root = query()
    _, message = about(plan(root, table(root, ALL, undone=[3])))
    assert "does not have batch 3, but has batch 5, and skips every batch up to that." in message
    assert "remove the offsets" not in message


def test_of_two_tables_both_have_to_have_a_batch() -> None:
    root = query()
    _, message = about(plan(root, table(root, ALL), table(root, range(2))))
    assert "Each of the Delta tables words, words does not have batch 2" in message


@pytest.mark.parametrize("case", ["another query's", "expired", "none"])
def test_what_a_table_does_not_show_is_to_be_checked(case: str) -> None:
    root = query()
    named = {
        "another query's": [table(root, ALL, writer="other")],
        "expired": [table(root, [5], undone=[5], expired=True)],
        "none": [],
    }
    severity, message = about(plan(root, *named[case]))
    assert severity == "error"
    assert "Check whether the sink has batches 0 to 5." in message
