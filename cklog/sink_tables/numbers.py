"""Sets of whole numbers as spans: sorted half-open intervals that do not touch, however far apart their ends are."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

Spans = tuple[tuple[int, int], ...]

END = 1 << 63
"""Behind every number that a sink counts: a span to here has no end."""


def spans_of(found: Iterable[tuple[int, int]]) -> Spans:
    """Return the union of intervals in any order; empty ones count for nothing.

    >>> spans_of([(5, 7), (1, 3), (3, 4), (9, 9)])
    ((1, 4), (5, 7))
    """
    merged: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)


def within(spans: Spans, start: int, end: int) -> Spans:
    """Return what of spans lies in [start, end).

    >>> within(((1, 4), (5, 9)), 3, 6)
    ((3, 4), (5, 6))
    """
    cut = ((max(a, start), min(b, end)) for a, b in spans[max(bisect_right(spans, (start, start)) - 1, 0) :])
    return tuple((a, b) for a, b in cut if a < b)


def common(some: Spans, others: Spans) -> Spans:
    """Return what is in both.

    >>> common(((1, 4), (5, 9)), ((3, 6),))
    ((3, 4), (5, 6))
    """
    return tuple(part for start, end in others for part in within(some, start, end))


def without(some: Spans, others: Spans) -> Spans:
    """Return what is in the first and not in the second.

    >>> without(((1, 9),), ((0, 2), (4, 5)))
    ((2, 4), (5, 9))
    """
    found: list[tuple[int, int]] = []
    for start, end in some:
        at = start
        for a, b in within(others, start, end):
            found.append((at, a))
            at = b
        found.append((at, end))
    return tuple((a, b) for a, b in found if a < b)


def has(spans: Spans, number: int) -> bool:
    """Return whether a number is in one of the spans."""
    at = bisect_right(spans, (number, END)) - 1
    return at >= 0 and spans[at][0] <= number < spans[at][1]
