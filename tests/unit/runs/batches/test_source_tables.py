"""Delta tables that a query reads: which version of the log a restart asks for, and whether the log still has it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from cklog.inputs.sink_tables import SinkTable, TableCommit, TableFormat
from cklog.runs.batches.plan import BatchPlan
from cklog.runs.batches.source_tables import cleaned_findings, tables_read
from cklog.sink_tables.fitting import NamedTable
from tests.builders.spark import Memory

HEAD = b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":5,"conf":{}}\n'


def end(version: Any, table: str = "t") -> dict[str, Any]:
    return {"sourceVersion": 1, "reservoirId": table, "reservoirVersion": version, "index": -1}


def planned(ends: Sequence[dict[str, Any]], commits: int) -> BatchPlan:
    """A query whose batches end there, of which so many are committed."""
    files = {"metadata": b'{"id":"q"}'}
    files |= {f"offsets/{n}": HEAD + json.dumps(offset).encode() for n, offset in enumerate(ends)}
    files |= {f"commits/{n}": b'v1\n{"nextBatchWatermarkMs":0}' for n in range(commits)}
    return Memory("memory", (), files).plan()


def table(*versions: int, id: str = "t", format: TableFormat = "delta") -> NamedTable:
    commits = tuple(TableCommit(str(version), version, "append", 1) for version in versions)
    return NamedTable("src", SinkTable("s3://lake/src", format, "main", commits, None, {}, {}, id=id))


def asked(plan: BatchPlan, *tables: NamedTable) -> list[int]:
    return [one.version for one in tables_read(plan, tables)]


def test_a_batch_in_flight_asks_for_the_version_at_which_it_began() -> None:
    assert asked(planned([end(3), end(5), end(8)], 2), table(1)) == [5]


def test_with_nothing_in_flight_the_last_batch_is_planned_again() -> None:
    assert asked(planned([end(3), end(5), end(8)], 3), table(1)) == [5]


def test_the_only_batch_asks_for_its_own_end() -> None:
    """Where it began no file says."""
    assert asked(planned([end(3)], 1), table(1)) == [3]


@pytest.mark.parametrize("other", [table(1, id="u"), table(1, id=""), table(1, format="iceberg")])
def test_other_tables_are_no_sources(other: NamedTable) -> None:
    assert asked(planned([end(3), end(5)], 1), other) == []
    assert asked(planned([end(3), end(5)], 1), other, table(1)) == [3]


@pytest.mark.parametrize("version", [None, "5", True, 5.0])
def test_a_version_that_is_no_number_is_compared_with_nothing(version: Any) -> None:
    assert asked(planned([end(version), end(version)], 1), table(9)) == []


@pytest.mark.parametrize(
    ("versions", "begins"),
    [((9, 8, 7), 7), ((6,), 6), ((5, 6, 7), None), ((0, 9), None), ((), None)],
)
def test_the_log_has_to_begin_at_that_version_or_before(versions: tuple[int, ...], begins: int | None) -> None:
    plan = planned([end(3), end(5), end(8)], 2)
    found = list(cleaned_findings(tables_read(plan, [table(*versions)])))
    assert [(f.id, f.severity, f.subject) for f in found] == [
        ("source-table-cleaned", "error", "source/0") for _ in range(begins is not None)
    ]
    for f in found:
        assert f"resumes Delta table t at version 5, but the log at s3://lake/src begins with version {begins}" in (
            f.message
        )
