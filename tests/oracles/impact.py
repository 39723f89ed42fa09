"""Random queries, really run with and without a crash, and what must hold of the impact that is announced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hypothesis import strategies as st

from cklog.impact.dataflow import Dataflow, aligned
from cklog.impact.elements import Listed, Unseen
from cklog.impact.model import RECOVERIES, BoundedTime, ClassSupport, Count, Operator, OutputImpact, Window
from cklog.impact.output import CrashRecovery, output_impact
from cklog.simulate.odysseus.crash import Crash, Crashed, run
from cklog.simulate.odysseus.query import Element, OdysseusQuery, Result
from tests.oracles.windows import Outcome, Row, outcome

Values = dict[int, list[Any]]

NO_SUPPORT = tuple(ClassSupport(name, "none", ()) for name in RECOVERIES)


def contents(values: list[Any]) -> int:
    """Another number for other contents of a window."""
    return hash(tuple(values))


def mapped(value: Any) -> int:
    """A map under which no two values become one."""
    return hash((value, 1))


def two_of_three(value: Any) -> bool:
    """A filter."""
    return hash(value) % 3 != 0


@st.composite
def windows(draw: Callable[..., Any], kind: str, constant: bool = False) -> Window:
    size = draw(st.integers(1, 12 if kind == "time" else 5))
    slide = draw(st.sampled_from([1, size, draw(st.integers(1, size))]))
    start = draw(st.integers(-3, 9)) if kind == "time" and (constant or draw(st.booleans())) else None
    return Window(kind, size, slide, start)  # type: ignore[arg-type]


@st.composite
def queries(draw: Callable[..., Any], kinds: tuple[str, ...]) -> OdysseusQuery:
    """One to three operators behind one or two sources; each reads from any before it."""
    names = [f"in{i}" for i in range(draw(st.integers(1, 2)))]
    operators = [Operator(name, "source") for name in names]
    functions: dict[str, Any] = {}
    for i in range(draw(st.integers(1, 3))):
        kind, name = draw(st.sampled_from(kinds)), f"op{i}"
        one = draw(st.sampled_from(names))
        other = draw(st.sampled_from(names))
        if kind == "join" and (one == other or any(o.joins for o in operators)):
            kind = "map"
        if kind == "union" and one == other:
            kind = "map"
        inputs = (one, other) if kind in ("join", "union") else (one,)
        if kind in ("time", "count"):
            operators.append(Operator(name, "aggregate", inputs, (draw(windows(kind)),)))
            functions[name] = contents
        elif kind == "join":
            pair = tuple(draw(windows("time", constant=True)) for _ in inputs)
            operators.append(Operator(name, "join", inputs, pair))
        else:
            operators.append(Operator(name, kind, inputs, drops=kind == "filter"))
            functions[name] = {"filter": two_of_three, "map": mapped, "union": None}[kind]
        names.append(name)
    return OdysseusQuery(tuple(operators), functions)


@dataclass(frozen=True)
class Case:
    """A crashed run, and what is announced of each output."""

    crashed: Crashed
    impacts: tuple[OutputImpact, ...]

    @cached_property
    def outcome(self) -> Outcome:
        """The results of the run by definition."""
        query, taken = self.crashed.query, [(e.source, e.time, e.value) for e in self.crashed.elements]
        return outcome(query.operators, functions_of(query), taken, self.crashed.how)

    def of(self, output: str) -> tuple[Values, Values, Values]:
        """The values of an output by time: without failure, before the crash, after the restart."""
        parts = self.outcome.truth, self.outcome.before, self.outcome.after
        truth, before, after = (by_time(rows, output) for rows in parts)
        return truth, before, after


EVERYTHING = ("filter", "map", "union", "time", "count", "join")


@st.composite
def cases(draw: Callable[..., Any], kinds: tuple[str, ...] = EVERYTHING, hidden: bool = False) -> Case:
    query = draw(queries(kinds))
    elements, times = [], {}
    for name in query.sources:
        gaps = draw(st.lists(st.integers(0, 4), min_size=5, max_size=40))
        times[name] = [sum(gaps[: i + 1]) for i in range(len(gaps))]
        elements += [Element(name, i, time, hash((name, i, 1))) for i, time in enumerate(times[name])]
    last = max(time for listed in times.values() for time in listed)
    checkpoint, crash, restart = sorted(draw(st.lists(st.integers(0, last + 2), min_size=3, max_size=3)))
    restart = max(restart, crash + 1)
    how = Crash(draw(st.sampled_from(RECOVERIES)), checkpoint, crash, restart, draw(st.booleans()))
    crashed = run(query, elements, how)
    flow = Dataflow({o.name: o for o in query.operators}, dict.fromkeys(query.sources, Unseen()))
    if how.aligned:
        flow = aligned(flow, crashed.starts)
    known = {name: Unseen() if hidden else Listed(listed) for name, listed in times.items()}
    recovery = CrashRecovery(how.recovery, exactly(crash), restart, exactly(checkpoint))
    impacts = tuple(output_impact(flow, name, known, recovery, NO_SUPPORT) for name in flow.outputs)
    return Case(crashed, impacts)


def functions_of(query: OdysseusQuery) -> dict[str, Any]:
    """What operators compute, as functions."""
    by_name = {"count": len, "sum": sum}
    return {name: by_name.get(f, f) if isinstance(f, str) else f for name, f in query.functions.items()}


def exactly(time: int) -> BoundedTime:
    return BoundedTime(time, time, "test")


def by_time(rows: Iterable[Row], output: str) -> Values:
    """The values of an output by time."""
    found: Values = {}
    for name, time, value in rows:
        if name == output:
            found.setdefault(time, []).append(value)
    return found


def rows_of(results: Iterable[Result]) -> list[Row]:
    """What a simulated run yields, as the definition's results are written."""
    return [(one.output, one.time, one.value) for one in results]


def within(time: int, impact: OutputImpact, *phases: str) -> bool:
    """Whether a time lies in one of the phases."""
    here = [p for p in impact.phases if p.phase in phases]
    return any(p.from_ <= time and (p.to is None or time < p.to) for p in here)


def trust_at(time: int, impact: OutputImpact) -> str:
    found = [s.trust for s in impact.trust if s.from_ <= time and (s.to is None or time < s.to)]
    assert len(found) == 1, f"{len(found)} trusts at {time}"
    return found[0]


def bounds(count: Count, actual: int) -> bool:
    return count.least <= actual and (count.most is None or actual <= count.most)


def check_announced(case: Case) -> None:
    """Every missing, wrong or doubled result lies in its phase, and what is trustworthy is right."""
    for impact in case.impacts:
        truth, before, after = case.of(impact.output)
        for time, values in after.items():
            if trust_at(time, impact) == "trustworthy":
                assert values == truth.get(time), f"{impact.output} at {time} is not right"
            if values != truth.get(time):
                assert within(time, impact, "convergence"), f"{impact.output} at {time} is wrong"
            if time in before:
                assert within(time, impact, "duplicate"), f"{impact.output} at {time} comes twice"
        for time in truth:
            if time not in after and time not in before:
                assert within(time, impact, "offline", "convergence"), f"{impact.output} at {time} is missing"


def check_counts(case: Case) -> None:
    """Every count lies between the bounds that are told."""
    for impact in case.impacts:
        truth, before, after = case.of(impact.output)
        missing = sum(len(v) for t, v in truth.items() if t not in before and within(t, impact, "offline"))
        assert bounds(impact.missing, missing), "missing"
        assert bounds(impact.doubled, sum(len(v) for t, v in after.items() if t in before)), "doubled"
        wrong = sum(len(list((Counter(v) - Counter(truth.get(t, []))).elements())) for t, v in after.items())
        assert bounds(impact.wrong, wrong), "wrong"
        doubt = sum(len(v) for t, v in after.items() if trust_at(t, impact) != "trustworthy")
        assert bounds(impact.in_doubt, doubt), "in doubt"
