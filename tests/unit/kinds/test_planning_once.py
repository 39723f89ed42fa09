"""One question plans once, however many parts of its answer follow from the plan."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Hashable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from cklog.kinds.kind import Kind
from tests.conftest import SAMPLES
from tests.program import cklog

PLANNERS = {
    "cklog.kinds.snapshots": "plan_snapshots",
    "cklog.runs.batches.line": "plan_of",
    "cklog.runs.records.plan": "search_line",
}
"""The function that plans, where it is looked up, for Flink, Spark and subtasks that checkpoint one by one."""


def plans(monkeypatch: pytest.MonkeyPatch, planner: str, *asked: str | Path) -> list[Sequence[Hashable]]:
    """The arguments of every call of a planner while a command runs, without the readers."""
    module = importlib.import_module(planner)
    calls: list[Sequence[Hashable]] = []
    plan = getattr(module, PLANNERS[planner])

    def counted(*given: Any, **named: Any) -> Any:
        calls.append((*map(repr, given[1:]), repr(named)))
        return plan(*given, **named)

    monkeypatch.setattr(module, PLANNERS[planner], counted)
    ended = cklog(*asked, "--json")
    assert ended.code in (0, 3, 5), ended.err
    return calls


RUNS = {
    "flink-orders": "cklog.kinds.snapshots",
    "spark-wordcount": "cklog.runs.batches.line",
    "uncoordinated-join": "cklog.runs.records.plan",
}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("command", ["impact", "recovery-line"])
def test_a_question_plans_once(run: str, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(plans(monkeypatch, RUNS[run], command, SAMPLES / run)) == 1


def test_impact_plans_more_than_once_without_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test above shows, it shows of the plans that are kept."""
    monkeypatch.setattr(Kind, "reading_once", lambda self: nullcontext())
    assert len(plans(monkeypatch, RUNS["flink-orders"], "impact", SAMPLES / "flink-orders")) > 1


@pytest.mark.parametrize(
    ("planner", "folder", "table"),
    [
        (RUNS["flink-orders"], "flink-older-checkpoint/checkpoints", "db.orders=flink-older-checkpoint/table"),
        (RUNS["spark-wordcount"], "spark-delta-restored/ck", "orders=spark-delta-restored/table"),
    ],
)
def test_beside_tables_no_question_plans_twice(
    planner: str, folder: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = SAMPLES / "tables"
    name, _, path = table.partition("=")
    counted = Counter(plans(monkeypatch, planner, "impact", tables / folder, "--sink", f"{name}={tables / path}"))
    assert counted
    assert max(counted.values()) == 1
