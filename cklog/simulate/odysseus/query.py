"""A small streaming system without distribution: queries of filters, maps, unions, windows and joins.

Operators are those of `cklog.impact.model`; each takes an element at an application time and yields values at that
time. A query's whole state can be copied, which is the paper's processing image (BTW 2017, definition 6): elements
never wait in queues here, so that operator states are all of it.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cklog.impact.model import Operator, Window

Function = Callable[[Any], Any]

_COUNT, _SUM = "count", "sum"


@dataclass(frozen=True, slots=True)
class OdysseusQuery:
    """Operators, inputs first, with what they compute.

    `functions` : by operator: of a filter the condition, of a map the mapping, of a window what becomes of its values:
        "count", "sum" or a function of their list
    """

    operators: tuple[Operator, ...]
    functions: Mapping[str, Any]

    @property
    def outputs(self) -> tuple[str, ...]:
        """The operators that read and that nobody reads from."""
        read = {name for operator in self.operators for name in operator.inputs}
        return tuple(o.name for o in self.operators if o.inputs and o.name not in read)

    @property
    def sources(self) -> tuple[str, ...]:
        """The operators that read from nobody."""
        return tuple(o.name for o in self.operators if not o.inputs)


@dataclass(frozen=True, slots=True)
class Element:
    """An element that a source sends: its `number` (from 0), and its application time in ms."""

    source: str
    number: int
    time: int
    value: Any


@dataclass(frozen=True, slots=True)
class Result:
    """A result that an output yields at an application time (ms), made by element `number` of `source`."""

    output: str
    time: int
    value: Any
    source: str
    number: int


class Running:
    """A query that takes elements.

    `starts` : times (ms) that the windows of operators align with, if that is not with their first element
    """

    def __init__(self, query: OdysseusQuery, starts: Mapping[str, int] | None = None) -> None:
        self._query = query
        kept, functions = starts or {}, query.functions
        self._nodes = {o.name: _node_of(o, functions.get(o.name), kept.get(o.name)) for o in query.operators}

    def take(self, element: Element) -> list[Result]:
        """Process an element, and return its results in the order of the operators."""
        made: dict[str, list[Any]] = {}
        found = []
        for operator in self._query.operators:
            node = self._nodes[operator.name]
            if not operator.inputs:
                made[operator.name] = [element.value] if operator.name == element.source else []
            else:
                made[operator.name] = []
                for port, name in enumerate(operator.inputs):
                    for value in made[name]:
                        made[operator.name] += node.take(port, element.time, value)
            if operator.name in self._query.outputs:
                values = made[operator.name]
                found += [
                    Result(operator.name, time=element.time, value=v, source=element.source, number=element.number)
                    for v in values
                ]
        return found

    def image(self) -> Mapping[str, Any]:
        """Copy all operator states: the processing image."""
        return copy.deepcopy(self._nodes)

    def load(self, image: Mapping[str, Any]) -> None:
        """Replace all operator states by those of an image."""
        self._nodes = copy.deepcopy(dict(image))

    def starts(self) -> dict[str, int]:
        """Return the times (ms) that time windows align with, by operator, as far as they have started."""
        found = {name: node.start for name, node in self._nodes.items() if isinstance(node, _TimeWindow)}
        return {name: start for name, start in found.items() if start is not None}


class _Passing:
    """A filter, a map or a union: it has no state."""

    def __init__(self, function: Function | None, drops: bool) -> None:
        self._function, self._drops = function, drops

    def __deepcopy__(self, _: Any) -> _Passing:
        return self

    def take(self, port: int, time: int, value: Any) -> list[Any]:
        if self._function is None:
            return [value]
        if self._drops:
            return [value] if self._function(value) else []
        return [self._function(value)]


class _Buffer:
    """The elements that a window may still reach, and what is made of them."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self.kept: deque[tuple[int, Any]] = deque()

    def __deepcopy__(self, memo: Any) -> _Buffer:
        found = _Buffer(self._function)
        found.kept = deque(self.kept)  # elements never change
        return found

    def add(self, at: int, value: Any) -> None:
        self.kept.append((at, value))

    def forget_before(self, start: int) -> None:
        while self.kept and self.kept[0][0] < start:
            self.kept.popleft()

    def result(self) -> Any:
        if self._function == _COUNT:
            return len(self.kept)
        values = [value for _, value in self.kept]
        return sum(values) if self._function == _SUM else self._function(values)


class _TimeWindow:
    """An aggregate over a time window; `start` None until the first element, if nothing says otherwise."""

    def __init__(self, window: Window, function: Any, start: int | None) -> None:
        self._window, self._buffer = window, _Buffer(function)
        self.start = window.start if window.start is not None else start

    def take(self, port: int, time: int, value: Any) -> list[Any]:
        self.start = time if self.start is None else self.start
        self._buffer.add(time, value)
        self._buffer.forget_before(self._window.oldest_at(time, self.start))
        return [self._buffer.result()]


class _CountWindow:
    """An aggregate over a window of elements."""

    def __init__(self, window: Window, function: Any) -> None:
        self._window, self._buffer, self._next = window, _Buffer(function), 0

    def take(self, port: int, time: int, value: Any) -> list[Any]:
        self._buffer.add(self._next, value)
        self._buffer.forget_before(self._window.oldest_at(self._next, 0))
        self._next += 1
        return [self._buffer.result()]


class _Join:
    """A join: pairs of an element with those in the other input's window, (value of input 0, value of input 1)."""

    def __init__(self, windows: Sequence[Window]) -> None:
        self._windows = windows
        self._buffers = [_Buffer(None) for _ in windows]

    def take(self, port: int, time: int, value: Any) -> list[Any]:
        self._buffers[port].add(time, value)
        other = 1 - port
        window = self._windows[other]
        self._buffers[other].forget_before(window.oldest_at(time, window.start or 0))
        found = [v for _, v in self._buffers[other].kept]
        return [(value, v) if port == 0 else (v, value) for v in found]


_Node = _Passing | _TimeWindow | _CountWindow | _Join


def _node_of(operator: Operator, function: Any, start: int | None) -> _Node:
    if operator.joins:
        return _Join(operator.windows)
    if not operator.windows:
        return _Passing(function, operator.drops)
    window = operator.windows[0]
    if window.kind == "count":
        return _CountWindow(window, function)
    return _TimeWindow(window, function, start)


def in_time_order(elements: Iterable[Element]) -> list[Element]:
    """Return elements of several sources in the order in which the system takes them."""
    return sorted(elements, key=lambda e: (e.time, e.source, e.number))
