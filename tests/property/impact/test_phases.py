"""Random queries, really run with and without a crash, against what `cklog.impact.answer` announces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cklog.impact.dataflow import Dataflow, aligned, classified
from cklog.impact.elements import Listed, Unseen
from cklog.impact.model import RECOVERIES, BoundedTime, ClassSupport, Count, Operator, OutputImpact, Window
from cklog.impact.output import CrashRecovery, output_impact
from cklog.simulate.odysseus.crash import Crash, Crashed, run
from cklog.simulate.odysseus.query import Element, OdysseusQuery, Result, Running

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
    """A crashed run and what is announced of each output."""

    crashed: Crashed
    impacts: tuple[OutputImpact, ...]


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


def exactly(time: int) -> BoundedTime:
    return BoundedTime(time, time, "test")


def by_time(results: Iterable[Result], output: str) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for result in results:
        if result.output == output:
            found.setdefault(result.time, []).append(result.value)
    return found


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
        truth, before, after = (
            by_time(results, impact.output) for results in (case.crashed.truth, case.crashed.before, case.crashed.after)
        )
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


@settings(max_examples=500)
@given(cases())
def test_every_missing_wrong_or_doubled_result_lies_in_its_announced_phase(case: Case) -> None:
    check_announced(case)


@settings(max_examples=500)
@given(cases(hidden=True))
def test_and_so_it_does_where_nothing_is_known_of_the_elements(case: Case) -> None:
    check_announced(case)


def is_simple(case: Case, impact: OutputImpact) -> bool:
    """Whether an output rests on maps and convergent-capable windows in a row, whose phases must be tight."""
    above = {o.operator for o in impact.operators}
    operators = [o for o in case.crashed.query.operators if o.name in above]
    return all(c.recovery in ("repeatable", "convergent-capable") for c in impact.operators) and not any(
        o.joins or o.drops or len(o.inputs) > 1 for o in operators
    )


@settings(max_examples=500)
@given(cases(kinds=("map", "time", "count")))
def test_phases_of_repeatable_and_convergent_capable_operators_are_tight(case: Case) -> None:
    for impact in case.impacts:
        if not is_simple(case, impact):
            continue
        truth, before, after = (
            by_time(results, impact.output) for results in (case.crashed.truth, case.crashed.before, case.crashed.after)
        )
        wrong = {time for time, values in after.items() if values != truth[time]}
        missing = set(truth) - set(before) - set(after)
        doubled = set(before) & set(after)
        for name, actual in (("offline", missing), ("convergence", wrong), ("duplicate", doubled)):
            announced = [time for time in sorted(truth) if within(time, impact, name)]
            assert announced == sorted(actual), f"{impact.output}: {name}"
        assert impact.convergence == ("finite" if wrong else "none") or not after


@settings(max_examples=500)
@given(cases())
def test_counts_hold_what_is_counted(case: Case) -> None:
    check_counts(case)


def check_counts(case: Case) -> None:
    """Every count lies between the bounds that are told."""
    for impact in case.impacts:
        truth, before, after = (
            by_time(results, impact.output) for results in (case.crashed.truth, case.crashed.before, case.crashed.after)
        )
        missing = sum(len(v) for t, v in truth.items() if t not in before and within(t, impact, "offline"))
        assert bounds(impact.missing, missing), "missing"
        assert bounds(impact.doubled, sum(len(v) for t, v in after.items() if t in before)), "doubled"
        wrong = sum(len(list((Counter(v) - Counter(truth.get(t, []))).elements())) for t, v in after.items())
        assert bounds(impact.wrong, wrong), "wrong"
        doubt = sum(len(v) for t, v in after.items() if trust_at(t, impact) != "trustworthy")
        assert bounds(impact.in_doubt, doubt), "in doubt"


def test_the_class_of_each_operator_is_told() -> None:
    found = classified(Operator("a", "aggregate", ("in",), (Window("time", 5, 5),)))
    assert found.recovery == "deterministic"


@settings(max_examples=300)
@given(
    st.lists(windows("time", constant=True), min_size=1, max_size=3),
    st.lists(st.integers(0, 4), min_size=5, max_size=60),
    st.integers(1, 60),
    st.integers(1, 30),
)
def test_the_span_without_trust_is_what_the_minimum_merges(
    chain: list[Window], gaps: list[int], crash: int, down: int
) -> None:
    """Definition 4: the first element after the restart is marked, and so is every result that merges a marked one."""
    restart = crash + down
    times = [sum(gaps[: i + 1]) for i in range(len(gaps))]
    names = ["in", *(f"op{i}" for i in range(len(chain)))]
    operators = (
        Operator("in", "source"),
        *(
            Operator(name, "aggregate", (above,), (window,))
            for above, name, window in zip(names, names[1:], chain, strict=False)
        ),
    )
    running = Running(OdysseusQuery(operators, dict.fromkeys(names[1:], any)))
    live = [time for time in times if time >= restart]
    first = times.index(live[0]) if live else len(times)
    elements = [Element("in", i, time, i == first) for i, time in enumerate(times) if time >= restart]
    marked = [result.time for element in elements for result in running.take(element) if result.value]
    flow = Dataflow({o.name: o for o in operators}, {"in": Listed(times)})
    found = output_impact(
        flow, names[-1], flow.periods, CrashRecovery("gap", exactly(crash), restart, None), NO_SUPPORT
    )
    if found.convergence == "finite":
        assert marked == [time for time in live if trust_at(time, found) == "untrustworthy"]
