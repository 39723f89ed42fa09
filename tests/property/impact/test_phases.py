"""Random queries, really run with and without a crash, against what `cklog.impact.answer` announces."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from cklog.impact.dataflow import Dataflow, classified
from cklog.impact.elements import Listed
from cklog.impact.model import Operator, OutputImpact, Window
from cklog.impact.output import CrashRecovery, output_impact
from cklog.simulate.odysseus.query import Element, OdysseusQuery, Running
from tests.examples import examples
from tests.oracles.impact import (
    NO_SUPPORT,
    Case,
    cases,
    check_announced,
    check_counts,
    exactly,
    rows_of,
    trust_at,
    windows,
    within,
)


@settings(max_examples=examples(300))
@given(cases())
def test_a_simulated_run_yields_what_the_definition_of_windows_says(case: Case) -> None:
    for simulated, defined in (
        (case.crashed.truth, case.outcome.truth),
        (case.crashed.before, case.outcome.before),
        (case.crashed.after, case.outcome.after),
    ):
        assert rows_of(simulated) == defined


@settings(max_examples=examples(500))
@given(cases())
def test_every_missing_wrong_or_doubled_result_lies_in_its_announced_phase(case: Case) -> None:
    check_announced(case)


@settings(max_examples=examples(500))
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


@settings(max_examples=examples(500))
@given(cases(kinds=("map", "time", "count")))
def test_phases_of_repeatable_and_convergent_capable_operators_are_tight(case: Case) -> None:
    for impact in case.impacts:
        if not is_simple(case, impact):
            continue
        truth, before, after = case.of(impact.output)
        wrong = {time for time, values in after.items() if values != truth[time]}
        missing = set(truth) - set(before) - set(after)
        doubled = set(before) & set(after)
        for name, actual in (("offline", missing), ("convergence", wrong), ("duplicate", doubled)):
            announced = [time for time in sorted(truth) if within(time, impact, name)]
            assert announced == sorted(actual), f"{impact.output}: {name}"
        assert impact.convergence == ("finite" if wrong else "none") or not after


@settings(max_examples=examples(500))
@given(cases())
def test_counts_hold_what_is_counted(case: Case) -> None:
    check_counts(case)


def test_the_class_of_each_operator_is_told() -> None:
    found = classified(Operator("a", "aggregate", ("in",), (Window("time", 5, 5),)))
    assert found.recovery == "deterministic"


@settings(max_examples=examples(300))
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
