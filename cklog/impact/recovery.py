"""The recovery of a non-distributed system: which classes the evidence supports, and what has to be done, in order.

The order of the tasks is the paper's (sections 3.2, 4.2 and 5): a query is installed first and started last; what
belongs to its operators is restored in between, or it would go on from empty states.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cklog.impact.checkpoint import Image
from cklog.impact.crash import Outage
from cklog.impact.dataflow import Dataflow, classified
from cklog.impact.elements import Elements
from cklog.impact.logs import LoggedElements
from cklog.impact.model import (
    RECOVERIES,
    ClassSupport,
    ConvergenceKind,
    GuaranteeClass,
    Operator,
    OutputImpact,
    RecoveryClass,
    RecoveryTask,
)
from cklog.impact.system import Logbook
from cklog.model.wording import many


@dataclass(frozen=True, slots=True)
class RecoveryMeans:
    """What there is to recover with: checkpoints, logs of inputs, and the system log.

    `images` : the checkpoint that each recovery class goes back to
    `elements` : of each source; a log of its input is a `LoggedElements`
    `retained` : the first element that a source's log still keeps, where the manifest says so
    """

    images: Mapping[RecoveryClass, Image | None]
    elements: Mapping[str, Elements]
    retained: Mapping[str, int]
    outage: Outage
    book: Logbook


def supported(
    flow: Dataflow, output: str, means: RecoveryMeans, stateless: ConvergenceKind
) -> tuple[ClassSupport, ...]:
    """Return all four recovery classes for an output, each with the pieces of evidence that it lacks.

    Parameters
    ----------
    stateless : how the output converges if it is recovered without operator states
    """
    operators = flow.above(output)
    delivery = operators[-1].delivery
    arbitrary = [o.name for o in operators if classified(o).recovery == "arbitrary"]
    sources = flow.sources_of(output)
    newest, whole = means.images["stateless-rollback"], means.images["rollback"]
    rollback = [*_lacking_inputs(sources, whole, means), *_lacking_states(operators, whole)]
    missing: dict[RecoveryClass, list[str]] = {
        "gap": [],
        "stateless-rollback": _lacking_inputs(sources, newest, means),
        "rollback": rollback,
        "precise": [
            *rollback,
            *_lacking_watermark(operators, output, means),
            *(f"an operator in place of {name} that repeats its results" for name in arbitrary),
        ],
    }
    return tuple(
        ClassSupport(
            recovery=name,
            guarantee=_guarantee_of_class(name, stateless, dedupes=delivery != "plain", repeats=not arbitrary),
            missing=tuple(missing[name]),
        )
        for name in RECOVERIES
    )


def _guarantee_of_class(
    recovery: RecoveryClass, stateless: ConvergenceKind, dedupes: bool, repeats: bool
) -> GuaranteeClass:
    """What a recovery class guarantees (paper, sections 3 to 5).

    Without operator states results are complete only if there is no convergence phase; a sink that takes nothing
    twice turns at least once into exactly once; and no replay gives the same results if operators do not repeat.
    """
    if recovery == "gap":
        return "at-most-once"
    if not repeats or (recovery == "stateless-rollback" and stateless != "none"):
        return "none"
    return "exactly-once" if recovery == "precise" or dedupes else "at-least-once"


def _lacking_inputs(sources: tuple[str, ...], image: Image | None, means: RecoveryMeans) -> list[str]:
    return [lack for name in sources for lack in _lacking_input(name, image, means)]


def _lacking_input(source: str, image: Image | None, means: RecoveryMeans) -> list[str]:
    """What a replay of a source's elements since a checkpoint lacks."""
    elements, restart = means.elements[source], means.outage.restart
    span = elements.span() if isinstance(elements, LoggedElements) else None
    if span is None:
        return [f"an input log of {source}"]
    first = image.positions.get(source) if image is not None else None
    if first is None:
        return [f"the element of {source} that was the last one before a checkpoint"]
    lowest = max(span.first, means.retained.get(source, 0))
    if lowest > first:
        return [f"elements {first} to {lowest - 1} of {source}, before the first one that its log keeps"]
    if restart is not None and span.last_time < restart:
        return [f"elements of {source} after element {span.last}, where its log ends before the restart"]
    if span.elements < span.last - span.first + 1:
        holes = span.last - span.first + 1 - span.elements
        return [f"{many(holes, 'element')} of {source} between {span.first} and {span.last}, which its log lacks"]
    return []


def _lacking_states(operators: tuple[Operator, ...], image: Image | None) -> list[str]:
    stored = image.states if image is not None else {}
    lacking = [o.name for o in operators if o.stateful and o.name not in stored]
    at = "a checkpoint" if image is None else f"checkpoint {image.number}"
    return [f"the state of {name} at {at}" for name in lacking]


def _lacking_watermark(operators: tuple[Operator, ...], output: str, means: RecoveryMeans) -> list[str]:
    if output in means.book.sent or operators[-1].delivery != "plain":
        return []
    return [f"the last element that {output} sent before the crash, or a sink that takes nothing twice"]


# --- the tasks

RecoveryStep = tuple[str, str, dict[str, Any]]
"""Task, subject, values: a `RecoveryTask` without its number."""


def recovery_tasks(
    flow: Dataflow,
    means: RecoveryMeans,
    strongest: RecoveryClass,
    checkpoint: int | None,
    outputs: tuple[OutputImpact, ...],
) -> tuple[RecoveryTask, ...]:
    """Return the steps of the recovery, for the outputs that come back and the recovery class of each.

    Parameters
    ----------
    strongest : of the classes of the outputs; its checkpoint is the one to go back to
    checkpoint : when that was, in ms; None: not known
    """
    outage, book, image = means.outage, means.book, means.images[strongest]
    classes = {found.output: found.recovery for found in outputs}
    by_hand = [found.query for found in outputs if found.query not in book.queries]
    rows: list[RecoveryStep] = [*_detection_steps(outage)]
    for what in ("source", "sink"):
        rows += [(f"connect {what}", name, {}) for kind, name in book.connected if kind == what]
    rows += [("install query", name, {"logged": True}) for name in book.queries]
    rows += [("install query", name, {"logged": False}) for name in dict.fromkeys(by_hand)]
    rows += _state_steps(flow, image, classes)
    rows += _alignment_steps(flow, {"gap": outage.restart, "stateless-rollback": checkpoint}, classes)
    rows += _input_steps(flow, image, classes)
    rows += _watermark_steps(book, classes)
    rows += [("set query state", name, {"state": state or "running"}) for name, state in book.queries.items()]
    rows += _switch_steps(flow, means, classes)
    return tuple(RecoveryTask(i, *row) for i, row in enumerate(rows, 1))


def _detection_steps(outage: Outage) -> list[RecoveryStep]:
    boot = next((e for e in outage.before if e.event == "boot"), None)
    return [] if boot is None else [("detect crash", "system log", {"boot": boot.time})]


def _operators_at_least(flow: Dataflow, classes: Mapping[str, RecoveryClass], least: RecoveryClass) -> set[str]:
    """The operators above outputs whose recovery class is `least` or more."""
    wanted = [o for o, found in classes.items() if RECOVERIES.index(found) >= RECOVERIES.index(least)]
    return {operator.name for output in wanted for operator in flow.above(output)}


def _state_steps(flow: Dataflow, image: Image | None, classes: Mapping[str, RecoveryClass]) -> list[RecoveryStep]:
    if image is None:
        return []
    wanted = _operators_at_least(flow, classes, "rollback")
    return [
        ("load state", name, {"checkpoint": image.number, "uri": image.states[name] or None})
        for name in flow.operators
        if name in wanted and name in image.states and flow.operators[name].stateful
    ]


def _alignment_steps(
    flow: Dataflow, since: Mapping[RecoveryClass, int | None], classes: Mapping[str, RecoveryClass]
) -> list[RecoveryStep]:
    """Windows of operators whose states are not loaded; `since` when each class makes results again, in ms."""
    loaded, replayed = (_operators_at_least(flow, classes, least) for least in ("rollback", "stateless-rollback"))
    used = {o.name for output in classes for o in flow.above(output)}
    rows: list[RecoveryStep] = []
    for operator in flow.operators.values():
        for window in operator.windows if operator.name in used - loaded else ():
            if window.kind == "time" and window.start is not None and not window.system:
                at = since["stateless-rollback" if operator.name in replayed else "gap"]
                following = None if at is None else window.next_start(at, window.start)
                values = {"start": window.start, "slide": window.slide, "next": following}
                rows.append(("align windows", operator.name, values))
    return rows


def _input_steps(flow: Dataflow, image: Image | None, classes: Mapping[str, RecoveryClass]) -> list[RecoveryStep]:
    wanted = _operators_at_least(flow, classes, "stateless-rollback")
    positions = image.positions if image is not None else {}
    return [("resume input", name, {"element": positions.get(name)}) for name in flow.periods if name in wanted]


def _watermark_steps(book: Logbook, classes: Mapping[str, RecoveryClass]) -> list[RecoveryStep]:
    """The last element that an output sent, and how many equal ones it had sent before that."""
    rows: list[RecoveryStep] = []
    for output, recovery in classes.items():
        event = book.sent.get(output)
        if recovery == "precise" and event is not None:
            rows.append(("drop duplicates", output, {"ts": event.ts, "equal": event.equal or 0}))
    return rows


def _switch_steps(flow: Dataflow, means: RecoveryMeans, classes: Mapping[str, RecoveryClass]) -> list[RecoveryStep]:
    """From the input log to the live source.

    The watermark is the first logged element that is not older than the source's own: the one at the restart, or a
    later one, as the replay takes time.
    """
    wanted = _operators_at_least(flow, classes, "stateless-rollback")
    rows: list[RecoveryStep] = []
    for name in flow.periods:
        source, restart = means.elements[name], means.outage.restart
        if name in wanted:
            watermark = source.number(restart) if isinstance(source, LoggedElements) and restart is not None else None
            modes = ["backup", "switch", "source"]
            rows.append(("switch to source", name, {"modes": modes, "earliest_watermark": watermark}))
    return rows
