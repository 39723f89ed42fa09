"""What somebody asked to keep beyond what recovery needs: the newest ones, those of a time, single ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cklog.budgets import budgets
from cklog.destinations import note_named
from cklog.errors import NotFound, UsageError

_NAMED = re.compile(r"(.+)=(-?\d{1,18})")
_DURATION = re.compile(r"(\d{1,12})\s*(ms|s|m|h|d|w)")
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """What is kept beside what recovery needs.

    `keep` : how many of the newest restorable checkpoints
    `window`, `now` : in ms; those taken at most `window` before `now` (since the epoch; no clock is read)
    `pins` : single checkpoints, OP/SUB=CKPT
    `marked` : checkpoints that somebody has deleted already and that wait for their last dependant (US patent
        9,471,438): neither `keep` nor `window` holds them
    `jobs_stopped` : Flink: no job writes to the folders any more
    `job_log` : Flink: a log of the job manager
    `drop_broken` : what cannot be restored may go too, where something else can be
    """

    keep: int | None = None
    window: int | None = None
    now: int | None = None
    pins: tuple[str, ...] = ()
    marked: tuple[str, ...] = ()
    jobs_stopped: bool = False
    job_log: str = ""
    drop_broken: bool = False

    def __post_init__(self) -> None:
        if self.keep is not None and self.keep < 1:
            raise UsageError(f"--keep {self.keep}: at least 1", "what recovery needs stays without any option")
        if self.window is not None and self.now is None:
            raise UsageError("--window needs --now", "no clock is read: say from when on back, as ms or ISO 8601")
        if self.now is not None and self.window is None:
            raise UsageError("--now without --window", "as in --window 7d --now 2026-11-20T10:00:00Z")

    @property
    def since(self) -> int | None:
        """The oldest time, in ms since the epoch, that the window holds."""
        return None if self.window is None or self.now is None else self.now - self.window

    @property
    def limits(self) -> bool:
        """Whether it says how many checkpoints are kept, or how old ones."""
        return self.keep is not None or self.window is not None


def duration(text: str) -> int | None:
    """Return the milliseconds of `7d`, `36h`, `90m`, `30s`, `500ms` or `2w`; None if empty.

    >>> duration("7d"), duration("90 m"), duration("")
    (604800000, 5400000, None)
    """
    if not text:
        return None
    found = _DURATION.fullmatch(text.strip())
    if not found:
        raise UsageError(f"{text!r} is no length of time", "a number and ms, s, m, h, d or w, as in 7d")
    return int(found[1]) * _UNITS_MS[found[2]]


def named(option: str, text: str) -> tuple[str, int]:
    """Split OP/SUB=CKPT, given for `option`, into subtask and number.

    >>> named("--pin", "join/1=5")
    ('join/1', 5)
    """
    found = _NAMED.fullmatch(text)
    if not found:
        raise UsageError(f"{option} {text}: expected OP/SUB=CKPT")
    return found[1], int(found[2])


def marks_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Return marks as given: each text is one (OP/SUB=CKPT), or a file with one a line; `#` begins a comment there.

    Raises
    ------
    NotFound : a text is neither
    """
    found: list[str] = []
    for text in texts:
        found += [text] if _NAMED.fullmatch(text) else _mark_lines(text)
    return tuple(dict.fromkeys(found))


def _mark_lines(path: str) -> Sequence[str]:
    """The lines of a file of marks, without comments."""
    try:
        note_named(path)
        with open(path, encoding="utf-8") as file:
            lines = [line.partition("#")[0].strip() for line in file.read(budgets().file).splitlines()]
    except (OSError, UnicodeDecodeError, ValueError):
        hint = "--marked takes OP/SUB=CKPT, or a file with one such a line"
        raise NotFound(f"--marked {path}: no such file that can be read as text", hint) from None
    return [line for line in lines if line]
