"""A query that crashes and recovers, really run: the results before and after, beside those of a run without failure.

The four recovery classes of Brand, Grawunder and Appelrath (BTW 2017): gap (nothing kept), stateless rollback (an
input log), rollback (an image of the operator states as well), precise (and a watermark of what was sent).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cklog.errors import UsageError
from cklog.impact.model import Operator, RecoveryClass, Window
from cklog.simulate.odysseus.query import Element, OdysseusQuery, Result, Running, in_time_order

FIGURE = (5, 6, 5, 7, 5, 4, 3, 7, 5)
"""The stream `in` of the paper's Figures 1 and 3."""


@dataclass(frozen=True, slots=True)
class Crash:
    """When and how a run crashes and recovers; times are application times in ms.

    `checkpoint` : taken before the elements of that time
    `crash` : elements before that time are processed
    `restart` : when the system is back
    `aligned` : the starts of time windows are logged, and restored
    """

    recovery: RecoveryClass
    checkpoint: int
    crash: int
    restart: int
    aligned: bool = True


@dataclass(frozen=True, slots=True)
class Sent:
    """The watermark of an output: the time of the last result sent, and how many of that time were sent before it."""

    time: int
    equal: int


@dataclass(frozen=True, slots=True)
class Crashed:
    """A run with a crash, and what it left behind.

    `how` : the crash and the recovery
    `truth` : results of the run without failure
    `before`, `after` : results before the crash, and after the restart
    `starts` : what windows align with (ms), by operator, as logged
    `sent` : the watermark of each output before the crash
    """

    query: OdysseusQuery
    elements: tuple[Element, ...]
    how: Crash
    truth: tuple[Result, ...]
    before: tuple[Result, ...]
    after: tuple[Result, ...]
    starts: dict[str, int]
    sent: dict[str, Sent]


def run(query: OdysseusQuery, elements: Iterable[Element], how: Crash) -> Crashed:
    """Run a query without failure, and with a crash and a recovery.

    Raises
    ------
    UsageError : checkpoint, crash and restart are not in that order
    """
    if not how.checkpoint <= how.crash < how.restart:
        raise UsageError(f"a checkpoint at {how.checkpoint} ms, a crash at {how.crash}, a restart at {how.restart}")
    ordered = in_time_order(elements)
    truth = _results_of(Running(query), ordered)
    first = Running(query)
    before = _results_of(first, [e for e in ordered if e.time < how.checkpoint])
    image = first.image()
    before += _results_of(first, [e for e in ordered if how.checkpoint <= e.time < how.crash])
    again = Running(query, first.starts() if how.aligned else None)
    if how.recovery in ("rollback", "precise"):
        again.load(image)
    since = how.restart if how.recovery == "gap" else how.checkpoint
    after = _results_of(again, [e for e in ordered if e.time >= since])
    sent = _watermark_by_output(before)
    if how.recovery == "precise":
        after = list(newer_results(after, sent))
    return Crashed(
        query=query,
        elements=tuple(ordered),
        how=how,
        truth=tuple(truth),
        before=tuple(before),
        after=tuple(after),
        starts=first.starts(),
        sent=sent,
    )


def _results_of(running: Running, elements: Iterable[Element]) -> list[Result]:
    return [result for element in elements for result in running.take(element)]


def _watermark_by_output(results: Sequence[Result]) -> dict[str, Sent]:
    found: dict[str, Sent] = {}
    for result in results:
        last = found.get(result.output)
        equal = last.equal + 1 if last is not None and last.time == result.time else 0
        found[result.output] = Sent(result.time, equal)
    return found


def newer_results(results: Iterable[Result], sent: dict[str, Sent]) -> Iterable[Result]:
    """Yield the results behind the watermark of their output: those of its time by their number."""
    seen: Counter[str] = Counter()
    for result in results:
        mark = sent.get(result.output)
        if mark is not None and result.time == mark.time:
            seen[result.output] += 1
        if mark is None or (result.time, seen[result.output] - 1) > (mark.time, mark.equal):
            yield result


@dataclass(frozen=True, slots=True)
class OutputTally:
    """How an output fared, counted from its results: see `cklog.impact.model.OutputImpact`."""

    output: str
    results: int
    missing: int
    wrong: int
    doubled: int


def tally(crashed: Crashed) -> list[OutputTally]:
    """Compare the results with those of the run without failure, time by time."""
    found = []
    for output in crashed.query.outputs:
        truth, before, after = (
            _by_time(r for r in results if r.output == output)
            for results in (crashed.truth, crashed.before, crashed.after)
        )
        sent = len([r for r in (*crashed.before, *crashed.after) if r.output == output])
        missing = sum(len(v) for t, v in truth.items() if t not in before and t not in after)
        wrong = sum(len(v) for t, v in after.items() if v != truth.get(t))
        doubled = sum(len(v) for t, v in after.items() if t in before)
        found.append(OutputTally(output=output, results=sent, missing=missing, wrong=wrong, doubled=doubled))
    return found


@dataclass(frozen=True, slots=True)
class OutputAtTime:
    """What an output has for one time (ms): its last result (None: none), and how many, before and after the crash."""

    time: int
    result: Any
    results: int


def over_time(crashed: Crashed, output: str, most: int) -> list[OutputAtTime]:
    """Return at most `most` moments of a run, evenly among the times of its elements (the paper's Figures 4 and 5)."""
    found = _by_time(r for r in (*crashed.before, *crashed.after) if r.output == output)
    times = sorted({element.time for element in crashed.elements})
    step = max(-(-len(times) // most), 1)
    return [OutputAtTime(t, found[t][-1] if t in found else None, len(found.get(t, ()))) for t in times[::step]]


def _by_time(results: Iterable[Result]) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for result in results:
        found.setdefault(result.time, []).append(result.value)
    return found


def counting_query(size: int, slide: int) -> OdysseusQuery:
    """Make the query of the paper's evaluation (section 6.1): how many elements are in the last `size` ms."""
    operators = (
        Operator("in", "source"),
        Operator("count", "aggregate", ("in",), (Window("time", size, slide),), query="count"),
    )
    return OdysseusQuery(operators, {"count": "count"})


def figure_query(aligned: bool | None = None) -> OdysseusQuery:
    """Make the queries of Figures 1 and 3: a filter, a sliding and a tumbling sum of two elements.

    `aligned` None: windows of elements, as drawn; else of two seconds with an element each second, as in the text of
    section 3.2, that align with 0 or with the first element.
    """
    if aligned is None:
        sliding, tumbling = Window("count", 2, 1), Window("count", 2, 2)
    else:
        start = 0 if aligned else None
        sliding, tumbling = Window("time", 2000, 1000, start), Window("time", 2000, 2000, start)
    operators = (
        Operator("in", "source"),
        Operator("out1", "filter", ("in",), drops=True),
        Operator("out2", "aggregate", ("in",), (sliding,)),
        Operator("out3", "aggregate", ("in",), (tumbling,)),
    )
    return OdysseusQuery(operators, {"out1": _less_than_six, "out2": "sum", "out3": "sum"})


def _less_than_six(value: int) -> bool:
    return value < 6


def counted_elements(period: int, end: int) -> list[Element]:
    """Make an element of `in` every `period` ms, from 0 to before `end`."""
    return [Element("in", i, time, 1) for i, time in enumerate(range(0, end, period))]


def figure_elements() -> list[Element]:
    """Make the stream of the figures, an element each second."""
    return [Element("in", i, 1000 * i, value) for i, value in enumerate(FIGURE)]
