"""Simulated stream operators that write output queues (docs/output-queues.md), and can be loaded and replayed.

Nothing here comes from the code under test. An operator keeps its state in its open windows and nowhere else (the
model of the CEC paper): what it cannot find in the records of an eventual checkpoint, it has forgotten.

Loaded windows filter what is replayed: a window ignores the tuples up to and including its own `input`, that is they
do not count for it and neither open nor close it. A window that closed at or after T is listed for its filter only.
To filter by window an operator must know which window a replayed tuple belongs to:

- Time windows: the tuple's timestamp says it. A tuple that closes windows is not itself in them.
- `CountAggregate`: a key has one window at a time, so there is a cursor. It starts at the key's listed window that
  was opened before the first replayed tuple (at most one can span T). With no window under the cursor, the next
  tuple of the key opens the window named after it; if that name is listed, the cursor moves there and the list
  decides. In a checkpoint of an intact log this is the same as "the key ignores tuples up to its newest listed
  record"; with ghosts (their result is lost) it is not, because the ghost must still be filled.
- `SlidingCount`: the tuple's position within its key says it, and every listed window of the key tells a position:
  window n has consumed positions n*advance ... n*advance + (its count) - 1 up to its own `input`, a closed one all
  `size`. Subtract the replayed tuples up to there and the position at T is known. A key with no listed window is new.
- `ReusingAggregate`: the key is the window.

A window may be complete when it is loaded: a count window of size one, opened by the last tuple before the crash,
with its result torn off. Its tuple is never counted again, so it closes while it is loaded.

A tumbling count window is named after the tuple that opened it. An ordinal would be state of its own: between two
windows of a key, no record of the extent has to tell it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

Record = dict[str, Any]
"""A record of an output queue, as JSON: type, window, ts, open_windows, state, input, pos."""

State = dict[str, Any]
"""Open window → its state. States are never changed in place, so that a record may keep one."""

Choose = Callable[[int], int]
"""Choose(n) gives a number below n; 0 is the dullest: `random.Random(7).randrange`, or a Hypothesis draw."""


class StreamTuple(NamedTuple):
    """An input tuple. Numbers rise strictly within a channel, timestamps never fall over all channels."""

    channel: str
    number: int
    ts: int
    key: str
    value: int


@dataclass(frozen=True, slots=True)
class Listed:
    """A window of an eventual checkpoint. `numbered`: filter by input number, else by timestamp."""

    window: str
    t: int
    input: Any
    state: Any
    closed: bool
    numbered: bool

    def ignores(self, t: StreamTuple) -> bool:
        """Whether the window already holds `t`."""
        if not self.numbered:
            return t.ts <= self.t
        last = self.input.get(t.channel, -1) if isinstance(self.input, dict) else self.input
        return t.number <= (-1 if last is None else int(last))


class Operator(ABC):
    """Open windows, the filter of the loaded ones, and the writing of records."""

    channels: tuple[str, ...] = ("",)

    def __init__(self) -> None:
        self.windows: State = {}
        self.listed: dict[str, Listed] = {}
        self._records: list[Record] = []
        self._stamp: Record = {}

    @abstractmethod
    def handle(self, t: StreamTuple) -> None:
        """What `t` does to the windows."""

    def resume(self, replay: Sequence[StreamTuple]) -> None:  # noqa: B027  most operators know all from their windows
        """Find out what only the listed windows and the tuples to come can tell."""

    def complete(self, state: Any) -> bool:
        """Whether a window with this state closes without waiting for another tuple."""
        return False

    def input_of(self, t: StreamTuple) -> Any:
        return t.number

    def process(self, t: StreamTuple) -> list[Record]:
        """Consume `t`; return the records that it made, in order."""
        self._records = []
        self._stamp = {"ts": t.ts, "input": self.input_of(t)}
        self.handle(t)
        return self._records

    def load(self, listed: Sequence[Listed], replay: Sequence[StreamTuple]) -> list[Record]:
        """Become what an eventual checkpoint tells, before `replay`; complete windows close now."""
        self._records = []
        self.listed = {w.window: w for w in listed}
        self.windows = {w.window: w.state for w in listed if not w.closed}
        for w in listed:
            if not w.closed and self.complete(w.state):
                self._stamp = {"ts": w.t, "input": w.input}
                self.close(w.window, totals(w.state))
        self.resume(replay)
        return self._records

    def check(self, window: str) -> Record:
        """A check record for an open window, stamped with the tuple processed last."""
        return self._record("check", window, self.windows[window])

    def ignores(self, window: str, t: StreamTuple) -> bool:
        return window in self.listed and self.listed[window].ignores(t)

    def open(self, window: str, state: Any) -> None:
        self.windows[window] = state
        self._records.append(self._record("open", window, state))

    def close(self, window: str, result: Any) -> None:
        del self.windows[window]
        self._records.append(self._record("result", window, result))

    def emit(self, window: str | None, value: Any) -> None:
        self._records.append(self._record("emit", window, value))

    def add(self, window: str, value: int) -> None:
        """Count `value` for `window`, which is opened if it must be and closed if it is complete."""
        if window in self.windows:
            self.windows[window] = [*self.windows[window], value]
        else:
            self.open(window, [value])
        if self.complete(self.windows[window]):
            self.close(window, totals(self.windows[window]))

    def _record(self, kind: str, window: str | None, state: Any) -> Record:
        return {"type": kind, "window": window, "open_windows": len(self.windows), "state": state, **self._stamp}


def totals(values: list[int]) -> dict[str, int]:
    """The result of an aggregate."""
    return {"count": len(values), "sum": sum(values)}


class CountAggregate(Operator):
    """Tumbling windows of `size` tuples per key, named `key#number of the tuple that opened it`."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.cursor: dict[str, str] = {}

    def complete(self, state: Any) -> bool:
        return len(state) >= self.size

    def resume(self, replay: Sequence[StreamTuple]) -> None:
        for window in self.listed:
            key, _, start = window.rpartition("#")
            if replay and int(start) < replay[0].number:
                self.cursor[key] = window

    def handle(self, t: StreamTuple) -> None:
        window = self.cursor.get(t.key)
        if window is None or not (window in self.windows or self.ignores(window, t)):
            window = self.cursor[t.key] = f"{t.key}#{t.number}"
        if not self.ignores(window, t):
            self.add(window, t.value)


class ReusingAggregate(Operator):
    """Tumbling windows of `size` tuples per key, all of one key under the same name."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def complete(self, state: Any) -> bool:
        return len(state) >= self.size

    def handle(self, t: StreamTuple) -> None:
        if not self.ignores(t.key, t):
            self.add(t.key, t.value)


class SlidingCount(Operator):
    """Windows of `size` tuples per key, a new one every `advance` < `size` tuples, named `key#n` from 0."""

    def __init__(self, size: int, advance: int) -> None:
        super().__init__()
        self.size, self.advance = size, advance
        self.position: dict[str, int] = {}

    def complete(self, state: Any) -> bool:
        return len(state) >= self.size

    def resume(self, replay: Sequence[StreamTuple]) -> None:
        for window, listed in self.listed.items():
            key, _, n = window.rpartition("#")
            consumed = self.size if listed.closed else len(listed.state)
            again = sum(t.key == key and listed.ignores(t) for t in replay)
            self.position[key] = int(n) * self.advance + consumed - again

    def handle(self, t: StreamTuple) -> None:
        position = self.position.get(t.key, 0)
        self.position[t.key] = position + 1
        first = max(0, -((self.size - 1 - position) // self.advance))  # the oldest n that reaches `position`
        for n in range(first, position // self.advance + 1):
            if not self.ignores(f"{t.key}#{n}", t):
                self.add(f"{t.key}#{n}", t.value)


class TimeAggregate(Operator):
    """Windows of `size` milliseconds per key, a new one every `slide` (default: `size`), named `key@start`.

    The first tuple at or after the end of windows closes them, in the order of their names, and is then counted.
    """

    def __init__(self, size: int, slide: int | None = None) -> None:
        super().__init__()
        self.size, self.slide = size, slide or size

    def handle(self, t: StreamTuple) -> None:
        for window in sorted(self.windows):
            if int(window.rpartition("@")[2]) + self.size <= t.ts and not self.ignores(window, t):
                self.close(window, totals(self.windows[window]))
        newest = t.ts - t.ts % self.slide
        for start in reversed(range(newest, t.ts - self.size, -self.slide)):
            if not self.ignores(f"{t.key}@{start}", t):
                self.add(f"{t.key}@{start}", t.value)


class Join(Operator):
    """Two inputs joined per key and time slot, `key@start`. The state is what both sides have sent.

    A pair of tuples whose values fit is emitted when its second half arrives. `input` is the last number consumed
    from each channel so far. A slot closes when it has ended for the slower input (`merged`: for the faster one,
    which is sound while both come in one order, and must be replayed in that order).
    """

    channels = ("left/0->join/0", "right/0->join/0")

    def __init__(self, size: int, merged: bool = False) -> None:
        super().__init__()
        self.size, self.merged = size, merged
        self.consumed: dict[str, int] = {}
        self.reached: dict[str, int] = {}

    def input_of(self, t: StreamTuple) -> Any:
        self.consumed = {**self.consumed, t.channel: t.number}
        return self.consumed

    def handle(self, t: StreamTuple) -> None:
        self.reached[t.channel] = t.ts
        if self.merged or len(self.reached) == 2:
            self._expire((max if self.merged else min)(self.reached.values()))
        window = f"{t.key}@{t.ts - t.ts % self.size}"
        if self.ignores(window, t):
            return
        side, other = ("left", "right") if t.channel == self.channels[0] else ("right", "left")
        state = self.windows.get(window, {"left": [], "right": []})
        state = {**state, side: [*state[side], [t.number, t.value]]}
        if window not in self.windows:
            self.open(window, state)
        self.windows[window] = state
        for number, value in state[other]:
            if (value + t.value) % 3:
                self.emit(window, {side: t.number, other: number})

    def _expire(self, now: int) -> None:
        # No filter: inputs replayed in another order end a slot at another tuple, even at one that the slot ignores.
        # It cannot end too early: at its own `input` it was open, so `now` is past its end only beyond that.
        for window in sorted(self.windows):
            if int(window.rpartition("@")[2]) + self.size <= now:
                self.close(window, {side: len(sent) for side, sent in self.windows[window].items()})


class FlatMap(Operator):
    """Stateless: nought to three records for a tuple, the first two alike."""

    def handle(self, t: StreamTuple) -> None:
        for i in range(t.value % 4):
            self.emit(None, [t.key, i // 2])


@dataclass(frozen=True, slots=True)
class Reference:
    """A run that never failed. `until[p]` tuples had begun when record p was written; `states[i]` is after tuple i."""

    log: list[Record]
    until: list[int]
    states: list[State]

    def outputs(self) -> list[Record]:
        """Results and emitted data, in order."""
        return [r for r in self.log if is_data(r)]

    def state_after(self, pos: int) -> State:
        """The state after the whole input tuple that was in process when record `pos` was written."""
        return self.states[self.until[pos] - 1]


def is_data(record: Record) -> bool:
    """Whether downstream sees it: neither open nor check."""
    return record["type"] in ("result", "emit")


def run(make: Callable[[], Operator], tuples: Sequence[StreamTuple], choose: Choose | None = None) -> Reference:
    """Run without a failure. `choose` decides which check records follow a tuple's own records (None: no checks)."""
    operator = make()
    ran = Reference([], [], [])
    for done, t in enumerate(tuples, 1):
        records = operator.process(t)
        records += _checks(operator, choose) if choose else []
        for record in records:
            ran.log.append({**record, "pos": len(ran.log)})
            ran.until.append(done)
        ran.states.append(dict(operator.windows))
    return ran


def _checks(operator: Operator, choose: Choose) -> list[Record]:
    """Nought to two check records, of any open windows."""
    opened = list(operator.windows)
    chosen = [choose(3 * len(opened) + 1) - 2 * len(opened) - 1] if opened else []
    if chosen and chosen[0] >= 0:
        chosen.append(choose(2 * len(opened)) - len(opened))
    return [operator.check(opened[i]) for i in chosen if i >= 0]


def arrivals(channels: Sequence[str], choose: Choose, most: int = 18, ties: bool = True) -> list[StreamTuple]:
    """Up to `most` tuples of up to three keys, with gaps in the numbers; `ties` lets timestamps repeat."""
    numbers = dict.fromkeys(channels, -1)
    ts, tuples = choose(5), []
    for _ in range(1 + choose(most)):
        channel = channels[choose(len(channels))]
        numbers[channel] += 1 + choose(4) // 3
        ts += (0, 0, 1, 2, 5)[choose(5)] if ties else (1, 2, 3, 7)[choose(4)]
        tuples.append(StreamTuple(channel, numbers[channel], ts, "abc"[choose(3)], choose(8)))
    return tuples
