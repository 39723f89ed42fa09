"""The phases and the trust of one query output under one recovery class (paper, sections 3.1, 4.1 and 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cklog.impact.dataflow import Dataflow, classified
from cklog.impact.elements import Elements, ElementStream
from cklog.impact.model import (
    NOTHING,
    BoundedTime,
    ClassSupport,
    ConvergenceKind,
    Count,
    Operator,
    OutputImpact,
    Phase,
    RecoveryClass,
    TrustSpan,
)
from cklog.impact.phases import Converging, converging
from cklog.model.trust import TRUSTS, Trust


@dataclass(frozen=True, slots=True)
class CrashRecovery:
    """A crash, what it is recovered from, and how: `checkpoint` is where the replay starts, None: no replay."""

    recovery: RecoveryClass
    crash: BoundedTime
    restart: int | None
    checkpoint: BoundedTime | None

    @property
    def since(self) -> BoundedTime | None:
        """From where on results are made again, or for the first time, after the restart; None: not yet."""
        if self.recovery != "gap":
            return self.checkpoint
        return None if self.restart is None else BoundedTime(self.restart, self.restart, "restart")


def output_impact(
    flow: Dataflow,
    output: str,
    elements: Mapping[str, Elements],
    recovery: CrashRecovery,
    classes: tuple[ClassSupport, ...],
) -> OutputImpact:
    """What `output` suffers; `elements` by source; `classes` is what the evidence supports."""
    operators = flow.above(output)
    found = converged(flow, output, elements, recovery)
    stream = found.stream
    phases = tuple(
        p for p in (_offline(stream, recovery), _wrong(found, recovery), _twice(stream, recovery)) if p is not None
    )
    trust = _trust(found, recovery)
    support = next(c for c in classes if c.recovery == recovery.recovery)
    end = found.end if found.kind == "finite" else None
    return OutputImpact(
        output=output,
        query=operators[-1].query or output,
        recovery=recovery.recovery,
        supported=not support.missing,
        guarantee=support.guarantee,
        convergence=found.kind,
        first_right=None if end is None else stream.first_from(end),
        missing=_sum(phases, "offline"),
        wrong=_sum(phases, "convergence"),
        doubled=_sum(phases, "duplicate"),
        in_doubt=_in_doubt(trust),
        phases=phases,
        trust=trust,
        operators=tuple(classified(o) for o in operators if o.inputs),
        classes=classes,
    )


def converged(flow: Dataflow, output: str, elements: Mapping[str, Elements], recovery: CrashRecovery) -> Converging:
    """The convergence of an output, for the worst checkpoint within its bounds."""
    operators = flow.above(output)
    restored = recovery.recovery in ("rollback", "precise")
    since = recovery.since
    if since is None:
        return _open_ended(converging(operators, elements, recovery.crash.most, restored), flow, output)
    found = converging(operators, elements, since.most, restored)
    if since.exact or restored:
        return found
    return _bounded(found, flow, output, since)


def _open_ended(found: Converging, flow: Dataflow, output: str) -> Converging:
    """The kind of a convergence phase whose start nobody knows."""
    kind = found.kind
    if kind in ("none", "finite"):
        kind = "finite" if any(o.stateful for o in flow.above(output)) else "none"
    if any(_shifts(o) for o in flow.above(output)):
        kind = "unknown"
    return Converging(found.stream, kind, indefinite=found.indefinite)


def _bounded(found: Converging, flow: Dataflow, output: str, since: BoundedTime) -> Converging:
    """The same for a start at any time up to that of `found`: it lasts as long at most."""
    operators = flow.above(output)
    if not any(o.stateful for o in operators):
        return found
    kind: ConvergenceKind = "finite" if found.kind == "none" else found.kind
    if any(_shifts(o) for o in operators):
        kind = "unknown"
    end = found.end if found.kind == "finite" else since.most
    known = kind == "finite" and (found.kind != "finite" or found.end is not None)
    return Converging(
        found.stream,
        kind,
        end=end if known else None,
        marked=found.marked,
        indefinite=found.indefinite,
        dense=False,
    )


def _shifts(operator: Operator) -> bool:
    """Whether windows align with the first element that comes."""
    return any(w.slide > 1 and (w.kind == "count" or w.start is None) for w in operator.windows)


def _offline(stream: ElementStream, recovery: CrashRecovery) -> Phase | None:
    if recovery.recovery != "gap":
        return None
    crash, restart = recovery.crash, recovery.restart
    least = stream.count(crash.most, restart).least
    return Phase("offline", crash.least, restart, Count(least, stream.count(crash.least, restart).most))


def _twice(stream: ElementStream, recovery: CrashRecovery) -> Phase | None:
    start, crash = recovery.checkpoint, recovery.crash
    if recovery.recovery in ("gap", "precise") or start is None or start.least >= crash.most:
        return None
    least = stream.count(start.most, crash.least).least
    return Phase("duplicate", start.least, crash.most, Count(least, stream.count(start.least, crash.most).most))


def _wrong(found: Converging, recovery: CrashRecovery) -> Phase | None:
    since = recovery.since
    if found.kind == "none":
        return None
    if since is None:
        start = recovery.crash.most if recovery.checkpoint is None else recovery.checkpoint.least
        return Phase("convergence", start, None, Count(0, None), found.kind)
    return Phase("convergence", since.least, found.end, _wrong_count(found, since), found.kind)


def _wrong_count(found: Converging, since: BoundedTime) -> Count:
    """How many results are wrong: all up to the end, unless some of them may be right."""
    if found.kind != "finite":
        return Count(0, found.stream.count(since.least, None).most)
    if found.end is None:
        return Count(0, found.wrong)
    counted = found.stream.count(since.least, found.end)
    if not found.dense:
        return Count(0, counted.most)
    if found.wrong is not None and since.exact:
        return Count(found.wrong, found.wrong)
    return counted if since.exact else Count(0, counted.most)


def _trust(found: Converging, recovery: CrashRecovery) -> tuple[TrustSpan, ...]:
    """Trust of what is sent after the restart, from span to span."""
    since = recovery.since
    if since is None:
        return ()
    start = recovery.crash.least if recovery.recovery == "precise" else since.least
    edges: list[tuple[int | None, Trust]] = []  # up to there, at most that trust
    if found.indefinite or found.kind == "unknown":
        edges.append((None, "indefinite"))
    elif found.kind == "infinite":
        edges.append((None, "untrustworthy"))
    elif found.kind == "finite":
        edges.append((_distrusted_to(found), "untrustworthy"))
    if recovery.recovery in ("stateless-rollback", "rollback"):
        edges.append((recovery.restart, "indefinite"))
    spans = _spans(found.stream, start, edges)
    if recovery.recovery != "precise" and not since.exact:  # the first span may begin later
        first = spans[0]
        spans[0] = replace(first, results=Count(found.stream.count(since.most, first.to).least, first.results.most))
    return tuple(spans)


def _distrusted_to(found: Converging) -> int | None:
    """The end of what merges a marked element, or is wrong; None: not known."""
    if found.end is None:
        return None
    if found.marked is None:
        return found.end
    behind = found.stream.first_from(found.marked + 1)
    return max(found.end, found.marked + 1 if behind is None else behind)


def _spans(stream: ElementStream, start: int, edges: list[tuple[int | None, Trust]]) -> list[TrustSpan]:
    """Spans of one trust each: the minimum of those that reach there."""
    cuts = sorted({to for to, _ in edges if to is not None and to > start})
    found: list[TrustSpan] = []
    for low, high in zip([start, *cuts], [*cuts, None], strict=True):
        here = [trust for to, trust in edges if to is None or to > low]
        trust: Trust = max(here, key=TRUSTS.index, default="trustworthy")
        if found and found[-1].trust == trust:
            low = found.pop().from_
        found.append(TrustSpan(trust, low, high, stream.count(low, high)))
    return found


def _sum(phases: tuple[Phase, ...], name: str) -> Count:
    return next((phase.results for phase in phases if phase.phase == name), NOTHING)


def _in_doubt(trust: tuple[TrustSpan, ...]) -> Count:
    found = NOTHING
    for span in trust:
        found += span.results if span.trust != "trustworthy" else NOTHING
    return found
