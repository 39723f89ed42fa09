"""The numbers of US patent 9,471,438 beside cklog's: `python benchmarks/fidelity_delta.py`.

Histories with the patent's sizes and times are given to the method, which must come to its D; a store as its text has
it is read back. Then what the patent's own rules lead to: its bound where deltas grow, and its deletion, literally.
Prints rows of Markdown. `docs/fidelity.md` shows what comes out, and `tests/unit/advise/test_figures.py` holds it.
Nothing is fitted; the patent measures nothing that could be compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from cklog.policies.delta_number import DeltaLimits, Prices, pays, scheduled
from cklog.retention.links import deletable

FIGURE = Path(__file__).parents[1] / "sample_logs" / "patent-store" / "figure.jsonl"
"""The three checkpoints of the patent's figures, as `make_patent_store.py` writes them."""

LENGTH = 120
"""Checkpoints of a history: D rises by one at a base, so it has long come to its bound."""


def largest_number(base: float, delta: float, limits: DeltaLimits) -> int:
    """Return the D that the method comes to where all bases cost the same, and all deltas; bytes and ms alike."""
    bases, deltas = (np.full((LENGTH, 1), price) for price in (base, delta))
    recorded = np.zeros((LENGTH, 1), np.bool_)
    prices = Prices(np.array([LENGTH]), recorded, bases, deltas, bases, deltas)
    return int(scheduled(prices, limits, "size").number.max())


def bounds() -> Iterator[str]:
    """Yield the D of each bound that the patent has an example of, or gives a formula for."""
    yield f"| base 400 B, deltas 100 B, ratio 1.5 | D <= 6 | {largest_number(400, 100, DeltaLimits(ratio=1.5))} |"
    capped = largest_number(400, 100, DeltaLimits(ratio=1.5, max_delta=5))
    yield f"| the same, at most 5 deltas in a row | 5 | {capped} |"
    timed = largest_number(400, 50, DeltaLimits(ratio=1e6, max_restore_ms=1000))
    yield f"| base 0.4 s, deltas 0.05 s, restored within 1.0 s (by its formula) | 8 | {timed} |"
    gain = ["yes" if found else "no" for found in pays(np.array([110.0, 111.0]), np.array([100.0, 100.0]))]
    yield f"| does a delta of 100 pay beside a base of 110, of 111? | no, yes | {', '.join(gain)} |"


def index_sizes() -> Iterator[str]:
    """Yield the bytes of an index entry in each form, from the store of the patent's figures."""
    rows = [json.loads(line) for line in FIGURE.read_text(encoding="utf-8").splitlines()]
    size = {row["key"]: len(row["value_hex"]) // 2 for row in rows}
    base, both = size["1 INDEX"], size["2 INDEX"]
    yield f"| index entry, base and delta | 9 B, 25 B | {base} B, {both - base} B |"


def grown(ratio: float) -> float:
    """Return how many times its base the deltas after it take, if they grow fivefold once D is at its bound."""
    base = np.full((60, 1), 400.0)
    delta = np.where(np.arange(60) < 40, 100.0, 500.0)[:, None]
    prices = Prices(np.array([60]), np.zeros((60, 1), np.bool_), base, delta, base, delta)
    chosen = scheduled(prices, DeltaLimits(ratio=ratio), "size")
    runs = np.cumsum(~chosen.delta[:, 0])
    totals = np.bincount(runs, np.where(chosen.delta[:, 0], delta[:, 0], 0.0)).astype(np.float64)
    return float(totals.max() / 400)


def literally_deleted(nodes: Iterable[int], parents: Mapping[int, Iterable[int]], wanted: Iterable[int]) -> list[int]:
    """Return what is left when checkpoints are deleted one after the other as the patent's text says.

    What a delta depends on is marked. What none depends on is deleted, and with it, if all of them are marked, the
    checkpoints that it depends on itself, directly or over others.
    """
    stored, marked = set(nodes), set[int]()
    for node in wanted:
        if any(node in parents.get(other, ()) for other in stored):
            marked.add(node)
            continue
        stored.discard(node)
        before = set[int]()
        new = set(parents.get(node, ()))
        while new:
            before |= new
            new = {parent for at in new for parent in parents.get(at, ())} - before
        before &= stored
        if before <= marked:
            stored -= before
    return sorted(stored)


def _deletable(parents: Mapping[int, Iterable[int]], marked: set[int]) -> set[int]:
    return deletable({1, 2, 3}, parents, marked)


def deletions() -> Iterator[str]:
    """Yield where the patent's deletion leaves too much, and where it takes what another checkpoint needs."""
    chain: Mapping[int, Iterable[int]] = {2: [1], 3: [2]}
    left = literally_deleted((1, 2, 3), chain, (2, 3, 1))
    mine = sorted({1, 2, 3} - _deletable(chain, {1, 2, 3}))
    yield f"| delete 2, 3, 1 of the chain 1-2-3: left | nothing | literally {left}, cklog {mine} |"
    fork: Mapping[int, Iterable[int]] = {2: [1], 3: [1]}
    left = literally_deleted((1, 2, 3), fork, (1, 2))
    mine = sorted({1, 2, 3} - _deletable(fork, {1, 2}))
    yield f"| delete 1, 2 where 2 and 3 are deltas on 1: left | 1 and 3 | literally {left}, cklog {mine} |"


def main() -> None:
    """Print every row."""
    print("| what | patent | comes out |", "|---|---|---|", *bounds(), *index_sizes(), sep="\n")
    print(f"| deltas after a base, ratio 1.5, if they grow fivefold | <= 1.5 bases | {grown(1.5):.2f} bases |")
    print(*deletions(), sep="\n")


if __name__ == "__main__":
    main()
