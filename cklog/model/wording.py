"""Numbers, names, times and sizes in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime


def many(count: int, noun: str, verb: str = "", grouped: bool = False) -> str:
    """Return a count with its noun, and a verb that is given in the plural; `grouped`: with commas at the thousands.

    >>> many(1, "log"), many(0, "log"), many(2, "batch"), many(3, "entry")
    ('1 log', '0 logs', '2 batches', '3 entries')
    >>> many(1, "channel", "have"), many(2, "channel", "have"), many(1, "file", "lie")
    ('1 channel has', '2 channels have', '1 file lies')
    """
    words = [f"{count:,}" if grouped else str(count), noun if count == 1 else plural_of(noun)]
    return " ".join([*words, agreeing(count, verb)] if verb else words)


def plural_of(noun: str) -> str:
    """Return a noun in the plural.

    >>> plural_of("batch"), plural_of("entry"), plural_of("log")
    ('batches', 'entries', 'logs')
    """
    return f"{noun[:-1]}ies" if noun.endswith(("ry", "py")) else f"{noun}es" if noun.endswith("ch") else f"{noun}s"


def agreeing(count: int, verb: str) -> str:
    """Return a verb, given in the plural, as it goes with a count.

    >>> agreeing(1, "are"), agreeing(2, "are"), agreeing(1, "stand"), agreeing(1, "cross")
    ('is', 'are', 'stands', 'crosses')
    """
    return _SINGULAR.get(verb, f"{verb}es" if verb.endswith("ss") else f"{verb}s") if count == 1 else verb


def numbered(noun: str, first: int, last: int, verb: str = "") -> str:
    """Return a noun with its number, or with the first and the last of several, and a verb given in the plural.

    >>> numbered("message", 3, 3, "were"), numbered("offset", 2, 5), numbered("batch", 1, 2)
    ('message 3 was', 'offsets 2 to 5', 'batches 1 to 2')
    """
    words = f"{noun} {first}" if first == last else f"{plural_of(noun)} {first} to {last}"
    return f"{words} {agreeing(last - first + 1, verb)}" if verb else words


_SINGULAR = {"have": "has", "are": "is", "were": "was", "do": "does"}
"""Verbs that do more in the singular than to take an s."""


def among(count: int, one: object) -> str:
    """Name one of so many, or the only one.

    >>> among(3, "a/0->b/0"), among(1, "a/0->b/0")
    ('a/0->b/0 among them', 'a/0->b/0')
    """
    return str(one) if count == 1 else f"{one} among them"


def none_of(count: int, noun: str, does: str, does_not: str) -> str:
    """Say of so many things that none does something.

    >>> [none_of(count, "snapshot", "can be restored", "cannot be restored") for count in (3, 1, 0)]
    ['None of 3 snapshots can be restored', 'The only snapshot cannot be restored', 'No snapshot can be restored']
    """
    if count == 1:
        return f"The only {noun} {does_not}"
    return f"None of {many(count, noun)} {does}" if count else f"No {noun} {does}"


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
