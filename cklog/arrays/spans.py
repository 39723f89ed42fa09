"""Sets of sequence numbers as half-open spans."""

from __future__ import annotations

from collections.abc import Iterable

Spans = list[tuple[int, int]]
"""Half-open ranges [from, to), in order and apart where they stand for a set of numbers."""


def without(low: int, high: int, held: Spans) -> Spans:
    """Return what of [low, high) is not in `held`, whose spans are in order and apart.

    >>> without(0, 9, [(0, 2), (3, 4), (8, 12)])
    [(2, 3), (4, 8)]
    """
    found = []
    for a, b in held:
        if low < min(a, high):
            found.append((low, min(a, high)))
        low = max(low, b)
    return [*found, (low, high)] if low < high else found


def joined_spans(spans: Iterable[tuple[int, int]]) -> Spans:
    """Return the spans in order, those that overlap or touch joined to one.

    >>> joined_spans([(5, 7), (0, 2), (2, 3)])
    [(0, 3), (5, 7)]
    """
    found: Spans = []
    for low, high in sorted(spans):
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return found
