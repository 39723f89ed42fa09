"""Messages of formats 0 and 1: alone and wrapped, offsets absolute and relative, and what is none."""

from __future__ import annotations

import struct

import pytest

from cklog.parsers.codecs.xxhash32 import xxh32
from cklog.parsers.kafka.batches import KafkaRecord
from cklog.parsers.kafka.legacy import header, places, records, size, verify
from cklog.parsers.kafka.payloads import BadBatch
from tests.builders import kafka as kb
from tests.builders.kafka import Row, message, messages

ROWS = [Row(b"a", b"k", 50), Row(None, b"", 70), Row(b"", None, 60)]
CODECS = ["gzip", "snappy", "xerial", "lz4"]


def read(data: bytes) -> list[KafkaRecord]:
    verify(data)
    return list(records(header(data), data))


def held(found: list[KafkaRecord]) -> list[tuple[int, int, bytes | None, bytes | None]]:
    return [(r.offset, r.timestamp, r.key, r.value) for r in found]


@pytest.mark.parametrize(("magic", "time", "front"), [(0, -1, 26), (1, 50, 34)])
def test_a_message_alone(magic: int, time: int, front: int) -> None:
    data = message(7, ROWS[0], magic)
    assert read(data) == [KafkaRecord(7, time, b"k", b"a", (), front + 2)]
    head = header(data)
    assert (head.base, head.last, head.count, head.size, head.magic) == (7, 7, 1, front + 2, magic)
    assert (head.base_time, head.max_time, head.producer, head.leader_epoch) == (time, time, -1, -1)


def test_the_smallest_message() -> None:
    data = message(0, Row(None), 0)
    assert len(data) == 26
    assert held(read(data)) == [(0, -1, None, None)]


@pytest.mark.parametrize("codec", CODECS)
def test_offsets_in_a_wrapper_of_format_0_are_absolute(codec: str) -> None:
    data = messages(100, ROWS, 0, codec)
    head = header(data)
    assert (head.base, head.last, head.count, head.codec) == (100, 102, 3, kb.CODECS[codec])
    assert held(read(data)) == [(100, -1, b"k", b"a"), (101, -1, b"", None), (102, -1, None, b"")]


@pytest.mark.parametrize("codec", CODECS)
def test_offsets_in_a_wrapper_of_format_1_are_relative(codec: str) -> None:
    data = messages(100, ROWS, 1, codec)
    head = header(data)
    assert (head.base, head.last, head.count, head.base_time, head.max_time) == (100, 102, 3, 50, 70)
    assert held(read(data)) == [(100, 50, b"k", b"a"), (101, 70, b"", None), (102, 60, None, b"")]


def test_a_compacted_wrapper_of_format_1_counts_from_its_last_message() -> None:
    inside = message(2, ROWS[0], 1) + message(7, ROWS[1], 1)
    data = message(1007, Row(kb.compressed(inside, "gzip"), time=70), 1, 1)
    assert [r.offset for r in read(data)] == [1002, 1007]
    assert (header(data).base, header(data).count) == (1002, 2)


def test_a_wrapper_of_the_broker_s_time_gives_it_to_all() -> None:
    data = messages(0, ROWS, 1, "gzip", append_time=True)
    assert [r.timestamp for r in read(data)] == [70, 70, 70]
    assert header(data).log_append_time


def test_messages_inside_without_values_have_their_own_sizes() -> None:
    assert [r.size for r in read(messages(0, ROWS, 0, "gzip"))] == [len(message(0, row, 0)) for row in ROWS]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (message(0, ROWS[0], 0)[:17], "a message needs 18 bytes, there are 17"),
        (message(0, ROWS[0], 0)[:-1], "the message needs 28 bytes, there are 27"),
        (kb.batch(0, [Row(b"v")]), "magic is 2, not 0 or 1"),
        (message(-5, ROWS[0], 0), "offset -5"),
        (struct.pack(">qiIbb", 0, 13, 0, 0, 0) + bytes(12), "a message of 25 bytes"),
        (struct.pack(">qiIbb", 0, 21, 0, 1, 0) + bytes(15), "a message of 33 bytes"),
        (message(0, ROWS[0], 0)[:18] + b"\x7f" + message(0, ROWS[0], 0)[19:], "a field of 2130706433 bytes"),
        (message(0, ROWS[0], 0)[:18] + b"\xff" * 3 + b"\xfe" + bytes(6), "a field of -2 bytes"),
        (message(0, Row(b"no gzip"), 1, 1), "gzip: "),
        (message(0, Row(None), 1, 1), "a wrapper around nothing"),
        (message(0, Row(b"x"), 1, 4), "compression codec 4"),
        (message(9, Row(kb.compressed(b"", "gzip")), 1, 1), "a message needs 18 bytes, there are 0"),
        (message(9, Row(kb.compressed(message(0, ROWS[0], 0), "gzip")), 1, 1), "a message of format 0, codec 0 inside"),
        (message(9, Row(kb.compressed(message(0, ROWS[0], 1, 2), "gzip")), 1, 1), "a message of format 1, codec 2"),
        (message(9, Row(kb.compressed(message(4, ROWS[0], 1) * 2, "gzip")), 1, 1), "offset 4 after 4 inside a wrapper"),
        (message(9, Row(kb.compressed(message(0, ROWS[0], 1) + b"x", "gzip")), 1, 1), "a message needs 18 bytes"),
        (messages(0, ROWS, 1, "gzip")[:7] + b"\x01" + messages(0, ROWS, 1, "gzip")[8:], "offsets up to 2 inside"),
        (message(3, Row(kb.compressed(message(9, ROWS[0], 0), "gzip")), 0, 1), "offsets up to 9 inside"),
        (message(1 << 40, Row(kb.compressed(message(9, ROWS[0], 0), "gzip")), 0, 1), "offsets up to 9 inside"),
    ],
)
def test_what_is_no_message(data: bytes, why: str) -> None:
    with pytest.raises(BadBatch, match=why):
        header(data)


def test_a_message_that_its_fields_do_not_fill() -> None:
    data = bytearray(message(0, ROWS[0], 0) + b"xyz")
    struct.pack_into(">i", data, 8, len(data) - 12)
    with pytest.raises(BadBatch, match="ends 3 bytes before its size says"):
        header(bytes(data))


def test_bytes_that_do_not_match_their_crc() -> None:
    data = message(0, ROWS[0], 1)
    with pytest.raises(BadBatch, match="the message's bytes give"):
        verify(data[:-1] + b"?")


def test_the_size_of_a_message_in_the_midst() -> None:
    assert size(b"xyz" + message(5, ROWS[0], 1), 3) == 36


@pytest.mark.parametrize("length", range(16))
def test_the_hash_of_lz4_descriptors(length: int) -> None:
    xxhash = pytest.importorskip("xxhash", reason="xxhash is not installed")
    data = bytes(range(250, 250 - length, -1))
    assert xxh32([data])[0] == xxhash.xxh32(data).intdigest()


def test_every_message_is_among_the_places_where_one_may_begin() -> None:
    np = pytest.importorskip("numpy")
    noise = bytes(range(1, 256)) * 3
    made = [message(5, ROWS[0], 0), message(1 << 40, Row(b"x" * 70_000), 1), messages(0, ROWS, 1, "gzip")]
    data, starts = noise, []
    for one in made:
        starts.append(len(data))
        data += one + noise
    assert set(starts) <= set(places(np.frombuffer(data, np.uint8)).tolist())
    assert len(places(np.frombuffer(noise, np.uint8))) == 0
    assert len(places(np.zeros(17, np.uint8))) == 0


@pytest.mark.parametrize(("inside", "fits"), [(0, True), (3, True), (4, False)])
def test_offsets_inside_a_wrapper_are_not_beyond_its_own(inside: int, fits: bool) -> None:
    """In format 1 they are relative, and a consumer takes those beyond the wrapper's own as they are."""
    packed = kb.compressed(message(inside, Row(b"v", time=5), 1), "gzip")
    wrapper = message(3, Row(packed, time=5), 1, kb.CODECS["gzip"])
    if not fits:
        with pytest.raises(BadBatch, match="offsets up to 4 inside a message with offset 3"):
            header(wrapper)
        return
    assert [record.offset for record in records(header(wrapper), wrapper)] == [3]
