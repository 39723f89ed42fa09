"""What a scan over many runs is asked, and its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cklog.model.actions import ACTIONS, Action

TIME_LIMIT = 300.0
"""Seconds after which a run is given up, unless it is said how many: small ones take some hundredths."""

COLUMNS = ("path", "format", "action", "newest", "age", "size", "findings")
"""What rows can be sorted by."""


@dataclass(frozen=True, slots=True)
class ScanQuestion:
    """What `scan` is asked: runs that tell of nothing since `since` (ms) are left out; rows are sorted by `sort`.

    A run that takes longer than `seconds` is given up; 0: none is.
    """

    since: int | None = None
    sort: str = "path"
    seconds: float = TIME_LIMIT


@dataclass(frozen=True, slots=True)
class ScannedRun:
    """What to do about one run, or about one of several jobs in one folder.

    Attributes
    ----------
    path, format, run : the folder, its format ("" where none is known), and the job's or run's name
    action : as in `cklog.model.actions`; undetermined where the run could not be asked, as `error_id` says
    exit : the exit code that `recovery-line` has for the folder
    newest, newest_time : the newest that was stored, and when (ms); None: not known
    chosen, chosen_time : the newest that can be restored
    last_time : the last moment that the run's own logs tell of; None: they tell no time
    age_ms : from `chosen_time` to the failure, or to `last_time`, as `recovery-line` has it
    files, bytes : of the folder, whatever lies in it
    errors, warnings, infos : findings about this run, and about the folder as a whole
    worst : the ids of the findings that weigh most
    unchecked : how many things the action takes for granted, as `recovery-line` names them
    error_id, message : why there is no answer; None where there is one
    """

    path: str
    format: str
    run: str
    action: Action
    exit: int
    newest: str | None
    newest_time: int | None
    chosen: str | None
    chosen_time: int | None
    last_time: int | None
    age_ms: int | None
    files: int
    bytes: int
    errors: int
    warnings: int
    infos: int
    worst: tuple[str, ...]
    unchecked: int
    error_id: str | None
    message: str | None

    @classmethod
    def of(cls, told: dict[str, Any]) -> ScannedRun:
        """Return the row that another process told in JSON."""
        return cls(**{**told, "worst": tuple(told["worst"])})


@dataclass(frozen=True, slots=True)
class ScanAnswer:
    """Every run below some folders.

    `action` is the one that asks most of people. `found` are all runs, `untimed` those that tell no time and so are
    shown whatever `since` says. `actions` counts the rows that are shown, by action.
    """

    action: Action
    roots: tuple[str, ...]
    since: int | None
    sort: str
    found: int
    untimed: int
    actions: dict[Action, int]
    runs: tuple[ScannedRun, ...]


def counted(runs: tuple[ScannedRun, ...]) -> dict[Action, int]:
    """Count rows by action, each action that there is among them."""
    return {action: sum(run.action == action for run in runs) for action in ACTIONS}
