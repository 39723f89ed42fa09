"""Chains against their definition, on random forests with several pieces per version, flaws and impossible links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from cklog.chains.build import piece_microseconds, piece_sizes
from cklog.chains.restorable import Chains, chains_of
from cklog.chains.ways import TOO_LARGE, UNKNOWN, ways
from cklog.inputs.pieces import PIECES
from tests.examples import examples

Piece = dict[str, Any]
Name = tuple[str, int, str]

_FLAWS = st.sampled_from([None, None, None, "is torn"])


@st.composite
def piece(draw: st.DrawFn) -> Piece:
    """A piece of one of a few chains; sometimes it cannot be read, or stands on what is not older."""
    form = draw(st.sampled_from(["base", "delta", "delta"]))
    version = draw(st.integers(0, 8))
    parent = draw(st.none() | st.integers(max(version - 3, 0), version - 1 if version else 0) | st.integers(0, 9))
    return {
        "operator": draw(st.sampled_from("ab")),
        "subtask": draw(st.integers(0, 1)),
        "store": draw(st.sampled_from(["", "v"])),
        "version": version,
        "form": form,
        "parent": parent if form == "delta" else None,
        "bytes": draw(st.none() | st.integers(0, 2) | st.integers(-(2**63), 2**63 - 1)),
        "duration_ms": draw(st.none() | st.sampled_from([0.0, 1.5, float("nan"), -1.0, float("inf")])),
        "path": draw(st.sampled_from("xyz")),
        "flaw": draw(_FLAWS),
    }


pieces = st.lists(piece(), max_size=24)


@dataclass(frozen=True)
class Oracle:
    """The definition, by recursion over lists of pieces."""

    pieces: Sequence[Piece]

    def names(self) -> list[Name]:
        return sorted({name_of(p) for p in self.pieces})

    def versions(self, name: Name) -> list[int]:
        return sorted({p["version"] for p in self.pieces if name_of(p) == name})

    def parent(self, p: Piece) -> int | None:
        older = [v for v in self.versions(name_of(p)) if v < p["version"]]
        return p["parent"] if p["parent"] is not None else max(older, default=None)

    def usable(self, name: Name, version: int, form: str) -> Piece | None:
        """The one piece of a form that can be read, none if several disagree."""
        found = [p for p in self.pieces if name_of(p) == name and p["version"] == version and p["form"] == form]
        found = [p for p in found if p["flaw"] is None]
        if form == "delta":
            found = [p for p in found if (parent := self.parent(p)) is None or parent < version]
        said = {(p["bytes"], self.parent(p)) for p in found}
        return min(found, key=lambda p: p["path"]) if len(said) == 1 else None

    def reading(self, name: Name, version: int) -> list[Piece] | None:
        base = self.usable(name, version, "base")
        if base is not None:
            return [base]
        delta = self.usable(name, version, "delta")
        parent = None if delta is None else self.parent(delta)
        below = None if parent is None else self.reading(name, parent)
        return None if delta is None or below is None else [*below, delta]

    def common(self, names: Sequence[Name], every: bool) -> int | None:
        """The newest version of which all chains, or all that name it, have what they need."""
        for version in sorted({v for name in names for v in self.versions(name)}, reverse=True):
            having = [name for name in names if version in self.versions(name)]
            whole = all(self.reading(name, version) is not None for name in having)
            if whole and (len(having) == len(names) or not every):
                return version
        return None


def name_of(p: Piece) -> Name:
    return p["operator"], p["subtask"], p["store"]


def chains(rows: Sequence[Piece]) -> Chains:
    return chains_of(pa.Table.from_pylist(list(rows), schema=PIECES))


@given(pieces)
@settings(max_examples=examples(400))
def test_a_version_is_read_from_an_intact_base_or_from_its_parent_and_a_delta(rows: list[Piece]) -> None:
    found, oracle = chains(rows), Oracle(rows)
    assert [tuple(name) for name in found.names] == oracle.names()
    for name in oracle.names():
        chain = found.chain_named(name)
        assert chain is not None
        able = []
        for version in oracle.versions(name):
            expected = oracle.reading(name, version)
            read = [rows[row] for row in found.reading(chain, version)]
            assert [key(p) for p in read] == [key(p) for p in expected or []]
            assert found.can_restore(chain, version) == (expected is not None)
            able += [version] if expected else []
        assert found.newest(chain) == max(able, default=None)


def key(p: Piece) -> tuple[Any, ...]:
    return p["version"], p["form"], p["bytes"], p["path"]


@given(pieces)
@settings(max_examples=examples(300))
def test_what_can_be_restored_together(rows: list[Piece]) -> None:
    found, oracle = chains(rows), Oracle(rows)
    names = oracle.names()
    assert found.common("run") == [oracle.common(names, every=True)] * len(names)
    for name, newest in zip(names, found.common("subtask"), strict=True):
        assert newest == oracle.common([other for other in names if other[:2] == name[:2]], every=False)


@given(pieces, st.randoms())
@settings(max_examples=examples(200))
def test_the_order_of_the_pieces_does_not_matter(rows: list[Piece], random: Any) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    one, other = chains(rows), chains(shuffled)
    assert one.findings == other.findings or {f.id for f in one.findings} == {f.id for f in other.findings}
    for chain in range(len(one.names)):
        for version in one.version[one.first[chain] : one.first[chain + 1]].tolist():
            here = [key(rows[i]) for i in one.reading(chain, version)]
            assert here == [key(shuffled[i]) for i in other.reading(chain, version)]


@given(pieces)
@settings(max_examples=examples(300))
def test_the_link_that_is_named_is_the_nearest_that_fails(rows: list[Piece]) -> None:
    """It fails by itself, and every version between it and the one asked for stands on the next by an intact delta."""
    found, oracle = chains(rows), Oracle(rows)
    for chain, name in enumerate(oracle.names()):
        for version in oracle.versions(name):
            link = found.why_not(chain, version)
            assert (link is None) == found.can_restore(chain, version)
            if link is None:
                continue
            at: int | None = version
            while at != link.version:
                assert at is not None
                delta = oracle.usable(name, at, "delta")
                assert delta is not None
                assert oracle.usable(name, at, "base") is None
                at = oracle.parent(delta)
            if link.row is None:
                assert link.version not in oracle.versions(name)
            else:
                assert at is not None
                assert not oracle.usable(name, at, "base")
                assert not oracle.usable(name, at, "delta")


forests = st.lists(st.tuples(st.booleans(), st.integers(0, 10**6), st.integers(-1, 2**62)), max_size=40)


@given(forests)
@settings(max_examples=examples(300))
def test_sums_along_ways_equal_a_loop(nodes: list[tuple[bool, int, int]]) -> None:
    below = [i - 1 if ahead else (at % (i + 1)) - 1 for i, (ahead, at, _) in enumerate(nodes)]
    values = [value for _, _, value in nodes]
    found = ways(np.array(below, np.int64))
    sums = found.sums(np.array(values, np.int64))
    for node in range(len(nodes)):
        way = [node]
        while below[way[-1]] >= 0:
            way.append(below[way[-1]])
        assert (found.end[node], found.length[node]) == (way[-1], len(way) - 1)
        parts = [values[i] for i in way]
        exact = UNKNOWN if min(parts) < 0 else sum(parts)
        assert sums[node] == exact if exact < 2**61 else sums[node] in (exact, TOO_LARGE)
        assert sums[node] == TOO_LARGE or exact < 2**63


@given(pieces)
def test_what_is_not_believed_is_not_known_and_told(rows: list[Piece]) -> None:
    table = pa.Table.from_pylist(rows, schema=PIECES)
    odd = [p for p in rows if not 0 <= (p["bytes"] or 0) <= 2**53 or not 0 <= (p["duration_ms"] or 0) < 2**43]
    assert bool(odd) == any(f.id == "bad-size" for f in chains(rows).findings)
    for p, size, took in zip(rows, piece_sizes(table).tolist(), piece_microseconds(table).tolist(), strict=True):
        assert size == (p["bytes"] if p["bytes"] is not None and 0 <= p["bytes"] <= 2**53 else -1)
        assert took == (1500 if p["duration_ms"] == 1.5 else 0 if p["duration_ms"] == 0.0 else -1)
