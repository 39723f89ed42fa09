"""What cklog does not know of a file: a version, codec, type or layout. Nothing then says that the file is damaged.

A number beyond the newest one that is known is that of a later version, unless a checksum proves that one bit of it is
damaged: the checksum fails, and holds once a known number, one bit away, is put back. Any other checksum that fails
proves nothing, because a later version may compute it elsewhere. Most checksums do not cover the number. A name that is
not known is another one's, unless it is one bit away from a known name: then that bit is damaged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

BEYOND_VERSIONS = 1 << 12
"""Versions and types are counted up from 0: no writer ever comes to so many."""


class UnknownFormat(OSError, ValueError):
    """Raised where bytes are of a version, codec, type or layout that cklog does not know.

    It is caught wherever errors of decoding are, so that whoever catches one asks for this kind first.
    """

    id = "unknown-version"


def proves_damaged_bit(found: int, known: Iterable[int], holds: Callable[[int], bool]) -> bool:
    """Return whether a checksum proves that one bit of a number is damaged.

    `holds` : whether the checksum holds with a number in the place of the one that was found

    >>> proves_damaged_bit(5, [0, 1], lambda number: number == 1), proves_damaged_bit(5, [0, 1], lambda number: True)
    (True, False)
    """
    apart = [one for one in known if (one ^ found).bit_count() == 1]
    return any(map(holds, apart)) and not holds(found)


def is_later(number: int, newest: int, holds: Callable[[int], bool]) -> bool:
    """Return whether a number is a later version's; `holds` as in `proves_damaged_bit`."""
    return number > newest and not proves_damaged_bit(number, range(newest + 1), holds)


def require_known(what: str, number: int, newest: int) -> None:
    """Raise `UnknownFormat` for a number, which no checksum covers, beyond the newest one that is known.

    >>> require_known("version", 2, 2)
    >>> require_known("version", 3, 2)
    Traceback (most recent call last):
    cklog.unknown_formats.UnknownFormat: version 3; the newest one known is 2
    """
    if number > newest:
        raise UnknownFormat(f"{what} {number}; the newest one known is {newest}")


def require_known_name(what: str, name: str, known: Collection[str]) -> None:
    """Raise `UnknownFormat` for a name that is none of the known ones, nor one bit away from one.

    >>> require_known_name("codec", "deflate", ["null", "deflate"])
    >>> require_known_name("codec", "deflatd", ["null", "deflate"])
    >>> require_known_name("codec", "xz", ["null", "deflate"])
    Traceback (most recent call last):
    cklog.unknown_formats.UnknownFormat: codec 'xz' is not known
    """
    if name not in known and not is_one_bit_off(name, known):
        raise UnknownFormat(f"{what} {name[:40]!r} is not known")


def is_one_bit_apart(name: str, other: str) -> bool:
    """Return whether two names differ in one bit.

    >>> is_one_bit_apart("kinl", "kind"), is_one_bit_apart("king", "kind"), is_one_bit_apart("kin", "kind")
    (True, False, False)
    """
    if len(name) != len(other):
        return False
    differing = [ord(one) ^ ord(two) for one, two in zip(name, other, strict=True) if one != two]
    return len(differing) == 1 and differing[0].bit_count() == 1


def is_one_bit_off(name: str, known: Iterable[str]) -> bool:
    """Return whether a name differs from one of the known ones in one bit: then it is damaged, and no other name."""
    return any(is_one_bit_apart(name, other) for other in known)


def why_unknown(error: BaseException) -> UnknownFormat | None:
    """Return the error that says that a format is not known: this one, or what it was raised from; None: neither."""
    at: BaseException | None = error
    while at is not None and not isinstance(at, UnknownFormat):
        at = at.__cause__
    return at
