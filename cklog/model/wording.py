"""Numbers, names, times and sizes in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime


def many(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> many(1, "log"), many(0, "log")
    ('1 log', '0 logs')
    """
    return f"{count} {noun}{'' if count == 1 else 'es' if noun.endswith('ch') else 's'}"


def first_few(names: Sequence[object], most: int, separator: str = ", ") -> str:
    """Name the first few of some, and say how many more there are.

    >>> first_few(["a", "b"], 3), first_few(["a", "b", "c", "d", "e"], 3)
    ('a, b', 'a, b, c and 2 more')
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{separator.join(map(str, names[:most]))}{more}"


def utc(milliseconds: int | None) -> str:
    """Return a time as people read it.

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


_BYTE_UNITS = ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"), (1, "B"))


@dataclass(frozen=True, slots=True)
class ByteUnit:
    """A unit for sizes, one for a whole answer so that its numbers can be compared at a glance.

    `bytes` : how many are one `name`
    """

    bytes: int
    name: str

    def number(self, size: float) -> str:
        """Return a size in this unit, without its name."""
        return f"{size / self.bytes:,.1f}"

    def spoken(self, size: float) -> str:
        """Return a size with the unit's name.

        >>> ByteUnit(1000, "kB").spoken(1_234_567)
        '1,234.6 kB'
        """
        return f"{self.number(size)} {self.name}"


def unit_for(largest: float) -> ByteUnit:
    """Return the largest unit in which a size has two digits or more before the point.

    >>> unit_for(12_000_000).name, unit_for(9_000_000).name, unit_for(3).name
    ('MB', 'kB', 'B')
    """
    return next((ByteUnit(*unit) for unit in _BYTE_UNITS if largest >= 10 * unit[0]), ByteUnit(*_BYTE_UNITS[-1]))
