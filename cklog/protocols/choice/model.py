"""The question and the answer of `advise protocol`, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cklog.errors import UsageError
from cklog.protocols.choice.costs import FailureCost
from cklog.protocols.choice.execution import Certainty

Protocol = Literal["coor", "unc", "cic-bcs", "cic-hmnr"]
PROTOCOLS: tuple[Protocol, ...] = ("coor", "unc", "cic-bcs", "cic-hmnr")
"""Of equal costs the first is chosen: the one with the least machinery."""


@dataclass(frozen=True, slots=True)
class ProtocolQuestion:
    """What `advise protocol` is asked.

    `intervals_s`: between the checkpoints of a timer, each tried; none: as the run took them. `between_failures_h` and
    `log_mb_s`, what a subtask writes to its log in a second, turn failures and bytes into time; `checkpoint_ms` is what
    a checkpoint takes, None: as recorded. `as_of` in ms: what happened later does not count.
    """

    intervals_s: tuple[float, ...] = ()
    between_failures_h: float = 24.0
    log_mb_s: float = 100.0
    checkpoint_ms: float | None = None
    as_of: int | None = None

    def __post_init__(self) -> None:
        for name, value in (
            ("--mtbf", self.between_failures_h),
            ("--log-rate", self.log_mb_s),
            *(("--interval", one) for one in self.intervals_s),
        ):
            if not 0 < value <= 1e9:
                raise UsageError(f"{name} {value:g}: not above 0, or above 1e9")
        if self.checkpoint_ms is not None and not 0 <= self.checkpoint_ms <= 1e9:
            raise UsageError(f"--checkpoint-ms {self.checkpoint_ms:g}: less than 0, or above 1e9")


@dataclass(frozen=True, slots=True)
class LostTime:
    """Seconds that are lost in an hour, of each subtask on average; None where something is not known."""

    timers: float | None
    forced: float | None
    messages: float | None
    failures: float
    total: float


@dataclass(frozen=True, slots=True)
class ProtocolCost:
    """What a protocol would have cost along the run, with timers of `interval_ms` (None: the run's own).

    Attributes
    ----------
    usable, because : False, and why, if the job cannot use it
    timers, forced, useless : checkpoints that timers asked for, that messages forced, and on no consistent line ever
    rounds : complete coordinated rounds, with `round_ms` and `worst_round_ms` from begin to end; None of others
    stalled_ms : how long a subtask takes nothing from a channel in a round, on average
    postponed : messages that a round holds up, on average
    carried_bytes : what is added to messages in all, None of rounds
    logged_bytes : what is written to logs in all; None if sizes are not known
    rollback : what a failure costs, by when it comes
    lost : seconds in an hour
    """

    protocol: Protocol
    interval_ms: float | None
    usable: bool
    because: str = ""
    timers: int = 0
    forced: int = 0
    useless: int = 0
    rounds: int | None = None
    round_ms: float | None = None
    worst_round_ms: float | None = None
    stalled_ms: float | None = None
    postponed: float | None = None
    carried_bytes: float = 0.0
    logged_bytes: float | None = None
    rollback: FailureCost | None = None
    lost: LostTime | None = None


@dataclass(frozen=True, slots=True)
class TurningPoint:
    """What would make `instead` as good as the recommended protocol: `what` at `value`, now `now`."""

    what: Literal["between-failures-h", "log-mb-s"]
    value: float
    now: float
    instead: Protocol


@dataclass(frozen=True, slots=True)
class BestInterval:
    """Young's and Daly's best interval (s) for what a checkpoint takes under a protocol, its stall included."""

    protocol: Protocol
    checkpoint_s: float
    young_s: float
    daly_s: float


@dataclass(frozen=True, slots=True)
class ReplayedSize:
    """How many subtasks, channels and messages were replayed, and from when to when (ms)."""

    subtasks: int
    channels: int
    messages: int
    from_ms: int
    to_ms: int


@dataclass(frozen=True, slots=True)
class ProtocolAdvice:
    """The answer of `advise protocol`.

    Attributes
    ----------
    certainty : "estimated" if the order of messages within a subtask is not known
    replayed : how large the run is
    checkpoint_ms : what a checkpoint takes; None if nobody tells: then that costs nothing here
    recommended, interval_ms : the cheapest
    costs : of every protocol with every interval, in the order tried
    turns : what would change the answer, the nearest first
    best_intervals : by theory
    """

    certainty: Certainty
    replayed: ReplayedSize
    between_failures_h: float
    log_mb_s: float
    checkpoint_ms: float | None
    recommended: Protocol
    interval_ms: float | None
    costs: tuple[ProtocolCost, ...]
    turns: tuple[TurningPoint, ...]
    best_intervals: tuple[BestInterval, ...]
