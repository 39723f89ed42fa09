"""Latencies from their definition: lists, sorted, and the nearest rank counted off; nothing of `cklog`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction


def nearest_rank(values: Iterable[int], percent: int) -> int:
    """The smallest value that at least `percent` % of the values do not exceed."""
    ordered = sorted(values)
    return next(v for v in ordered if 100 * sum(w <= v for w in ordered) >= percent * len(ordered))


def steps(records: Iterable[tuple[int, int]], step: int) -> dict[int, list[int]]:
    """The latencies of (made, at the sink) by the beginning of the step in which they were at the sink."""
    found: dict[int, list[int]] = defaultdict(list)
    for made, at in records:
        found[at - at % step].append(at - made)
    return dict(found)


def normal(found: Mapping[int, list[int]], step: int, failed_at: int) -> int | None:
    """The median (the lower of two) of the p99 of steps that end before the failure."""
    before = sorted(nearest_rank(values, 99) for start, values in found.items() if start + step <= failed_at)
    return before[(len(before) - 1) // 2] if before else None


def back_at(found: Mapping[int, list[int]], step: int, failed_at: int, factor: Fraction, count: int) -> int | None:
    """The first step from the failure on that, with the `count - 1` next to it, has a normal p99."""
    usual = normal(found, step, failed_at)
    if usual is None:
        return None
    for start in sorted(start for start in found if start >= failed_at):
        row = [found.get(start + i * step) for i in range(count)]
        above = [nearest_rank(latencies, 99) - usual for latencies in row if latencies]
        if len(above) == count and max(above) <= max((factor - 1) * abs(usual), Fraction(1)):
            return start
    return None
