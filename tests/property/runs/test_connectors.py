"""The order of positions: against sets of transactions written out one by one, and places in one long log."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cklog.runs.connectors.taken import comes_again
from cklog.source_positions.gtids import gtids
from cklog.source_positions.positions import compare
from cklog.source_positions.retained import retained

SOURCES = [f"{n:08x}-0000-0000-0000-000000000000" for n in range(3)]
TRANSACTIONS = st.sets(st.tuples(st.sampled_from(SOURCES), st.integers(1, 12)), max_size=20)


def written(transactions: set[tuple[str, int]], draw: st.DataObject) -> str:
    """A set as MySQL, or somebody in a hurry, may write it: spans in any order, one by one or joined."""
    parts = []
    for source in draw.draw(st.permutations(SOURCES)):
        numbers = sorted(n for s, n in transactions if s == source)
        spans: list[str] = []
        while numbers:
            end = 1
            while end < len(numbers) and numbers[end] == numbers[end - 1] + 1 and draw.draw(st.booleans()):
                end += 1
            spans.append(f"{numbers[0]}-{numbers[end - 1]}" if end > 1 or draw.draw(st.booleans()) else f"{numbers[0]}")
            numbers = numbers[end:]
        if spans:
            upper = draw.draw(st.booleans())
            parts.append(":".join([source.upper() if upper else source, *draw.draw(st.permutations(spans))]))
    return draw.draw(st.sampled_from([",", ", ", ",\n"])).join(parts)


def order_of(one: set[tuple[str, int]], other: set[tuple[str, int]]) -> int | None:
    """From the definition: inclusion of sets."""
    return 0 if one == other else -1 if one < other else 1 if one > other else None


@given(TRANSACTIONS, TRANSACTIONS, st.data())
def test_sets_of_transactions_are_ordered_by_inclusion(
    one: set[tuple[str, int]], other: set[tuple[str, int]], data: st.DataObject
) -> None:
    first, second = written(one, data), written(other, data)
    assert gtids(first).holds(gtids(second)) is (other <= one)
    here, there = ({"file": "b.1", "pos": 4, "gtids": text} for text in (first, second))
    assert compare(here, there) == order_of(one, other)
    if one and other:
        assert retained(here, second).held is (other <= one)  # purged: all of it must have been taken


@given(TRANSACTIONS, st.sampled_from(SOURCES), st.integers(1, 12), st.data())
def test_a_transaction_comes_again_unless_it_is_in_the_set(
    stored: set[tuple[str, int]], source: str, number: int, data: st.DataObject
) -> None:
    offset = {"file": "b.1", "pos": 4, "gtids": written(stored, data) or f"{SOURCES[0]}:99"}
    assert comes_again(offset, {"gtid": f"{source}:{number}"}) is ((source, number) not in stored)


PLACES = st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(0, 2), st.integers(0, 2))


@given(PLACES, PLACES, st.integers(0, 999_998))
def test_places_in_binlogs_are_ordered_as_in_one_long_log(
    one: tuple[int, int, int, int], other: tuple[int, int, int, int], first: int
) -> None:
    """All places are listed in the order in which a server writes them; the order of two is that of their numbers."""
    log = [(f, p, e, r) for f in range(4) for p in range(6) for e in range(3) for r in range(3)]
    here, there = (
        {"file": f"mysql-bin.{first + f:06}", "pos": p} | ({"event": e} if e else {}) | ({"row": r} if r else {})
        for f, p, e, r in (one, other)
    )
    at, against = log.index(one), log.index(other)
    assert compare(here, there) == (at > against) - (at < against)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=2), st.integers(0, 40))
def test_changes_of_postgresql_are_ordered_by_the_commit_before_them_then_by_place(
    places: list[tuple[int, int]], high: int
) -> None:
    one, other = ({"lsn_commit": (high << 32) + c, "lsn": (high << 32) + n} for c, n in places)
    assert compare(one, other) == (places[0] > places[1]) - (places[0] < places[1])
