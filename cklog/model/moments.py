"""Times as people write them, in milliseconds since the epoch."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from cklog.errors import UsageError

_INTEGER = re.compile(r"-?\d{1,18}")


def moment(text: str) -> int | None:
    """Return milliseconds since the epoch of a number or an ISO 8601 time (UTC unless it says otherwise).

    >>> moment("1000"), moment("1970-01-01T00:00:02"), moment("")
    (1000, 2000, None)
    """
    if not text:
        return None
    if _INTEGER.fullmatch(text):
        return int(text)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is no time", "milliseconds since the epoch, or 2026-11-20T10:00:00Z") from None
    return milliseconds(found)


def milliseconds(time: datetime) -> int:
    """Return a time, in UTC unless it says otherwise, as milliseconds since the epoch."""
    return round((time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp() * 1000)
