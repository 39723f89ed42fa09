"""What a query's results are, from the definition of its windows: Brand et al. (BTW 2017), section 3.2, written apart.

Every ts with (ts - ts0) mod slide = 0 starts a window of the given size. Windows are listed one by one here, and
each result is made anew from all elements: of the window that ends next among those that hold the element's time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from cklog.impact.model import Operator, Window
from cklog.simulate.odysseus.crash import Crash

Stream = list[tuple[int, int, Any]]
"""Time of each element, its place in the order in which all elements are taken, and its value."""

Row = tuple[str, int, Any]
"""An output, a time and a value."""

Taken = tuple[str, int, Any]
"""A source, a time and a value."""


@dataclass(frozen=True)
class Outcome:
    """Results without failure, before a crash, and after the restart."""

    truth: list[Row]
    before: list[Row]
    after: list[Row]


def outcome(operators: Iterable[Operator], functions: Mapping[str, Any], taken: list[Taken], how: Crash) -> Outcome:
    """What the four recoveries leave, by their definitions (sections 3 to 5); `taken` in the order of their times."""
    operators = list(operators)
    truth = results(operators, functions, taken)
    before = results(operators, functions, [one for one in taken if one[1] < how.crash])
    if how.recovery == "precise":  # nothing is lost, nothing comes twice
        return Outcome(truth, before, [row for row in truth if row[1] >= how.crash])
    if how.recovery == "rollback":  # as if no time had passed since the checkpoint
        return Outcome(truth, before, [row for row in truth if row[1] >= how.checkpoint])
    starts = first_times(operators, functions, [one for one in taken if one[1] < how.crash]) if how.aligned else {}
    again = [
        replace(o, windows=(replace(o.windows[0], start=starts[o.name]),)) if o.name in starts else o for o in operators
    ]
    since = how.restart if how.recovery == "gap" else how.checkpoint
    return Outcome(truth, before, results(again, functions, [one for one in taken if one[1] >= since]))


def windows_holding(window: Window, at: int, ts0: int) -> Iterator[range]:
    """Every window that holds a moment, in the order of their ends."""
    first = at - window.size + 1  # one that began before has ended
    first += (ts0 - first) % window.slide
    yield from (range(ts, ts + window.size) for ts in range(first, at + 1, window.slide))


def ends_next(window: Window, at: int, ts0: int) -> range:
    """The window that ends next among those that hold a moment."""
    return next(windows_holding(window, at, ts0))


def first_times(operators: Iterable[Operator], functions: Mapping[str, Any], taken: list[Taken]) -> dict[str, int]:
    """The time that the windows of each operator align with which have no constant start: of its first element."""
    operators = list(operators)
    streams = _streams(operators, functions, taken)
    found = {}
    for operator in operators:
        timed = [w for w in operator.windows if w.kind == "time" and w.start is None and not operator.joins]
        times = [row[:2][::-1] for name in operator.inputs for row in streams[name]]
        if timed and times:
            found[operator.name] = min(times)[1]
    return found


def results(operators: Iterable[Operator], functions: Mapping[str, Any], taken: list[Taken]) -> list[Row]:
    """The results of a query that starts from nothing and takes elements in this order.

    A time window without a start aligns with its first element.
    """
    operators = list(operators)
    streams = _streams(operators, functions, taken)
    read = {name for operator in operators for name in operator.inputs}
    outputs = [o.name for o in operators if o.inputs and o.name not in read]
    rows = [(place, name, time, value) for name in outputs for time, place, value in streams[name]]
    return [(name, time, value) for place, name, time, value in sorted(rows, key=lambda row: row[0])]


def _streams(operators: list[Operator], functions: Mapping[str, Any], taken: list[Taken]) -> dict[str, Stream]:
    streams: dict[str, Stream] = {}
    for operator in operators:
        streams[operator.name] = (
            [(time, place, value) for place, (source, time, value) in enumerate(taken) if source == operator.name]
            if not operator.inputs
            else _made(operator, functions.get(operator.name), [streams[name] for name in operator.inputs])
        )
    return streams


def _made(operator: Operator, function: Any, inputs: list[Stream]) -> Stream:
    if operator.joins:
        return _joined(operator, inputs)
    given = sorted((row for stream in inputs for row in stream), key=lambda row: row[1])
    if not operator.windows:
        if operator.drops:
            return [row for row in given if function(row[2])]
        return [(time, place, value if function is None else function(value)) for time, place, value in given]
    [window] = operator.windows
    counted = [(number if window.kind == "count" else time, value) for number, (time, _, value) in enumerate(given)]
    ts0 = 0 if window.kind == "count" else window.start if window.start is not None else given[0][0] if given else 0
    values, ats = [value for _, value in counted], [at for at, _ in counted]  # these never fall
    made = []
    for i, (time, place, _) in enumerate(given):
        inside = ends_next(window, ats[i], ts0)
        made.append((time, place, function(values[bisect_left(ats, inside.start) : i + 1])))
    return made


def _joined(operator: Operator, inputs: list[Stream]) -> Stream:
    both = sorted(
        ((place, port, time, value) for port, stream in enumerate(inputs) for time, place, value in stream),
        key=lambda row: row[:2],
    )
    made: Stream = []
    for i, (place, port, time, value) in enumerate(both):
        other = operator.windows[1 - port]
        inside = ends_next(other, time, other.start or 0)
        for _, side, at, partner in both[:i]:
            if side != port and at in inside:
                made.append((time, place, (value, partner) if port == 0 else (partner, value)))
    return made
