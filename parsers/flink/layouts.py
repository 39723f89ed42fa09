"""What a layout of serialized elements is: it yields what stands in bytes, or says that they are laid out otherwise.

    VERSIONED = version:i32 length:i32 bytes          LIST(x) = version:i32 n:i32 (length:i32 x)*n

Nothing says of what type serialized bytes are, so that they are tried: they are what they fit, to the last byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from cklog.parsers.flink.java import Cursor, Malformed, Unknown, UnknownVersion, wrong_number
from cklog.unknown_formats import BEYOND_VERSIONS

Cells = dict[str, str | int | None]


class FoundElement(NamedTuple):
    """A row of the table of snapshots in the making: what stands at byte `at`, by its columns."""

    at: int
    entry: str
    cells: Cells


ElementLayout = Callable[[int, Cursor], Iterator[FoundElement]]
"""Yields what an element holds, by the version of its serializer and its bytes; raises `Malformed` or `Unknown`."""


_MOST_VERSIONS = 8
"""No serializer of Flink's connectors has had more versions."""


def fitting(layouts: Iterable[ElementLayout], version: int, cursor: Cursor) -> Iterator[FoundElement] | None:
    """Decode bytes by the first layout that fits them to the end; None if none fits.

    Raises `UnknownVersion` where they begin as one does, or fit an earlier version of one, and have a later version.
    """
    of_other_versions = []
    for layout in layouts:
        try:
            _decode(layout, version, cursor)
        except _OtherVersion:
            of_other_versions.append(layout)
        except UnknownVersion:  # it begins as one of this layout
            raise
        except (Malformed, Unknown):
            continue
        else:
            return layout(version, Cursor(cursor.data, cursor.at, cursor.end))
    for earlier in range(min(version, _MOST_VERSIONS) if version < BEYOND_VERSIONS else 0):
        if any(_fits(layout, earlier, cursor) for layout in of_other_versions):
            raise UnknownVersion(cursor.at, f"serializer version {version}, though the bytes fit version {earlier}")
    return None


def _fits(layout: ElementLayout, version: int, cursor: Cursor) -> bool:
    try:
        _decode(layout, version, cursor)
    except (Malformed, Unknown):
        return False
    return True


def _decode(layout: ElementLayout, version: int, cursor: Cursor) -> None:
    """Decode all bytes of a cursor, which stays where it is."""
    for _ in layout(version, Cursor(cursor.data, cursor.at, cursor.end)):
        pass


class _OtherVersion(Unknown):
    """Raised for a version that a layout is not of."""


def expect_version(version: int, *versions: int) -> None:
    """Raise `Unknown` for a version that is none of those that are known."""
    if version not in versions:
        raise _OtherVersion(f"version {version}")


def expect_known(version: int, at: int, *versions: int) -> None:
    """Raise for another version of what its first bytes, before byte `at`, have told: a later one, or none."""
    if version not in versions:
        raise wrong_number(at, version, max(versions), f"serializer version {version}")


def read_versioned(cursor: Cursor, what: str) -> tuple[int, Cursor]:
    """Read a VERSIONED: its version, and its bytes."""
    version, start = cursor.i32("a version"), cursor.blob(what)
    return version, Cursor(cursor.data, start, cursor.at)


def read_list(cursor: Cursor, versions: tuple[int, ...] = ()) -> Iterator[tuple[Cursor, int]]:
    """Read a LIST: yield the bytes of each element, and the version of its serializer; `versions` () takes any."""
    version = cursor.i32("a version")
    expect_known(version, cursor.at - 4, *(versions or (version,)))
    for _ in range(cursor.count(4, "elements")):
        yield Cursor(cursor.data, cursor.blob("an element"), cursor.at), version


def read_magic(cursor: Cursor, magic: bytes, what: str) -> None:
    """Read the bytes by which a layout is told from others; raises `Unknown` where there are others."""
    at = cursor.skip(len(magic), f"the start of {what}")
    if cursor.data[at : cursor.at] != magic:
        raise Unknown(f"no {what}")
