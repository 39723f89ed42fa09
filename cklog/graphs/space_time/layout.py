"""Where everything goes in a space-time diagram: one horizontal lane per subtask, time from left to right.

Watermarks tell in which interval a message was sent and received, not when. So an order of all events is made up that
agrees with everything known: checkpoints in their order, messages inside their intervals, the messages of a channel
in theirs, and no message received before it was sent. Then every event gets a place in that order, checkpoints at
their times if the picture has room for that.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

BOX_GAP = 10.0  # pixels between two boxes, or a box and the end of an arrow
_END_GAP = 12.0  # pixels between the ends of two arrows
_SLOPE = 22.0  # pixels that an arrow goes to the right, at least
_EASE = (1.0, 0.3, 0.08)  # of these distances between arrows, tried where a picture must not get wider
_STRETCH = (1.0, 1.4, 2.0, 2.5, 3.0, 3.5, 4.0)  # how many times as wide as it must be a picture to scale may get
_ANY_WIDTH = 1.4  # up to this stretch it may have any width,
_WIDE = 1_900.0  # above not more pixels than these
_ROOMY = 560.0  # pixels that it may take without having to


@dataclass(frozen=True, slots=True)
class Lane:
    """The boxes of a subtask, by their times in ms (None: not known).

    `pinned_left`: the first is the initial state, at the left edge. `pinned_right`: the last is the current state, at
    the right edge.
    """

    times: tuple[int | None, ...]
    pinned_left: bool = False
    pinned_right: bool = False


@dataclass(frozen=True, slots=True)
class Arrow:
    """Messages sent after box `tail` of lane `source` and received after box `head` of lane `target`.

    `head` -1: before the first box shown; `target` None: never received. `seq` orders those of a channel.
    """

    channel: str
    seq: int
    source: int
    tail: int
    target: int | None = None
    head: int = -1


@dataclass(frozen=True, slots=True)
class DiagramLayout:
    """Places in pixels from the left edge: of each lane's boxes, and of each arrow's ends (None: never received).

    `scale`: (ms, x) of the first and of the last checkpoint if the picture is to scale.
    """

    width: float
    boxes: tuple[tuple[float, ...], ...]
    tails: tuple[float, ...]
    heads: tuple[float | None, ...]
    scale: tuple[tuple[int, float], tuple[int, float]] | None


def lay_out(lanes: Sequence[Lane], arrows: Sequence[Arrow], box: float, width: float | None = None) -> DiagramLayout:
    """Place boxes of width `box` and arrows; to scale if all times are known and it gets not much wider by that.

    With a `width` the picture is as wide, or wider where events have no room in it. An initial state that has received
    what another one sends only later is not at the left edge.
    """
    entered = {arrow.target for arrow in arrows if arrow.head < 0}
    lanes = [replace(lane, pinned_left=lane.pinned_left and i not in entered) for i, lane in enumerate(lanes)]
    at_ease = _Placing(lanes, arrows, box)
    if width is None:
        return at_ease.to_scale() or _Placing(lanes, arrows, box, urgent=True).to_scale() or at_ease.close()
    urgent = _Placing(lanes, arrows, box, urgent=True)
    return at_ease.to_scale_in(width) or urgent.to_scale_in(width) or at_ease.close(width)


def flow_order(operators: Iterable[str], pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Order operators so that messages run downward: each after those that send to it, as far as there is no cycle.

    >>> flow_order(["join", "sink", "a", "b10", "b9"], [("a", "join"), ("join", "sink"), ("b9", "b10")])
    ['a', 'b9', 'b10', 'join', 'sink']
    """
    waiting = sorted(operators, key=_natural_key)
    before = {name: {a for a, b in pairs if b == name and a != name} for name in waiting}
    found: list[str] = []
    while waiting:
        later, done = set(waiting), set(found)
        ready = (name for name in waiting if before[name].isdisjoint(later))
        entered = (name for name in waiting if not before[name].isdisjoint(done))
        found.append(next(chain(ready, entered, waiting)))
        waiting.remove(found[-1])
    return found


def _natural_key(name: str) -> list[str | int]:
    """Return a sort key by which `op10` comes after `op9`."""
    return [int(part) if i % 2 else part for i, part in enumerate(re.split(r"(\d{1,18})", name))]


class _Placing:
    """The search for a place of every event.

    Events are numbers: first the boxes lane by lane, then the sends, then the receipts (one per arrow). `_lane` is the
    lane of each, `_order` all events in the order made up, `_rank` the place of each in it; `_rows` are the events of
    each lane in that order, `_at` the place of each event in its row.

    `urgent`: what is sent in an interval is ordered by when it must be received, not only by the interval. That leaves
    more room between checkpoints at their times, but operators rather send after they have received.
    """

    def __init__(self, lanes: Sequence[Lane], arrows: Sequence[Arrow], box: float, urgent: bool = False) -> None:
        self._lanes, self._arrows, self._box, self._urgent = lanes, arrows, box, urgent
        self._ease = _EASE[0]
        self._first = [0]
        for lane in lanes:
            self._first.append(self._first[-1] + len(lane.times))
        self._boxes = self._first[-1]
        self._count = self._boxes + 2 * len(arrows)
        self._lane = [i for i, lane in enumerate(lanes) for _ in lane.times]
        self._lane += [a.source for a in arrows] + [-1 if a.target is None else a.target for a in arrows]
        self._order = self._event_order()
        self._rank = {event: rank for rank, event in enumerate(self._order)}
        self._rows: list[list[int]] = [[] for _ in lanes]
        for event in self._order:
            self._rows[self._lane[event]].append(event)
        self._at = {event: k for row in self._rows for k, event in enumerate(row)}

    def close(self, width: float = 0.0) -> DiagramLayout:
        """Place events as close as they can stand, or over all of a `width` that has room for them."""
        return self._layout_with(self._left_edge(), {}, width)

    def to_scale_in(self, width: float) -> DiagramLayout | None:
        """Place checkpoints at their times in a picture of this width, arrows closer if they must; None: no room."""
        timed, pins = self._box_times(), self._left_edge()
        for self._ease in _EASE if timed else ():
            closest, end = self._leftmost_places(pins), width - BOX_GAP - self._box / 2
            if closest is None:
                return None
            oldest, newest = min(timed.values()), max(timed.values())
            start = max(closest[event] for event, time in timed.items() if time == oldest)
            step = (end - start - (_SLOPE * self._ease if self._arrows else 0.0)) / (newest - oldest)
            scaled = {**pins, **{event: start + step * (time - oldest) for event, time in timed.items()}}
            low = self._leftmost_places(scaled) if step > 0 else None
            if low is not None and max(low.values()) <= end:
                return self._layout_with(scaled, timed, width)
        self._ease = _EASE[0]
        return None

    def to_scale(self) -> DiagramLayout | None:
        """Place checkpoints at their times, in the least width that allows it; None if none does."""
        timed, pins = self._box_times(), self._left_edge()
        closest = self._leftmost_places(pins)
        for stretch in _STRETCH if timed and closest else ():
            scaled = {**pins, **self._places_to_scale(timed, closest or {}, stretch)}
            fits = stretch <= _ANY_WIDTH or max(scaled.values()) <= _WIDE
            if fits and self._leftmost_places(scaled) is not None:
                return self._layout_with(scaled, timed)
        return None

    def _left_edge(self) -> dict[int, float]:
        """Pin initial states to the left edge."""
        return {self._first[i]: 0.0 for i, lane in enumerate(self._lanes) if lane.pinned_left}

    def _box_times(self) -> dict[int, int]:
        """Return the time of every box that is no edge of the picture; {} if any is not known, or all are the same."""
        found: dict[int, int] = {}
        for i, lane in enumerate(self._lanes):
            for k, time in enumerate(lane.times):
                edge = (lane.pinned_left and k == 0) or (lane.pinned_right and k == len(lane.times) - 1)
                if time is None and not edge:
                    return {}
                if time is not None:
                    found[self._first[i] + k] = time
        return found if len(set(found.values())) > 1 else {}

    def _places_to_scale(self, timed: dict[int, int], closest: dict[int, float], stretch: float) -> dict[int, float]:
        """Return the places of timed boxes to scale, `stretch` times as wide as events stand at their closest."""
        oldest, newest = min(timed.values()), max(timed.values())
        start = max(closest[event] for event, time in timed.items() if time == oldest)
        width = max(stretch * (max(closest.values()) - start), _ROOMY)
        return {event: start + width * (time - oldest) / (newest - oldest) for event, time in timed.items()}

    def _layout_with(self, pins: dict[int, float], timed: dict[int, int], least: float = 0.0) -> DiagramLayout:
        """Give every event a place: `pins` where they are, the others spread in the room between their neighbours.

        The picture gets at least as wide as `least`.
        """
        low = self._leftmost_places(pins)
        assert low is not None
        width = max(max(low.values(), default=0.0) + BOX_GAP + self._box / 2, least)
        ends = zip(self._lanes, self._first[1:], strict=True)
        pins = pins | {end - 1: width for lane, end in ends if lane.pinned_right}
        latest = self._rightmost_places(pins, width - BOX_GAP - self._box / 2)
        wanted = {event: width * rank / self._count for event, rank in self._rank.items()}
        if timed:
            wanted = self._spread_places(pins, width)
        place: dict[int, float] = {}
        for event in self._order:
            least = max((place[before] + gap for before, gap in self._events_before(event)), default=0.0)
            place[event] = pins.get(event, min(max(wanted[event], least), latest[event]))
        boxes = tuple(tuple(place[e] for e in range(a, b)) for a, b in zip(self._first, self._first[1:], strict=False))
        tails = tuple(place[self._boxes + k] for k in range(len(self._arrows)))
        heads = tuple(place.get(self._boxes + len(self._arrows) + k) for k in range(len(self._arrows)))
        scale = None
        if timed:
            oldest, *_, newest = sorted(timed, key=lambda e: (timed[e], e))
            scale = ((timed[oldest], place[oldest]), (timed[newest], place[newest]))
        return DiagramLayout(width=width, boxes=boxes, tails=tails, heads=heads, scale=scale)

    # --- the order of all events

    def _event_order(self) -> list[int]:
        """Make up an order that agrees with what is known: a receipt as soon as it can be, else the earliest event."""
        followers: list[list[int]] = [[] for _ in range(self._count)]
        for a, b in self._known_order():
            followers[a].append(b)
        any_order = self._sorted_events(followers, [(0.0, 0.0)] * self._count)
        return self._sorted_events(followers, self._event_keys(followers, any_order))

    def _sorted_events(self, followers: list[list[int]], key: list[tuple[float, float]]) -> list[int]:
        """Sort events so that each comes before its followers, and of those that can come next the one of least key.

        A log that contradicts itself has no such order: then the least comes next all the same, and its arrow may
        point left.
        """
        missing = [0] * self._count
        for row in followers:
            for follower in row:
                missing[follower] += 1
        exists = [e for e in range(self._count) if self._lane[e] >= 0]
        by_key = iter(sorted(exists, key=key.__getitem__))
        ready = [(key[e], e) for e in exists if not missing[e]]
        heapq.heapify(ready)
        order: list[int] = []
        done = [False] * self._count
        while len(order) < len(exists):
            event = heapq.heappop(ready)[1] if ready else next(e for e in by_key if not done[e])
            if done[event]:
                continue
            done[event] = True
            order.append(event)
            for follower in followers[event]:
                missing[follower] -= 1
                if not missing[follower]:
                    heapq.heappush(ready, (key[follower], follower))
        return order

    def _known_order(self) -> Iterable[tuple[int, int]]:
        """Yield pairs of events of which the first came first."""
        for first, end in zip(self._first, self._first[1:], strict=False):
            yield from zip(range(first, end), range(first + 1, end), strict=False)
        last: dict[tuple[str, str], int] = {}
        for k in sorted(range(len(self._arrows)), key=lambda k: (self._arrows[k].channel, self._arrows[k].seq)):
            arrow, send, receipt = self._arrows[k], self._boxes + k, self._boxes + len(self._arrows) + k
            ends = [("send", send, arrow.source, arrow.tail)]
            if arrow.target is not None:
                yield send, receipt
                ends.append(("receipt", receipt, arrow.target, arrow.head))
            for kind, event, lane, after in ends:
                if after >= 0:
                    yield self._first[lane] + after, event
                if self._first[lane] + after + 1 < self._first[lane + 1]:
                    yield event, self._first[lane] + after + 1
                if (arrow.channel, kind) in last:
                    yield last[arrow.channel, kind], event
                last[arrow.channel, kind] = event

    def _event_keys(self, followers: list[list[int]], order: list[int]) -> list[tuple[float, float]]:
        """Return the key of every event by which the next one is taken: receipts first, then by time.

        A send has the middle of the time that is left to it by the checkpoints before and after it: those of its
        subtask, or, if it is urgent, all that must be.
        """
        known = self._box_times()
        times = list(chain.from_iterable(self._guessed_times(i, known) for i in range(len(self._lanes))))
        oldest, newest = min(times, default=0.0), max(times, default=0.0)
        after = times + [oldest] * (self._count - self._boxes)
        before = times + [newest] * (self._count - self._boxes)
        for event in order:
            for follower in followers[event] if self._urgent or event < self._boxes else ():
                if follower >= self._boxes:
                    after[follower] = max(after[follower], after[event])
        for event in reversed(order):
            if event >= self._boxes:
                bounds = (before[f] for f in followers[event] if self._urgent or f < self._boxes)
                before[event] = min(bounds, default=newest)
        sends = self._boxes + len(self._arrows)
        return [(float(e < sends), (after[e] + before[e]) / 2) for e in range(self._count)]

    def _guessed_times(self, i: int, known: dict[int, int]) -> list[float]:
        """Return the times of a lane's boxes; their numbers if no times are `known`."""
        first, lane = self._first[i], self._lanes[i]
        if not known:
            return [float(k) for k in range(len(lane.times))]
        oldest, newest = min(known.values()), max(known.values())
        return [float(known.get(first + k, oldest - 1 if k == 0 else newest + 1)) for k in range(len(lane.times))]

    # --- places

    def _least_gap(self, a: int, b: int) -> float:
        """Return how far apart two neighbours of a lane must be."""
        boxes = (a < self._boxes) + (b < self._boxes)
        if boxes == 2:
            return BOX_GAP + self._box
        return _END_GAP * self._ease if not boxes else BOX_GAP * self._ease + self._box / 2

    def _events_before(self, event: int) -> list[tuple[int, float]]:
        """List the events that must be left of one, and by how much."""
        row = self._rows[self._lane[event]]
        at = self._at[event]
        found = [(row[at - 1], self._least_gap(row[at - 1], event))] if at else []
        send = event - len(self._arrows)
        if event >= self._boxes + len(self._arrows) and self._rank[send] < self._rank[event]:
            found.append((send, _SLOPE * self._ease))
        return found

    def _leftmost_places(self, pins: dict[int, float]) -> dict[int, float] | None:
        """Return the leftmost place of every event; None if a pin cannot be kept."""
        found: dict[int, float] = {}
        for event in self._order:
            least = max((found[before] + gap for before, gap in self._events_before(event)), default=0.0)
            if event in pins and least > pins[event] + 1e-6:
                return None
            found[event] = pins.get(event, least)
        return found

    def _rightmost_places(self, pins: dict[int, float], right: float) -> dict[int, float]:
        """Return the rightmost place of every event that leaves room for those after it."""
        found = {event: pins.get(event, right) for event in self._order}
        for event in reversed(self._order):
            for before, gap in self._events_before(event):
                if before not in pins:
                    found[before] = min(found[before], found[event] - gap)
        return found

    def _spread_places(self, pins: dict[int, float], width: float) -> dict[int, float]:
        """Place arrow ends at even distances between the boxes around them."""
        found: dict[int, float] = {}
        for row in self._rows:
            left, waiting = 0.0, list[int]()
            for event in row:
                if event >= self._boxes:
                    waiting.append(event)
                    continue
                found[event] = pins[event]
                found.update(_even_places(waiting, left, pins[event]))
                left, waiting = pins[event], []
            found.update(_even_places(waiting, left, width))
        return found


def _even_places(events: list[int], left: float, right: float) -> dict[int, float]:
    """Place events between two edges, e.g. three between 0 and 4 at 1, 2 and 3."""
    step = (right - left) / (len(events) + 1)
    return {event: left + step * k for k, event in enumerate(events, 1)}
