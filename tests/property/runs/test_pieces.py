"""What may go of a store of base and delta checkpoints, by the definition: every rule, every number, every need."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cklog.errors import NotFound, UsageError
from cklog.inputs.offers import OffersPieces
from cklog.inputs.pieces import PIECES, PiecesRead
from cklog.retention.plan import RetentionPlan
from cklog.retention.policy import RetentionPolicy
from cklog.runs.pieces.analyses import inspect_pieces, version_retention
from tests.examples import examples

Piece = dict[str, Any]
Owner = tuple[str, int]
Checkpoint = tuple[Owner, int]

OWNERS: tuple[Owner, ...] = (("a", 0), ("a", 1), ("b", 0))


def piece(operator: str, subtask: int, store: str, version: int, **more: Any) -> Piece:
    found: Piece = {"operator": operator, "subtask": subtask, "store": store, "version": version, "form": "base"}
    return found | {"parent": None, "bytes": 10, "duration_ms": None, "path": "", "flaw": None} | more


@st.composite
def stores(draw: st.DrawFn) -> list[Piece]:
    """Chains of one or two variables a subtask, some versions gone, some pieces with a flaw."""
    found = []
    for operator, subtask in OWNERS:
        for store in draw(st.sampled_from([("",), ("x", "y")])):
            for version in draw(st.sets(st.integers(0, 6), max_size=7)):
                form = draw(st.sampled_from(["base", "delta", "delta"]))
                parent = draw(st.none() | st.integers(0, version - 1)) if form == "delta" and version else None
                flaw = draw(st.sampled_from([None, None, None, "is torn"]))
                size = draw(st.none() | st.integers(0, 99))
                more = {"form": form, "parent": parent, "flaw": flaw, "bytes": size}
                found.append(piece(operator, subtask, store, version, **more))
    return found


@dataclass
class Definition:
    """What is to become of each checkpoint, one by one."""

    pieces: list[Piece]
    policy: RetentionPolicy
    chains: dict[tuple[str, int, str], dict[int, Piece]] = field(init=False)

    def __post_init__(self) -> None:
        self.chains = {}
        for one in self.pieces:
            self.chains.setdefault((one["operator"], one["subtask"], one["store"]), {})[one["version"]] = one

    def parent(self, name: tuple[str, int, str], version: int) -> int | None:
        """The version that a delta stands on, be it there or not."""
        one = self.chains[name][version]
        before = [other for other in self.chains[name] if other < version]
        if one["form"] == "base":
            return None
        return one["parent"] if one["parent"] is not None else max(before, default=None)

    def can(self, name: tuple[str, int, str], version: int) -> bool:
        one = self.chains[name].get(version)
        if one is None or one["flaw"] is not None:
            return False
        parent = self.parent(name, version)
        return one["form"] == "base" or (parent is not None and self.can(name, parent))

    def checkpoints(self) -> dict[Checkpoint, list[tuple[str, int, str]]]:
        """The chains that have each."""
        found: dict[Checkpoint, list[tuple[str, int, str]]] = {}
        for name, versions in self.chains.items():
            for version in versions:
                found.setdefault((name[:2], version), []).append(name)
        return found

    def named(self, texts: tuple[str, ...]) -> set[Checkpoint]:
        return {one for one in self.checkpoints() if called(one) in texts}

    def rules(self) -> dict[Checkpoint, tuple[str, str, str | None]]:
        """Fate, rule, and the newest checkpoint that is a delta on it and stays."""
        held, marked, keep = self.checkpoints(), self.named(self.policy.marked), self.policy.keep
        whole = {one for one, names in held.items() if all(self.can(name, one[1]) for name in names)}
        found: dict[Checkpoint, str] = {}
        for owner, version in held:
            newest = sorted((v for o, v in whole if o == owner), reverse=True)
            wanted = newest[: keep or 1]
            one = (owner, version)
            if newest[:1] == [version]:
                found[one] = "line"
            elif one in self.named(self.policy.pins):
                found[one] = "pin"
            elif version in newest[: keep or 0] and one not in marked:
                found[one] = "keep"
            elif one not in whole and (len(wanted) < (keep or 1) or version > wanted[-1]):
                found[one] = "repairable" if newest else "last"
        needs: dict[Checkpoint, set[Checkpoint]] = {
            one: {(one[0], parent) for name in names if (parent := self.parent(name, one[1])) in self.chains[name]}
            for one, names in held.items()
        }
        stays = set(found)
        while more := {other for one in stays for other in needs[one]} - stays:
            stays |= more
        told: dict[Checkpoint, tuple[str, str, str | None]] = {}
        for one in held:
            by = max((other for other in stays if one in needs[other]), default=None)
            if one in found:
                told[one] = ("VALID" if found[one] == "line" else "KEEP", found[one], None)
            elif one in stays:
                assert by is not None
                told[one] = ("KEEP", "marked" if one in marked else "chain", called(by))
            else:
                rule = "deletable" if one in marked else "obsolete" if one in whole else "broken"
                told[one] = ("KEEP" if rule == "broken" and not self.policy.drop_broken else "OBSOLETE", rule, None)
        return told


def called(one: Checkpoint) -> str:
    (operator, subtask), version = one
    return f"{operator}/{subtask}={version}"


class Stored:
    """A parser of pieces that are at hand."""

    name = "stored"

    def __init__(self, pieces: list[Piece], together: str = "subtask") -> None:
        self.restored_together = together
        self._table = pa.Table.from_pylist(pieces, PIECES)

    def pieces(self) -> PiecesRead:
        return PiecesRead(self._table, (), ())


def planned(pieces: list[Piece], policy: RetentionPolicy, together: str = "subtask") -> RetentionPlan:
    return version_retention(cast(OffersPieces, Stored(pieces, together)), policy).result


@given(stores(), st.data())
@settings(max_examples=examples(200))
def test_every_checkpoint_has_the_fate_that_the_definition_gives_it(pieces: list[Piece], data: st.DataObject) -> None:
    names = sorted({called(((p["operator"], p["subtask"]), p["version"])) for p in pieces})
    some = st.sets(st.sampled_from(names), max_size=4) if names else st.just(set[str]())
    policy = RetentionPolicy(
        keep=data.draw(st.none() | st.integers(1, 4)),
        pins=tuple(sorted(data.draw(some))),
        marked=tuple(sorted(data.draw(some))),
        drop_broken=data.draw(st.booleans()),
    )
    definition = Definition(pieces, policy)
    draft = version_retention(cast(OffersPieces, Stored(pieces)), policy)
    expected = definition.rules()
    assert {r.checkpoint: (r.fate, r.rule, r.needed_by) for r in draft.result.rows} == {
        called(one): told for one, told in expected.items()
    }
    sizes = {
        called(one): sum(definition.chains[name][one[1]]["bytes"] or 0 for name in names)
        for one, names in definition.checkpoints().items()
    }
    assert {r.checkpoint: r.bytes for r in draft.result.rows} == sizes
    warned = {f.subject for f in draft.findings if f.id == "marked-but-needed"}
    assert warned == {
        called(one) for one, told in expected.items() if told[1] == "line" and called(one) in policy.marked
    }


def test_chains_of_a_run_go_back_together() -> None:
    """b/0 lacks version 3 and has lost version 2: the run goes back to 1, though a/0 alone could stay at 3."""
    pieces = [piece("a", 0, "", version) for version in (1, 2, 3)]
    pieces += [piece("b", 0, "", 1), piece("b", 0, "", 2, flaw="is torn")]
    rows = planned(pieces, RetentionPolicy(), "run").rows
    assert {row.checkpoint: row.rule for row in rows} == {
        "run/0=1": "line",
        "run/0=2": "repairable",
        "run/0=3": "repairable",
    }
    alone = planned(pieces, RetentionPolicy()).rows
    assert {row.checkpoint for row in alone if row.rule == "line"} == {"a/0=3", "b/0=1"}


@pytest.mark.parametrize(
    ("named", "hint"),
    [("a/0=4", "the last ones are 1, 2, 3"), ("b/0=1", "there are a/0"), ("a/1=1", "there are a/0")],
)
def test_a_checkpoint_that_is_not_there_is_refused_with_those_that_are(named: str, hint: str) -> None:
    pieces = [piece("a", 0, "", version) for version in (1, 2, 3)]
    for policy in (RetentionPolicy(pins=(named,)), RetentionPolicy(marked=(named,))):
        with pytest.raises(NotFound) as refused:
            planned(pieces, policy)
        assert refused.value.hint == hint


def test_a_window_is_refused_where_nothing_tells_the_time() -> None:
    with pytest.raises(UsageError):
        planned([piece("a", 0, "", 1)], RetentionPolicy(window=5, now=9))


@given(stores())
@settings(max_examples=examples(50))
def test_inspection_counts_what_is_stored_of_each_operator(pieces: list[Piece]) -> None:
    rows = inspect_pieces(cast(OffersPieces, Stored(pieces))).result["operators"]
    assert [row["operator"] for row in rows] == sorted({p["operator"] for p in pieces})
    for row in rows:
        mine = [p for p in pieces if p["operator"] == row["operator"]]
        versions = {p["version"] for p in mine}
        assert (row["checkpoints"], row["from"], row["to"]) == (len(versions), min(versions), max(versions))
        assert row["variables"] == len({p["store"] for p in mine} - {""})
        assert row["deltas"] == sum(p["form"] == "delta" for p in mine)
        assert row["bytes"] == sum(p["bytes"] or 0 for p in mine)
        assert row["flawed"] == sum(p["flaw"] is not None for p in mine)
