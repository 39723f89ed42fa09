"""The phases and the trust of one query output under one recovery class (paper, sections 3.1, 4.1 and 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from cklog.impact.convergence import Converging, converging
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
from cklog.model.trust import TRUSTS, Trust


@dataclass(frozen=True, slots=True)
class CrashRecovery:
    """A crash and how it is recovered from.

    `restart` : in ms; None: not yet
    `checkpoint` : where the replay starts; None: there is no replay
    """

    recovery: RecoveryClass
    crash: BoundedTime
    restart: int | None
    checkpoint: BoundedTime | None

    @property
    def since(self) -> BoundedTime | None:
        """From which time on results are made again, or for the first time, after the restart; None: not yet."""
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
    """Return what `output` suffers under a recovery.

    Parameters
    ----------
    elements : of each source
    classes : what the evidence lacks for each recovery class
    """
    operators = flow.above(output)
    found = converged(flow, output, elements, recovery)
    stream = found.stream
    all_phases = (
        _offline_phase(stream, recovery),
        _convergence_phase(found, recovery),
        _duplicate_phase(stream, recovery),
    )
    phases = tuple(phase for phase in all_phases if phase is not None)
    trust = _trust_spans(found, recovery)
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
        missing=_results_of(phases, "offline") + _unmatched(operators, found),
        wrong=_results_of(phases, "convergence"),
        doubled=_results_of(phases, "duplicate"),
        in_doubt=_results_in_doubt(trust),
        phases=phases,
        trust=trust,
        operators=tuple(classified(o) for o in operators if o.inputs),
        classes=classes,
    )


def converged(flow: Dataflow, output: str, elements: Mapping[str, Elements], recovery: CrashRecovery) -> Converging:
    """Return how an output converges, for the worst checkpoint within its bounds."""
    operators = flow.above(output)
    restored = recovery.recovery in ("rollback", "precise")
    since = recovery.since
    if since is None:
        return _with_unknown_start(converging(operators, elements, recovery.crash.most, restored), flow, output)
    found = converging(operators, elements, since.most, restored)
    if since.exact or restored:
        return found
    return _with_earlier_start(found, flow, output, since)


def _with_unknown_start(found: Converging, flow: Dataflow, output: str) -> Converging:
    """The kind of a convergence phase whose start nobody knows."""
    kind = found.kind
    if kind in ("none", "finite"):
        kind = "finite" if any(o.stateful for o in flow.above(output)) else "none"
    if any(_may_shift(o) for o in flow.above(output)):
        kind = "unknown"
    return Converging(found.stream, kind, indefinite=found.indefinite)


def _with_earlier_start(found: Converging, flow: Dataflow, output: str, since: BoundedTime) -> Converging:
    """The convergence after a start at any time up to that of `found`: it lasts as long at most."""
    operators = flow.above(output)
    if not any(o.stateful for o in operators):
        return found
    kind: ConvergenceKind = "finite" if found.kind == "none" else found.kind
    if any(_may_shift(o) for o in operators):
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


def _may_shift(operator: Operator) -> bool:
    """Whether windows align with the first element that comes, and so perhaps elsewhere after a restart."""
    return any(w.slide > 1 and (w.kind == "count" or w.start is None) for w in operator.windows)


def _unmatched(operators: Sequence[Operator], found: Converging) -> Count:
    """How many results a join does not send because it lost one side of their pairs: nothing here counts pairs."""
    return Count(0, None) if found.kind != "none" and any(o.joins for o in operators) else NOTHING


def _offline_phase(stream: ElementStream, recovery: CrashRecovery) -> Phase | None:
    if recovery.recovery != "gap":
        return None
    crash, restart = recovery.crash, recovery.restart
    least = stream.count(crash.most, restart).least
    most = stream.count(crash.least, restart).most
    return Phase("offline", crash.least, restart, Count(least, most))


def _duplicate_phase(stream: ElementStream, recovery: CrashRecovery) -> Phase | None:
    start, crash = recovery.checkpoint, recovery.crash
    if recovery.recovery in ("gap", "precise") or start is None or start.least >= crash.most:
        return None
    least = stream.count(start.most, crash.least).least
    most = stream.count(start.least, crash.most).most
    return Phase("duplicate", start.least, crash.most, Count(least, most))


def _convergence_phase(found: Converging, recovery: CrashRecovery) -> Phase | None:
    since = recovery.since
    if found.kind == "none":
        return None
    if since is None:
        start = recovery.crash.most if recovery.checkpoint is None else recovery.checkpoint.least
        return Phase("convergence", from_=start, to=None, results=Count(0, None), kind=found.kind)
    return Phase("convergence", from_=since.least, to=found.end, results=_wrong_count(found, since), kind=found.kind)


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


def _trust_spans(found: Converging, recovery: CrashRecovery) -> tuple[TrustSpan, ...]:
    """Trust of what is sent after the restart, from span to span."""
    since = recovery.since
    if since is None:
        return ()
    start = recovery.crash.least if recovery.recovery == "precise" else since.least
    limits: list[_TrustLimit] = []
    if found.indefinite or found.kind == "unknown":
        limits.append(_TrustLimit(None, "indefinite"))
    elif found.kind == "infinite":
        limits.append(_TrustLimit(None, "untrustworthy"))
    elif found.kind == "finite":
        limits.append(_TrustLimit(_distrusted_to(found), "untrustworthy"))
    if recovery.recovery in ("stateless-rollback", "rollback"):
        limits.append(_TrustLimit(recovery.restart, "indefinite"))
    spans = _spans_of_one_trust(found.stream, start, limits)
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


class _TrustLimit(NamedTuple):
    """Results before `to` (None: all) have at most that trust."""

    to: int | None
    trust: Trust


def _spans_of_one_trust(stream: ElementStream, start: int, limits: list[_TrustLimit]) -> list[TrustSpan]:
    """Spans from `start` on: the trust of each is the least of the limits that reach it."""
    cuts = sorted({to for to, _ in limits if to is not None and to > start})
    found: list[TrustSpan] = []
    for low, high in zip([start, *cuts], [*cuts, None], strict=True):
        here = [trust for to, trust in limits if to is None or to > low]
        trust: Trust = max(here, key=TRUSTS.index, default="trustworthy")
        if found and found[-1].trust == trust:
            low = found.pop().from_
        found.append(TrustSpan(trust, low, high, stream.count(low, high)))
    return found


def _results_of(phases: tuple[Phase, ...], name: str) -> Count:
    return next((phase.results for phase in phases if phase.phase == name), NOTHING)


def _results_in_doubt(trust: tuple[TrustSpan, ...]) -> Count:
    found = NOTHING
    for span in trust:
        found += span.results if span.trust != "trustworthy" else NOTHING
    return found
