"""Stores in the patent's layout against a restart that follows the text of the patent; and deferred deletion."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cklog.chains.restorable import chains_of
from cklog.errors import CklogError
from cklog.parsers.patent.parser import PatentStore
from cklog.retention.links import deletable
from cklog.storage import Root
from tests.builders.patent import Operator, Pairs, export, lines_of
from tests.conftest import SAMPLES
from tests.examples import examples
from tests.program import cklog
from tests.reading.patent import pieces, rows

Reads = list[list[tuple[int, int | None]]]
"""Of each variable, in any order: the versions that are read, with their bytes where those are known."""

Read = list[tuple[int, bytes | None]]


def read(pairs: Pairs, key: str, start: int = 0, end: int | None = None) -> bytes | None:
    """Bytes of a value as a restart reads them; None if it fails.

    The patent: a header {C, last index, last size}, and chunks of which it fetches those that hold what it needs.
    """
    if key in pairs:
        return pairs[key][start:end]
    if f"{key} H" not in pairs:
        return None
    size, last, last_size = (int.from_bytes(pairs[f"{key} H"][at : at + 8], "big") for at in (0, 8, 16))
    end = last * size + last_size if end is None else end
    found = [pairs.get(f"{key} {i}") for i in range(start // size, -(-end // size) if end > start else start // size)]
    whole = None if None in found else b"".join(part for part in found if part is not None)
    return None if whole is None else whole[start % size :][: end - start]


def restart(pairs: Pairs, checkpoint: int) -> list[Read] | None:
    """What a restart from a checkpoint reads of each variable, oldest version first; None if it fails."""
    index, plain = read(pairs, f"{checkpoint} INDEX"), read(pairs, f"{checkpoint} NON")
    if index is None or plain is None or read(pairs, f"{checkpoint} INCR", 0, 0) is None:
        return None
    found: list[Read] = []
    at = 0
    while at < len(index):
        versions = follow(pairs, checkpoint, at)
        if versions is None:
            return None
        found.append(versions)
        at += 25 if index[at] else 9
    return found


def follow(pairs: Pairs, checkpoint: int, at: int) -> Read | None:
    """The versions of the variable of one entry, as (checkpoint, bytes), by fields iii and iv down to the base.

    A restart knows where a variable ends by reading it; here the next entry tells, if it can be read.
    """
    index = f"{checkpoint} INDEX"
    form = read(pairs, index, at, at + 1)
    behind = at + (25 if form == b"\x01" else 9)
    entry = read(pairs, index, at, behind)
    if form is None or entry is None:
        return None
    start, size = int.from_bytes(entry[1:9], "big"), size_of(pairs, index)
    after = read(pairs, index, behind + 1, behind + 9) if behind < size else b""
    end = size_of(pairs, f"{checkpoint} INCR") if not after else int.from_bytes(after, "big")
    data = read(pairs, f"{checkpoint} INCR", start, end)
    if data is None:
        return None
    own = (checkpoint, data if after is not None else None)
    if form == b"\x00":
        return [own]
    before = follow(pairs, *(int.from_bytes(entry[n : n + 8], "big") for n in (9, 17)))
    return None if before is None else [*before, own]


def size_of(pairs: Pairs, key: str) -> int:
    if key in pairs:
        return len(pairs[key])
    size, last, last_size = (int.from_bytes(pairs.get(f"{key} H", b"")[at : at + 8], "big") for at in (0, 8, 16))
    return last * size + last_size


def in_order(reads: Iterable[list[tuple[int, int | None]]]) -> Reads:
    return sorted(reads, key=str)


def told(pairs: Pairs, lines: list[bytes] | None = None) -> dict[int, Reads]:
    """{checkpoint that can be restored: what is read of each variable, as (checkpoint, bytes)}, by cklog."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "op.jsonl").write_bytes(b"".join(lines_of(pairs) if lines is None else lines))
        table = PatentStore(Root(folder)).pieces()[0]
    found = chains_of(table)
    listed = table.to_pylist()
    answer: dict[int, Reads] = {}
    for version in sorted({row["version"] for row in listed}):
        of = [c for c in range(len(found.names)) if found.node(c, version) is not None]
        if all(found.can_restore(c, version) for c in of):
            reads = [found.reading(c, version) for c in of if found.names[c].store]
            answer[version] = in_order([(listed[r]["version"], listed[r]["bytes"]) for r in rows_] for rows_ in reads)
    newest = set(found.common("subtask"))
    assert newest == {max(answer, default=None)}
    return answer


def expected(pairs: Pairs) -> dict[int, Reads]:
    """The same by restarts."""
    answer = {}
    for k in sorted({int(key.split()[0]) for key in pairs}):
        found = restart(pairs, k)
        if found is not None:
            answer[k] = in_order(
                [(version, None if data is None else len(data)) for version, data in versions] for versions in found
            )
    return answer


@st.composite
def stores(draw: st.DrawFn) -> Pairs:
    """A store of up to eight checkpoints and three variables; restarts from older ones make trees of them."""
    made = Operator()
    everyone = ["a", "b", "c"][: draw(st.integers(1, 3))]
    states: list[dict[str, tuple[int, int]]] = [{}]
    for k in range(1, draw(st.integers(1, 8)) + 1):
        made.last = dict(draw(st.sampled_from(states[-2:])))
        whole = draw(st.booleans()) or k == 1
        chosen = {}
        for name in everyone if whole else draw(st.lists(st.sampled_from(everyone), unique=True).map(sorted)):
            form = draw(st.sampled_from(["base", "delta"])) if name in made.last else "base"
            chosen[name] = (form, name.encode() * draw(st.integers(0, 9)))
        made.checkpoint(k, chosen, b"n" * draw(st.integers(0, 3)))
        states.append(dict(made.last))
    size = draw(st.sampled_from([0, 1, 4, 9, 30]))
    return made.in_chunks(size) if size else made.pairs


@settings(max_examples=examples(80))
@given(stores())
def test_every_checkpoint_of_an_intact_store_is_read_as_a_restart_reads_it(pairs: Pairs) -> None:
    assert told(pairs) == expected(pairs)


@settings(max_examples=examples(80))
@given(stores(), st.data())
def test_keys_that_are_lost_cost_what_a_restart_can_no_longer_read(pairs: Pairs, data: st.DataObject) -> None:
    """Nothing that fails is believed. What is refused beside it: pieces whose end a lost index no longer tells."""
    lost = data.draw(st.sets(st.sampled_from(sorted(pairs)), min_size=1, max_size=3))
    left = {key: value for key, value in pairs.items() if key not in lost}
    if not left:
        return
    found, true = told_or_none(left), expected(left)
    assert set(found) <= set(true)
    assert all(versions_of(found[k]) == versions_of(true[k]) for k in found)
    assert all(sizes_of(found[k]) - {None} <= sizes_of(true[k]) for k in found), "or a size is not known"
    if not any("H" in key or "INDEX" in key for key in lost):
        assert found == true


def versions_of(reads: Reads) -> list[list[int]]:
    return sorted([version for version, _ in versions] for versions in reads)


def sizes_of(reads: Reads) -> set[int | None]:
    return {size for versions in reads for _, size in versions}


def told_or_none(pairs: Pairs) -> dict[int, Reads]:
    try:
        return told(pairs)
    except CklogError:
        return {}


@settings(max_examples=examples(80))
@given(stores(), st.data())
def test_with_checksums_no_changed_byte_makes_an_answer_newer_or_another(pairs: Pairs, data: st.DataObject) -> None:
    true = expected(pairs)
    spoilt = bytearray(b"".join(lines_of(pairs, summed=True)))
    spoilt[data.draw(st.integers(0, len(spoilt) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        found = told(pairs, [bytes(spoilt)])
    except CklogError:
        return
    assert set(found) <= set(true)
    assert all(versions_of(found[k]) == versions_of(true[k]) for k in found)
    assert all(sizes_of(found[k]) - {None} <= sizes_of(true[k]) for k in found), "or a size is no longer known"


SEVEN = {"chain": [0, 0, 1, 2, 3, 4, 5, 6], "tree": [0, 0, 1, 1, 2, 2, 3, 3], "two": [0, 0, 1, 2, 1, 4, 5, 3]}
"""What each of seven checkpoints stands on; the first is a base."""


def seven(stands: list[int], size: int) -> Pairs:
    made = Operator()
    places: dict[int, tuple[int, int]] = {}
    for k in range(1, 8):
        made.last = {"v": places[stands[k]]} if k > 1 else {}
        made.checkpoint(k, {"v": ("delta" if k > 1 else "base", b"v" * (10 + k))})
        places[k] = made.last["v"]
    return made.in_chunks(size) if size else made.pairs


def descendants(stands: list[int], k: int) -> set[int]:
    found = {k}
    for child in range(k + 1, 8):
        found |= {child} if stands[child] in found else set()
    return found


def damaged(pairs: Pairs) -> Iterator[tuple[str, Pairs]]:
    """Each key lost in turn; each header and chunk cut short; each index entry turned into nonsense."""
    for key in pairs:
        yield key, {k: v for k, v in pairs.items() if k != key}
        if key.endswith(("H", "INDEX")) or key.split()[-1].isdigit():
            yield key, pairs | {key: pairs[key][:-1]}
        if key.endswith("INDEX"):
            yield key, pairs | {key: b"\x07" + pairs[key][1:]}


@pytest.mark.quarter
@pytest.mark.parametrize("size", [0, 5])
@pytest.mark.parametrize("shape", SEVEN)
def test_each_value_damaged_in_turn_costs_exactly_its_descendants(shape: str, size: int) -> None:
    """One base and six deltas (issue 6): what stands on the value goes, and the newest one left is right."""
    stands = SEVEN[shape]
    pairs = seven(stands, size)
    whole = told(pairs)
    assert set(whole) == set(range(1, 8))
    for key, left in damaged(pairs):
        k, part = int(key.split()[0]), key.split()[1]
        gone = {k} if part == "NON" else descendants(stands, k)
        assert told(left) == {n: reads for n, reads in whole.items() if n not in gone}, key


@pytest.mark.parametrize("operator", ["figure", "totals"])
def test_each_value_of_the_sample_lost_in_turn(tmp_path: Path, operator: str) -> None:
    """`cklog chain` names the checkpoint that a restart by the patent's text still reads, or none."""
    lines = (SAMPLES / "patent-store" / f"{operator}.jsonl").read_bytes().splitlines(keepends=True)
    pairs = {found["key"]: bytes.fromhex(found["value_hex"]) for found in map(json.loads, lines)}
    for key, line in zip(pairs, lines, strict=True):
        (tmp_path / f"{operator}.jsonl").write_bytes(b"".join(other for other in lines if other is not line))
        true = expected({k: v for k, v in pairs.items() if k != key})
        ended = cklog("chain", tmp_path, "--json")
        [group] = json.loads(ended.out)["result"]["together"]
        assert group["checkpoint"] == max(true, default=None), key
        only_older = operator == "figure" and key in ("1 NON", "2 NON")
        assert ended.code == (4 if not true else 0 if only_older else 3), key


# --- deferred deletion


@st.composite
def forests(draw: st.DrawFn) -> tuple[list[int], dict[int, list[int]], set[int]]:
    """Nodes, what each stands on (older ones, some gone), and marks."""
    nodes = sorted(draw(st.sets(st.integers(0, 11))))
    parents = {node: draw(st.lists(st.integers(0, max(node - 1, 0)), max_size=2)) if node else [] for node in nodes}
    return nodes, parents, draw(st.sets(st.integers(0, 11)))


@settings(max_examples=examples(500))
@given(forests())
def test_what_goes_is_what_only_marked_ones_stand_on(case: tuple[list[int], dict[int, list[int]], set[int]]) -> None:
    nodes, parents, marked = case
    kept = [node for node in nodes if node not in marked]
    needed: set[int] = set()
    for node in kept:
        way = [node]
        while way:
            one = way.pop()
            if one in parents and one not in needed:
                needed.add(one)
                way += parents[one]
    assert deletable(nodes, parents, marked) == set(nodes) - needed


@settings(max_examples=examples(300))
@given(st.integers(1, 9), st.sets(st.integers(1, 9)), st.randoms(use_true_random=False))
def test_the_patent_s_procedure_step_by_step(length: int, bases: set[int], order: random.Random) -> None:
    """Requests to delete come one by one, in any order; at each, the text of the patent is done as it stands."""
    stands = {k: [k - 1] for k in range(2, length + 1) if k not in bases}
    stored, marked, asked = set(range(1, length + 1)), set[int](), set[int]()
    for k in order.sample(sorted(stored), order.randint(0, length)):
        asked.add(k)
        if any(k in stands.get(other, ()) for other in stored):
            marked.add(k)
        else:
            stored.discard(k)
            while k in stands and stands[k][0] in marked and stands[k][0] in stored:
                [k] = stands[k]
                stored.discard(k)
        assert set(range(1, length + 1)) - stored == deletable(range(1, length + 1), stands, asked)


# --- anything at all


def mutated(lines: list[bytes], order: random.Random) -> bytes:
    """An export with a few changes: bytes, digits, lines, keys and numbers."""
    data = bytearray(b"".join(lines))
    for _ in range(order.randint(1, 6)):
        kind, at = order.randrange(7), order.randrange(max(len(data), 1))
        if kind == 0 and data:
            data[at] ^= 1 << order.randrange(8)
        elif kind == 1 and data:
            data[at] = order.choice(b"0123456789abcdefH ")
        elif kind == 2:
            del data[at : at + order.randint(1, 40)]
        elif kind == 3:
            data[at:at] = order.choice([b"0" * 16, b"f" * 16, b"7" + b"f" * 15, b"\n", b'{"key":"', b"00" * 25])
        elif kind == 4:
            data += order.choice(lines)
        elif kind == 5:
            del data[at:]
        else:
            kept = data.split(b"\n")
            order.shuffle(kept)
            data = bytearray(b"\n".join(kept))
    return bytes(data)


@settings(max_examples=examples(200))
@given(stores(), st.randoms(use_true_random=False))
def test_mutated_exports_have_an_answer(pairs: Pairs, order: random.Random) -> None:
    try:
        found = told({}, [mutated(lines_of(pairs), order)])
    except CklogError:
        return
    assert len(found) <= 20


def test_the_oracle_reads_the_patent_s_example(tmp_path: Path) -> None:
    made = Operator()
    made.checkpoint(1, {"data4": ("base", b"4")})
    made.checkpoint(2, {"data3": ("base", b"33"), "data4": ("delta", b"444")})
    assert restart(made.pairs, 2) == [[(2, b"33")], [(1, b"4"), (2, b"444")]]
    assert ("op", "variable-2", 2) in rows(pieces(export(tmp_path, "op", made.pairs))[0])
