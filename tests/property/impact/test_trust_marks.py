"""The trust marks of Brand et al. (BTW 2017, section 3.2) behind a filter, against their definition written out.

"For application-time windows [it suffices] to set only the trust of the first element after a system restart to
untrustworthy." That element is marked where it enters, and whatever merges it is marked. A filter may drop it.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.fidelity_odysseus import COUNTEREXAMPLE, Case, judged, marks
from tests.conftest import REPOSITORY

Defined = dict[int, tuple[int, int, bool]]
"""By second of a result: its value without failure, its value after the restart, and its mark."""


def defined(case: Case) -> Defined:
    """Every result after the restart, summed anew from the elements in its window."""
    found = {}
    for at in range(case.restart_s, len(case.values)):
        inside = [i for i in range(max(at - case.size_s + 1, 0), at + 1) if case.values[i] < case.below]
        alive = [i for i in inside if i >= case.restart_s]
        if case.values[at] < case.below:
            truth, after = (sum(case.values[i] for i in some) for some in (inside, alive))
            found[at] = (truth, after, case.restart_s in alive)
    return found


@st.composite
def runs(draw: st.DrawFn) -> Case:
    values = tuple(draw(st.lists(st.integers(1, 9), min_size=4, max_size=30)))
    crash = draw(st.integers(1, len(values) - 2))
    restart = draw(st.integers(crash + 1, len(values) - 1))
    return Case(values, draw(st.integers(2, 10)), draw(st.integers(1, 8)), crash, restart)


@given(runs())
def test_values_and_marks_are_those_of_the_definition(case: Case) -> None:
    assert {one.time_s: (one.truth, one.result, one.marked) for one in judged(case)} == defined(case)


@given(runs())
def test_marks_miss_wrong_results_only_where_the_filter_drops_the_marked_element(case: Case) -> None:
    """Windows of lost elements that hold a later one hold the first one, too: if that is kept, all are marked."""
    missed = [at for at, (truth, after, marked) in defined(case).items() if truth != after and not marked]
    assert not missed or case.values[case.restart_s] >= case.below


@given(runs())
def test_no_wrong_result_is_missed_if_the_window_marks_the_first_element_that_comes_to_it(case: Case) -> None:
    """The other reading of the text, which the paper does not describe: the mark is set behind the filter."""
    first = next((i for i in range(case.restart_s, len(case.values)) if case.values[i] < case.below), None)
    for at, (truth, after, _) in defined(case).items():
        assert truth == after or (first is not None and at - case.size_s < first <= at)


@given(runs())
def test_cklog_calls_no_wrong_result_trustworthy(case: Case) -> None:
    assert not [one for one in judged(case) if one.result != one.truth and one.trust == "trustworthy"]


def test_the_counterexample_of_the_page_is_one() -> None:
    """Two wrong results that are trustworthy by the paper's marks; the page shows them."""
    missed = [at for at, (truth, after, marked) in defined(COUNTEREXAMPLE).items() if truth != after and not marked]
    assert missed == [8, 9]
    page = (REPOSITORY / "docs" / "fidelity-cec.md").read_text(encoding="utf-8").splitlines()
    assert [row for row in marks() if row not in page] == []
