"""How long a recovery takes, by what each part of a run has to read and to process again, and by rates.

    restore     bytes / read rate; parts restore side by side
    replay      messages / replay rate. Messages that lie in a log are there at once; those that a sender has to send
                again come when it does: at the soonest once it is restored, at the latest once it is ready itself
    catch up    what arrives at `input` a second while all parts get ready is worked off at `replay` a second, and more
                arrives meanwhile: input * ready / (replay - input), or never

Every time is a range, whose ends are bounds as far as the rates are right (`cklog.lines.recovery.order`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from cklog.lines.recovery.order import ready_times
from cklog.lines.recovery.work import NOTHING, Timed, Works, all_of, end_of, exactly, span_of, sum_of, timed_part
from cklog.model.findings import Finding
from cklog.model.lines import RecoveryLine
from cklog.model.recovery_time import PartRecovery, RateUsed, RecoveryRates, RecoveryTime, Span
from cklog.model.verdict import Draft
from cklog.model.wording import first_few

_SAME = 1 + 1e-9
"""Rates that differ by less are equal: a quotient of such a difference is noise."""


def with_recovery_time(draft: Draft[RecoveryLine], works: Works, asked: RecoveryRates) -> Draft[RecoveryLine]:
    """Return a line with the time that a recovery from it takes, and what a bound says of that."""
    if not draft.result.line:
        return draft
    found = recovery_time(works, asked)
    findings = [*draft.findings, *bound_findings(found)]
    return replace(draft, result=replace(draft.result, recovery_time=found), findings=findings)


def recovery_time(works: Works, asked: RecoveryRates) -> RecoveryTime:
    """Return how long the parts of a run take, one by one and together."""
    timed = [timed_part(part, asked) for part in works.parts]
    soonest, latest, waited = ready_times(timed)
    restore = _together([one.restore for one in timed], works.in_turn)
    together = [span_of(low, high) for low, high in zip(soonest, latest, strict=True)]
    ready = _together(together, works.in_turn)
    unknown = tuple(_unknown(works, timed, asked))
    behind = [_backlog(one, ready, works.input_matters) for one in timed]
    catch_up, catches_up = _caught_up(behind) if ready is not None else (None, None)
    total = None if ready is None or catch_up is None else sum_of(ready, catch_up)
    known = [one.restore.low for one in timed if one.restore is not None]
    least = [low for low in soonest if low is not None] + known
    at_least = total.low if total is not None else ready.low if ready is not None else max(least, default=0.0)
    return RecoveryTime(
        total_ms=_rounded(total),
        restore_ms=_rounded(restore),
        ready_ms=_rounded(ready),
        catch_up_ms=_rounded(catch_up),
        at_least_ms=round(at_least, 3),
        catches_up=catches_up,
        critical_path=tuple(_critical_path(timed, latest, soonest, waited, behind, works.in_turn)),
        rates=tuple(_rates(works, timed, asked)),
        bound_ms=None if asked.most_s is None else round(asked.most_s * 1000, 3),
        unknown=unknown,
        parts=tuple(_part(one, low, high, b) for one, low, high, b in zip(timed, soonest, latest, behind, strict=True)),
    )


def bound_findings(found: RecoveryTime) -> Iterator[Finding]:
    """Report a recovery that takes longer than it may, or may, or of which nobody can tell."""
    bound = found.bound_ms
    if bound is None:
        return
    most, total = f"--max-recovery-time {bound / 1000:g} s", found.total_ms
    path = f" ({first_few(found.critical_path, 4)})" if found.critical_path else ""
    if found.catches_up is False:
        message = f"the job never catches up, for more arrives than it processes: {most} is not met{path}"
        yield Finding("over-recovery-time", "error", "recovery", message, effect="none")
    elif found.at_least_ms > bound:
        message = f"the recovery takes {seconds(found.at_least_ms)} at least, more than {most}{path}"
        yield Finding("over-recovery-time", "error", "recovery", message, effect="none")
    elif total is None:
        why = f": {found.unknown[0]}" if found.unknown else ""
        yield Finding("over-recovery-time", "warning", "recovery", f"whether {most} is met is not known{why}")
    elif total.high is None or total.high > bound:
        end = "without an end that is known" if total.high is None else f"up to {seconds(total.high)}"
        message = f"the recovery may take {end}, more than {most}; at least {seconds(total.low)}{path}"
        yield Finding("over-recovery-time", "warning", "recovery", message)


def seconds(ms: float) -> str:
    """Return a time in ms as words.

    >>> seconds(0.4), seconds(1234.5), seconds(7_200_000)
    ('0.0004 s', '1.2345 s', '2 h 0 min')
    """
    if ms < 600_000:
        return f"{ms / 1000:.{4 if ms < 10_000 else 1}f}".rstrip("0").rstrip(".") + " s"
    minutes = round(ms / 60_000)
    return f"{minutes // 60:,} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


class _Behind(NamedTuple):
    """What piles up for a part until all are ready, and how long that is worked off; `never`: at (low, high) end."""

    backlog: Span | None
    catch_up: Span | None
    never: tuple[bool, bool] = (False, False)


def _backlog(one: Timed, ready: Span | None, matters: bool) -> _Behind:
    if not matters or one.arrive == 0:
        return _Behind(NOTHING, NOTHING)
    if ready is None or one.arrive is None:
        return _Behind(None, None)
    arrive = one.arrive / 1000
    backlog = Span(arrive * ready.low, None if ready.high is None else arrive * ready.high)
    if one.rate is None:
        return _Behind(backlog, None)
    slow, fast = one.rate.low / 1000, None if one.rate.high is None else one.rate.high / 1000
    if fast is not None and fast <= arrive * _SAME:
        return _Behind(backlog, None, (True, True))
    low = 0.0 if fast is None else backlog.low / (fast - arrive)
    if slow <= arrive * _SAME:
        return _Behind(backlog, Span(low, None), (False, True))
    return _Behind(backlog, Span(low, None if backlog.high is None else backlog.high / (slow - arrive)))


def _caught_up(behind: Sequence[_Behind]) -> tuple[Span | None, bool | None]:
    """How long after all are ready the last backlog is gone, and whether it ever is."""
    if any(one.never[0] for one in behind):
        return None, False
    if any(one.catch_up is None for one in behind):
        return None, None
    spans = [one.catch_up for one in behind if one.catch_up is not None]
    sure = not any(one.never[1] for one in behind)
    return _together(spans, in_turn=False), True if sure else None


def _together(spans: Sequence[Span | None], in_turn: bool) -> Span | None:
    """The time after which all are done: side by side, or at the most one after the other; None: one is not known."""
    if any(span is None for span in spans):
        return None
    known = [span for span in spans if span is not None]
    ends = [span.high for span in known]
    finite = [end for end in ends if end is not None]
    high = (sum(finite) if in_turn else max(finite, default=0.0)) if len(finite) == len(ends) else None
    return Span(max((span.low for span in known), default=0.0), high)


def _rounded(span: Span | None) -> Span | None:
    return None if span is None else Span(round(span.low, 3), None if span.high is None else round(span.high, 3))


def _part(one: Timed, low: float | None, high: float | None, behind: _Behind) -> PartRecovery:
    again, work = all_of(one.again), one.work
    sent = exactly(sum(work.resent.values()))
    return PartRecovery(
        name=work.name,
        bytes=work.bytes,
        messages=None if work.logged is None else _rounded(sum_of(work.logged, sent)),
        waits_for=tuple(sorted(name for name, count in work.resent.items() if count)),
        restore_ms=_rounded(one.restore),
        replay_ms=None if one.own is None or again is None else _rounded(sum_of(one.own, again)),
        ready_ms=_rounded(span_of(low, high)),
        backlog=_rounded(behind.backlog),
        catch_up_ms=_rounded(behind.catch_up),
    )


def _critical_path(
    timed: Sequence[Timed],
    latest: Sequence[float | None],
    soonest: Sequence[float | None],
    waited: Sequence[int | None],
    behind: Sequence[_Behind],
    in_turn: bool,
) -> Iterator[str]:
    """Name what the last part waits for, from its beginning: by the slow ends, where they are known."""
    ends = [low if high is None else high for low, high in zip(soonest, latest, strict=True)]
    known = [i for i, end in enumerate(ends) if end is not None]
    if not known or len(known) < len(timed):
        return
    at: int | None = max(known, key=lambda i: (ends[i] or 0.0, -i))
    steps: list[str] = []
    seen: set[int] = set()
    while at is not None and at not in seen:
        seen.add(at)
        one = timed[at]
        again = end_of(all_of(one.again))
        if (one.own is not None and one.own.high != 0) or again != 0:
            steps.append(_step(timed, one, "replay"))
        if waited[at] is None and one.restore is not None and one.restore.high != 0:
            steps.append(_step(timed, one, "restore"))
        at = waited[at]
    if in_turn and len(timed) > 1:
        steps.append(f"{len(timed) - 1} others before it, at the latest")
    yield from reversed(steps)
    slowest = [i for i, one in enumerate(behind) if one.never[1] or (one.catch_up and one.catch_up.high != 0)]
    if slowest:
        last = max(slowest, key=lambda i: (_slow_end(behind[i]), -i))
        yield _step(timed, timed[last], "backlog")


def _step(timed: Sequence[Timed], one: Timed, what: str) -> str:
    """Name a step; that of the only part needs no name."""
    return what if len(timed) == 1 else f"{one.work.name}: {what}"


def _slow_end(behind: _Behind) -> float:
    end = end_of(behind.catch_up)
    return math.inf if end is None else end


def _rates(works: Works, timed: Sequence[Timed], asked: RecoveryRates) -> Iterator[RateUsed]:
    """The rates that were used, from the slowest to the fastest."""
    read = [_read_rate(one) for one in timed]
    yield from _rate_used("read", asked.read, read, works)
    yield from _rate_used("replay", asked.replay, [one.rate for one in timed], works)
    if works.input_matters:
        inputs = [None if one.arrive is None else Span(one.arrive, one.arrive) for one in timed]
        yield from _rate_used("input", asked.input, inputs, works)


def _rate_used(
    rate: Literal["read", "replay", "input"], given: float | None, shown: Iterable[Span | None], works: Works
) -> Iterator[RateUsed]:
    if given is not None:
        yield RateUsed(rate, given, given, "given", f"--{rate}-rate")
        return
    known = [span for span in shown if span is not None and (span.low > 0 or rate == "input")]
    if known and rate in works.by:
        ends = [span.high for span in known]
        high = None if None in ends else max(end for end in ends if end is not None)
        slow = round(min(span.low for span in known), 3)
        yield RateUsed(
            rate, slow, high if high is None else round(high, 3), works.source.get(rate, "history"), works.by[rate]
        )


def _read_rate(one: Timed) -> Span | None:
    """In MB/s, by what a part reads and how long that takes."""
    size, time = one.work.bytes, one.restore
    if not size or time is None or not time.high:
        return None
    return Span(size / time.high / 1000, size / time.low / 1000 if time.low else None)


def _unknown(works: Works, timed: Sequence[Timed], asked: RecoveryRates) -> Iterator[str]:
    """Say what is not known, of whom, and why."""
    no_bytes = [one.work.name for one in timed if one.restore is None and one.work.bytes is None]
    no_read = [one.work.name for one in timed if one.restore is None and one.work.bytes is not None]
    no_count = [one.work.name for one in timed if one.own is None and one.work.logged is None]
    counted = [one for one in timed if one.work.logged is not None]
    no_rate = [one.work.name for one in counted if one.own is None or one.again is None]
    no_input = [one.work.name for one in timed if one.arrive is None] if works.input_matters else []
    no_pace = [one.work.name for one in timed if one.rate is None and one.arrive] if works.input_matters else []
    rows = (
        (no_bytes, "how many bytes are restored", works.why.get("bytes", "")),
        (no_read, "how fast state is read", works.why.get("read", "") or "--read-rate says it"),
        (no_count, "how many messages are processed again", works.why.get("messages", "")),
        (no_rate, "how fast messages are processed", works.why.get("replay", "") or "--replay-rate says it"),
        (no_input, "how much arrives meanwhile", works.why.get("input", "") or "--input-rate says it"),
        (
            [name for name in no_pace if name not in no_rate],
            "how fast a backlog is worked off",
            works.why.get("replay", "") or "--replay-rate says it",
        ),
    )
    for names, what, why in rows:
        if names:
            of = "" if len(timed) == 1 else f", of {first_few(names, 3)}"
            yield f"{what}{of}{f': {why}' if why else ''}"
