"""What each part of a run has to do in a recovery, and how long that takes it alone, by rates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from cklog.model.actions import RunAction
from cklog.model.recovery_time import RecoveryRates, Span

Source = Literal["history", "published"]
NOTHING = Span(0.0, 0.0)
_MOST_MESSAGES = 1 << 100
"""More than any log numbers: a damaged number is not to end in one that no float holds."""


@dataclass(frozen=True, slots=True)
class Work:
    """What one part of a run has to do, and what the logs show of how fast it does that; None: not known.

    Attributes
    ----------
    name : as people know it
    bytes : to read
    logged : messages to process that are there as soon as it is restored
    resent : messages that other parts send again, by their names; those of parts that are not here come at once
    restore_ms, replay_ms : how long that takes, where the logs tell it without a rate
    read_rate : bytes a ms, where the logs show that of other checkpoints only
    replay_rate, input_rate : messages a second
    """

    name: str
    bytes: int | None = None
    logged: Span | None = NOTHING
    resent: Mapping[str, int] = field(default_factory=dict)
    restore_ms: Span | None = None
    replay_ms: Span | None = None
    read_rate: Span | None = None
    replay_rate: Span | None = None
    input_rate: float | None = None


@dataclass(frozen=True, slots=True)
class Works:
    """The parts of a run; `by` says for each rate what it was read off, `source` where those are a paper's.

    `in_turn`: nothing says that parts are restored side by side, so that at the latest they are one after the other.
    `why` says for each rate why there is none. `input_matters` False: nothing arrives for these parts.
    """

    parts: Sequence[Work]
    by: Mapping[str, str] = field(default_factory=dict)
    why: Mapping[str, str] = field(default_factory=dict)
    source: Mapping[str, Source] = field(default_factory=dict)
    in_turn: bool = False
    input_matters: bool = True


def who_tells(what: str, option: str, given: bool) -> str:
    """Say that something tells what is not known, and by which option; where that was given, that it does not tell it.

    >>> who_tells("the changelogs", "--kafka", False), who_tells("the changelogs", "--kafka", True)
    ('the changelogs tell it (--kafka)', 'the changelogs do not tell it')
    """
    return f"{what} do not tell it" if given else f"{what} tell it ({option})"


def with_counts(works: Works, runs: Iterable[RunAction]) -> Works:
    """Return works whose parts are runs, with what each is known to read again; None where it may read more."""
    counted = {run.run: None if run.reads_more else exactly(run.read_again) for run in runs}
    parts = [replace(part, logged=counted.get(part.name)) for part in works.parts]
    return replace(works, parts=parts)


class Timed(NamedTuple):
    """A part with its own times in ms: `own` for what lies in logs, `again` for what each sender sends again."""

    work: Work
    restore: Span | None
    own: Span | None
    again: Mapping[str, Span] | None
    rate: Span | None
    arrive: float | None


def timed_part(part: Work, asked: RecoveryRates) -> Timed:
    rate = Span(asked.replay, asked.replay) if asked.replay is not None else part.replay_rate
    own, again = _time_of(part.logged, rate), {name: _time_of(exactly(n), rate) for name, n in part.resent.items()}
    if part.replay_ms is not None and (asked.replay is None or own is None):
        own = part.replay_ms
    known = {name: time for name, time in again.items() if time is not None}
    return Timed(
        work=part,
        restore=_restored(part, asked.read),
        own=own,
        again=known if len(known) == len(again) else None,
        rate=rate,
        arrive=asked.input if asked.input is not None else part.input_rate,
    )


def _restored(part: Work, given: float | None) -> Span | None:
    """How long the state of a part takes to be read."""
    if part.bytes == 0:
        return NOTHING
    if given is not None and part.bytes is not None:
        time = part.bytes / given / 1000
        return Span(time, time)
    if given is None and part.restore_ms is not None:
        return part.restore_ms
    if given is None and part.bytes is not None and part.read_rate is not None and part.read_rate.low > 0:
        fastest = part.read_rate.high
        return Span(0.0 if fastest is None else part.bytes / fastest, part.bytes / part.read_rate.low)
    return None


def _time_of(messages: Span | None, rate: Span | None) -> Span | None:
    """How long so many messages take, in ms; a rate without an upper end takes no time at the least."""
    if messages is not None and messages.high == 0:
        return NOTHING
    if messages is None or rate is None or not rate.low > 0:
        return None
    low = 0.0 if rate.high is None else 1000 * messages.low / rate.high
    return Span(low, None if messages.high is None else 1000 * messages.high / rate.low)


def exactly(count: float) -> Span:
    known = float(min(max(count, 0), _MOST_MESSAGES))
    return Span(known, known)


def all_of(again: Mapping[str, Span] | None) -> Span | None:
    if again is None:
        return None
    found = NOTHING
    for _, span in sorted(again.items()):
        found = sum_of(found, span)
    return found


def sum_of(one: Span, other: Span) -> Span:
    return Span(one.low + other.low, None if one.high is None or other.high is None else one.high + other.high)


def end_of(span: Span | None) -> float | None:
    return None if span is None else span.high


def span_of(low: float | None, high: float | None) -> Span | None:
    return None if low is None else Span(low, high)
