"""Where Odysseus' trust marks miss wrong results: `python benchmarks/fidelity_odysseus.py [PART …]`.

PART is `marks` (all there is): a filter drops the one element that is marked after a restart (Brand et al., BTW 2017,
section 3.2). Prints rows of Markdown. `docs/fidelity-cec.md` shows what comes out, and
`tests/property/impact/test_trust_marks.py` compares it with the definitions.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from cklog.impact.dataflow import Dataflow
from cklog.impact.elements import Listed
from cklog.impact.model import RECOVERIES, BoundedTime, ClassSupport, Operator, OutputImpact, Window
from cklog.impact.output import CrashRecovery, output_impact
from cklog.simulate.odysseus.crash import FIGURE
from cklog.simulate.odysseus.query import Element, OdysseusQuery, Running

SECOND = 1000


class Marked(NamedTuple):
    """A value, and whether it is marked as untrustworthy."""

    value: int
    marked: bool


@dataclass(frozen=True, slots=True)
class Case:
    """A source with one element a second, a filter `value < below`, and a sum over sliding windows.

    `values` : of the elements, the first at 0 s
    `size_s` : of the windows, which slide by a second and align with 0
    `crash_s`, `restart_s` : elements from the one until before the other are lost
    """

    values: tuple[int, ...]
    below: int
    size_s: int
    crash_s: int
    restart_s: int


COUNTEREXAMPLE = Case(values=2 * FIGURE, below=6, size_s=5, crash_s=3, restart_s=7)
"""The stream and the filter of the paper's Figure 1, twice; its element at 7 s is a 7, which the filter drops."""


class Judged(NamedTuple):
    """A result after the restart: without failure and with it, its mark by the paper's rule, and cklog's trust."""

    time_s: int
    truth: int
    result: int
    marked: bool
    trust: str


def judged(case: Case) -> list[Judged]:
    """Run a case with gap recovery and return its results after the restart."""
    operators = (
        Operator("in", "source"),
        Operator("small", "filter", ("in",), drops=True),
        Operator("sum", "aggregate", ("small",), (Window("time", case.size_s * SECOND, SECOND, 0),)),
    )
    functions = {"small": lambda one: one.value < case.below, "sum": _sum_of_marked}
    query = OdysseusQuery(operators, functions)
    truth = _results(query, [Element("in", i, t, Marked(v, False)) for i, (t, v) in enumerate(_timed(case))])
    alive = [Element("in", i, t, Marked(v, i == case.restart_s)) for i, (t, v) in enumerate(_timed(case))]
    after = _results(query, alive[case.restart_s :])
    impact = _announced(operators, case)
    return [
        Judged(time // SECOND, truth[time].value, found.value, found.marked, _trust_at(impact, time))
        for time, found in after.items()
    ]


def _timed(case: Case) -> list[tuple[int, int]]:
    return [(SECOND * at, value) for at, value in enumerate(case.values)]


def _sum_of_marked(inside: list[Marked]) -> Marked:
    """Merge a window: the sum of its values, marked if one of them is (the paper's minimum)."""
    return Marked(sum(one.value for one in inside), any(one.marked for one in inside))


def _results(query: OdysseusQuery, elements: list[Element]) -> dict[int, Marked]:
    running = Running(query)
    return {result.time: result.value for element in elements for result in running.take(element)}


def _announced(operators: tuple[Operator, ...], case: Case) -> OutputImpact:
    flow = Dataflow(
        {operator.name: operator for operator in operators}, {"in": Listed([time for time, _ in _timed(case)])}
    )
    crash = BoundedTime(SECOND * case.crash_s, SECOND * case.crash_s, "the case")
    recovery = CrashRecovery("gap", crash, SECOND * case.restart_s, None)
    classes = tuple(ClassSupport(name, "none", ()) for name in RECOVERIES)
    return output_impact(flow, "sum", flow.periods, recovery, classes)


def _trust_at(impact: OutputImpact, time: int) -> str:
    return next(span.trust for span in impact.trust if span.from_ <= time and (span.to is None or time < span.to))


def marks() -> Iterator[str]:
    """Yield a row for each result after the restart of the counterexample."""
    for one in judged(COUNTEREXAMPLE):
        right = "right" if one.result == one.truth else "wrong"
        mark = "untrustworthy" if one.marked else "trustworthy"
        yield f"| {one.time_s} s | {one.truth} | {one.result} | {right} | {mark} | {one.trust} |"


PARTS = {
    "marks": ("| result at | without failure | after the restart | is | the paper's mark | cklog's trust |", marks)
}


def main() -> None:
    """Print the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART")
    for name in parser.parse_args().parts or PARTS:
        head, rows = PARTS[name]
        print(head, "|" + "---|" * (head.count("|") - 1), *rows(), sep="\n")


if __name__ == "__main__":
    main()
