"""To which version a RESTORE of Delta went back, by what its commit says."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from cklog.parsers.sink_tables.delta_actions import Commit
from cklog.parsers.sink_tables.files import text, whole

_TIMES = ("timestamp", "datetime")


def restored(version: int, commit: Commit, commits: Mapping[int, Commit]) -> int | None:
    """Return the version that a RESTORE went back to; None: nobody can tell.

    It was asked for by its number, or by a time: then it is the newest commit that is not later. A time without a zone
    was in that of a session, which nobody knows.
    """
    target = commit.target or {}
    number = whole(text(target.get("version")).strip('"') or target.get("version"))
    if number is not None:
        return number if number < version else None
    moment = next((when for key in _TIMES if (when := _time(target.get(key))) is not None), None)
    if moment is None or any(v < version and one.time is None for v, one in commits.items()):
        return None
    earlier = [v for v, one in commits.items() if v < version and one.time is not None and one.time <= moment]
    return max(earlier, default=None)


def _time(value: object) -> int | None:
    """Return the milliseconds of a time that names its zone."""
    if (number := whole(value)) is not None:
        return number
    try:
        found = datetime.fromisoformat(text(value).strip('"'))
        return int(found.timestamp() * 1000) if found.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
