"""Kafka log segments written by the specification, independent of the reader: batches, indexes, whole folders."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import crc32c
import pyarrow as pa

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "xerial": 2, "lz4": 3, "zstd": 4}
LOG_APPEND_TIME, TRANSACTIONAL, CONTROL = 0x08, 0x10, 0x20
ABORT, COMMIT = 0, 1


@dataclass(frozen=True)
class Row:
    """A record to be written; `delta` is its offset in the batch, its place in the list unless given."""

    value: bytes | None
    key: bytes | None = None
    time: int = 0
    headers: Sequence[tuple[str, bytes | None]] = ()
    delta: int | None = None


def varint(number: int) -> bytes:
    raw = (number << 1) ^ (number >> 63)
    out = bytearray()
    while raw >= 0x80:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    return bytes([*out, raw])


def sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def encoded(row: Row, delta: int, base_time: int) -> bytes:
    body = b"\0" + varint(row.time - base_time) + varint(delta) + sized(row.key) + sized(row.value)
    body += varint(len(row.headers)) + b"".join(sized(name.encode()) + sized(held) for name, held in row.headers)
    return varint(len(body)) + body


def compressed(payload: bytes, codec: str) -> bytes:
    if codec == "none":
        return payload
    if codec == "snappy":
        return bytes(pa.Codec("snappy").compress(payload, asbytes=True))
    if codec == "xerial":
        pieces = [payload[i : i + 100] for i in range(0, len(payload), 100)]
        blocks = [bytes(pa.Codec("snappy").compress(piece, asbytes=True)) for piece in pieces]
        return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + b"".join(struct.pack(">i", len(b)) + b for b in blocks)
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(payload)
    return bytes(sink.getvalue())


def batch(
    base: int,
    rows: Sequence[Row],
    codec: str = "none",
    flags: int = 0,
    producer: int = -1,
    last_delta: int | None = None,
    max_time: int | None = None,
    payload: bytes | None = None,
    count: int | None = None,
    epoch: int = -1,
) -> bytes:
    """One batch; `payload` and `count` may lie. `epoch` is the producer's."""
    base_time = rows[0].time if rows else 0
    deltas = [i if row.delta is None else row.delta for i, row in enumerate(rows)]
    if payload is None:
        plain = b"".join(encoded(row, delta, base_time) for row, delta in zip(rows, deltas, strict=True))
        payload = compressed(plain, codec)
    checked = struct.pack(
        ">hiqqqhii",
        CODECS[codec] | flags,
        last_delta if last_delta is not None else max(deltas, default=0),
        base_time,
        max_time if max_time is not None else max((row.time for row in rows), default=-1),
        producer,
        epoch,
        -1,
        len(rows) if count is None else count,
    )
    checked += payload
    return struct.pack(">qiibI", base, 9 + len(checked), 0, 2, crc32c.crc32c(checked)) + checked


def marker(base: int, kind: int, producer: int, time: int = 0) -> bytes:
    row = Row(struct.pack(">hi", 0, 0), struct.pack(">hh", 0, kind), time)
    return batch(base, [row], flags=TRANSACTIONAL | CONTROL, producer=producer)


def cec(pos: int | None, ts: int, kind: str = "check", **more: object) -> Row:
    """A record of an output queue as a JSON value."""
    found = {"type": kind, "window": f"w{ts % 3}", "ts": ts, "open_windows": 1, "state": {"n": ts}} | more
    return Row(json.dumps(found | ({} if pos is None else {"pos": pos})).encode(), time=ts)


@dataclass
class Log:
    """A segment in the making: its bytes, and the index entries that a broker would write."""

    base: int = 0
    data: bytearray = field(default_factory=bytearray)
    index: list[tuple[int, int]] = field(default_factory=list)
    times: list[tuple[int, int]] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    interval: int = 4096
    since: int = 0
    newest: int = -1

    def add(self, written: bytes) -> None:
        base, last = struct.unpack_from(">q", written)[0], struct.unpack_from(">i", written, 23)[0]
        self.newest = max(self.newest, struct.unpack_from(">q", written, 35)[0])
        if self.since > self.interval:
            self.index.append((base + last - self.base, len(self.data)))
            self.times.append((self.newest, base + last - self.base))
            self.since = 0
        self.since += len(written)
        self.starts.append(len(self.data))
        self.data += written

    def write(self, folder: Path, padding: int = 0, indexed: bool = True) -> None:
        """The segment and its indexes, preallocated with `padding` entries of zeros."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.base:020}.log").write_bytes(self.data)
        if indexed:
            (folder / f"{self.base:020}.index").write_bytes(index_bytes(self.index, padding))
            (folder / f"{self.base:020}.timeindex").write_bytes(time_bytes(self.times, padding))


def index_bytes(entries: Sequence[tuple[int, int]], padding: int = 0) -> bytes:
    return b"".join(struct.pack(">ii", *entry) for entry in entries) + bytes(8 * padding)


def time_bytes(entries: Sequence[tuple[int, int]], padding: int = 0) -> bytes:
    return b"".join(struct.pack(">qi", *entry) for entry in entries) + bytes(12 * padding)


def message(offset: int, row: Row, magic: int, attributes: int = 0) -> bytes:
    """One message of format 0 or 1."""
    checked = struct.pack(">bb", magic, attributes) + (struct.pack(">q", row.time) if magic else b"")
    for held in (row.key, row.value):
        checked += struct.pack(">i", -1) if held is None else struct.pack(">i", len(held)) + held
    return struct.pack(">qiI", offset, 4 + len(checked), zlib.crc32(checked)) + checked


def messages(base: int, rows: Sequence[Row], magic: int, codec: str = "none", append_time: bool = False) -> bytes:
    """Messages from offset `base` on, one behind the other, or in a wrapper if there is a codec.

    Inside a wrapper offsets are relative in format 1. An lz4 frame of format 0 gets the checksum of old clients:
    one that is wrong.
    """
    flag = LOG_APPEND_TIME if append_time and magic else 0
    if codec == "none":
        return b"".join(message(base + i, row, magic, flag) for i, row in enumerate(rows))
    inside = b"".join(message(i if magic else base + i, row, magic) for i, row in enumerate(rows))
    packed = bytearray(compressed(inside, codec))
    if magic == 0 and codec == "lz4":
        packed[6 + (8 if packed[4] & 0x08 else 0)] ^= 0x55
    newest = max(row.time for row in rows)
    return message(base + len(rows) - 1, Row(bytes(packed), time=newest), magic, CODECS[codec] | flag)
