"""The question about latencies, and its answer."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from cklog.arrays.types import Ints
from cklog.errors import UsageError
from cklog.model.findings import Finding, InputUsed


@dataclass(frozen=True, slots=True)
class LatencyQuestion:
    """What is asked of latencies.

    `results` : a file or folder of a sink's results, "": the messages into sinks that raw events tell of
    `event_time`, `time` : the fields of results that say when a record came into being and when it was at the sink;
        `time` "": `time` or `ts`
    `operator` : whose input messages, "": those of all sinks
    `step_ms` : what is looked at together
    `failed_at` : ms, None: as the run says, or the longest silence
    `factor`, `steps` : normal again is a p99 of at most `factor` times the normal one, in so many `steps` in a row
    """

    results: str = ""
    event_time: str = ""
    time: str = ""
    operator: str = ""
    step_ms: int = 1000
    failed_at: int | None = None
    factor: float = 1.5
    steps: int = 3

    def __post_init__(self) -> None:
        if bool(self.results) != bool(self.event_time):
            raise UsageError(
                "--results and --event-time go together", "which results, and which field says when they began"
            )
        if self.time and not self.results:
            raise UsageError("--time: a field of results", "say where they are with --results PATH")
        if self.operator and self.results:
            message = "--operator with --results: results are not told apart by operator"
            raise UsageError(message, "name one sink's results")
        if self.step_ms < 1:
            raise UsageError(f"a step of {self.step_ms} ms: at least 1")
        if not (math.isfinite(self.factor) and self.factor >= 1):
            raise UsageError(f"--factor {self.factor:g}: at least 1")
        if self.steps < 1:
            raise UsageError(f"--steps {self.steps}: at least one")


@dataclass(frozen=True, slots=True)
class Marks:
    """What a run tells of the time: when checkpoints were taken, shape (k,), and when it failed (None: not said)."""

    checkpoints: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    failed_at: int | None = None
    findings: tuple[Finding, ...] = ()
    inputs: tuple[InputUsed, ...] = ()


@dataclass(frozen=True, slots=True)
class LatencyStep:
    """The records that reached the sink in one step from `time` (ms) on: latencies in ms, checkpoints taken in it."""

    time: int
    records: int
    p50: int
    p99: int
    max: int
    checkpoints: int


@dataclass(frozen=True, slots=True)
class CheckpointEffect:
    """Latencies (ms) of all records in steps in which a checkpoint was taken, in the steps after, or in all others.

    `median_p99` is that of the steps' own. Steps on the way back from the failure are in none.
    """

    steps_are: Literal["with a checkpoint", "the step after", "others"]
    steps: int
    records: int
    p50: int
    p99: int
    max: int
    median_p99: int


@dataclass(frozen=True, slots=True)
class BackToNormal:
    """The way back to normal after a failure; times in ms.

    `known_by` : who says when it failed: `--at`, `job.json`, or the sink's longest `silence`
    `normal_p99` : the median of the steps' p99 before the failure, None: there are none
    `limit` : a p99 of at most that is normal
    `silent_ms` : the longest time without a record since the failure, of those that leave a step empty; 0: none
    `worst_p99`, `worst_at` : of the steps from the failure's own up to the way back
    `back_at` : the beginning of the first of the steps in a row that are normal; None: not seen
    `time_to_normal_ms` : from the failure until then
    `steps_above_later` : steps above the limit after that
    """

    failed_at: int
    known_by: Literal["--at", "job.json", "silence"]
    normal_p99: int | None
    limit: int | None
    silent_ms: int
    worst_p99: int | None
    worst_at: int | None
    back_at: int | None
    time_to_normal_ms: int | None
    steps_above_later: int


@dataclass(frozen=True, slots=True)
class Latency:
    """Latencies at the sink: of all records, around the failure, around checkpoints, and step by step.

    `of` : `results` of files, or `messages` on the channels into `sinks`
    `end_to_end` : False: of the last channel only, as senders are no sources
    `records` : with both times; latencies are in ms, percentiles by nearest rank
    `step_count` : steps with records, of which `steps` may hold the worst of each stretch only
    """

    of: Literal["results", "messages"]
    sinks: tuple[str, ...]
    end_to_end: bool
    step_ms: int
    from_: int
    to: int
    records: int
    p50: int
    p99: int
    max: int
    failure: BackToNormal | None
    around_checkpoints: tuple[CheckpointEffect, ...]
    step_count: int
    steps: tuple[LatencyStep, ...]
