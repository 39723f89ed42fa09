"""What Q, U, CI and CP would have given: an operator's own log, replayed through every policy of a grid.

Sebepou and Magoutis (DSN 2011) choose the targets Q and U by hand (section III.A) and leave the cost-benefit policy
open. Here the log says what each would have done. It is read twice, both times forward and in bounded memory: first
its scales, which the defaults of the grid and the measured replay rate need (`cklog.advise.extent.scan`), then all of
it for all settings at once (`cklog.advise.extent.replay`). Per setting, over the time after the warm-up:

    extent q, replay u   sampled just before and just after the checks of every checkpoint period, as the simulator does
    recovery time        q / load rate + u / replay rate: section IV.B's time to load the checkpoint, then the replay
    checkpointing        checks * cost per check
    expected cost        seconds per hour = 3600 * share of the time spent checkpointing
                                          + (1 / MTBF in hours) * mean recovery time

The expected cost is what the cost-benefit policy tries to make small; it compares that policy with Q and U.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from cklog.advise.extent.grid import (
    ExtentQuestion,
    MeasuredNumber,
    PolicySetting,
    grid,
    load_rate,
    replay_rate,
    tuple_bytes,
)
from cklog.advise.extent.replay import PolicyGroup, PolicyReplay
from cklog.advise.extent.scan import EventReader, FirstLook, first_look
from cklog.advise.extent.tracks import ExtentTally, Spread, Track
from cklog.engine import reader_of
from cklog.errors import CorruptInput, UsageError
from cklog.inputs.damage import damage_findings
from cklog.inputs.queues import Queue
from cklog.model.findings import Finding
from cklog.model.names import Subtask, parse_channel
from cklog.model.verdict import Draft
from cklog.queues.analyses import EventualLog
from cklog.queues.log import EMIT, RESULT, kinds_of


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a setting gave; times in s unless the name says ms. None: unknown, for the log has no input numbers.

    `pareto` : no setting takes less time for checks without a longer worst recovery, nor the other way round
    `cost_s_per_hour` : the expected cost at each MTBF of the grid, by its name ("24h")
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

    `dominates`, `dominated_by` : settings that are no better, or no worse, in both the time for checks and the mean
    recovery time, and differ in one
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
    """The answer of `advise extent`. Times in ms where the name says so; `seconds` are those that were averaged."""

    operator: str
    subtask: int
    from_ms: int
    to_ms: int
    warm_up_ms: float | None
    seconds: float
    open_windows: float
    tuples: int | None
    load_rate: MeasuredNumber
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
    """What other policies would have made of an operator's log: extent, replay, and the time that checks take."""
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
    load, replay = load_rate(asked), replay_rate(asked, look)
    size = tuple_bytes(asked, _upstream_bytes(queue.subtask, queues, manifest), look)
    settings, notes = grid(asked, look)
    assert load.value is not None
    load_s, replay_s = 1 / load.value, 0.0 if replay.value is None or look.tuples is None else 1 / replay.value
    tracks = [
        (setting, Track(setting.policy(asked.cost_us, load_s, replay_s), load_s, replay_s)) for setting in settings
    ]
    replayed = _replayed(queue, look, asked, tracks, (load_s, replay_s), split_bytes)
    lead_ms = asked.cp_ms[0]
    rows = [(PolicySetting("as recorded", "recorded", cp_ms=lead_ms), replayed.recorded.tally)]
    rows += [(PolicySetting("no checks", "none", cp_ms=lead_ms), replayed.unchecked.tally)]
    rows += [(setting, track.tally) for setting, track in tracks]
    outcomes = _marked([_outcome(s, tally, asked, size, look.tuples is not None) for s, tally in rows])
    if replayed.warm_ms is None:
        notes.append("windows of the log's first half are open to its end: no warm-up is left out of the figures")
    if look.damage:
        notes.append("records of the queue cannot be read: their windows are counted as the rest of the log shows them")
    chosen = choose(outcomes, asked.max_recovery_s)
    advice = ExtentAdvice(
        operator=queue.subtask.operator,
        subtask=queue.subtask.subtask,
        from_ms=look.first_ms,
        to_ms=look.last_ms,
        warm_up_ms=replayed.warm_ms,
        seconds=rows[0][1].periods * lead_ms / 1000,
        open_windows=look.open_windows,
        tuples=look.tuples,
        load_rate=load,
        replay_rate=replay,
        tuple_bytes=size,
        check_cost_us=asked.cost_us,
        max_recovery_s=asked.max_recovery_s,
        chosen=chosen.setting.name if chosen else None,
        settings=tuple(outcomes),
        comparisons=tuple(_comparisons(outcomes)),
        notes=tuple(notes),
    )
    findings = [*queue.findings(), *damage_findings(look.damage)]
    if asked.max_recovery_s is not None and chosen is None:
        findings.append(_no_setting(queue.subtask, outcomes, asked.max_recovery_s))
    return advice, findings


def _replayed(
    queue: Queue,
    look: FirstLook,
    asked: ExtentQuestion,
    tracks: list[tuple[PolicySetting, Track]],
    rates: tuple[float, float],
    split_bytes: int,
) -> PolicyReplay:
    periods = dict.fromkeys(asked.cp_ms)
    groups = [
        PolicyGroup(period, [track for setting, track in tracks if setting.cp_ms == period]) for period in periods
    ]
    replayed = PolicyReplay(groups, *rates)
    replayed.run(EventReader(queue, split_bytes, look.tuples is not None).events())
    if not all(tally.periods for tally in (replayed.recorded.tally, *(track.tally for _, track in tracks))):
        raise UsageError(
            f"{queue.subtask}: the log spans {look.last_ms - look.first_ms:,} ms, too short for a period of "
            f"{max(periods):g} ms after its first cycle",
            "give a shorter --cp",
        )
    return replayed


def _outcome(
    setting: PolicySetting, tally: ExtentTally, asked: ExtentQuestion, size: MeasuredNumber, numbered: bool
) -> Outcome:
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
    """The cheapest setting whose worst recovery takes no longer: least time for checks, fewest checks, first name.

    What the log's own writer did is no setting, and a recovery of unknown length is none that is short enough.
    """
    if max_recovery_s is None:
        return None
    fit = [o for o in _settings(outcomes) if o.recovery_max is not None and o.recovery_max <= max_recovery_s]
    return min(fit, key=lambda o: (o.checkpointing_share, o.checks, o.setting.name), default=None)


def _settings(outcomes: Iterable[Outcome]) -> list[Outcome]:
    return [o for o in outcomes if o.setting.kind != "recorded"]


def _marked(outcomes: list[Outcome]) -> list[Outcome]:
    """The same with `pareto` set; the extent stands for a recovery time that is unknown."""
    points = [(o.checkpointing_share, worst(o)) for o in _settings(outcomes)]

    def beaten(outcome: Outcome) -> bool:
        here = outcome.checkpointing_share, worst(outcome)
        return any(p != here and p[0] <= here[0] and p[1] <= here[1] for p in points)

    return [replace(o, pareto=o.setting.kind != "recorded" and not beaten(o)) for o in outcomes]


def worst(outcome: Outcome) -> float:
    """The longest recovery in s; the largest extent, in records, stands for it where it is unknown."""
    return float(outcome.extent.max) if outcome.recovery_max is None else outcome.recovery_max


def _comparisons(outcomes: list[Outcome]) -> list[Comparison]:
    """Each cost-benefit setting against Q, U and no checks."""
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
    a = np.array([one.checkpointing_share, one.recovery_mean], float)
    b = np.array([other.checkpointing_share, other.recovery_mean], float)
    return bool((a <= b).all() and (a < b).any())


def _no_setting(subtask: Subtask, outcomes: list[Outcome], max_recovery_s: float) -> Finding:
    known = [o for o in _settings(outcomes) if o.recovery_max is not None]
    if not known:
        message = f"{subtask}: recovery times are unknown, because the records carry no input numbers"
        return Finding("no-setting", "error", str(subtask), message)
    best = min(known, key=lambda o: (o.recovery_max or 0.0, o.checkpointing_share, o.checks, o.setting.name))
    message = (
        f"{subtask}: no setting of the grid keeps every recovery within {max_recovery_s:g} s; the best, "
        f"{best.setting.name}, takes up to {best.recovery_max:.1f} s"
    )
    return Finding("no-setting", "error", str(subtask), message)


def _upstream_bytes(subtask: Subtask, queues: Mapping[Subtask, Queue], manifest: Mapping[str, Any]) -> float | None:
    """Mean size of the data records at the end of the queues that feed a subtask, None if no record tells."""
    sizes: list[int] = []
    for channel in (parse_channel(row["channel"]) for row in manifest.get("channels", [])):
        if channel is None or channel.receiver != subtask or channel.sender not in queues:
            continue
        split = next(queues[channel.sender].tail(), None)
        for item in reader_of(split)(split, "outputs", ("type", "bytes")) if split else ():
            if isinstance(item, pa.RecordBatch):
                kinds = kinds_of(item.column("type"))
                data = item.column("bytes").filter(pa.array((kinds == RESULT) | (kinds == EMIT)))
                sizes += data.drop_null().to_pylist()
    return sum(sizes) / len(sizes) if sizes else None
