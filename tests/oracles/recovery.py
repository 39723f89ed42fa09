"""Load an eventual checkpoint, replay, and compare with the run that never failed.

The harness knows an eventual checkpoint only as JSON. `SCENARIOS` are the operators to try it on:

    scenario = SCENARIOS["sliding-count"]
    tuples, log = scenario.generate(random.Random(7).randrange)
    survived = log[:5]                                                  # the crash
    scenario.check(plan_by_definition(survived), tuples, survived)      # or what cklog says about `survived`
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hypothesis import strategies as st

from tests.oracles.operators import (
    Choose,
    CountAggregate,
    FlatMap,
    Join,
    Listed,
    Operator,
    Record,
    Reference,
    ReusingAggregate,
    SlidingCount,
    State,
    StreamTuple,
    TimeAggregate,
    arrivals,
    is_data,
    run,
)

Plan = Mapping[str, Any]
"""The `result` of `cklog eventual-checkpoint --json`."""

choices: st.SearchStrategy[Choose] = st.randoms(use_true_random=False).map(lambda rng: rng.randrange)
"""The decisions of a run, a damage or a replay order, as Hypothesis makes and shrinks them."""


# --- recovering


@dataclass(frozen=True, slots=True)
class Recovered:
    """`states`: tuple → state after it; `written`: the data that replay added to the log."""

    states: dict[StreamTuple, State]
    final: State
    written: list[Record]


def recover(
    make: Callable[[], Operator],
    plan: Plan,
    tuples: Sequence[StreamTuple],
    log: Sequence[Record],
    choose: Choose | None = None,
) -> Recovered:
    """Load `plan` into a fresh operator and replay to the end of `tuples`; `log` is what survived.

    `choose` interleaves several inputs anew. Results need no suppression: a window that has written its result is
    listed, or out of reach of the replay. Emitted data does, because an `emit` is no footprint: a record is not
    written again if the log has one of the same window, input tuple and value left to match. A join's value names
    the pair, so there the window and the value are enough, in whatever order the inputs are replayed.
    """
    numbered = is_numbered(log)
    replay = [t for t in tuples if _replayed(plan, t, numbered)]
    if choose:
        replay = _interleaved(replay, choose)
    operator = make()
    logged = Counter(_emitted(r, numbered) for r in log if r["type"] == "emit")
    written = _unlogged(operator.load(_listed(plan, numbered), replay), logged, numbered)
    states = {}
    for t in replay:
        written += _unlogged(operator.process(t), logged, numbered)
        states[t] = dict(operator.windows)
    return Recovered(states, dict(operator.windows), written)


def is_numbered(log: Sequence[Record]) -> bool:
    """Whether the records tell input numbers; if not, timestamps take their place."""
    return any(r.get("input") is not None for r in log)


def _listed(plan: Plan, numbered: bool) -> list[Listed]:
    opened = [Listed(w["window"], w["t"], w.get("input"), w["state"], False, numbered) for w in plan["windows"]]
    return opened + [Listed(w["window"], w["t"], w.get("input"), None, True, numbered) for w in plan["closed"]]


def _replayed(plan: Plan, t: StreamTuple, numbered: bool) -> bool:
    start, position = (plan["T_input"], t.number) if numbered else (plan["T"], t.ts)
    if isinstance(start, Mapping):
        start = start.get(t.channel)
    return start is None or position >= int(start)


def _interleaved(tuples: Sequence[StreamTuple], choose: Choose) -> list[StreamTuple]:
    waiting: dict[str, list[StreamTuple]] = {}
    for t in tuples:
        waiting.setdefault(t.channel, []).append(t)
    merged = []
    while waiting:
        channel = sorted(waiting)[choose(len(waiting))]
        merged.append(waiting[channel].pop(0))
        if not waiting[channel]:
            del waiting[channel]
    return merged


def _unlogged(records: Sequence[Record], logged: Counter[str], numbered: bool) -> list[Record]:
    """The data among `records`, without emitted records that `logged` has; those are struck off there."""
    new = []
    for record in filter(is_data, records):
        name = _emitted(record, numbered)
        if record["type"] == "emit" and logged[name] > 0:
            logged[name] -= 1
        else:
            new.append(record)
    return new


def _emitted(record: Record, numbered: bool) -> str:
    joined = isinstance(record.get("input"), dict)
    return json.dumps([record["window"], None if joined else _stamp(record, numbered), record["state"]], sort_keys=True)


# --- the second opinion


def plan_by_definition(log: Sequence[Record], lost: Collection[int] = ()) -> dict[str, Any]:
    """The eventual checkpoint by its definition: one pass forward over all surviving records.

    `lost`: positions of records that damage took. With any, the replay starts no later than the last record before
    the first of them (from the very first tuple if there is none), and the proof is "after-replay".
    """
    numbered = is_numbered(log)
    last = {r["window"]: r for r in log if r["type"] != "emit"}
    opened = [r for r in last.values() if r["type"] != "result"]
    starts = opened or list(log[-1:])
    if lost:
        before = [r for r in log if r["pos"] < min(lost)][-1:]
        starts = starts + before if before else []
    start_ts = min((r["ts"] for r in starts), default=None)
    start_input = _least([r["input"] for r in starts]) if numbered and starts else None
    start = start_input if numbered else start_ts
    closed = [r for r in last.values() if r["type"] == "result" and reaches(_stamp(r, numbered), start)]
    return {
        "t_c": log[-1]["ts"] if log else None,
        "T": start_ts,
        "T_input": start_input,
        "open_windows": len(opened),
        "windows": [_told(r, "window", "type", "t", "input", "state") for r in opened],
        "closed": [_told(r, "window", "t", "input") for r in closed],
        "proof": "after-replay" if lost else "proven",
    }


def essence(plan: Plan) -> dict[str, Any]:
    """What two eventual checkpoints of the same log must agree on, whatever the order of their lists."""
    same = {name: plan[name] for name in ("t_c", "T", "T_input", "open_windows", "proof")}
    by_name = {kind: {w["window"]: dict(w) for w in plan[kind]} for kind in ("windows", "closed")}
    return {**same, **by_name}


def reaches(stamp: Any, start: Any) -> bool:
    """Whether a record with this `input` is at or after `start`: the replay has a tuple that its window may hold.

    For several inputs one channel is enough. Replay is inclusive on *each* channel: with T = {left: 5, right: 7},
    left 5 is replayed, and may belong to a window that closed at {left: 5, right: 6}.
    """
    if start is None:
        return True
    if isinstance(stamp, Mapping):
        return any(number >= start.get(channel, 0) for channel, number in stamp.items())
    return bool(stamp >= start)


def _least(inputs: list[Any]) -> Any:
    """The minimum, channel by channel; a channel that one of them does not mention is at its very beginning."""
    if not isinstance(inputs[0], Mapping):
        return min(inputs)
    common = set.intersection(*(set(vector) for vector in inputs))
    return {channel: min(vector[channel] for vector in inputs) for channel in sorted(common)}


def _told(record: Record, *members: str) -> Record:
    return {m: record["ts"] if m == "t" else record.get(m) for m in members}


def _stamp(record: Record, numbered: bool) -> Any:
    return record["input"] if numbered else record["ts"]


# --- the comparison


@dataclass(frozen=True, slots=True)
class Scenario:
    """An operator to try. `ordered`: its inputs are replayed in the order in which they were consumed."""

    make: Callable[[], Operator]
    ordered: bool = True

    def generate(
        self, choose: Choose, most: int = 18, ties: bool = True, checks: bool = True
    ) -> tuple[list[StreamTuple], list[Record]]:
        """Tuples, and the whole log that the operator writes for them."""
        tuples = arrivals(self.make().channels, choose, most, ties)
        return tuples, run(self.make, tuples, choose if checks else None).log

    def reference(self, tuples: Sequence[StreamTuple]) -> Reference:
        """The run that never failed, without check records: they change neither state nor data."""
        return _reference(self.make, tuple(tuples))

    def check(
        self,
        plan: Plan,
        tuples: Sequence[StreamTuple],
        log: Sequence[Record],
        choose: Choose | None = None,
        several_holes: bool = False,
    ) -> None:
        """Assert that recovering with `plan` from the surviving `log` equals the run that never failed.

        "proven": every state from the tail of the log on, and all data, in order within each window.
        "after-replay": every state; no data too much; missing is only what was lost before a later footprint of
        its window, or before the replay; with `several_holes`, whatever was lost: a window whose open record went
        into an earlier hole than its result is not opened by the replay. "lost": nothing. `choose` replays several
        inputs in another order, where that is allowed.
        """
        if plan["proof"] == "lost":
            return
        choose = None if self.ordered else choose
        reference = self.reference(tuples)
        recovered = recover(self.make, plan, tuples, log, choose)
        wrong = [*_repeated(plan), *_state_faults(reference, recovered, tuples, None if choose else log)]
        data = _data_faults(reference, recovered, log, plan)
        wrong += [fault for fault in data if not (several_holes and _MISSING in fault)]
        if not wrong and plan["proof"] == "proven" and not choose:
            wrong += _order_faults(reference, recovered, log)
        assert not wrong, _told_story(wrong, plan, tuples, log)


@lru_cache(maxsize=8)
def _reference(make: Callable[[], Operator], tuples: tuple[StreamTuple, ...]) -> Reference:
    return run(make, tuples)


def _repeated(plan: Plan) -> Iterator[str]:
    names = Counter(w["window"] for w in [*plan["windows"], *plan["closed"]])
    yield from (f"window {name} is listed {times} times" for name, times in names.items() if times > 1)


def _state_faults(
    reference: Reference, recovered: Recovered, tuples: Sequence[StreamTuple], log: Sequence[Record] | None
) -> Iterator[str]:
    """Differences after each tuple from the tail of `log` on (None: after the last tuple only)."""
    whole = dict(zip(tuples, reference.states, strict=True))
    if log is not None:
        for t in tuples[_consumed(tuples, log) :]:
            got = recovered.states.get(t)
            if got != whole[t]:
                yield f"state after {t}: {_difference(whole[t], got)}"
                return
    if recovered.final != reference.states[-1]:
        yield f"state at the end: {_difference(reference.states[-1], recovered.final)}"


def _consumed(tuples: Sequence[StreamTuple], log: Sequence[Record]) -> int:
    """Index of the last tuple that a record of `log` tells of. Not always the tail: a replay may have written it."""
    if not log:
        return 0
    furthest = max((r.get("input") for r in log), key=_progress) if is_numbered(log) else None
    last = Listed("", max(r["ts"] for r in log), furthest, None, True, is_numbered(log))
    return max(i for i, t in enumerate(tuples) if last.ignores(t))


def _progress(stamp: Any) -> int:
    """Orders inputs as they were consumed; vectors of several inputs are a chain, so their sums tell."""
    return sum(n + 1 for n in stamp.values()) if isinstance(stamp, Mapping) else int(stamp)


def _difference(expected: State, got: State | None) -> str:
    if got is None:
        return "the tuple was not replayed"
    names = sorted(n for n in {*expected, *got} if expected.get(n, ...) != got.get(n, ...))
    return ", ".join(f"{n} is {got.get(n, 'absent')}, not {expected.get(n, 'absent')}" for n in names)


_MISSING = "x missing"


def _data_faults(reference: Reference, recovered: Recovered, log: Sequence[Record], plan: Plan) -> Iterator[str]:
    expected = Counter(map(_datum, reference.outputs()))
    got = Counter(_datum(r) for r in [*filter(is_data, log), *recovered.written])
    missing = expected - got
    if plan["proof"] == "after-replay":
        missing -= _unrecoverable(reference, log, plan["T_input"] if is_numbered(log) else plan["T"])
    yield from (f"{times} x too much: {datum}" for datum, times in (got - expected).items())
    yield from (f"{times} {_MISSING}: {datum}" for datum, times in missing.items())


def _unrecoverable(reference: Reference, log: Sequence[Record], start: Any) -> Counter[str]:
    """Data that is not in the log although a later footprint of its window is, or that is older than the replay."""
    numbered = is_numbered(log)
    logged = Counter((_datum(r), str(_stamp(r, numbered))) for r in log)
    footprints = defaultdict(list)
    for r in log:
        if r["type"] != "emit":
            footprints[r["window"]].append(r)
    gone: Counter[str] = Counter()
    for r in reference.outputs():
        if logged[_datum(r), str(_stamp(r, numbered))]:
            logged[_datum(r), str(_stamp(r, numbered))] -= 1
        elif not reaches(_stamp(r, numbered), start) or any(_follows(f, r, numbered) for f in footprints[r["window"]]):
            gone[_datum(r)] += 1
    return gone


def _follows(footprint: Record, r: Record, numbered: bool) -> bool:
    """Whether `footprint` was written after `r`. Of one tuple only a check is sure to come after its data."""
    here, there = _stamp(footprint, numbered), _stamp(r, numbered)
    if here == there:
        return bool(footprint["type"] == "check")
    if isinstance(here, Mapping):
        return all(here.get(channel, -1) >= number for channel, number in there.items())
    return bool(here > there)


def _order_faults(reference: Reference, recovered: Recovered, log: Sequence[Record]) -> Iterator[str]:
    expected, got = defaultdict(list), defaultdict(list)
    for r in reference.outputs():
        expected[r["window"]].append(_datum(r))
    for r in [*filter(is_data, log), *recovered.written]:
        got[r["window"]].append(_datum(r))
    yield from (f"order in {w}: {got[w]}, not {expected[w]}" for w in expected if got[w] != expected[w])


def _datum(record: Record) -> str:
    return f"{record['type']} {record['window']} {json.dumps(record['state'], sort_keys=True)}"


def _told_story(wrong: Sequence[str], plan: Plan, tuples: Sequence[StreamTuple], log: Sequence[Record]) -> str:
    parts = {"eventual checkpoint": [plan], "surviving log": log, "tuples": tuples}
    told = [f"{title}:\n" + "\n".join(f"  {line}" for line in lines) for title, lines in parts.items()]
    return "\n".join(["recovery is not exact", *wrong, *told])


SCENARIOS: dict[str, Scenario] = {
    "count": Scenario(lambda: CountAggregate(3)),
    "count-of-one": Scenario(lambda: CountAggregate(1)),
    "time": Scenario(lambda: TimeAggregate(4)),
    "sliding-time": Scenario(lambda: TimeAggregate(6, 3)),
    "sliding-time-uneven": Scenario(lambda: TimeAggregate(7, 3)),  # two or three physical windows
    "sliding-count": Scenario(lambda: SlidingCount(4, 2)),
    "sliding-count-meeting": Scenario(lambda: SlidingCount(3, 2)),  # one tuple closes a window and opens the next
    "sliding-count-of-three": Scenario(lambda: SlidingCount(5, 2)),  # two or three physical windows
    "join": Scenario(lambda: Join(4), ordered=False),
    "join-merged": Scenario(lambda: Join(4, merged=True)),
    "flat-map": Scenario(FlatMap),
    "reusing": Scenario(lambda: ReusingAggregate(3)),
    "reusing-of-one": Scenario(lambda: ReusingAggregate(1)),
}
