"""What an engine really restored, held against what it should have restored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from cklog.model.checks import Check
from cklog.model.wording import many

SpanFate = Literal["doubled", "lost", "may-be-lost"]


@dataclass(frozen=True, slots=True)
class Restored:
    """What an engine restored: the checkpoint of each subtask, or job (None: its current state, or nothing).

    `newest` : by job the newest that was complete by then, where a log tells; what was taken later could not be chosen
    """

    line: Mapping[str, int | None]
    newest: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MessageSpan:
    """Messages [`start`, `end`) of a channel that a restart went wrong with, and how many of them.

    doubled        the receiver had taken them, and the sender sends them again: nobody knows of the first time
    lost           they were on their way, and no log holds them
    may-be-lost    they were on their way, and no log is here
    """

    channel: str
    fate: SpanFate
    start: int
    end: int
    messages: int


@dataclass(frozen=True, slots=True)
class RestoredEntry:
    """What was restored of a subtask, or a job, and what is right; None: its current state, or nothing.

    `age` : of what was restored, against what is right
    """

    subject: str
    restored: int | None
    right: int | None
    age: Literal["right", "older", "newer", "unknown"]


@dataclass(frozen=True, slots=True)
class RestoredAudit:
    """What `verify --restored` answers: the checks of the line, what it did to messages, and the right line."""

    summary: str
    checks: tuple[Check, ...]
    spans: tuple[MessageSpan, ...]
    line: tuple[RestoredEntry, ...]

    @property
    def undecided(self) -> bool:
        """Whether something cannot be told, and nothing is refuted."""
        holds = {check.holds for check in self.checks}
        return None in holds and False not in holds


def entry_of(subject: str, restored: int | None, right: int | None, none_is_oldest: bool = False) -> RestoredEntry:
    """Compare what was restored with what is right; None: a current state, newer than any checkpoint.

    With `none_is_oldest` None is a start without any state.

    >>> entry_of("a/0", 3, 4).age, entry_of("a/0", None, 4).age, entry_of("a/0", 4, 4).age
    ('older', 'newer', 'right')
    """
    if restored == right:
        return RestoredEntry(subject, restored, right, "right")
    none = -1 if none_is_oldest else 1 << 62
    newer = (none if restored is None else restored) > (none if right is None else right)
    return RestoredEntry(subject, restored, right, "newer" if newer else "older")


def audit_of(checks: Iterable[Check], spans: Iterable[MessageSpan], line: Iterable[RestoredEntry]) -> RestoredAudit:
    """Put an audit together, with all of it in a sentence or two."""
    checks, spans, line = tuple(checks), tuple(spans), tuple(line)
    failed = [check.check for check in checks if check.holds is False]
    unknown = [check.check for check in checks if check.holds is None]
    if failed:
        verdict = f"What was restored is not {', not '.join(failed)}"
    elif unknown:
        verdict = f"What was restored cannot be judged: {', '.join(unknown)} cannot be told"
    else:
        verdict = f"What was restored is {', '.join(check.check for check in checks)}"
    counts = {fate: sum(s.messages for s in spans if s.fate == fate) for fate in ("doubled", "lost", "may-be-lost")}
    told = [f"{many(n, 'message')} {fate.replace('-', ' ')}" for fate, n in counts.items() if n]
    newer, older = (sum(entry.age == age for entry in line) for age in ("newer", "older"))
    against = (
        "it is the right line"
        if not newer and not older
        else (f"of {len(line)}, {newer} newer and {older} older than the right line")
    )
    return RestoredAudit(f"{'; '.join([verdict, *told, against])}.", checks, spans, line)
