"""How long a recovery takes, as values: what is asked, what is known of each part, and what follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cklog.errors import UsageError

_LEAST, _MOST = 1e-6, 1e12


@dataclass(frozen=True, slots=True)
class RecoveryRates:
    """What somebody says about a recovery: rates of one subtask, and the most that it may take; None: not said.

    `read` in MB (a million bytes) a second; `replay` (that are processed) and `input` (that arrive) in messages a
    second; `most_s` in seconds.

    Raises
    ------
    UsageError : a number that no rate is
    """

    read: float | None = None
    replay: float | None = None
    input: float | None = None
    most_s: float | None = None

    def __post_init__(self) -> None:
        named = (
            ("--read-rate", self.read, "megabytes a second"),
            ("--replay-rate", self.replay, "messages a second"),
            ("--max-recovery-time", self.most_s, "seconds"),
        )
        for option, value, what in named:
            if value is not None and not _LEAST <= value <= _MOST:
                raise UsageError(f"{option} {value:g}: {what}, more than 0")
        if self.input is not None and not 0 <= self.input <= _MOST:
            raise UsageError(f"--input-rate {self.input:g}: messages a second, 0 or more")


@dataclass(frozen=True, slots=True)
class Span:
    """A number that is `low` at least and `high` at the most; `high` None: nothing says how much it can be."""

    low: float
    high: float | None


@dataclass(frozen=True, slots=True)
class RateUsed:
    """A rate that times were told by: from the slowest to the fastest of all that were used; None: no end is known.

    `read` in MB/s, the others in messages/s. `source`: somebody said it; the logs show it; or a paper measured it, on
    another machine. `by`: how.
    """

    rate: Literal["read", "replay", "input"]
    low: float
    high: float | None
    source: Literal["given", "history", "published"]
    by: str


@dataclass(frozen=True, slots=True)
class PartRecovery:
    """One part of a run that is restored by itself: a subtask, task, partition, or a whole job or query.

    Times in ms from the restart on; None: not known. It is ready when its state is read (`restore_ms`) and its
    messages are processed (`replay_ms`), of which `waits_for` names the senders that send some of them again.
    `backlog` messages have arrived when all parts are ready, and are worked off in `catch_up_ms`.
    """

    name: str
    bytes: int | None
    messages: Span | None
    waits_for: tuple[str, ...]
    restore_ms: Span | None
    replay_ms: Span | None
    ready_ms: Span | None
    backlog: Span | None
    catch_up_ms: Span | None


@dataclass(frozen=True, slots=True)
class RecoveryTime:
    """How long the recovery takes from the restart on, in ms, as far as anything tells.

    Attributes
    ----------
    total_ms : until nothing is left of what arrived meanwhile; None: not known, or never
    restore_ms : until all state is read
    ready_ms : until all that was lost is processed again, too
    catch_up_ms : from then on, until the backlog is gone
    at_least_ms : what it surely takes, even where the rest is not known
    catches_up : False: never, as more arrives than is processed; None: not known, or only at the slow end never
    critical_path : what the slow end waits for, one after the other
    rates : the rates that it rests on
    bound_ms : what it may take; None: nobody says
    unknown : what is not known, and why
    parts : each part, in order
    """

    total_ms: Span | None
    restore_ms: Span | None
    ready_ms: Span | None
    catch_up_ms: Span | None
    at_least_ms: float
    catches_up: bool | None
    critical_path: tuple[str, ...]
    rates: tuple[RateUsed, ...]
    bound_ms: float | None
    unknown: tuple[str, ...]
    parts: tuple[PartRecovery, ...]
