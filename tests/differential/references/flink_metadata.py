"""Flink's `_metadata` by a grammar that is read rule by rule; written from the description of the format alone.

A rule is a function of a `Tape`, which yields what there is to tell: ("handle", part, kind, file, start, size), and the
like. The rules follow the tables of Flink's serializers (`MetadataV2V3SerializerBase`, `MetadataV2Serializer` to
`MetadataV6Serializer`, `ChannelStateHandleSerializerV1` and `V2`) from top to bottom.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Fact = tuple[Any, ...]


class NoMetadata(Exception):
    """Raised where no rule fits."""


class Tape:
    """Bytes that are taken from the front."""

    def __init__(self, data: bytes) -> None:
        self.rest = memoryview(data)

    def take(self, count: int) -> bytes:
        if not 0 <= count <= len(self.rest):
            raise NoMetadata(f"{count} bytes of {len(self.rest)}")
        found, self.rest = bytes(self.rest[:count]), self.rest[count:]
        return found

    def number(self, width: int) -> int:
        return int.from_bytes(self.take(width), "big", signed=True)

    def byte(self) -> int:
        return self.take(1)[0]

    def i32(self) -> int:
        return self.number(4)

    def i64(self) -> int:
        return self.number(8)

    def bool(self) -> bool:
        return bool(self.byte())

    def blob(self) -> bytes:
        return self.take(self.i32())

    def longs(self) -> tuple[int, ...]:
        return tuple(self.i64() for _ in self.times())

    def times(self) -> range:
        """Take a count; each of what is counted takes a byte at least, so that a false one ends with the bytes."""
        count = self.i32()
        if count < 0:
            raise NoMetadata("a count below 0")
        return range(count)

    def text(self) -> str:
        """Take a text of `DataOutputStream.writeUTF`, unit by unit, as `DataInputStream.readUTF` does."""
        raw = self.take(int.from_bytes(self.take(2), "big"))
        units: list[int] = []
        at = 0
        while at < len(raw):
            first = raw[at]
            if first < 0x80:
                units.append(first)
                at += 1
                continue
            more = 1 if first >> 5 == 0b110 else 2 if first >> 4 == 0b1110 else 0
            following = raw[at + 1 : at + 1 + more]
            if not more or len(following) < more or any(byte >> 6 != 0b10 for byte in following):
                raise NoMetadata("no modified UTF-8")
            unit = first & (0x1F if more == 1 else 0x0F)
            for byte in following:
                unit = unit << 6 | byte & 0x3F
            units.append(unit)
            at += 1 + more
        try:
            return b"".join(unit.to_bytes(2, "big") for unit in units).decode("utf-16-be")
        except UnicodeDecodeError:
            raise NoMetadata("half a surrogate pair") from None


def stream(tape: Tape) -> Fact | None:
    """StreamStateHandle: (kind, file, start, size), or None."""
    kind = tape.byte()
    if kind == 0:
        return None
    if kind == 1:
        tape.text()
        return ("inline", None, None, len(tape.blob()))
    if kind == 2:
        size = tape.i64()
        return ("absolute", tape.text(), 0, _file_size(size))
    if kind == 3:
        tape.i32()
        tape.longs()
        return stream(tape)
    if kind == 6:
        path = tape.text()
        return ("relative", path, 0, _file_size(tape.i64()))
    if kind == 15:
        start, size = _size(tape.i64()), _size(tape.i64())
        if tape.i32() not in (0, 1):
            raise NoMetadata("a scope")
        path = tape.text()
        tape.text()
        return ("segment", path, start, size)
    if kind == 16:
        return ("empty", None, None, 0)
    raise NoMetadata(f"a stream of kind {kind}")


def _file_size(number: int) -> int | None:
    """The size of a whole file; -1, which Flink's constructor allows, says that it is not known."""
    return None if number == -1 else _size(number)


def _size(number: int) -> int:
    if number < 0:
        raise NoMetadata("a size below 0")
    return number


def _told(part: str, found: Fact | None) -> Iterator[Fact]:
    if found is not None:
        yield ("handle", part, *found)


def operator_state(tape: Tape, part: str) -> Iterator[Fact]:
    """OperatorStateHandle, behind an integer that says whether there is one."""
    if not tape.i32():
        return
    kind = tape.byte()
    if kind == 0:
        return
    if kind not in (4, 17):
        raise NoMetadata(f"operator state of kind {kind}")
    for _ in tape.times():
        tape.text()
        if tape.byte() > 2:
            raise NoMetadata("a mode")
        tape.longs()
    if kind == 17:
        tape.text()
        tape.text()
        tape.bool()
    yield from _told(part, stream(tape))


def keyed_state(tape: Tape, part: str, depth: int = 0) -> Iterator[Fact]:
    """KeyedStateHandle."""
    if depth > 40:
        raise NoMetadata("nested too deep")
    kind = tape.byte()
    if kind == 0:
        return
    if kind in (3, 7, 12):
        tape.i32()
        tape.longs()
        found = stream(tape)
        if kind == 12:
            tape.text()
        yield from _told(part, found)
    elif kind in (5, 11):
        tape.i64()
        tape.text()
        tape.i32(), tape.i32()
        if kind == 11:
            tape.i64()
        yield from _told(part, stream(tape))
        for _ in range(2):
            for _ in tape.times():
                tape.text()
                yield from _told(part, stream(tape))
        if kind == 11:
            tape.text()
    elif kind in (8, 14):
        tape.i32(), tape.i32(), tape.i64()
        for _ in range(2):
            for _ in tape.times():
                yield from keyed_state(tape, part, depth + 1)
        tape.i64()
        if kind == 14:
            tape.i64()
        tape.text()
    elif kind == 9:
        tape.i32(), tape.i32(), tape.i64(), tape.i64()
        total = 0
        for _ in tape.times():
            tape.i32()
            total += len(tape.blob())
        tape.text()
        yield ("handle", part, "inline", None, None, total)
    elif kind in (10, 13):
        tape.i32(), tape.i32()
        for _ in tape.times():
            tape.i64()
            yield from _told(part, stream(tape))
        tape.i64(), tape.i64()
        tape.text()
        if kind == 13:
            tape.text()
    else:
        raise NoMetadata(f"keyed state of kind {kind}")


def channels(tape: Tape, side: str, version: int, subtask: int) -> Iterator[Fact]:
    """A list of handles of in-flight data; of each file the handle is told once, of each channel its bytes."""
    files: set[str | None] = set()
    for _ in tape.times():
        plain, merged = (1, 3) if side == "input" else (2, 4)
        kind = tape.byte() if version >= 6 else plain
        if kind not in (plain, merged) or tape.i32() != subtask:
            raise NoMetadata("channels of something else")
        place: tuple[int, ...] = ()
        if kind == plain:
            place = (tape.i32(), tape.i32())
            tape.longs()
        size = _size(tape.i64())
        found = stream(tape)
        if found is not None and (found[1] is None or found[1] not in files):
            files.add(found[1])
            yield ("handle", f"{side}-channel", *found[:3], size if found[1] is None else found[3])
        if kind == plain:
            yield ("channel", side, *place, size)
            continue
        inner = Tape(tape.blob())
        for _ in inner.times():
            gate, channel = inner.i32(), inner.i32()
            one = _size(inner.i64())
            inner.longs()
            yield ("channel", side, gate, channel, one)
        if inner.rest:
            raise NoMetadata("bytes behind merged channels")


def subtask(tape: Tape, version: int, parallelism: int) -> Iterator[Fact]:
    """OperatorSubtaskState, with its index before it."""
    index = tape.i32()
    if version >= 3 and index < 0:
        if -index - 1 >= parallelism:
            raise NoMetadata("a subtask that is none")
        yield ("finished", -index - 1)
        return
    if not 0 <= index < parallelism:
        raise NoMetadata("a subtask that is none")
    if version == 2:
        tape.i64()
        if tape.i32():
            raise NoMetadata("legacy state")
    yield ("subtask", index)
    yield from operator_state(tape, "managed-operator")
    yield from operator_state(tape, "raw-operator")
    yield from keyed_state(tape, "managed-keyed")
    yield from keyed_state(tape, "raw-keyed")
    if version >= 3:
        yield from channels(tape, "input", version, index)
        yield from channels(tape, "output", version, index)
    if version == 7 and tape.bool():
        yield ("reference", tape.i64())


def operator(tape: Tape, version: int) -> Iterator[Fact]:
    """OperatorState."""
    name, uid = (tape.text(), tape.text()) if version >= 5 else ("", "")
    yield ("operator", tape.take(16).hex(), name or None, uid or None)
    parallelism, most = tape.i32(), tape.i32()
    if not 0 < parallelism <= most:
        raise NoMetadata("a parallelism that cannot be")
    yield ("parallelism", parallelism, most)
    if version == 2:
        tape.i32()
    else:
        found = stream(tape)
        if found is not None and found[0] != "inline":
            raise NoMetadata("a coordinator's state in a file")
        yield from _told("coordinator", found)
    count = tape.i32()
    if count > parallelism or (count < 0 and version == 2):
        raise NoMetadata("more subtasks than there are")
    for _ in range(max(count, 0)):
        yield from subtask(tape, version, parallelism)


def facts_of(data: bytes) -> list[Fact]:
    """Return everything that a file tells; what stands behind the operators is properties, as a Java stream."""
    tape = Tape(data)
    if tape.take(4) != bytes.fromhex("4960672d"):
        raise NoMetadata("no metadata")
    version = tape.i32()
    if version not in range(2, 8):
        raise NoMetadata(f"version {version}")
    found: list[Fact] = [("snapshot", version, _size(tape.i64()))]
    for _ in tape.times():
        if tape.take(4) != bytes.fromhex("c96b1696"):
            raise NoMetadata("no master hook")
        inner = Tape(tape.blob())
        inner.i32()
        inner.text()
        found.append(("handle", "master", "inline", None, None, len(inner.blob())))
        if inner.rest:
            raise NoMetadata("bytes behind a master hook")
    for _ in tape.times():
        found += operator(tape, version)
    if version < 4 and tape.rest:
        raise NoMetadata("bytes behind the last operator")
    if version >= 4 and bytes(tape.rest[:4]) != bytes.fromhex("aced0005"):
        raise NoMetadata("no properties")
    return found
