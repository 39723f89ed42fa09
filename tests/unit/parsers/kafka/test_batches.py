"""Batches by the specification: what is written comes back, and what is no batch is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cklog.parsers.kafka.batches import header, records
from cklog.parsers.kafka.decode import decode
from cklog.parsers.kafka.payloads import BadBatch, decompress_payload
from tests.builders import kafka as kb
from tests.builders.kafka import Row, batch
from tests.examples import examples
from tests.reading.kafka import decoded

values = st.none() | st.binary(max_size=300)
rows = st.builds(
    Row,
    value=values,
    key=values,
    time=st.integers(-(2**40), 2**62),
    headers=st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), values), max_size=3),
)


@pytest.mark.parametrize("codec", kb.CODECS)
@given(base=st.integers(0, 2**60), written=st.lists(rows, min_size=1, max_size=20))
@settings(max_examples=examples(30))
def test_a_batch_decodes_to_what_was_written(codec: str, base: int, written: list[Row]) -> None:
    found = decoded(batch(base, written, codec))
    assert [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in found] == [
        (base + i, row.time, row.key, row.value, list(row.headers)) for i, row in enumerate(written)
    ]
    assert [r.size for r in found] == [len(kb.encoded(row, i, written[0].time)) for i, row in enumerate(written)]


def test_every_record_of_log_append_time_has_the_batch_s_time() -> None:
    data = batch(5, [Row(b"a", time=1), Row(b"b", time=2)], flags=kb.LOG_APPEND_TIME, max_time=99)
    assert [r.timestamp for r in decoded(data)] == [99, 99]


def test_compaction_leaves_holes_and_empty_batches() -> None:
    data = batch(5, [Row(b"a", delta=1), Row(b"b", delta=4)], last_delta=6)
    assert [r.offset for r in decoded(data)] == [6, 9]
    assert header(data).last == 11
    assert decoded(batch(5, [], last_delta=3)) == []


_BY_ITS_HEADER = "5 records in 2 offsets"
REFUSED = [
    (batch(0, [Row(b"a"), Row(b"b")], count=1), "bytes behind the last of 1 record"),
    (batch(0, [Row(b"a")], count=2, last_delta=1), "cut short"),
    (batch(0, [Row(b"a", delta=3)], last_delta=2), "offset 3 after -1"),
    (batch(0, [Row(b"a", delta=1), Row(b"b", delta=1)]), "offset 1 after 1"),
    (batch(0, [], count=1, payload=kb.varint(1 << 30)), "a record of 1073741824 bytes"),
    (batch(0, [], count=1, payload=b"\xff" * 9), "a number beyond 32 bits"),
    (batch(0, [], count=1, payload=b"\xff" * 4 + b"\x7f"), "a number beyond 32 bits"),
    (batch(0, [], count=1, payload=b"\xff"), "cut short"),
    (batch(0, [Row(b"a")], count=5, last_delta=1), _BY_ITS_HEADER),
    (batch(0, [Row(b"", time=2**63 - 1)], payload=kb.encoded(Row(b"", time=5), 0, 0)), "a timestamp of 9223372036"),
    (batch(0, [], count=1, payload=kb.varint(7) + b"\0\0\0\1\1\0?"), "ends 1 bytes from where"),
    (batch(0, [], count=1, payload=kb.varint(7) + b"\0\0\0\1\1\xfe\1"), "127 headers in 0 bytes"),
    (batch(0, [], count=1, flags=5, payload=b"x"), "compression codec 5"),
    (batch(0, [], count=1, codec="zstd", payload=b"x" * 20), "zstd"),
    (batch(0, [], count=1, codec="lz4", payload=kb.compressed(b"x" * 99, "lz4")[:-5]), "Truncated"),
    (batch(0, [], count=1, codec="snappy", payload=b"\xff\xff\xff\x7f" + b"x" * 9), "claims to hold"),
    (batch(0, [], count=1, codec="snappy", payload=b""), "does not begin with its length"),
    (batch(0, [], count=1, codec="xerial", payload=kb.compressed(b"x" * 99, "xerial")[:-1]), "snappy block of"),
]


@pytest.mark.parametrize(("data", "reason"), REFUSED)
def test_what_is_no_batch_is_refused_with_its_reason(data: bytes, reason: str) -> None:
    with pytest.raises(BadBatch, match=reason):
        decoded(data)


@pytest.mark.parametrize(("data", "reason"), [one for one in REFUSED if one[1] != _BY_ITS_HEADER])
def test_what_is_no_batch_is_refused_among_many_with_the_same_reason(data: bytes, reason: str) -> None:
    good = batch(90, [Row(b"v"), Row(b"w")])
    found = decode([(header(good), good), (header(data), data), (header(good), good)])
    assert [fault.batch for fault in found.faults] == [1]
    assert reason in found.faults[0].reason
    assert found.offset.tolist() == [90, 91, 90, 91]


@pytest.mark.parametrize("codec", kb.CODECS)
def test_a_payload_is_decompressed_up_to_its_limit_and_not_further(codec: str) -> None:
    packed = kb.compressed(bytes(1 << 22), codec)
    assert decompress_payload(kb.CODECS[codec], packed, 1 << 22) == bytes(1 << 22)
    if codec != "none":
        with pytest.raises(BadBatch, match="more than"):
            decompress_payload(kb.CODECS[codec], packed, (1 << 22) - 1)


@pytest.mark.parametrize("codec", kb.CODECS)
@given(st.data())
@settings(max_examples=examples(60))
def test_hostile_payloads_under_a_right_crc_raise_nothing_else(codec: str, data: st.DataObject) -> None:
    plain = b"".join(kb.encoded(Row(b"v" * 30, b"k", i, [("h", None)]), i, 0) for i in range(5))
    payload = bytearray(kb.compressed(plain, codec))
    for _ in range(data.draw(st.integers(1, 3))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    forged = batch(0, [], codec, count=5, last_delta=4, payload=bytes(payload))
    try:
        found = decoded(forged)
    except BadBatch:
        return
    assert [r.offset for r in found] == list(range(5))


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_batch_of_no_records_has_no_payload(codec: str) -> None:
    """Compaction leaves the header alone behind; a count that became 0 would hide records."""
    left, lied = batch(7, [], last_delta=3), batch(7, [Row(b"v"), Row(b"w")], codec, count=0)
    whole = decode([(header(left), left)] * 2)
    assert (whole.faults, len(whole.offset)) == ((), 0)
    with pytest.raises(BadBatch, match="behind the last of 0 records"):
        list(records(header(lied), lied))
    assert [fault.batch for fault in decode([(header(left), left), (header(lied), lied)]).faults] == [1]
