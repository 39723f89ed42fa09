"""What a non-distributed system has to do to recover, in order, each step with the logged value that it needs.

The order is the paper's (sections 3.2, 4.2 and 5): a query is installed first and started last; what belongs to its
operators is restored in between, or it would go on from empty states.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cklog.impact.checkpoint import Image
from cklog.impact.crash import Outage
from cklog.impact.dataflow import Dataflow
from cklog.impact.elements import Elements
from cklog.impact.logs import LoggedElements
from cklog.impact.model import RECOVERIES, OutputImpact, RecoveryClass, RecoveryTask
from cklog.impact.system import Event

RecoveryStep = tuple[str, str, dict[str, Any]]
"""Task, subject, values."""


@dataclass(frozen=True, slots=True)
class Logbook:
    """What the run that crashed had logged last: queries with their states, connections, window starts, elements sent.

    `removed` : queries that were removed, and are not to come back
    """

    connected: tuple[tuple[str, str], ...]
    queries: Mapping[str, str]
    removed: frozenset[str]
    starts: Mapping[str, int]
    sent: Mapping[str, Event]


def logbook(events: Iterable[Event]) -> Logbook:
    """Read the events of a run in their order; a later one overrules an earlier one."""
    connected: dict[tuple[str, str], None] = {}
    queries: dict[str, str] = {}
    removed: set[str] = set()
    starts: dict[str, int] = {}
    sent: dict[str, Event] = {}
    for event in events:
        what, _, verb = event.event.partition("-")
        if verb == "connected":
            connected[what, event.name] = None
        elif verb == "disconnected":
            connected.pop((what, event.name), None)
        elif verb == "installed":
            queries[event.name] = ""
            removed.discard(event.name)
        elif verb == "removed":
            queries.pop(event.name, None)
            removed.add(event.name)
        elif event.event == "query-state" and event.name in queries:
            queries[event.name] = event.state
        elif event.event == "window-start" and event.ts is not None:
            starts[event.name] = event.ts
        elif event.event == "element-sent" and event.ts is not None:
            sent[event.name] = event
    return Logbook(tuple(connected), queries, frozenset(removed), starts, sent)


def recovery_tasks(
    flow: Dataflow,
    outage: Outage,
    book: Logbook,
    image: Image | None,
    checkpoint: int | None,
    elements: Mapping[str, Elements],
    outputs: tuple[OutputImpact, ...],
) -> tuple[RecoveryTask, ...]:
    """The steps, for the outputs that come back and the recovery class of each; `checkpoint` in ms if it is known."""
    classes = {found.output: found.recovery for found in outputs}
    by_hand = [found.query for found in outputs if found.query not in book.queries]
    rows: list[RecoveryStep] = [*_detection(outage)]
    for what in ("source", "sink"):
        rows += [(f"connect {what}", name, {}) for kind, name in book.connected if kind == what]
    rows += [("install query", name, {"logged": True}) for name in book.queries]
    rows += [("install query", name, {"logged": False}) for name in dict.fromkeys(by_hand)]
    rows += _states(flow, image, classes)
    rows += _alignments(flow, {"gap": outage.restart, "stateless-rollback": checkpoint}, classes)
    rows += _inputs(flow, image, classes)
    rows += _watermarks(book, classes)
    rows += [("set query state", name, {"state": state or "running"}) for name, state in book.queries.items()]
    rows += _switches(flow, outage, elements, classes)
    return tuple(RecoveryTask(i, *row) for i, row in enumerate(rows, 1))


def _detection(outage: Outage) -> list[RecoveryStep]:
    boot = next((e for e in outage.before if e.event == "boot"), None)
    return [] if boot is None else [("detect crash", "system log", {"boot": boot.time})]


def _at_least(flow: Dataflow, classes: Mapping[str, RecoveryClass], least: RecoveryClass) -> set[str]:
    """The operators above outputs whose recovery class is `least` or more."""
    wanted = [o for o, found in classes.items() if RECOVERIES.index(found) >= RECOVERIES.index(least)]
    return {operator.name for output in wanted for operator in flow.above(output)}


def _states(flow: Dataflow, image: Image | None, classes: Mapping[str, RecoveryClass]) -> list[RecoveryStep]:
    if image is None:
        return []
    wanted = _at_least(flow, classes, "rollback")
    return [
        ("load state", name, {"checkpoint": image.number, "uri": image.states[name] or None})
        for name in flow.operators
        if name in wanted and name in image.states and flow.operators[name].stateful
    ]


def _alignments(
    flow: Dataflow, since: Mapping[RecoveryClass, int | None], classes: Mapping[str, RecoveryClass]
) -> list[RecoveryStep]:
    """Windows of operators whose states are not loaded; `since` when each class makes results again, in ms."""
    loaded, replayed = (_at_least(flow, classes, least) for least in ("rollback", "stateless-rollback"))
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


def _inputs(flow: Dataflow, image: Image | None, classes: Mapping[str, RecoveryClass]) -> list[RecoveryStep]:
    wanted = _at_least(flow, classes, "stateless-rollback")
    positions = image.positions if image is not None else {}
    return [("resume input", name, {"element": positions.get(name)}) for name in flow.periods if name in wanted]


def _watermarks(book: Logbook, classes: Mapping[str, RecoveryClass]) -> list[RecoveryStep]:
    """The last element that an output sent, and how many equal ones it had sent before that."""
    rows: list[RecoveryStep] = []
    for output, recovery in classes.items():
        event = book.sent.get(output)
        if recovery == "precise" and event is not None:
            rows.append(("drop duplicates", output, {"ts": event.ts, "equal": event.equal or 0}))
    return rows


def _switches(
    flow: Dataflow, outage: Outage, elements: Mapping[str, Elements], classes: Mapping[str, RecoveryClass]
) -> list[RecoveryStep]:
    """From the input log to the live source.

    The watermark is the first logged element that is not older than the source's own: the one at the restart, or a
    later one, as the replay takes time.
    """
    wanted = _at_least(flow, classes, "stateless-rollback")
    rows: list[RecoveryStep] = []
    for name in flow.periods:
        source = elements[name]
        if name in wanted:
            known = isinstance(source, LoggedElements) and outage.restart is not None
            watermark = source.number(outage.restart) if known and outage.restart is not None else None
            modes = ["backup", "switch", "source"]
            rows.append(("switch to source", name, {"modes": modes, "earliest_watermark": watermark}))
    return rows
