"""The numbers of Brand, Grawunder and Appelrath (BTW 2017), as announced and as really run."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

from cklog.impact.dataflow import Dataflow, aligned, classified
from cklog.impact.elements import Elements, Listed, Periodic, Unseen
from cklog.impact.model import (
    RECOVERIES,
    BoundedTime,
    ClassSupport,
    Count,
    Operator,
    OutputImpact,
    RecoveryClass,
    Window,
)
from cklog.impact.output import CrashRecovery, output_impact
from cklog.simulate.odysseus.crash import (
    Crash,
    Crashed,
    Sent,
    counted_elements,
    counting_query,
    figure_elements,
    figure_query,
    newer_results,
    tally,
)
from cklog.simulate.odysseus.crash import run as really_run
from cklog.simulate.odysseus.files import write
from cklog.simulate.odysseus.query import Result
from tests.oracles.impact import Case, check_announced, check_counts, exactly
from tests.reading.impact import impact_of

NO_SUPPORT = tuple(ClassSupport(name, "none", ()) for name in RECOVERIES)


def announced(
    crashed: Crashed, checkpoint: BoundedTime | None = None, known: Elements | None = None
) -> dict[str, OutputImpact]:
    """What is announced of each output, from all elements or what is `known` of them."""
    how, query = crashed.how, crashed.query
    flow = Dataflow({o.name: o for o in query.operators}, dict.fromkeys(query.sources, Unseen()))
    flow = aligned(flow, crashed.starts) if how.aligned else flow
    listed = {name: Listed([e.time for e in crashed.elements if e.source == name]) for name in query.sources}
    elements = {name: known or times for name, times in listed.items()}
    recovery = CrashRecovery(how.recovery, exactly(how.crash), how.restart, checkpoint or exactly(how.checkpoint))
    return {name: output_impact(flow, name, elements, recovery, NO_SUPPORT) for name in flow.outputs}


# The experiment of section 6: an element every 10 ms, windows of 60 s, a crash at 270 s, a restart at 360 s


@functools.cache
def experiment(recovery: RecoveryClass) -> Crashed:
    """With the last checkpoint at 240 s."""
    how = Crash(recovery, 240_000, 270_000, 360_000)
    return really_run(counting_query(60_000, 10), counted_elements(10, 480_000), how)


COUNTS = {  # missing, wrong, doubled, in doubt
    "gap": (9000, 5999, 0, 6000),
    "stateless-rollback": (0, 5999, 3000, 12_000),
    "rollback": (0, 0, 3000, 12_000),
    "precise": (0, 0, 0, 0),
}


@pytest.mark.quarter
@pytest.mark.parametrize("recovery", RECOVERIES)
def test_the_experiment_loses_and_doubles_what_the_paper_says(recovery: RecoveryClass, tmp_path: Path) -> None:
    """Really run, announced from the list of elements, and announced from the files that the run leaves."""
    crashed, counts = experiment(recovery), COUNTS[recovery]
    (really,) = tally(crashed)
    assert (really.missing, really.wrong, really.doubled) == counts[:3]
    write(tmp_path / "run", crashed, 10, 60_000)
    (from_files,) = impact_of(tmp_path / "run").outputs
    assert from_files.recovery == recovery
    for found in (announced(crashed)["count"], from_files):
        numbers = (found.missing, found.wrong, found.doubled, found.in_doubt)
        assert numbers == tuple(Count(n, n) for n in counts)
        check_announced(Case(crashed, (found,)))
        check_counts(Case(crashed, (found,)))


def test_gap_recovery_is_offline_from_270_to_360_and_right_again_at_419_99() -> None:
    found = announced(experiment("gap"))["count"]
    spans = [(p.phase, p.from_, p.to) for p in found.phases]
    assert spans == [("offline", 270_000, 360_000), ("convergence", 360_000, 419_990)]
    assert found.first_right == 419_990
    assert [(s.trust, s.from_, s.to) for s in found.trust] == [
        ("untrustworthy", 360_000, 420_000),  # 6000 results merge the first element after the restart
        ("trustworthy", 420_000, None),
    ]


def test_rollback_doubles_240_to_270_and_is_in_doubt_until_360() -> None:
    found = announced(experiment("rollback"))["count"]
    assert [(p.phase, p.from_, p.to) for p in found.phases] == [("duplicate", 240_000, 270_000)]
    assert [(s.trust, s.from_, s.to) for s in found.trust] == [
        ("indefinite", 240_000, 360_000),
        ("trustworthy", 360_000, None),
    ]


def test_the_counts_follow_from_the_period_alone() -> None:
    """No log, no results: only the period of the source."""
    crashed = experiment("gap")
    found = announced(crashed, known=Periodic(10, 0))["count"]
    assert (found.missing, found.wrong, found.in_doubt) == (Count(9000, 9000), Count(5999, 5999), Count(6000, 6000))
    found = announced(crashed, known=Periodic(10))["count"]
    assert (found.missing, found.wrong) == (Count(9000, 9000), Count(0, 5999))


def test_without_a_rate_the_spans_are_told_and_no_counts() -> None:
    crashed = experiment("gap")
    found = announced(crashed, known=Unseen())["count"]
    assert [(p.phase, p.from_, p.to) for p in found.phases] == [
        ("offline", 270_000, 360_000),
        ("convergence", 360_000, 419_990),
    ]
    assert found.missing == found.wrong == Count(0, None)


def test_an_unknown_checkpoint_bounds_the_duplicates_by_0_and_6000() -> None:
    crashed = experiment("rollback")
    found = announced(crashed, BoundedTime(210_000, 270_000, "interval"))["count"]
    assert found.doubled == Count(0, 6000)
    assert found.in_doubt == Count(9000, 15_000)


def test_no_checkpoint_within_the_bounds_contradicts_them() -> None:
    """Stateless rollback from any moment of the minute before the crash."""
    bounds = BoundedTime(210, 270, "interval")
    for checkpoint in range(210, 271, 7):
        how = Crash("stateless-rollback", checkpoint, 270, 360)
        crashed = really_run(counting_query(60, 10), counted_elements(10, 480), how)
        case = Case(crashed, tuple(announced(crashed, bounds).values()))
        for impact in case.impacts:
            assert impact.convergence == "finite"
        check_counts(case)


# Figures 1 and 3: in 5 6 5 7 5 4 3 7 5, an element each second

DRAWN = {
    "truth": {
        "out1": "5 - 5 - 5 4 3 - 5",
        "out2": "5 11 11 12 12 9 7 10 12",
        "out3": "5 11 5 12 5 9 3 10 5",
    },
    "gap": {  # Figures 1b and 3b: elements 4 and 5 are lost
        "out1": "5 - 5 _ _ 4 3 - 5",
        "out2": "5 11 11 _ _ 4 7 10 12",
        "out3": "5 11 5 _ _ 4 7 7 12",
    },
    "stateless-rollback": {  # Figure 3c: an input log from element 3 on
        "out1": "5 - 5 | 5 - 5 4 3 - 5",
        "out2": "5 11 11 | 5 12 12 9 7 10 12",
        "out3": "5 11 5 | 5 12 5 9 3 10 5",
    },
    "rollback": {  # Figure 3d: and a processing image
        "out1": "5 - 5 | 5 - 5 4 3 - 5",
        "out2": "5 11 11 | 11 12 12 9 7 10 12",
        "out3": "5 11 5 | 5 12 5 9 3 10 5",
    },
    "precise": {
        "out1": "5 - 5 | - 5 4 3 - 5",
        "out2": "5 11 11 | 12 12 9 7 10 12",
        "out3": "5 11 5 | 12 5 9 3 10 5",
    },
}
ANNOUNCED: dict[str, dict[str, tuple[str, int, int]]] = {  # convergence, wrong, doubled
    "gap": {"out1": ("none", 0, 0), "out2": ("finite", 1, 0), "out3": ("infinite", 4, 0)},
    "stateless-rollback": {"out1": ("none", 0, 1), "out2": ("finite", 1, 1), "out3": ("none", 0, 1)},
    "rollback": {"out1": ("none", 0, 1), "out2": ("none", 0, 1), "out3": ("none", 0, 1)},
    "precise": {"out1": ("none", 0, 0), "out2": ("none", 0, 0), "out3": ("none", 0, 0)},
}


def figure(recovery: Any, timed: bool | None = None) -> Crashed:
    """The figures' run: element 3 is the last before the crash, element 6 the first after the restart."""
    return really_run(figure_query(timed), figure_elements(), Crash(recovery, 2000, 3000, 5000, timed is not False))


def drawn(results: Any, output: str, times: range) -> list[str]:
    """Cells as in the figures: - for an element that the filter drops."""
    cells = {r.time: str(r.value) for r in results if r.output == output}
    return [cells.get(time, "-") for time in times]


@pytest.mark.parametrize("recovery", RECOVERIES)
def test_figures_1_and_3_cell_by_cell(recovery: Any) -> None:
    crashed = figure(recovery)
    for output, cells in DRAWN[recovery].items():
        before = drawn(crashed.before, output, range(0, 3000, 1000))
        since = {"gap": 5000, "precise": 3000}.get(recovery, 2000)
        after = drawn(crashed.after, output, range(since, 9000, 1000))
        between = ["_", "_"] if recovery == "gap" else ["|"]
        assert " ".join([*before, *between, *after]) == cells, output
        assert " ".join(drawn(crashed.truth, output, range(0, 9000, 1000))) == DRAWN["truth"][output]


@pytest.mark.parametrize("recovery", RECOVERIES)
def test_figures_1_and_3_as_announced(recovery: Any) -> None:
    crashed = figure(recovery)
    found = announced(crashed)
    check_announced(Case(crashed, tuple(found.values())))
    for output, (kind, wrong, doubled) in ANNOUNCED[recovery].items():
        assert found[output].convergence == kind, output
        assert found[output].wrong.most == wrong, output
        assert found[output].doubled.most == doubled, output
        assert found[output].missing.most == (2 if recovery == "gap" else 0), output


def test_windows_of_elements_are_never_trusted_again() -> None:
    """Section 3.2: trust is indefinite for all elements after gap recovery."""
    for recovery in ("gap", "stateless-rollback"):
        for output in ("out2", "out3"):
            (span,) = announced(figure(recovery))[output].trust
            assert (span.trust, span.to) == ("indefinite", None)


def test_sums_of_two_elements_converge_after_one_even_where_nobody_knows_how_many_are_lost() -> None:
    found = announced(figure("gap"), known=Unseen())
    assert (found["out2"].convergence, found["out2"].wrong) == ("finite", Count(0, 1))
    assert found["out3"].convergence == "unknown"


@pytest.mark.parametrize(
    ("timed", "out3"),
    [(True, "5 11 5 _ _ 4 3 10 5"), (False, "5 11 5 _ _ 4 7 7 12")],
    ids=["logged alignment", "alignment with the first element"],
)
def test_tumbling_windows_of_two_seconds_converge_if_their_start_is_logged(timed: bool, out3: str) -> None:
    """The example at the end of section 3.2: with ts0 logged the windows start where they would have."""
    crashed = figure("gap", timed)
    before = drawn(crashed.before, "out3", range(0, 3000, 1000))
    after = drawn(crashed.after, "out3", range(5000, 9000, 1000))
    assert " ".join([*before, "_", "_", *after]) == out3
    found = announced(crashed)["out3"]
    assert (found.convergence, found.wrong.most) == (("finite", 1) if timed else ("infinite", 4))
    check_announced(Case(crashed, (found,)))


def test_phases_of_windows_in_a_row_add_up() -> None:
    """Two windows of 60 s and of 30 s: 59.99 s and then 29.99 s more."""
    one, two = Window("time", 60_000, 10, 0), Window("time", 30_000, 10, 0)
    operators = (
        Operator("in", "source"),
        Operator("a", "aggregate", ("in",), (one,)),
        Operator("b", "aggregate", ("a",), (two,)),
    )
    flow = Dataflow({o.name: o for o in operators}, {"in": Periodic(10, 0)})
    recovery = CrashRecovery("gap", exactly(270_000), 360_000, None)
    found = output_impact(flow, "b", flow.periods, recovery, NO_SUPPORT)
    assert (found.first_right, found.wrong) == (449_980, Count(8998, 8998))


@pytest.mark.parametrize(
    ("window", "recovery"),
    [
        (Window("time", 60, 10, 0), "convergent-capable"),
        (Window("time", 60, 1), "convergent-capable"),
        (Window("time", 60, 60), "deterministic"),
        (Window("time", 60, 10, 0, system=True), "arbitrary"),
        (Window("count", 5, 1), "convergent-capable"),
        (Window("count", 5, 5), "deterministic"),
    ],
)
def test_the_class_of_an_operator_follows_from_its_window(window: Window, recovery: str) -> None:
    assert classified(Operator("a", "aggregate", ("in",), (window,))).recovery == recovery


def test_windows_by_the_machines_clock_are_never_trusted_whatever_is_restored() -> None:
    operators = (
        Operator("in", "source"),
        Operator("a", "aggregate", ("in",), (Window("time", 60, 10, 0, system=True),)),
    )
    flow = Dataflow({o.name: o for o in operators}, {"in": Periodic(10, 0)})
    for recovery in RECOVERIES:
        found = output_impact(
            flow, "a", flow.periods, CrashRecovery(recovery, exactly(270), 360, exactly(240)), NO_SUPPORT
        )
        assert found.convergence == "unknown"
        assert {span.trust for span in found.trust} == {"indefinite"}


def test_of_results_at_one_time_the_counter_tells_which_were_sent() -> None:
    """Section 5: elements that are equal on purpose are told apart by a counter."""
    results = [
        Result("out", time, value, "in", 0) for time, value in ((4, "a"), (5, "b"), (5, "b"), (5, "b"), (6, "c"))
    ]
    newer = list(newer_results(results, {"out": Sent(5, 1)}))
    assert [(r.time, r.value) for r in newer] == [(5, "b"), (6, "c")]


def test_a_filter_behind_a_window_of_elements_may_drop_wrong_results() -> None:
    """The window fixes how many of its results are wrong, and nobody knows how many of those the filter keeps."""
    times = list(range(0, 100, 10))
    window = Operator("three", "aggregate", ("s",), (Window("count", 3, 1),))
    flow = Dataflow(
        {"s": Operator("s", "source"), "three": window, "some": Operator("some", "filter", ("three",), drops=True)},
        {"s": Unseen()},
    )
    recovery = CrashRecovery("gap", exactly(30), 60, None)
    wrong = {
        name: output_impact(flow, name, {"s": Listed(times)}, recovery, NO_SUPPORT).wrong for name in ("three", "some")
    }
    assert wrong == {"three": Count(2, 2), "some": Count(0, 2)}
