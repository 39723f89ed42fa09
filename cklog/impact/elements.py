"""The elements of the sources: how many lie in a span, which is the last before a moment, the first after it.

Three kinds of knowledge: a log that lists them, a period that the manifest states, nothing. What is not known is
bounded, never guessed: the last element before x comes at x - 1 at the latest, the first from x on at x.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from cklog.impact.model import NOTHING, UNKNOWN, Count


class Elements(Protocol):
    """The elements of one source, over application time."""

    def count(self, start: int, end: int | None) -> Count:
        """Return how many elements lie in [start, end) ms; `end` None: all from `start` on."""

    def last_before(self, moment: int) -> int | None:
        """Return the time of the last element before `moment`, a bound from above; None: there is none."""

    def first_from(self, moment: int) -> int | None:
        """Return the time of the first element at or after `moment`; None: not known."""

    def number(self, moment: int) -> int | None:
        """Return how many elements come before `moment`; None: not known."""

    def time_of(self, number: int) -> int | None:
        """Return when element `number` (from 0) comes; None: not known."""


@dataclass(frozen=True, slots=True)
class Listed(Elements):
    """Elements whose times are known, rising; `complete`: none come after the last of them."""

    times: Sequence[int]
    complete: bool = True

    def count(self, start: int, end: int | None) -> Count:
        high = len(self.times) if end is None else bisect_left(self.times, end)
        found = max(0, high - bisect_left(self.times, start))
        all_seen = self.complete or (end is not None and bool(self.times) and self.times[-1] >= end)
        return Count(found, found if all_seen else None)

    def last_before(self, moment: int) -> int | None:
        if not self.complete and (not self.times or self.times[-1] < moment):
            return moment - 1
        at = bisect_left(self.times, moment)
        return self.times[at - 1] if at else None

    def first_from(self, moment: int) -> int | None:
        at = bisect_left(self.times, moment)
        return self.times[at] if at < len(self.times) else None

    def number(self, moment: int) -> int | None:
        at = bisect_left(self.times, moment)
        return at if self.complete or at < len(self.times) else None

    def time_of(self, number: int) -> int | None:
        return self.times[number] if number < len(self.times) else None


@dataclass(frozen=True, slots=True)
class Periodic(Elements):
    """An element every `period` ms, the first at `start` (ms); None: only the period is known."""

    period: int
    start: int | None = None

    def count(self, start: int, end: int | None) -> Count:
        if end is None:
            return UNKNOWN
        if end <= start:
            return NOTHING
        if self.start is not None:
            found = self._count_before(end, self.start) - self._count_before(start, self.start)
            return Count(found, found)
        return Count((end - start) // self.period, -(-(end - start) // self.period))

    def _count_before(self, moment: int, start: int) -> int:
        """How many elements come before `moment`, the first at `start`."""
        return max(0, -((start - moment) // self.period))

    def last_before(self, moment: int) -> int | None:
        if self.start is None:
            return moment - 1
        before = self._count_before(moment, self.start)
        return self.start + self.period * (before - 1) if before else None

    def first_from(self, moment: int) -> int | None:
        if self.start is None:
            return None
        return self.start + self.period * self._count_before(moment, self.start)

    def number(self, moment: int) -> int | None:
        return None if self.start is None else self._count_before(moment, self.start)

    def time_of(self, number: int) -> int | None:
        return None if self.start is None else self.start + self.period * number


@dataclass(frozen=True, slots=True)
class Unseen(Elements):
    """Elements of which nothing is known."""

    def count(self, start: int, end: int | None) -> Count:
        return NOTHING if end is not None and end <= start else UNKNOWN

    def last_before(self, moment: int) -> int | None:
        return moment - 1

    def first_from(self, moment: int) -> int | None:
        return None

    def number(self, moment: int) -> int | None:
        return None

    def time_of(self, number: int) -> int | None:
        return None


@dataclass(frozen=True, slots=True)
class ElementStream:
    """What passes between two operators: elements at the times of those of `sources`.

    `elements` : of each source
    `sources` : one that is named twice reaches the operator on two ways, and each of its elements counts twice
    `share` : all: one for each element; some: filters drop some; any: joins make none or many of one
    """

    elements: Mapping[str, Elements]
    sources: tuple[str, ...]
    share: str = "all"

    def count(self, start: int, end: int | None) -> Count:
        """Return how many elements pass in [start, end) ms; `end` None: all from `start` on."""
        if end is not None and end <= start:
            return NOTHING
        if self.share == "any":
            return UNKNOWN
        found = NOTHING
        for name in self.sources:
            found += self.elements[name].count(start, end)
        return found if self.share == "all" else Count(0, found.most)

    def last_before(self, moment: int) -> int | None:
        """Return the last time before `moment` at which an element may pass; None: there is none before it."""
        found = [self.elements[name].last_before(moment) for name in self.sources]
        return max((time for time in found if time is not None), default=None)

    def comes_at(self, moment: int) -> bool:
        """Return whether an element certainly passes at `moment`: what `last_before` says may be a bound."""
        return any(self.elements[name].count(moment, moment + 1).least for name in self.sources)

    def first_from(self, moment: int) -> int | None:
        """Return the first time from `moment` on at which an element passes; None: not known."""
        found = [self.elements[name].first_from(moment) for name in self.sources]
        if self.share != "all" or any(time is None for time in found):
            return None
        return min((time for time in found if time is not None), default=None)

    def marked_from(self, moment: int) -> int:
        """Return the time by which each source has sent its first element from `moment` on.

        Sources whose elements are not known do not count; if none are known, the answer is `moment`.
        """
        found = [self.elements[name].first_from(moment) for name in self.sources]
        return max((time for time in found if time is not None), default=moment)

    def number(self, moment: int) -> int | None:
        """Return how many elements pass before `moment`; None: not known."""
        if self.share != "all" or len(self.sources) != 1:
            return None
        return self.elements[self.sources[0]].number(moment)

    def time_of(self, number: int) -> int | None:
        """Return when element `number` (from 0) passes, of a stream with one source; None: not known."""
        return self.elements[self.sources[0]].time_of(number)

    def aligned(self, slide: int, start: int | None, moment: int) -> bool | None:
        """Return whether windows that start with the first element from `moment` on align with those before it.

        `start` : where they started at first, in ms; None: with the first element

        Returns None if that is not known.
        """
        if slide == 1 or self._multiples_of(slide):
            return True
        first = self.elements[self.sources[0]].time_of(0) if len(self.sources) == 1 and start is None else start
        again = self.first_from(moment)
        if self.share != "all" or first is None or again is None:
            return None
        return (again - first) % slide == 0

    def _multiples_of(self, slide: int) -> bool:
        """Whether all elements are a multiple of `slide` apart."""
        found = [self.elements[name] for name in self.sources]
        return len(found) == 1 and isinstance(found[0], Periodic) and found[0].period % slide == 0


def merged(streams: Sequence[ElementStream], elements: Mapping[str, Elements], share: str) -> ElementStream:
    """Return what an operator passes on, given its inputs and the share that it adds: at the times of all of them."""
    order = ("all", "some", "any")
    shares = [share, *(stream.share for stream in streams)]
    sources = tuple(name for stream in streams for name in stream.sources)
    return ElementStream(elements, sources, max(shares, key=order.index))
