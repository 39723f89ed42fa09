"""Kafka's record batches, and messages of formats 0 and 1, against kafka-python and aiokafka."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import crc32c
from aiokafka.record.default_records import DefaultRecordBatch as OtherBatch
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.legacy_records import LegacyRecordBatch
from kafka.record.util import decode_varint

from cklog.parsers.kafka import batches, legacy
from cklog.parsers.kafka.decode import decode
from cklog.parsers.kafka.payloads import BadBatch, BatchOverBudget
from tests.builders.kafka import CODECS, CONTROL, LOG_APPEND_TIME, Row, batch, compressed, encoded, message, messages
from tests.differential.mutations import Damage
from tests.differential.verdicts import Decoder, Excuse, Outcome

_ALONGSIDE = 33
"""So many batches are decoded at once: from 32 on their records are followed side by side."""


def _made_batch(damage: Damage, plain_share: float = 0.0) -> bytes:
    chance = damage.chance
    count = chance.choice((0, 1, 1, 2, 3, 8, 40))
    time = chance.choice((0, 1_700_000_000_000, -5))
    deltas = sorted(chance.sample(range(2 * count), count)) if chance.random() < 0.3 else [*range(count)]
    rows = [_made_row(damage, time, delta) for delta in deltas]
    flags = chance.choice((0, 0, LOG_APPEND_TIME, 0x10, 0x18, 0x40, CONTROL))
    if flags == CONTROL:
        rows = [Row(struct.pack(">hi", 0, 3), struct.pack(">hh", 0, chance.choice((0, 1, 2, 5))), time, (), 0)]
        deltas, count = [0], 1
    plain = b"".join(encoded(row, row.delta or 0, rows[0].time) for row in rows)
    codec = "none" if not count or chance.random() < plain_share else chance.choice([*CODECS])
    payload = damage.inside(compressed(damage.inside(plain), codec)) if count else b""
    return batch(
        chance.choice((0, 7, 1 << 40)),
        rows,
        codec,
        flags,
        producer=chance.choice((-1, 5)),
        last_delta=max(deltas, default=0) + chance.choice((0, 0, 3)),
        payload=payload,
    )


def _made_row(damage: Damage, time: int, delta: int) -> Row:
    chance = damage.chance
    held = [None if chance.random() < 0.1 else chance.randbytes(chance.choice((0, 1, 5, 30, 130))) for _ in range(2)]
    headers = [
        (chance.choice(("", "h", "naïve", "x" * 70)), None if chance.random() < 0.2 else chance.randbytes(3))
        for _ in range(chance.choice((0, 0, 0, 1, 2, 5)))
    ]
    return Row(held[0], held[1], time + chance.choice((0, 1, -1, 70, 90_000)), headers, delta)


def _summed_batch(data: bytes) -> bytes:
    """Return a batch whose length and CRC are those of its bytes."""
    if len(data) < batches.CHECKED_FROM:
        return data
    crc = struct.pack(">I", crc32c.crc32c(data[batches.CHECKED_FROM :]))
    return data[:8] + struct.pack(">i", len(data) - 12) + data[12:17] + crc + data[21:]


def _head(head: batches.Header) -> tuple[Any, ...]:
    return (head.base, head.last, head.codec, head.producer, head.max_time, head.transactional, head.control)


def _read_batch(data: bytes) -> Outcome:
    try:
        head = batches.header(data)
        batches.verify(head, data)
        rows = [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in batches.records(head, data)]
        if head.control:
            batches.marker(head, data)
    except BatchOverBudget as reason:
        return Outcome("limit", why=str(reason))
    except BadBatch as reason:
        return Outcome("refused", why=str(reason))
    return Outcome("value", (_head(head), rows))


def _read_together(data: bytes) -> Outcome:
    """Decode a batch among others like it, all at once; every one of them must come out the same."""
    try:
        head = batches.header(data)
        batches.verify(head, data)
        if head.control:
            batches.marker(head, data)
    except BadBatch as reason:
        return Outcome("refused", why=str(reason))
    found = decode([(head, data)] * _ALONGSIDE)
    if found.faults:
        assert [fault.batch for fault in found.faults] == [*range(_ALONGSIDE)], "one of several like it is refused"
        fault = found.faults[0]
        return Outcome("limit" if fault.id == BatchOverBudget.id else "refused", why=fault.reason)
    table = found.to_table()
    columns = [table.column(name).to_pylist() for name in ("offset", "timestamp", "key", "value")]
    rows = [(*row, found.headers_of(i)) for i, row in enumerate(zip(*columns, strict=True))]
    size = len(rows) // _ALONGSIDE
    assert rows == rows[:size] * _ALONGSIDE, "one of several like it has other records"
    return Outcome("value", (_head(head), rows[:size]))


def _refer_batch(made: Callable[[bytes], Any], data: bytes) -> Outcome:
    try:
        found = made(data)
        size = struct.unpack_from(">i", data, 8)[0] + 12  # what hands batches to the libraries cuts them so
        if found.magic != 2 or size != len(data) or not found.validate_crc():
            return Outcome("refused", why="magic, size or CRC")
        head = (
            found.base_offset,
            found.next_offset - 1,
            found.compression_type,
            found.producer_id,
            found.max_timestamp,
            found.is_transactional,
            found.is_control_batch,
        )
        rows = [(r.offset, r.timestamp, r.key, r.value, tuple((n, v) for n, v in r.headers)) for r in found]
    except Exception as error:  # these libraries have no one kind of error
        return Outcome("refused", why=f"{type(error).__name__}: {error}")
    return Outcome("value", (head, rows))


def _made_other(data: bytes) -> Any:
    if len(data) < batches.HEADER.size:
        raise ValueError("no header")  # this library reads behind the end
    return OtherBatch(data)


def _long_attributes(data: bytes, ours: Outcome, theirs: Outcome) -> bool:
    """Return whether a record has attributes of 128 and more, one byte by the protocol."""
    try:
        found = DefaultRecordBatch(data)
        found._maybe_uncompress()
        held, at = found._buffer, found._pos
        for _ in range(found.records_count):
            length, at = decode_varint(held, at)
            if held[at] >= 0x80:
                return True
            at += length
    except Exception:
        return False
    return False


_ATTRIBUTES = Excuse(
    "attributes as a varint",
    "a record's attributes are one byte (DefaultRecord.java); the library reads a varint there",
    _long_attributes,
)


_EMPTY = Excuse(
    "a codec and no records",
    "a batch without records and without a payload has nothing to decompress (DefaultRecordBatch.iterator does not)",
    lambda data, ours, theirs: len(data) == batches.HEADER.size and ours.value[1] == [],
)
_LONG_MARKER = Excuse(
    "a marker of more than four bytes",
    "ControlRecordType.parse reads a version and a type, and lets newer versions have more; the library wants four",
    lambda data, ours, theirs: ours.value[0][-1] and len(ours.value[1][0][2]) > 4 and "buffer of 4 bytes" in theirs.why,
)

_XERIAL = Excuse(
    "version numbers of a Snappy frame",
    "Redpanda writes them in another order of bytes, and kafka-python ignores them (its issue 2414)",
    lambda data, ours, theirs: (
        data[61:69] == b"\x82SNAPPY\0" and data[69:77] != struct.pack(">ii", 1, 1) and "snappy" in theirs.why
    ),
)


def _made_messages(damage: Damage) -> bytes:
    chance = damage.chance
    magic, count = chance.choice((0, 1)), chance.choice((1, 1, 2, 5))
    codec = chance.choice(("none", "none", "gzip", "snappy", "xerial", "lz4"))
    rows = [Row(r.value, r.key, abs(r.time)) for r in (_made_row(damage, 1000, 0) for _ in range(count))]
    base = chance.choice((0, 3, 1 << 35))
    append_time = chance.random() < 0.3
    if codec == "none":
        return messages(base, rows[:1], magic, append_time=append_time)
    if damage.kind != "inside":
        return messages(base, rows, magic, codec, append_time)
    inside = b"".join(message(i if magic else base + i, row, magic) for i, row in enumerate(rows))
    packed = damage.inside(compressed(damage.inside(inside), codec))
    if magic == 0 and codec == "lz4" and len(packed) > 14:
        at = 6 + (8 if packed[4] & 0x08 else 0)
        packed = packed[:at] + bytes([packed[at] ^ 0x55]) + packed[at + 1 :]
    flag = LOG_APPEND_TIME if append_time and magic else 0
    return message(base + count - 1, Row(packed, time=1000), magic, CODECS[codec] | flag)


def _summed_message(data: bytes) -> bytes:
    """Return a message whose size and CRC are those of its bytes."""
    if len(data) < 16:
        return data
    return data[:8] + struct.pack(">iI", len(data) - 12, zlib.crc32(data[16:])) + data[16:]


def _read_message(data: bytes) -> Outcome:
    try:
        if legacy.size(data) != len(data):
            return Outcome("refused", why="its size is not that of its bytes")
        legacy.verify(data)
        head = legacy.header(data)
        rows = [(r.offset, r.timestamp, r.key, r.value) for r in legacy.records(head, data)]
    except BatchOverBudget as reason:
        return Outcome("limit", why=str(reason))
    except BadBatch as reason:
        return Outcome("refused", why=str(reason))
    return Outcome("value", (head.codec, head.last, rows))


def _refer_message(data: bytes) -> Outcome:
    try:
        magic = data[16]
        if magic not in (0, 1):
            return Outcome("refused", why="magic")
        found = LegacyRecordBatch(data, magic)
        if not found.validate_crc():
            return Outcome("refused", why="CRC")
        last = found.base_offset  # of a wrapper that of its last message
        rows = [(r.offset, -1 if r.timestamp is None else r.timestamp, r.key, r.value) for r in found]
        return Outcome("value", (found.compression_type, last, rows))
    except Exception as error:  # as above
        return Outcome("refused", why=f"{type(error).__name__}: {error}")


DECODERS = (
    Decoder(
        name="kafka-batches",
        reference="kafka-python",
        make=_made_batch,
        read=_read_batch,
        refer=partial(_refer_batch, DefaultRecordBatch),
        repair=_summed_batch,
        excuses=(_ATTRIBUTES, _EMPTY, _LONG_MARKER),
    ),
    Decoder(
        name="kafka-batches-at-once",
        reference="aiokafka",
        make=partial(_made_batch, plain_share=0.9),
        read=_read_together,
        refer=partial(_refer_batch, _made_other),
        repair=_summed_batch,
        excuses=(_ATTRIBUTES, _EMPTY, _LONG_MARKER, _XERIAL),
    ),
    Decoder(
        name="kafka-messages",
        reference="kafka-python",
        make=_made_messages,
        read=_read_message,
        refer=_refer_message,
        repair=_summed_message,
    ),
)
