"""Little input that holds much: memory and time stay bounded, what was not read is said, and the rest is read."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from cklog.budgets import MARKER_BYTES, Budgets
from cklog.model.question import Question
from cklog.parsers.kafka import joined, legacy, payloads
from cklog.parsers.kafka.batches import header
from cklog.parsers.kafka.decode import decode, decode_parts
from cklog.parsers.kafka.payloads import BatchOverBudget, Budget
from tests.builders import kafka as kb
from tests.builders.kafka import CODECS, Row, batch
from tests.builders.kafka_broker import TopicLog, broker_files, commit_batch
from tests.measured import measured
from tests.program import cklog
from tests.reading.kafka_broker import log_of, logs_of


def bomb(base: int, size: int, codec: str = "zstd") -> bytes:
    """A batch of one record whose value is so many zeros: some 100 bytes for each MB."""
    return batch(base, [Row(bytes(size), b"k")], codec=codec)


def commits(folder: Path, *batches: bytes) -> Path:
    """A log of committed offsets."""
    partition = folder / "__consumer_offsets-0"
    partition.mkdir()
    (partition / f"{0:020}.log").write_bytes(b"".join(batches))
    broker_files(folder)
    return folder


@pytest.mark.slow
@pytest.mark.quarter
@pytest.mark.parametrize("codec", ["gzip", "lz4", "snappy", "xerial", "zstd"])
def test_44_kb_that_hold_1_gb_take_neither_a_gb_nor_the_answer(tmp_path: Path, codec: str) -> None:
    """Decompressed together these batches took 4.4 GB. LZ4 and Snappy make no more of a byte than may be."""
    one = bytearray(bomb(0, 20 << 20, codec))
    within = codec in ("lz4", "snappy", "xerial")
    bombs = []
    for i in range(10 if within else 60):
        struct.pack_into(">q", one, 0, i + 1)  # no CRC covers it
        bombs.append(bytes(one))
    commits(tmp_path, commit_batch(0, [("g", "t", 0, 7)]), *bombs)
    ended = measured("recovery-line", tmp_path)
    assert ("error [over-budget]" in ended.out) == (not within)
    assert within or ended.code == 5
    assert "g " in ended.out  # the commit before them is read
    assert ended.peak < 600


def test_what_is_over_budget_is_a_bound_and_refused_where_damage_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payloads, "inflated_of", lambda packed: 4 * packed)
    late = commit_batch(2, [("late", "t", 0, 8)])
    commits(tmp_path, commit_batch(0, [("early", "t", 0, 7)]), bomb(1, 1 << 20), late)
    answer = log_of(tmp_path).recovery_line(Question())
    assert (answer.verdict, answer.exit_code) == ("indeterminate", 5)
    assert [f.id for f in answer.findings if f.severity == "error"] == ["over-budget"]
    assert {row["group"] for row in answer.result.details["groups"]} == {"early", "late"}
    assert cklog("recovery-line", tmp_path, "--strict").code == 65


@pytest.mark.parametrize("limit", ["PART_BYTES", "PART_RECORDS"])
@pytest.mark.parametrize("most", [1, 5, 60, 1 << 20])
def test_parts_are_the_whole(monkeypatch: pytest.MonkeyPatch, limit: str, most: int) -> None:
    codecs = ["none", *sorted(set(CODECS) - {"none"})]
    made = [
        batch(10 * i, [Row(b"value %d" % k * i, b"key") for k in range(i % 4)], codec=codecs[i % len(codecs)])
        for i in range(40)
    ]
    made[7:7] = [kb.messages(100, [Row(b"old"), Row(b"older")], 1, "gzip")]
    pairs = [(legacy.header(one) if one[16] == 1 else header(one), one) for one in made]
    whole = rows(decode(pairs).to_table().to_pylist(), 0)
    monkeypatch.setattr(joined, limit, most)
    parts = list(decode_parts(pairs, Budget.of_split(0)))
    assert [part.start for part in parts[1:]] == [part.end for part in parts[:-1]]
    assert [row for part in parts for row in rows(part.records.to_table().to_pylist(), part.start)] == whole
    if most == 1:
        assert len(parts) > 20
    for part in parts[:-1]:  # each ends behind the first batch with which it is too large
        held = part.records
        before = held.batch < part.end - part.start - 1
        assert (before.sum() if limit == "PART_RECORDS" else held.value_length[before].sum()) < most


def rows(found: list[dict[str, Any]], first: int) -> list[dict[str, Any]]:
    return [row | {"batch": row["batch"] + first} for row in found]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "xerial", "lz4", "zstd"])
def test_a_budget_is_spent_by_what_was_decompressed_in_vain(codec: str) -> None:
    packed = kb.compressed(bytes(1000), codec)
    budget = Budget(1500)
    assert budget.payload(CODECS[codec], packed) == bytes(1000)
    for _ in range(2):
        with pytest.raises(BatchOverBudget):
            budget.payload(CODECS[codec], packed)
    assert Budget(1000).payload(CODECS[codec], packed) == bytes(1000)
    with pytest.raises(BatchOverBudget):
        Budget(999).payload(CODECS[codec], packed)


def test_a_batch_of_more_records_than_any_broker_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payloads, "budgets", lambda: Budgets(3 * 4096))
    few, many = (batch(0, [Row(b"v")] * n) for n in (3, 4))
    (part,) = decode_parts([(header(few), few), (header(many), many)], Budget.of_split(100))
    assert [(fault.batch, fault.id) for fault in part.records.faults] == [(1, "over-budget")]
    assert len(part.records.offset) == 3


def test_a_marker_is_small(tmp_path: Path) -> None:
    """What a control batch holds is read with its header, in every answer."""
    log = TopicLog()
    log.data(3, producer=5)
    flags = kb.TRANSACTIONAL | kb.CONTROL
    packed = kb.compressed(kb.encoded(Row(bytes(MARKER_BYTES), struct.pack(">hh", 0, 1)), 0, 0), "zstd")
    made = batch(3, [], flags=flags | CODECS["zstd"], producer=5, payload=packed, count=1)
    log.add(made, [3], 4, "control", 5)
    log.write(tmp_path / "t-0")
    p = logs_of(tmp_path).partitions()["t-0"]
    assert [(item.id, item.offset) for item in p.damage] == [("bad-record", log.sizes[0, 0])]
    assert "more than" in p.damage[0].detail
    assert (p.restart_end, p.last_stable) == (4, 0)


def test_old_messages_that_hold_much_cut_no_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrappers of formats 0 and 1 are decompressed for their offsets; one that is not read ends nothing."""
    (tmp_path / "t-0").mkdir()
    first, last = (kb.messages(base, [Row(b"v"), Row(b"w")], 1, "gzip") for base in (0, 4))
    large = kb.messages(2, [Row(bytes(1 << 16)), Row(b"w")], 1, "gzip")
    (tmp_path / "t-0" / f"{0:020}.log").write_bytes(first + large + last)
    broker_files(tmp_path, replication={"t-0": 6})
    assert logs_of(tmp_path).partitions()["t-0"].records == 6
    monkeypatch.setattr(payloads, "budgets", lambda: Budgets(32 << 15))
    p = logs_of(tmp_path).partitions()["t-0"]
    assert [(item.id, item.offset) for item in p.damage] == [("over-budget", len(first))]
    assert (p.records, p.log_end, p.restart_end, p.cut) == (4, 6, 6, None)
    assert log_of(tmp_path).recovery_line(Question()).exit_code == 5
