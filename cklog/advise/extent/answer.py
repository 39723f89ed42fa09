"""The answer of `advise extent`: what Q, U, CI and CP would have given on an operator's own log.

Sebepou and Magoutis (DSN 2011) choose the targets Q and U by hand (section III.A) and leave the cost-benefit policy
open. Here the log is replayed through every policy of a grid of settings. It is read twice, both times forward and in
bounded memory: first its scales, which the defaults of the grid and the measured replay rate need
(`cklog.advise.extent.scan`), then all of it for all settings at once (`cklog.advise.extent.replay`). Per setting, over
the time after the warm-up:

    extent q, replay u   sampled just before and just after the checks of every checkpoint period, as the simulator does
    recovery time        load time of q + u / replay rate: section IV.B's time to load the checkpoint, then the replay
    checkpointing        checks * cost per check
    expected cost        seconds per hour = 3600 * share of the time spent checkpointing
                                          + (1 / MTBF in hours) * mean recovery time

The expected cost is what the cost-benefit policy tries to make small; it compares that policy with Q and U.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from cklog.advise.extent.grid import (
    ExtentQuestion,
    MeasuredNumber,
    PolicySetting,
    grid,
    load_rate,
    load_time,
    replay_rate,
    tuple_bytes,
)
from cklog.advise.extent.replay import PolicyGroup, PolicyReplay
from cklog.advise.extent.scan import EventReader, FirstLook, first_look
from cklog.advise.extent.tracks import ExtentTally, RecoveryCost, Spread, Track
from cklog.engine.scan import Damage, reader_of
from cklog.errors import CorruptInput, UsageError
from cklog.inputs.damage import damage_findings
from cklog.inputs.queues import Queue
from cklog.model.findings import Finding
from cklog.model.names import Subtask, parse_channel
from cklog.model.verdict import Draft
from cklog.policies.load_time import LoadTime
from cklog.queues.analyses import EventualLog
from cklog.queues.log import EMIT, RESULT, kinds_of


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a setting gave. None: unknown, for the log has no input numbers.

    Attributes
    ----------
    checks, checks_per_second : check records written
    extent, replay, replay_bytes : q in records, u in tuples and in bytes
    checkpointing_ms, checkpointing_share : time for checks, in ms and as a part of all time
    recovery_mean, recovery_max : recovery time in s
    cost_s_per_hour : the expected cost at each MTBF of the grid, by its name ("24h")
    pareto : no setting takes less time for checks without a longer worst recovery, nor the other way round
    """

    setting: PolicySetting
    checks: int
    checks_per_second: float
    extent: Spread
    replay: Spread | None
    replay_bytes: Spread | None
    checkpointing_ms: float
    checkpointing_share: float
    recovery_mean: float | None
    recovery_max: float | None
    cost_s_per_hour: dict[str, float] = field(default_factory=dict)
    pareto: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """A cost-benefit setting against the best of the others at its MTBF, by expected cost in s per hour.

    `wins` says that it costs less than that one. `dominates` and `dominated_by` name settings that are no better, or no
    worse, in both the time for checks and the mean recovery time, and differ in one.
    """

    setting: str
    mtbf_h: float
    cost: float
    other: str
    other_cost: float
    wins: bool
    dominates: tuple[str, ...]
    dominated_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExtentAdvice:
    """The answer of `advise extent`.

    Attributes
    ----------
    from_ms, to_ms : recorded time of the first and the last record
    warm_up_ms : what of it is left out of the averages, from the start on; None: nothing
    seconds : the time that was averaged over
    open_windows : how many windows are open on average
    tuples : taken from the first record to the last; None: not known
    load_rate, replay_rate, tuple_bytes : what a recovery costs, in records per s, tuples per s, and bytes
    load_points : where no rate is given: (records, seconds) that loading took, a straight line between them, and behind
        the last growing with the square of the records; () with a rate
    check_cost_us : what a check record costs
    max_recovery_s, chosen : the longest recovery allowed, and the name of the cheapest setting that keeps it
    settings : what each setting gave, with what was recorded and no checks at all
    comparisons : each cost-benefit setting against the others
    """

    operator: str
    subtask: int
    from_ms: int
    to_ms: int
    warm_up_ms: float | None
    seconds: float
    open_windows: float
    tuples: int | None
    load_rate: MeasuredNumber
    load_points: tuple[tuple[float, float], ...]
    replay_rate: MeasuredNumber
    tuple_bytes: MeasuredNumber
    check_cost_us: float
    max_recovery_s: float | None
    chosen: str | None
    settings: tuple[Outcome, ...]
    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...] = ()


_LONGEST_MS = 1 << 50
"""35,000 years."""


def extent_advice(log: EventualLog, operator: str, asked: ExtentQuestion) -> Draft[ExtentAdvice]:
    """Draft the answer for an operator's queue: what other policies would have made of its log.

    Raises
    ------
    NotFound, UsageError : there is no such queue, or several; as `advise_extent`
    """
    queue = log.queue_of(operator)
    advice, findings = advise_extent(queue, log.queues, log.manifest, asked, log.reading.split_bytes)
    spoken = (f"read all {queue.bytes:,} bytes of {queue.subtask}'s queue, twice, forward",)
    return Draft("advise-extent", advice, findings, queue.inputs(), spoken=spoken)


def advise_extent(
    queue: Queue,
    queues: Mapping[Subtask, Queue],
    manifest: Mapping[str, Any],
    asked: ExtentQuestion,
    split_bytes: int,
) -> tuple[ExtentAdvice, list[Finding]]:
    """Replay a log through the policies of a grid, and choose.

    Raises
    ------
    CorruptInput : nothing of the queue can be read
    UsageError : the log ends before the first checkpoint period does, or its time does not pass
    """
    look = first_look(queue, split_bytes)
    if not look.records:
        raise CorruptInput(f"no record of the output queue of {queue.subtask} can be read", "look for another copy")
    if look.last_ms - look.first_ms > _LONGEST_MS:
        span = f"{look.first_ms} to {look.last_ms}"
        raise CorruptInput(f"{queue.subtask}: timestamps from {span}: no clock that periods could be counted by")
    load, replay = load_time(asked), replay_rate(asked, look)
    upstream_bytes, of_upstream = _upstream_bytes(queue.subtask, queues, manifest)
    size = tuple_bytes(asked, upstream_bytes, look)
    settings, notes = grid(asked, look)
    cost = RecoveryCost(load, 0.0 if replay.value is None or look.tuples is None else 1 / replay.value)
    tracks = [(setting, Track(setting.policy(asked.cost_us, *cost), cost)) for setting in settings]
    replayed = _replay_of(queue, look, asked, tracks, cost, split_bytes)
    lead_ms = asked.cp_ms[0]
    rows = [(PolicySetting("as recorded", "recorded", cp_ms=lead_ms), replayed.recorded.tally)]
    rows += [(PolicySetting("no checks", "none", cp_ms=lead_ms), replayed.unchecked.tally)]
    rows += [(setting, track.tally) for setting, track in tracks]
    outcomes = _with_pareto([_outcome_of(s, tally, asked, size, look.tuples is not None) for s, tally in rows])
    if replayed.warm_ms is None:
        notes.append("windows of the log's first half are open to its end: no warm-up is left out of the figures")
    if look.damage:
        notes.append("records of the queue cannot be read: their windows are counted as the rest of the log shows them")
    notes += _beyond_measured(load, outcomes) if asked.load_rate is None else []
    chosen = choose(outcomes, asked.max_recovery_s)
    advice = ExtentAdvice(
        operator=queue.subtask.operator,
        subtask=queue.subtask.subtask,
        from_ms=look.first_ms,
        to_ms=look.last_ms,
        warm_up_ms=replayed.warm_ms,
        seconds=replayed.recorded.tally.periods * lead_ms / 1000,
        open_windows=look.open_windows,
        tuples=look.tuples,
        load_rate=load_rate(asked),
        load_points=load.points if asked.load_rate is None else (),
        replay_rate=replay,
        tuple_bytes=size,
        check_cost_us=asked.cost_us,
        max_recovery_s=asked.max_recovery_s,
        chosen=chosen.setting.name if chosen else None,
        settings=tuple(outcomes),
        comparisons=tuple(_comparisons(outcomes)),
        notes=tuple(notes),
    )
    findings = [*queue.findings(), *damage_findings(look.damage), *of_upstream]
    if asked.max_recovery_s is not None and chosen is None:
        findings.append(_no_setting(queue.subtask, outcomes, asked.max_recovery_s))
    return advice, findings


def _replay_of(
    queue: Queue,
    look: FirstLook,
    asked: ExtentQuestion,
    tracks: list[tuple[PolicySetting, Track]],
    cost: RecoveryCost,
    split_bytes: int,
) -> PolicyReplay:
    """Replay the log through all tracks; what they show is in their tallies afterwards."""
    periods = dict.fromkeys(asked.cp_ms)
    groups = [
        PolicyGroup(period, [track for setting, track in tracks if setting.cp_ms == period]) for period in periods
    ]
    replayed = PolicyReplay(groups, cost)
    replayed.run(EventReader(queue, split_bytes, look.tuples is not None, look.damage).events())
    if not all(tally.periods for tally in (replayed.recorded.tally, *(track.tally for _, track in tracks))):
        raise UsageError(
            f"{queue.subtask}: the log spans {look.last_ms - look.first_ms:,} ms, too short for a period of "
            f"{max(periods):g} ms after its first cycle",
            "give a shorter --cp",
        )
    return replayed


def _outcome_of(
    setting: PolicySetting, tally: ExtentTally, asked: ExtentQuestion, size: MeasuredNumber, numbered: bool
) -> Outcome:
    """Return what a setting gave; `numbered`: the log numbers its input, so that replays are known."""
    assert setting.cp_ms is not None
    assert size.value is not None
    span_ms, spent_ms = tally.periods * setting.cp_ms, tally.checks * asked.cost_us / 1000
    replay = tally.replay() if numbered else None
    scaled = None
    if replay is not None:
        scaled = Spread(replay.mean * size.value, round(replay.p95 * size.value), round(replay.max * size.value))
    mean, most = tally.recovery_s() if numbered else (None, None)
    hourly = {f"{hours:g}h": 3600 * spent_ms / span_ms + mean / hours for hours in asked.mtbf_h if mean is not None}
    return Outcome(
        setting=setting,
        checks=tally.checks,
        checks_per_second=tally.checks / (span_ms / 1000),
        extent=tally.extent(),
        replay=replay,
        replay_bytes=scaled,
        checkpointing_ms=spent_ms,
        checkpointing_share=spent_ms / span_ms,
        recovery_mean=mean,
        recovery_max=most,
        cost_s_per_hour=hourly,
    )


def choose(outcomes: Iterable[Outcome], max_recovery_s: float | None) -> Outcome | None:
    """Choose the cheapest setting whose worst recovery takes no longer; None: no bound, or no setting that keeps it.

    The cheapest takes the least time for checks, of equals the fewest checks, then the first by name.

    What the log's own writer did is no setting, and a recovery of unknown length is none that is short enough.
    """
    if max_recovery_s is None:
        return None
    fit = [o for o in _settings(outcomes) if o.recovery_max is not None and o.recovery_max <= max_recovery_s]
    return min(fit, key=lambda o: (o.checkpointing_share, o.checks, o.setting.name), default=None)


def _beyond_measured(load: LoadTime, outcomes: Iterable[Outcome]) -> list[str]:
    """Say that extents are larger than any whose load time was measured."""
    most, measured = max(outcome.extent.max for outcome in outcomes), round(load.points[-1][0])
    if most <= measured:
        return []
    square = "it is taken to grow with the square"
    return [f"extents of up to {most:,} records: beyond {measured:,} no load time was measured, and {square}"]


def _settings(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return the outcomes of settings that can be chosen."""
    return [o for o in outcomes if o.setting.kind != "recorded"]


def _with_pareto(outcomes: list[Outcome]) -> list[Outcome]:
    """Return the outcomes with `pareto` set; the extent is taken for a recovery time that is unknown."""
    points = [(o.checkpointing_share, worst(o)) for o in _settings(outcomes)]

    def beaten(outcome: Outcome) -> bool:
        share, recovery = outcome.checkpointing_share, worst(outcome)
        return any(s <= share and r <= recovery and (s, r) != (share, recovery) for s, r in points)

    return [replace(o, pareto=o.setting.kind != "recorded" and not beaten(o)) for o in outcomes]


def worst(outcome: Outcome) -> float:
    """Return the longest recovery in s, or the largest extent in records where that is unknown."""
    return float(outcome.extent.max) if outcome.recovery_max is None else outcome.recovery_max


def _comparisons(outcomes: list[Outcome]) -> list[Comparison]:
    """Compare each cost-benefit setting with Q, U and no checks."""
    others = [o for o in outcomes if o.setting.kind in ("none", "targets") and o.recovery_mean is not None]
    found = []
    for outcome in outcomes:
        hours = outcome.setting.mtbf_h
        if hours is None or not outcome.cost_s_per_hour or not others:
            continue
        at = f"{hours:g}h"
        best = min(others, key=lambda o: (o.cost_s_per_hour[at], o.setting.name))
        found.append(
            Comparison(
                setting=outcome.setting.name,
                mtbf_h=hours,
                cost=outcome.cost_s_per_hour[at],
                other=best.setting.name,
                other_cost=best.cost_s_per_hour[at],
                wins=outcome.cost_s_per_hour[at] < best.cost_s_per_hour[at],
                dominates=tuple(o.setting.name for o in others if _dominates(outcome, o)),
                dominated_by=tuple(o.setting.name for o in others if _dominates(o, outcome)),
            )
        )
    return found


def _dominates(one: Outcome, other: Outcome) -> bool:
    """Tell whether one setting is no worse than another in both costs, and better in one."""
    assert one.recovery_mean is not None
    assert other.recovery_mean is not None
    a, b = (one.checkpointing_share, one.recovery_mean), (other.checkpointing_share, other.recovery_mean)
    return a != b and a[0] <= b[0] and a[1] <= b[1]


def _no_setting(subtask: Subtask, outcomes: list[Outcome], max_recovery_s: float) -> Finding:
    known = [o for o in _settings(outcomes) if o.recovery_max is not None]
    if not known:
        message = f"{subtask}: recovery times are unknown, because the records carry no input numbers"
        return Finding("no-setting", "error", str(subtask), message, effect="none")
    best = min(known, key=lambda o: (o.recovery_max or 0.0, o.checkpointing_share, o.checks, o.setting.name))
    message = (
        f"{subtask}: no setting of the grid keeps every recovery within {max_recovery_s:g} s; the best, "
        f"{best.setting.name}, takes up to {best.recovery_max:.1f} s"
    )
    return Finding("no-setting", "error", str(subtask), message, effect="none")


def _upstream_bytes(
    subtask: Subtask, queues: Mapping[Subtask, Queue], manifest: Mapping[str, Any]
) -> tuple[float | None, list[Finding]]:
    """Return the mean size of data records at the end of the queues that feed a subtask, and what cannot be read there.

    None if no record tells a size.
    """
    sizes: list[int] = []
    findings: list[Finding] = []
    for channel in (parse_channel(row["channel"]) for row in manifest.get("channels", [])):
        if channel is None or channel.receiver != subtask or channel.sender not in queues:
            continue
        findings += queues[channel.sender].findings()
        pieces = (reader_of(split)(split, "outputs", ("type", "bytes")) for split in queues[channel.sender].tail())
        items = next(filter(None, map(list, pieces)), [])  # a piece in which no record begins tells nothing
        findings += damage_findings(item for item in items if isinstance(item, Damage))
        for item in items:
            if isinstance(item, pa.RecordBatch):
                kinds = kinds_of(item.column("type"))
                data = item.column("bytes").filter(pa.array((kinds == RESULT) | (kinds == EMIT)))
                sizes += data.drop_null().to_pylist()
    return (sum(sizes) / len(sizes) if sizes else None), findings
