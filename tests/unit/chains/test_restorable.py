"""Chains: every tree of one base and six deltas, with each file lost in turn."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from cklog.chains.restorable import Chains, chains_of
from cklog.inputs.pieces import PIECES
from cklog.model.findings import Where
from tests.oracles.chains import descendants

DELTAS = 6


def piece(version: int, parent: int | None = None, **more: Any) -> dict[str, Any]:
    empty = dict.fromkeys(PIECES.names) | {"operator": "a", "subtask": 0, "store": "", "path": f"{version}"}
    return empty | {"version": version, "form": "base" if parent is None else "delta", "parent": parent} | more


def chains(rows: list[dict[str, Any]]) -> Chains:
    return chains_of(pa.Table.from_pylist(rows, schema=PIECES))


def trees() -> Iterator[tuple[int, ...]]:
    """The parents of versions 1 to 6, each of them older: all 720 trees on a base, version 0."""
    return itertools.product(*(range(version) for version in range(1, DELTAS + 1)))


@pytest.mark.parametrize("harm", ["deleted", "corrupted"])
def test_exactly_the_descendants_of_what_is_lost_cannot_be_restored(harm: str) -> None:
    """Of every tree, with each file lost in turn, a chain each; and the newest that can be restored is right."""
    for parents in trees():
        whole = [piece(0), *(piece(version, parent) for version, parent in enumerate(parents, 1))]
        left = [row | {"subtask": lost} for lost in range(DELTAS + 1) for row in whole]
        for row in left:
            row["flaw"] = "is torn" if row["version"] == row["subtask"] else None
        found = chains([row for row in left if harm != "deleted" or row["flaw"] is None])
        for lost in range(DELTAS + 1):
            gone = descendants(parents, lost)
            able = [version for version in range(DELTAS + 1) if found.can_restore(lost, version)]
            assert able == [version for version in range(DELTAS + 1) if version not in gone]
            assert found.newest(lost) == max(able, default=None)
            for version in gone:
                link = found.why_not(lost, version)
                assert link is not None
                assert (link.version, link.row is None) == (lost, harm == "deleted")


def test_all_trees_are_tried() -> None:
    assert len(set(trees())) == 720


def test_a_chain_is_read_from_its_base_on() -> None:
    rows = [piece(0), piece(1, 0), piece(2, 1), piece(3, 1)]
    found = chains(rows)
    assert [found.reading(0, version) for version in (0, 2, 3, 9)] == [[0], [0, 1, 2], [0, 1, 3], []]


def test_a_base_beside_a_delta_is_what_is_read_and_the_delta_where_the_base_is_flawed() -> None:
    """As Spark's stores have it: V.snapshot and V.delta."""
    rows = [piece(0), piece(1, 0), piece(1, path="1.snapshot")]
    assert chains(rows).reading(0, 1) == [2]
    rows[2]["flaw"] = "is torn"
    assert chains(rows).reading(0, 1) == [0, 1]


def test_parents_that_are_not_older_are_told_as_cycles_and_never_followed() -> None:
    rows = [piece(1), piece(4, 6), piece(5, 4), piece(6, 5), piece(7, 7), piece(8, 99)]
    found = chains(rows)
    assert [found.can_restore(0, version) for version in (1, 4, 5, 6, 7, 8)] == [True] + [False] * 5
    told = found.findings[0]
    assert (told.id, told.severity, told.where) == ("bad-parent", "error", (Where("4"),))
    assert "a/0=4 is a delta on 6, which is not older: 4 on 6 on 5 on 4 is a cycle" in told.message
    assert "2 more deltas of this chain too" in told.message


def test_pieces_that_disagree_are_not_used_and_equal_ones_count_once() -> None:
    same = [piece(1), piece(2, 1, bytes=5), piece(2, 1, bytes=5, path="copy")]
    assert chains(same).reading(0, 2) == [0, 1]
    assert chains(same).findings == ()
    other = [*same[:2], piece(2, 1, bytes=6)]
    assert not chains(other).can_restore(0, 2)
    assert [f.id for f in chains(other).findings] == ["conflicting-piece"]


def test_what_a_run_restores_together_every_chain_must_have() -> None:
    rows = [piece(v, operator=o) for o, v in (("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2))]
    assert chains(rows).common("run") == [2, 2]
    assert chains(rows).common("subtask") == [3, 2]
    assert chains([*rows[:3], piece(9, operator="b")]).common("run") == [None, None]


def test_variables_of_a_subtask_come_and_go() -> None:
    rows = [piece(1, store="x"), piece(2, store="x"), piece(2, store="y", flaw="is torn"), piece(3, store="y")]
    assert chains(rows).common("subtask") == [3, 3]
    assert chains(rows[:3]).common("subtask") == [1, 1]


def test_a_chain_is_found_by_its_name_and_no_other() -> None:
    """Names before the first chain, between two, and behind the last one are of none."""
    found = chains([{**piece(0), "operator": name, "store": store} for name in "bd" for store in ("", "x")])
    wanted = {("b", 0, ""): 0, ("b", 0, "x"): 1, ("d", 0, ""): 2, ("d", 0, "x"): 3}
    asked = itertools.product("abcde", (0, 1), ("", "w", "x", "y"))
    assert {name: at for name in asked if (at := found.chain_named(name)) is not None} == wanted
