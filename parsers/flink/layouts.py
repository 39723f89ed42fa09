"""What a layout of serialized elements is: it yields what stands in bytes, or says that they are laid out otherwise.

    VERSIONED = version:i32 length:i32 bytes          LIST(x) = version:i32 n:i32 (length:i32 x)*n

Nothing says of what type serialized bytes are, so that they are tried: they are what they fit, to the last byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from cklog.parsers.flink.java import Cursor, Malformed, Unknown, UnknownVersion, wrong_number

Cells = dict[str, str | int | None]


class FoundElement(NamedTuple):
    """A row of the table of snapshots in the making: what stands at byte `at`, by its columns."""

    at: int
    entry: str
    cells: Cells


ElementLayout = Callable[[int, Cursor], Iterator[FoundElement]]
"""Yields what an element holds, by the version of its serializer and its bytes; raises `Malformed` or `Unknown`."""


def fitting(layouts: Iterable[ElementLayout], version: int, cursor: Cursor) -> Iterator[FoundElement] | None:
    """Decode bytes by the first layout that fits them to the end; None if none fits.

    Raises `UnknownVersion` where they begin as one does, and have a later version.
    """
    at = cursor.at
    for layout in layouts:
        try:
            for _ in layout(version, Cursor(cursor.data, at, cursor.end)):
                pass
        except UnknownVersion:
            raise
        except (Malformed, Unknown):
            continue
        return layout(version, Cursor(cursor.data, at, cursor.end))
    return None


def expect_version(version: int, *versions: int) -> None:
    """Raise `Unknown` for a version that is none of those that are known."""
    if version not in versions:
        raise Unknown(f"version {version}")


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
