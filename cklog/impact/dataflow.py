"""The dataflow of a manifest (`job.json`): operators in order, their windows, their classes.

    operators  name, kind source|filter|map|union|aggregate|join|sink, query, and
               window    {"ms": size, "slide_ms": slide, "start": ts0, "clock": "event"|"system"} or {"tuples", "slide"}
               windows   of a join: one for each input, in the order of `channels`
               recovery  a class of `cklog.impact.model.CLASSES`, instead of the derived one
               period_ms, start_ms  of a source that sends at fixed times
               delivery  transactional|deduplicates, of a sink that takes nothing twice
    channels   the edges, `a/0->b/0`

A window without a slide tumbles. `start` is a constant that windows align with; a `window-start` event of the system
log (`ts`) serves as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from cklog.errors import NotFound
from cklog.impact.elements import Elements, Periodic, Unseen
from cklog.impact.model import CLASSES, Classified, Operator, OperatorClass, Window
from cklog.model.findings import Finding
from cklog.model.names import parse_channel
from cklog.model.values import is_integer

_DROPS = ("filter", "select", "selection")


@dataclass(frozen=True, slots=True)
class Dataflow:
    """Operators, inputs first.

    `periods` : what the manifest says of each source's elements: `Periodic` if it states a period, else `Unseen`
    """

    operators: Mapping[str, Operator]
    periods: Mapping[str, Elements]

    @property
    def outputs(self) -> tuple[str, ...]:
        """The operators that nobody reads from: the outputs of the queries."""
        read = {name for operator in self.operators.values() for name in operator.inputs}
        return tuple(sorted(o.name for o in self.operators.values() if o.inputs and o.name not in read))

    def above(self, output: str) -> tuple[Operator, ...]:
        """Return the operators whose elements an output is made of, inputs first, the output last."""
        wanted = {output}
        for operator in reversed(tuple(self.operators.values())):
            if operator.name in wanted:
                wanted.update(operator.inputs)
        return tuple(operator for operator in self.operators.values() if operator.name in wanted)

    def sources_of(self, output: str) -> tuple[str, ...]:
        """Return the sources whose elements an output is made of."""
        return tuple(operator.name for operator in self.above(output) if not operator.inputs)


def aligned(flow: Dataflow, starts: Mapping[str, int]) -> Dataflow:
    """Return the dataflow with time windows that align with logged `starts` (ms, by operator).

    A constant that the manifest gives for a window stays.
    """
    found = {}
    for name, operator in flow.operators.items():
        windows = tuple(
            replace(w, start=starts[name]) if name in starts and w.start is None and w.kind == "time" else w
            for w in operator.windows
        )
        found[name] = replace(operator, windows=windows)
    return Dataflow(found, flow.periods)


def dataflow(manifest: Mapping[str, Any]) -> tuple[Dataflow, list[Finding]]:
    """Read the dataflow of a manifest, with findings about what cannot be read in it.

    Raises
    ------
    NotFound : no operators or channels, or channels in a cycle: restarts of those need checkpoints
    """
    rows = {row["name"]: row for row in manifest.get("operators", [])}
    edges = [parse_channel(row["channel"]) for row in manifest.get("channels", [])]
    inputs: dict[str, list[str]] = {name: [] for name in rows}
    for edge in edges:
        if edge is not None:
            inputs.setdefault(edge.sender.operator, [])
            into = inputs.setdefault(edge.receiver.operator, [])
            if edge.sender.operator not in into:
                into.append(edge.sender.operator)
    if not any(inputs.values()):
        message = "job.json names no operators and channels: the impact on results follows from the dataflow"
        raise NotFound(message, "give a job.json with operators and channels (cklog.impact.dataflow)")
    findings: list[Finding] = []
    found = {
        name: _operator_of(name, rows.get(name, {}), tuple(inputs[name]), findings) for name in _inputs_first(inputs)
    }
    read = {name for given in inputs.values() for name in given}
    sources = sorted(name for name in read if not inputs[name])
    periods = {name: _stated_elements(rows.get(name, {}), findings) for name in sources}
    return Dataflow(found, periods), findings


def _inputs_first(inputs: Mapping[str, list[str]]) -> list[str]:
    """Operators, inputs first, else by name."""
    left, order = {name: set(given) for name, given in inputs.items()}, list[str]()
    while left:
        ready = sorted(name for name, given in left.items() if not given & set(left))
        if not ready:
            message = f"the channels of job.json form a cycle through {min(left)}"
            raise NotFound(message, "phases are those of acyclic queries; see cklog recovery-line")
        order += ready
        left = {name: given for name, given in left.items() if name not in ready}
    return order


def _operator_of(name: str, row: Mapping[str, Any], inputs: tuple[str, ...], findings: list[Finding]) -> Operator:
    """The operator of a row of the manifest; one whose windows cannot be read counts as arbitrary."""
    kind = row.get("kind") if isinstance(row.get("kind"), str) else ""
    stated = row.get("recovery") if row.get("recovery") in CLASSES else None
    windows = [_window_of(spec) for spec in _window_specs(row)]
    joins = kind == "join"
    if not _windows_fit(windows, len(inputs), joins):
        message = f"job.json: the window of {name} cannot be read; the operator counts as arbitrary"
        findings.append(Finding("bad-window", "error", name, message, effect="none"))
        windows, stated = [], "arbitrary"
    elif joins and not windows and stated is None:
        message = f"job.json gives no windows for the join {name}; the operator counts as arbitrary"
        findings.append(Finding("bad-window", "error", name, message, effect="none"))
        stated = "arbitrary"
    whole = tuple(w for w in windows if w is not None)
    return Operator(
        name=name,
        kind=kind or ("source" if not inputs else ""),
        inputs=inputs,
        windows=whole * len(inputs) if joins and len(whole) == 1 else whole,
        stated=stated,
        query=row["query"] if isinstance(row.get("query"), str) else "",
        drops=kind in _DROPS,
        delivery=row["delivery"] if row.get("delivery") in ("transactional", "deduplicates") else "plain",
    )


def _window_specs(row: Mapping[str, Any]) -> list[Any]:
    if isinstance(row.get("windows"), list):
        return list(row["windows"])
    return [row["window"]] if "window" in row else []


def _windows_fit(windows: list[Window | None], inputs: int, joins: bool) -> bool:
    """Whether windows could be read, are as many as they must be, and those of a join are of time."""
    if any(w is None or (joins and w.kind == "count") for w in windows):
        return False
    return len(windows) in ((0, 1, inputs) if joins else (0, 1))


def _window_of(spec: Any) -> Window | None:
    """The window of a specification, None if that cannot be understood."""
    if not isinstance(spec, dict) or ("ms" in spec) == ("tuples" in spec):
        return None
    timed = "ms" in spec
    size: Any = spec["ms"] if timed else spec["tuples"]
    slide: Any = spec.get("slide_ms" if timed else "slide", size)
    start: Any = spec.get("start") if timed else None
    if not _is_length(size) or not _is_length(slide) or slide > size or not (start is None or _is_time_or_size(start)):
        return None
    if spec.get("clock", "event") not in ("event", "system"):
        return None
    return Window(
        "time" if timed else "count", size=size, slide=slide, start=start, system=spec.get("clock") == "system"
    )


def _stated_elements(row: Mapping[str, Any], findings: list[Finding]) -> Elements:
    """What a row of the manifest says of a source's elements."""
    period, start = row.get("period_ms"), row.get("start_ms")
    if period is None:
        return Unseen()
    if not _is_length(period) or not (start is None or _is_time_or_size(start)):
        message = f"job.json: the period of {row['name']} cannot be read; it is taken as unknown"
        findings.append(Finding("bad-period", "warning", row["name"], message))
        return Unseen()
    return Periodic(period, start)


def _is_length(value: Any) -> bool:
    return _is_time_or_size(value) and 0 < value < 1 << 53


def _is_time_or_size(value: Any) -> bool:
    return is_integer(value) and abs(value) < 1 << 62


def classified(operator: Operator) -> Classified:
    """Return an operator's class (Hwang et al. 2005, as in the paper's section 3.1): as stated, or derived."""
    if operator.stated is not None:
        return Classified(operator.name, operator.stated, "stated in job.json")
    found = [_class_by_window(window) for window in operator.windows]
    passes = _ClassReason("repeatable", "at most one element of each input for a result")
    weakest = min(found, key=lambda reason: CLASSES.index(reason.recovery), default=passes)
    return Classified(operator.name, weakest.recovery, weakest.why)


class _ClassReason(NamedTuple):
    recovery: OperatorClass
    why: str


def _class_by_window(window: Window) -> _ClassReason:
    if window.system:
        return _ClassReason("arbitrary", "windows by the machine's clock hold other elements each time")
    if window.kind == "count":
        if window.slide == 1:
            return _ClassReason("convergent-capable", "windows of elements that slide by one")
        return _ClassReason("deterministic", "windows of elements start elsewhere after a restart")
    if window.start is not None:
        return _ClassReason("convergent-capable", f"time windows that align with {window.start}")
    if window.slide == 1:
        return _ClassReason("convergent-capable", "time windows that start at every millisecond")
    return _ClassReason("deterministic", "time windows that align with the first element, which is not logged")
