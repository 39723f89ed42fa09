"""Numbers, names and times in sentences."""

from __future__ import annotations

from datetime import UTC, datetime


def many(count: int, noun: str) -> str:
    """A count with its noun.

    >>> many(1, "log"), many(0, "log")
    ('1 log', '0 logs')
    """
    return f"{count} {noun}{'' if count == 1 else 'es' if noun.endswith('ch') else 's'}"


def utc(milliseconds: int | None) -> str:
    """A time as people read it.

    >>> utc(1795226310693)
    '2026-11-21 01:58:30.693Z'
    """
    if milliseconds is None:
        return "-"
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{milliseconds} ms"
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{milliseconds % 1000:03d}Z"
