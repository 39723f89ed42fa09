"""Sizes in bytes for people: one unit for a whole answer, so that its numbers can be compared at a glance."""

from __future__ import annotations

from dataclasses import dataclass

_UNITS = ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"), (1, "B"))


@dataclass(frozen=True, slots=True)
class ByteUnit:
    """`bytes` of them are one `name`."""

    bytes: int
    name: str

    def number(self, size: float) -> str:
        """A size in this unit, without its name."""
        return f"{size / self.bytes:,.1f}"

    def spoken(self, size: float) -> str:
        """A size with the unit's name.

        >>> ByteUnit(1000, "kB").spoken(1_234_567)
        '1,234.6 kB'
        """
        return f"{self.number(size)} {self.name}"


def unit_for(largest: float) -> ByteUnit:
    """The largest unit in which a size has two digits or more before the point.

    >>> unit_for(12_000_000).name, unit_for(9_000_000).name, unit_for(3).name
    ('MB', 'kB', 'B')
    """
    return next((ByteUnit(*unit) for unit in _UNITS if largest >= 10 * unit[0]), ByteUnit(*_UNITS[-1]))
