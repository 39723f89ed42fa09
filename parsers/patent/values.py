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
    """One key and its value: `size` in bytes, their CRC-32C `crc`; `data` only of headers and index data.

    `place` is how pieces name it, `where` how findings do.
    """

    key: Key
    size: int
    crc: int
    data: bytes
    place: str
    where: Where


class UnreadableBytes(NamedTuple):
    """Bytes [start, end) that cannot be read, and what they lack: "needs 1 INCR 3, which is not there"."""

    start: int
    end: int
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """What is stored under a key, in one piece or several: `size` bytes, in chunks of `chunk` bytes.

    `holes` are in order and none overlaps another. If the last one is endless (`_ENDLESS`), the size is not certain; a
    value of which nothing can be read has such a hole from byte 0 on, and `chunk` 0. `first` is any stored piece of it.
    """

    name: str
    size: int
    chunk: int
    chunks: Mapping[int, StoredValue]
    holes: tuple[UnreadableBytes, ...]
    first: StoredValue

    def why_not(self, start: int, end: int | None = None) -> str | None:
        """Return why bytes [start, end) cannot be read, None if they can; `end` None: up to the end of the value."""
        end = _ENDLESS if end is None else end
        nearest = bisect_right(self.holes, start, key=lambda hole: hole.end)
        if nearest == len(self.holes) or self.holes[nearest].start >= end:
            return None
        return self.holes[nearest].why

    @property
    def is_lost(self) -> bool:
        """Whether nothing of the value can be read, not even its size."""
        return bool(self.holes) and not self.chunk

    def read(self, at: int, count: int) -> bytes | None:
        """Return `count` bytes from byte `at` on, None where not all of them are there."""
        if at + count > self.size or self.why_not(at, at + count) is not None:
            return None
        found = b""
        while len(found) < count:
            index, inside = divmod(at + len(found), self.chunk)
            found += self.chunks[index].data[inside : inside + count - len(found)]
        return found

    def holder(self, at: int) -> StoredValue:
        """Return the stored piece that byte `at` is in; if that is not there, any other piece of the value."""
        return self.chunks.get(at // self.chunk, self.first) if self.chunk else self.first


@dataclass(slots=True, eq=False)
class Gathered:
    """The stored pieces of one value, as they come, by the chunk that they are (None and `HEAD` as in `Key`).

    `found` is the first with each key, `again` are later ones, `differ` the chunks of which those are not the same.
    """

    found: dict[int | str | None, StoredValue] = field(default_factory=dict)
    again: list[StoredValue] = field(default_factory=list)
    differ: set[int | str | None] = field(default_factory=set)

    def add(self, stored: StoredValue) -> None:
        """Add one more key and its value."""
        chunk = stored.key.chunk
        first = self.found.setdefault(chunk, stored)
        if first is not stored:
            self.again.append(stored)
            if (first.size, first.crc) != (stored.size, stored.crc):
                self.differ.add(chunk)

    def value(self) -> Value:
        """Put the value together, with holes for what is missing or wrong."""
        name = next(iter(self.found.values())).key.original
        chunks = {chunk: stored for chunk, stored in self.found.items() if isinstance(chunk, int)}
        whole, head = self.found.get(None), self.found.get(HEAD)
        if whole is not None:
            why = f"needs {name}, which is stored in one piece and in chunks" if chunks or head else ""
            why = why or (f"needs {name}, which is stored twice and not the same" if self.differ else "")
            if why:
                return _lost_value(name, whole, why)
            return Value(name=name, size=whole.size, chunk=whole.size, chunks={0: whole}, holes=(), first=whole)
        if head is None:
            return _lost_value(name, chunks[min(chunks)], f"needs {name} {HEAD}, which is not there")
        why = self._header_flaw(name, head, chunks)
        if why:
            return _lost_value(name, head, why)
        layout = _ChunkHeader(*HEADER.unpack(head.data))
        size = layout.last * layout.size + layout.last_size
        holes = tuple(sorted(_find_holes(name, layout, chunks, self.differ)))
        return Value(name=name, size=size, chunk=layout.size, chunks=chunks, holes=holes, first=head)

    def _header_flaw(self, name: str, head: StoredValue, chunks: Mapping[int, StoredValue]) -> str:
        """Return why a header does not tell where the chunks belong; empty if it does."""
        needs = f"needs {head.key}, which"
        if HEAD in self.differ:
            return f"{needs} is stored twice and not the same"
        if head.size != HEADER.size:
            return f"{needs} has {head.size} bytes and not {HEADER.size}"
        size, last, last_size = HEADER.unpack(head.data)
        if not 0 < last_size <= size and (last, last_size) != (0, 0):
            return f"{needs} gives the last chunk {last_size} bytes, and each {size}"
        if chunks and max(chunks) > last - (last_size == 0):
            return f"{needs} ends at chunk {last}, and there is {name} {max(chunks)}"
        return ""


class _ChunkHeader(NamedTuple):
    """The header of a value in chunks: `size` of each in bytes, the index of the last one, and the size of that."""

    size: int
    last: int
    last_size: int


def _lost_value(name: str, stored: StoredValue, why: str) -> Value:
    """Return a value of which nothing can be read."""
    return Value(name=name, size=0, chunk=0, chunks={}, holes=(UnreadableBytes(0, _ENDLESS, why),), first=stored)


def _find_holes(
    name: str, header: _ChunkHeader, chunks: Mapping[int, StoredValue], differ: Collection[int | str | None]
) -> list[UnreadableBytes]:
    """Find what is missing between the chunks, and chunks that are wrong; as many as there are chunks at the most."""
    size, last, last_size = header
    holes = []
    expected = 0
    for index, stored in sorted(chunks.items()):
        if index > expected:
            holes.append(_missing_chunks(name, expected, index, size))
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
        holes.append(_missing_chunks(name, expected, last + 1, size)._replace(end=last * size + last_size))
    return holes


def _missing_chunks(name: str, first: int, end: int, size: int) -> UnreadableBytes:
    """Return the hole of chunks [first, end), of `size` bytes each."""
    which = f"{name} {first}" if end == first + 1 else f"{name} {first} to {end - 1}"
    return UnreadableBytes(
        first * size, end * size, f"needs {which}, which {'is' if end == first + 1 else 'are'} not there"
    )
