"""The answer of `advise timing`: application-aware moments beside the best in hindsight, random and periodic ones.

Meteor Shower (ICDE 2012) checkpoints the whole application at once, when its state is smallest (section III-C): the
first periods of a trace are profiled (`cklog.advise.timing.choice`), in the others the moments are chosen as
the controller would have chosen them (`cklog.advise.timing.choice`). Beside that stand

    oracle     the moment of each period at which the state was least, known afterwards only (section IV-C)
    random     a moment of each period by chance, as without application-awareness (section II-B2)
    periodic   every subtask on its own once in each period, from a moment by chance on: the baseline (section II-B3)
    own        every subtask on its own when its own state is least in the period, as at the end of its windows: no
               common moment, and known afterwards only

Bytes are those of all subtasks, the dynamic HAUs and the others, by straight lines between samples.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from cklog.advise.timing.choice import Choice, Profile, Report, averages, choose, profile, turning_points
from cklog.advise.timing.state_sizes import Polyline, Sizes, blocks_of, least_of_each, read_sizes, totals
from cklog.arrays.types import Floats, Ints, Mask
from cklog.engine.reading import Reading
from cklog.errors import UsageError
from cklog.inputs.offers import OffersRecords
from cklog.model.verdict import Draft

_MOST_PERIODS = 100_000
_MOST_SIZES = 100_000_000
"""Sizes of every subtask in every period that are asked for: about half a minute."""
_CURVE_POINTS = 240
"""Points of a curve in an answer: of each stretch its lowest and its highest."""


@dataclass(frozen=True, slots=True)
class TimingQuestion:
    """What `advise timing` is asked.

    There is one checkpoint in each period of `period_s` seconds. The first `profile_periods` are profiled; None: half
    of them, rounded down. `seed` is for the moments by chance.
    """

    period_s: float = 200.0
    profile_periods: int | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class SubtaskState:
    """A subtask's state in the profiled periods, in bytes; `turning_points` counts them over the whole trace."""

    operator: str
    subtask: int
    samples: int
    least: int
    average: float
    dynamic: bool
    turning_points: int


@dataclass(frozen=True, slots=True)
class PeriodTiming:
    """A period's checkpoint by each way of choosing; times in ms, bytes of all subtasks.

    `alert`, `fell`, `heard`, `reports` and `forced` are as in `cklog.advise.timing.choice.Choice`. `time` and `bytes`
    are the application-aware choice, None if no subtask is dynamic: there is nothing to be aware of.
    """

    period: int
    from_ms: int
    to_ms: int
    alert: int | None
    fell: str | None
    heard: int
    reports: tuple[Report, ...]
    forced: bool
    time: int | None
    bytes: int | None
    oracle_time: int
    oracle_bytes: int
    random_time: int
    random_bytes: int
    periodic_bytes: int


@dataclass(frozen=True, slots=True)
class Way:
    """A way of choosing moments: bytes over all periods, and on average and at most per period.

    `of_periodic` and `over_oracle` are these bytes divided by those of periodic and of oracle, None if those are 0.
    """

    name: str
    bytes: int
    average: float
    largest: int
    of_periodic: float | None
    over_oracle: float | None


@dataclass(frozen=True, slots=True)
class TimingAdvice:
    """The answer of `advise timing`. Times in ms, sizes in bytes.

    Attributes
    ----------
    from_ms, to_ms : the whole periods of the trace
    in_sample : whether moments are chosen in the profiled periods themselves, because there are no others
    s_min, highest, alpha, relaxation, s_max : as in `cklog.advise.timing.choice.Threshold`, None if no subtask
        is dynamic
    profiled : when the dynamic HAUs' sum was least in each profiled period, and that sum
    periods : the periods in which moments are chosen
    expected_random : what checkpoints at random moments take on average, in the long run
    curve : (time, bytes) of the sum of the dynamic HAUs' sizes, its lowest and highest points
    """

    from_ms: int
    to_ms: int
    samples: int
    period_ms: int
    profile_periods: int
    in_sample: bool
    seed: int
    subtasks: tuple[SubtaskState, ...]
    s_min: float | None
    highest: float | None
    alpha: float | None
    relaxation: float | None
    s_max: float | None
    profiled: tuple[dict[str, Any], ...]
    periods: tuple[PeriodTiming, ...]
    ways: tuple[Way, ...]
    expected_random: float
    curve: tuple[tuple[int, float], ...]
    notes: tuple[str, ...] = ()


def timing_answer(tables: OffersRecords, reading: Reading, asked: TimingQuestion) -> Draft[TimingAdvice]:
    """Read the state sizes of a run, choose moments, and draft the answer.

    Raises
    ------
    NotFound, CorruptInput : as `cklog.advise.timing.state_sizes.read_sizes`
    UsageError : the trace is shorter than a period, or the question makes no sense
    """
    read = read_sizes(tables, reading)
    advice = advise_timing(read.sizes, asked)
    return Draft("advise-timing", advice, read.findings, read.inputs)


def advise_timing(sizes: Sizes, asked: TimingQuestion) -> TimingAdvice:
    """Profile the first periods of a trace, and choose the moments of the others.

    Time O(n log n + h·p log n) for n samples, h subtasks, p periods; memory O(n).
    """
    bounds, profiled, in_sample = _whole_periods(sizes, asked)
    known = profile(sizes, bounds[: profiled + 1])
    chosen_bounds = bounds if in_sample else bounds[profiled:]
    movers = {known.sizes.subtasks[i] for i in np.flatnonzero(known.dynamic).tolist()}
    moving = np.array([subtask in movers for subtask in sizes.subtasks])
    everyone = np.ones(len(moving), np.bool_)
    t = known.threshold
    alike = t is None or bool(moving.all())
    sums = totals(sizes, bounds, [everyone] if alike else [everyone, moving])
    whole, curve = sums[0], sums[-1]
    choices = None if t is None else choose(sizes.of(moving), curve, t.s_max, chosen_bounds)
    periods = _period_timings(sizes, whole, chosen_bounds, choices, asked.seed)
    return TimingAdvice(
        from_ms=int(bounds[0]),
        to_ms=int(bounds[-1]),
        samples=len(sizes.time),
        period_ms=int(bounds[1] - bounds[0]),
        profile_periods=profiled,
        in_sample=in_sample,
        seed=asked.seed,
        subtasks=_subtask_states(sizes, known, moving),
        s_min=None if t is None else t.s_min,
        highest=None if t is None else t.highest,
        alpha=None if t is None else t.alpha,
        relaxation=None if t is None else t.relaxation,
        s_max=None if t is None else t.s_max,
        profiled=_least_sums(known),
        periods=periods,
        ways=_ways(periods, least_of_each(sizes, chosen_bounds)),
        expected_random=whole.mean(int(chosen_bounds[0])),
        curve=_extremes(curve),
        notes=_notes(sizes, bounds, known, in_sample),
    )


def _whole_periods(sizes: Sizes, asked: TimingQuestion) -> tuple[Ints, int, bool]:
    """Return the bounds of all whole periods, (p + 1,), how many are profiled, and whether moments are chosen in those.

    Raises
    ------
    UsageError : no whole period, too many, or more profiled periods than there are
    """
    first, last = int(sizes.time.min()), int(sizes.time.max())
    period = round(asked.period_s * 1000) if 0.001 <= asked.period_s < 1e15 else 0
    if period < 1:
        raise UsageError(f"--period {asked.period_s:g}: seconds, at least 0.001")
    count = (last - first) // period
    spans = f"the samples span {(last - first) / 1000:,.3f} s"
    if not count:
        raise UsageError(f"{spans}, less than a period of {asked.period_s:g} s", "give a shorter --period")
    if count > _MOST_PERIODS:
        raise UsageError(f"{spans}, {count:,} periods of {asked.period_s:g} s", "give a longer --period")
    if count * len(sizes.subtasks) > _MOST_SIZES:
        raise UsageError(
            f"{count:,} periods of {len(sizes.subtasks):,} subtasks are too many", "give a longer --period"
        )
    profiled = max(count // 2, 1) if asked.profile_periods is None else asked.profile_periods
    if not 1 <= profiled <= count:
        raise UsageError(f"--profile-periods {profiled}: 1 to {count}, the whole periods of the trace")
    return first + period * np.arange(count + 1), profiled, profiled == count


def _period_timings(
    sizes: Sizes, whole: Polyline, bounds: Ints, choices: list[Choice] | None, seed: int
) -> tuple[PeriodTiming, ...]:
    """Return every period's checkpoint, chosen in each way.

    `whole` is the sum of all sizes, `choices` are the application-aware ones (None: no subtask is dynamic).
    """
    dice = random.Random(seed)  # its random() gives the same numbers on every machine and in every version
    period = int(bounds[1] - bounds[0])
    moments = bounds[:-1] + np.array([int(dice.random() * period) for _ in bounds[1:]])
    drawn = whole.at(moments)
    phases = np.array([int(dice.random() * period) for _ in sizes.subtasks])
    alone = np.zeros(len(bounds) - 1)  # bytes of each period if every subtask checkpoints at its own phase
    for which in blocks_of(len(phases), len(alone)):
        owner = np.broadcast_to(which[:, None], (len(which), len(alone)))
        alone += sizes.at(owner, bounds[:-1] + phases[which][:, None]).sum(axis=0)
    best, least = whole.lowest(bounds)
    nothing = Choice(time=0, alert=None, fell=None, heard=0, reports=(), forced=False)
    chosen = [nothing] * len(alone) if choices is None else choices
    taken = whole.at(np.array([c.time for c in chosen]))
    return tuple(
        PeriodTiming(
            period=k,
            from_ms=int(bounds[k]),
            to_ms=int(bounds[k + 1]),
            alert=c.alert,
            fell=c.fell,
            heard=c.heard,
            reports=c.reports,
            forced=c.forced,
            time=None if choices is None else c.time,
            bytes=None if choices is None else round(taken[k]),
            oracle_time=int(best[k]),
            oracle_bytes=round(least[k]),
            random_time=int(moments[k]),
            random_bytes=round(drawn[k]),
            periodic_bytes=round(alone[k]),
        )
        for k, c in enumerate(chosen)
    )


def _ways(periods: tuple[PeriodTiming, ...], own: Floats) -> tuple[Way, ...]:
    """Sum up each way of choosing, in the order aware, oracle, random, periodic, own; `own` as `least_of_each`."""
    taken = {
        "aware": [p.bytes for p in periods if p.bytes is not None],
        "oracle": [p.oracle_bytes for p in periods],
        "random": [p.random_bytes for p in periods],
        "periodic": [p.periodic_bytes for p in periods],
        "own": [round(size) for size in own.tolist()],
    }
    sums = {name: sum(values) for name, values in taken.items()}
    return tuple(
        Way(
            name=name,
            bytes=sums[name],
            average=sums[name] / len(values),
            largest=max(values),
            of_periodic=sums[name] / sums["periodic"] if sums["periodic"] else None,
            over_oracle=sums[name] / sums["oracle"] if sums["oracle"] else None,
        )
        for name, values in taken.items()
        if values
    )


def _subtask_states(sizes: Sizes, known: Profile, moving: Mask) -> tuple[SubtaskState, ...]:
    """Describe every subtask; one without a sample in the profiled periods by what the rest of the trace shows."""
    least, average = averages(sizes)
    there = set(known.sizes.subtasks)
    seen = np.array([subtask in there for subtask in sizes.subtasks])
    least[seen], average[seen] = averages(known.sizes)
    turns = np.bincount(sizes.owner[turning_points(sizes)], minlength=len(least))
    counts = np.diff(sizes.start)
    return tuple(
        SubtaskState(
            operator=subtask.operator,
            subtask=subtask.subtask,
            samples=int(counts[i]),
            least=int(least[i]),
            average=float(average[i]),
            dynamic=bool(moving[i]),
            turning_points=int(turns[i]),
        )
        for i, subtask in enumerate(sizes.subtasks)
    )


def _least_sums(known: Profile) -> tuple[dict[str, Any], ...]:
    """Return the moment of each profiled period at which the dynamic HAUs' sum was least, and that sum."""
    if known.polyline is None or known.best is None:
        return ()
    rows = zip(known.best.tolist(), known.polyline.at(known.best).tolist(), strict=True)
    return tuple({"time": time, "bytes": size} for time, size in rows)


def _extremes(curve: Polyline) -> tuple[tuple[int, float], ...]:
    """Return the lowest and the highest point of each stretch of a curve, its first and its last, in order."""
    edges = np.unique(np.linspace(0, len(curve.time), _CURVE_POINTS // 2 + 1).astype(np.int64))
    points = set()
    for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        points |= {low + int(np.argmin(curve.size[low:high])), low + int(np.argmax(curve.size[low:high]))}
    return tuple((int(curve.time[i]), float(curve.size[i])) for i in sorted(points | {0, len(curve.time) - 1}))


def _notes(sizes: Sizes, bounds: Ints, known: Profile, in_sample: bool) -> tuple[str, ...]:
    notes = []
    if known.threshold is None:
        notes.append("no subtask's state falls below half of its average: when to checkpoint hardly matters")
    elif in_sample:
        notes.append("the periods that were profiled are those chosen in: the next ones may do worse")
    rest = int(sizes.time.max()) - int(bounds[-1])
    if rest:
        notes.append(f"the last {rest / 1000:,.3f} s are no whole period and are left out")
    return tuple(notes)
