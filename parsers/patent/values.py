"""Values of a store in the patent's layout, put together from what is stored of them: in one piece, or in chunks.

A value is never built: it is bytes that can be asked for, with holes where chunks are missing or wrong. So no size in
a header costs memory, and what a hole does not touch can still be read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from cklog.model.findings import Where
from cklog.parsers.patent.keys import HEAD, HEADER, Key

_ENDLESS = 1 << 127
"""Behind the last byte of any value."""


class StoredValue(NamedTuple):
    """One key and its value: `size` in bytes, `crc` of them; `data` only of headers and index data.

    `place` as pieces name it; `where` as findings do.
    """

    key: Key
    size: int
    crc: int
    data: bytes
    place: str
    where: Where


class UnreadableBytes(NamedTuple):
    """Bytes [start, end) that cannot be read, and why: what needs them `why`."""

    start: int
    end: int
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """What is stored under a key, in whatever way: `size` bytes, in chunks of `chunk`.

    `holes` in order, none overlaps another; one without an end makes the size uncertain, or is all there is.
    """

    name: str
    size: int
    chunk: int
    chunks: Mapping[int, StoredValue]
    holes: tuple[UnreadableBytes, ...]
    first: StoredValue

    def why_not(self, start: int, end: int | None = None) -> str | None:
        """Why bytes [start, end) cannot be read, the end of the value where it is None; None if they can."""
        end = _ENDLESS if end is None else end
        nearest = bisect_right(self.holes, start, key=lambda hole: hole.end)
        if nearest == len(self.holes) or self.holes[nearest].start >= end:
            return None
        return self.holes[nearest].why

    @property
    def is_lost(self) -> bool:
        """Whether nothing of it can be read, not even how much it is."""
        return bool(self.holes) and not self.chunk

    def read(self, at: int, count: int) -> bytes | None:
        """`count` bytes, None where not all of them are there."""
        if at + count > self.size or self.why_not(at, at + count) is not None:
            return None
        found = b""
        while len(found) < count:
            index, inside = divmod(at + len(found), self.chunk)
            found += self.chunks[index].data[inside : inside + count - len(found)]
        return found

    def holder(self, at: int) -> StoredValue:
        """The stored piece that byte `at` is in; of one that is not there, any other piece of the value."""
        return self.chunks.get(at // self.chunk, self.first) if self.chunk else self.first


@dataclass(slots=True, eq=False)
class Gathered:
    """What was found of one value, as it came: the first of each key, and those that differ from it."""

    found: dict[int | str | None, StoredValue] = field(default_factory=dict)
    again: list[StoredValue] = field(default_factory=list)
    differ: set[int | str | None] = field(default_factory=set)

    def add(self, stored: StoredValue) -> None:
        """Take one more key and value."""
        chunk = stored.key.chunk
        first = self.found.setdefault(chunk, stored)
        if first is not stored:
            self.again.append(stored)
            if (first.size, first.crc) != (stored.size, stored.crc):
                self.differ.add(chunk)

    def value(self) -> Value:
        """The value, as far as it can be had."""
        name = next(iter(self.found.values())).key.original
        chunks = {chunk: stored for chunk, stored in self.found.items() if isinstance(chunk, int)}
        whole, head = self.found.get(None), self.found.get(HEAD)
        if whole is not None:
            why = f"needs {name}, which is stored in one piece and in chunks" if chunks or head else ""
            why = why or (f"needs {name}, which is stored twice and not the same" if self.differ else "")
            return _lost(name, whole, why) if why else Value(name, whole.size, whole.size, {0: whole}, (), whole)
        if head is None:
            return _lost(name, chunks[min(chunks)], f"needs {name} {HEAD}, which is not there")
        why = self._unusable(name, head, chunks)
        if why:
            return _lost(name, head, why)
        size, last, last_size = HEADER.unpack(head.data)
        holes = tuple(sorted(_holes(name, (size, last, last_size), chunks, self.differ)))
        return Value(name, last * size + last_size, size, chunks, holes, head)

    def _unusable(self, name: str, head: StoredValue, chunks: Mapping[int, StoredValue]) -> str:
        """Why a header does not tell where the chunks belong; empty if it does."""
        told = f"needs {head.key}, which"
        if HEAD in self.differ:
            return f"{told} is stored twice and not the same"
        if head.size != HEADER.size:
            return f"{told} has {head.size} bytes and not {HEADER.size}"
        size, last, last_size = HEADER.unpack(head.data)
        if not 0 < last_size <= size and (last, last_size) != (0, 0):
            return f"{told} gives the last chunk {last_size} bytes, and each {size}"
        if chunks and max(chunks) > last - (last_size == 0):
            return f"{told} ends at chunk {last}, and there is {name} {max(chunks)}"
        return ""


def _lost(name: str, stored: StoredValue, why: str) -> Value:
    return Value(name, 0, 0, {}, (UnreadableBytes(0, _ENDLESS, why),), stored)


def _holes(
    name: str, header: tuple[int, int, int], chunks: Mapping[int, StoredValue], differ: Collection[int | str | None]
) -> list[UnreadableBytes]:
    """What is missing between the chunks, and chunks that are wrong; as many as there are chunks at the most."""
    size, last, last_size = header
    holes = []
    expected = 0
    for index, stored in sorted(chunks.items()):
        if index > expected:
            holes.append(_missing(name, expected, index, size))
        whole = last_size if index == last else size
        end = _ENDLESS if index == last else (index + 1) * size
        if stored.size != whole:
            holes.append(
                UnreadableBytes(index * size, end, f"needs {stored.key}, which has {stored.size} bytes and not {whole}")
            )
        elif index in differ:
            holes.append(
                UnreadableBytes(index * size, end, f"needs {stored.key}, which is stored twice and not the same")
            )
        expected = index + 1
    if last_size and expected <= last:
        holes.append(_missing(name, expected, last + 1, size)._replace(end=last * size + last_size))
    return holes


def _missing(name: str, first: int, end: int, size: int) -> UnreadableBytes:
    which = f"{name} {first}" if end == first + 1 else f"{name} {first} to {end - 1}"
    return UnreadableBytes(
        first * size, end * size, f"needs {which}, which {'is' if end == first + 1 else 'are'} not there"
    )
