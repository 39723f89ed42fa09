"""What may go is missed by nobody: random histories, every failure, every policy; every chain and tree of seven."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, combinations, product
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from cklog.engine.scan import Split
from cklog.inputs.offers import KindName
from cklog.inputs.pieces import PIECES, PiecesRead, Together
from cklog.model.findings import Finding
from cklog.model.question import Question
from cklog.retention.plan import RetentionPlan
from cklog.retention.policy import RetentionPolicy
from cklog.run import open_run
from cklog.runs.pieces.analyses import version_retention
from tests.examples import examples
from tests.oracles import lines as oracle

Records = list[dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """An execution, its checkpoint records (some of them deltas), and what somebody asked to keep."""

    execution: oracle.Execution
    records: Records
    policy: RetentionPolicy


@st.composite
def cases(draw: st.DrawFn) -> Case:
    execution = draw(oracle.executions(30))
    records = oracle.checkpoint_records(execution)
    for record in records:
        older = [r["checkpoint"] for r in records if name_of(r) == name_of(record)]
        older = [number for number in older if number < record["checkpoint"]]
        parent = draw(st.none() | st.sampled_from(older)) if older else None
        if parent is not None:
            record |= {"form": "delta", "parent": parent}
    names = [f"{name_of(r)}={r['checkpoint']}" for r in records]
    some: st.SearchStrategy[set[str]] = st.sets(st.sampled_from(names), max_size=3) if names else st.just(set())
    times = [r["time"] for r in records]
    since = draw(st.none() | st.sampled_from(times)) if times else None
    policy = RetentionPolicy(
        keep=draw(st.none() | st.integers(1, 3)),
        window=None if since is None else max(times) - since,
        now=None if since is None else max(times),
        pins=tuple(sorted(draw(some))),
        marked=tuple(sorted(draw(some))),
    )
    return Case(execution, records, policy)


def name_of(record: dict[str, Any]) -> str:
    return f"{record['operator']}/{record['subtask']}"


@contextmanager
def on_disk(execution: oracle.Execution, records: Records) -> Iterator[str]:
    operators: dict[str, int] = {}
    for subtask in execution.subtasks:
        operator, _, number = subtask.partition("/")
        operators[operator] = max(operators.get(operator, 0), int(number) + 1)
    manifest = {
        "operators": [{"name": name, "parallelism": count} for name, count in operators.items()],
        "channels": [{"channel": name} for name in execution.channels],
    }
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "job.json").write_text(json.dumps(manifest))
        (root / "checkpoints").mkdir()
        (root / "checkpoints" / "all.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
        yield folder


def planned(execution: oracle.Execution, records: Records, policy: RetentionPolicy) -> RetentionPlan:
    with on_disk(execution, records) as folder:
        plan: RetentionPlan = open_run(folder).retention(policy).result
        return plan


def line_of(case: Case, records: Records, failed: frozenset[str]) -> tuple[Any, ...]:
    """Where each subtask restarts, and what is replayed to it, if those failed and the others run on."""
    alive = sorted(set(case.execution.subtasks) - failed)
    current = [r for r in oracle.checkpoint_records(case.execution, alive) if r.get("kind") == "volatile"]
    with on_disk(case.execution, [*records, *current]) as folder:
        answer = open_run(folder).recovery_line(Question(failed=tuple(sorted(failed))))
    entries = [(e.operator, e.subtask, e.checkpoint, e.state) for e in answer.result.line]
    ranges = [(c.channel, c.replay_from, c.replay_to) for c in answer.result.channels]
    return answer.result.consistent, entries, ranges, answer.result.sources


def subsets(names: Sequence[str]) -> Iterator[frozenset[str]]:
    sizes = (combinations(names, size) for size in range(1, len(names) + 1))
    return map(frozenset, chain.from_iterable(sizes))


@given(cases())
@settings(max_examples=examples(30))
def test_deleting_everything_proposed_changes_no_line_of_any_failure(case: Case) -> None:
    plan = planned(case.execution, case.records, case.policy)
    gone = {row.checkpoint for row in plan.rows if row.fate == "OBSOLETE"}
    kept = [r for r in case.records if f"{name_of(r)}={r['checkpoint']}" not in gone]
    emptied = [r | {"status": "incomplete"} if f"{name_of(r)}={r['checkpoint']}" in gone else r for r in case.records]
    for failed in subsets(case.execution.subtasks):
        before = line_of(case, case.records, failed)
        assert line_of(case, kept, failed) == before
        assert line_of(case, emptied, failed) == before


@given(cases())
@settings(max_examples=examples(50))
def test_what_the_lines_of_the_definition_hold_is_valid(case: Case) -> None:
    """Without deltas: every stored checkpoint in the line of any failure, by enumeration."""
    bases = [{name: value for name, value in r.items() if name not in ("form", "parent")} for r in case.records]
    plan = planned(case.execution, bases, case.policy)
    fates = {row.checkpoint: row.fate for row in plan.rows}
    for failed in subsets(case.execution.subtasks):
        for subtask, index in oracle.latest_line(case.execution, failed).items():
            if 0 < index <= case.execution.checkpoints(subtask):
                assert fates[f"{subtask}={index}"] == "VALID"


@given(cases())
@settings(max_examples=examples(50))
def test_who_asks_to_keep_gets_it_with_all_that_it_stands_on(case: Case) -> None:
    plan = planned(case.execution, case.records, case.policy)
    rows = {row.checkpoint: row for row in plan.rows}
    stays = {name for name, row in rows.items() if row.fate != "OBSOLETE"}
    assert set(case.policy.pins) <= stays
    for record in case.records:
        name, parent = f"{name_of(record)}={record['checkpoint']}", record.get("parent")
        newer = [r for r in case.records if name_of(r) == name_of(record) and r["checkpoint"] > record["checkpoint"]]
        if name not in case.policy.marked:
            if len(newer) < (case.policy.keep or 0):
                assert name in stays
            if case.policy.since is not None and record["time"] >= case.policy.since:
                assert name in stays
        if name in stays and parent is not None:
            assert f"{name_of(record)}={parent}" in stays
        if rows[name].rule in ("chain", "marked"):
            needed_by = rows[name].needed_by
            child = next(r for r in case.records if f"{name_of(r)}={r['checkpoint']}" == needed_by)
            assert (child["parent"], needed_by in stays) == (record["checkpoint"], True)


@given(cases(), st.data())
@settings(max_examples=examples(50))
def test_damage_lets_go_of_nothing_that_the_whole_history_needs(case: Case, data: st.DataObject) -> None:
    """Records that were lost, and a torn line in their place."""
    bases = [{name: value for name, value in r.items() if name not in ("form", "parent")} for r in case.records]
    lost = data.draw(st.sets(st.integers(0, max(len(bases) - 1, 0)), max_size=3))
    left = [r for i, r in enumerate(bases) if i not in lost]
    if not (lost and left):
        return
    names = {f"{name_of(r)}={r['checkpoint']}" for r in left}
    policy = RetentionPolicy()
    needed = {row.checkpoint for row in planned(case.execution, bases, policy).rows if row.fate == "VALID"}
    with on_disk(case.execution, left) as folder:
        with open(f"{folder}/checkpoints/all.jsonl", "a") as file:
            file.write("".join('{"operator": "a", \n' for _ in lost))
        plan: RetentionPlan = open_run(folder).retention(policy).result
    gone = {row.checkpoint for row in plan.rows if row.fate == "OBSOLETE"}
    assert plan.doubt == "damaged"
    assert not gone & needed & names


# --- chains and trees of one base and six deltas, all of them


SIZE = 7
TREES = [(0, *parents) for parents in product(*(range(1, number) for number in range(2, SIZE + 1)))]
"""The parent of each checkpoint 1 … 7; 1 is the base."""


class Store:
    """A parser of chains that are given."""

    name = "given"
    kind: KindName = "pieces"
    restored_together: Together = "subtask"

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._table = pa.Table.from_pylist(rows, PIECES)

    def pieces(self) -> PiecesRead:
        return PiecesRead(self._table, (), ())

    def findings(self, table: str) -> tuple[Finding, ...]:
        return ()

    def splits(self, table: str, split_bytes: int) -> tuple[Split, ...]:
        return ()


def pieces(operator: str, tree: tuple[int, ...], without: int = 0, flawed: int = 0) -> list[dict[str, Any]]:
    return [
        {
            "operator": operator,
            "subtask": 0,
            "store": "",
            "version": number,
            "form": "delta" if parent else "base",
            "parent": parent or None,
            "bytes": 10,
            "duration_ms": None,
            "path": f"{operator}/{number}",
            "flaw": "it is torn" if number == flawed else None,
        }
        for number, parent in enumerate(tree, 1)
        if number != without
    ]


def ancestry(tree: tuple[int, ...], number: int, lost: int = 0) -> set[int]:
    """A checkpoint and what it stands on, down to one that is lost."""
    parent = tree[number - 1]
    return {number} | (ancestry(tree, parent, lost) if parent and number != lost else set())


def fates(rows: list[dict[str, Any]], policy: RetentionPolicy) -> dict[str, dict[int, str]]:
    found: dict[str, dict[int, str]] = {}
    for row in version_retention(Store(rows), policy).result.rows:
        name, _, number = row.path.partition("/0=")
        found.setdefault(name, {})[int(number)] = row.fate
    return found


def test_of_every_tree_exactly_what_the_kept_ones_stand_on_stays() -> None:
    asked = [(tree, pin) for tree in TREES for pin in range(1, SIZE + 1)]
    rows = [row for i, (tree, _) in enumerate(asked) for row in pieces(f"op{i}", tree)]
    found = fates(rows, RetentionPolicy(pins=tuple(f"op{i}/0={pin}" for i, (_, pin) in enumerate(asked))))
    for i, (tree, pin) in enumerate(asked):
        stays = {number for number, fate in found[f"op{i}"].items() if fate != "OBSOLETE"}
        assert stays == ancestry(tree, SIZE) | ancestry(tree, pin)


def test_of_every_tree_that_lost_one_all_that_might_be_the_newest_stays() -> None:
    """What is newer than the newest whole one might be, once what is lost is found again."""
    asked = [(tree, lost) for tree in TREES for lost in range(1, SIZE + 1)]
    torn = fates(
        [r for i, (tree, lost) in enumerate(asked) for r in pieces(f"op{i}", tree, 0, lost)], RetentionPolicy()
    )
    gone = fates([r for i, (tree, lost) in enumerate(asked) for r in pieces(f"op{i}", tree, lost)], RetentionPolicy())
    for i, (tree, lost) in enumerate(asked):
        whole = [n for n in range(1, SIZE + 1) if lost not in ancestry(tree, n)]
        roots = range(max([n for n in whole if n != lost], default=1), SIZE + 1)
        broken = {n for n in range(1, SIZE + 1) if lost in ancestry(tree, n)}
        needed = set().union(*(ancestry(tree, n) for n in roots))
        stays = {number for number, fate in torn[f"op{i}"].items() if fate != "OBSOLETE"}
        assert needed <= stays <= needed | broken  # what cannot be restored is given up only where that is asked for
        needed = set().union(*(ancestry(tree, n, lost) for n in roots)) - {lost}
        stays = {number for number, fate in gone[f"op{i}"].items() if fate != "OBSOLETE"}
        assert needed <= stays <= needed | broken


def test_what_would_be_among_those_kept_stays() -> None:
    """With 5 torn 6 and 7 cannot be restored either: --keep 2 counts 4 and 3; mended, it would count 7 and 6."""
    found = fates(pieces("op", (0, 0, 0, 0, 0, 5, 6), 0, 5), RetentionPolicy(keep=2))["op"]
    assert {number for number, fate in found.items() if fate != "OBSOLETE"} == {3, 4, 5, 6, 7}


def test_marks_go_with_the_last_dependant() -> None:
    """US patent 9,471,438: marked while a dependant exists; when none does, it and every marked ancestor go."""
    rows = pieces("op", (0, 1, 2, 3, 0, 5, 6))
    marked = ("op/0=1", "op/0=2", "op/0=3")
    held = fates(rows, RetentionPolicy(keep=SIZE, marked=marked))["op"]
    assert {number for number, fate in held.items() if fate == "OBSOLETE"} == set()
    freed = fates(rows, RetentionPolicy(keep=SIZE, marked=(*marked, "op/0=4")))["op"]
    assert {number for number, fate in freed.items() if fate == "OBSOLETE"} == {1, 2, 3, 4}
