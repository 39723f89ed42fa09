"""What a real broker and other encoders wrote, beside what Kafka's own tool prints of it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from cklog.engine.scan import Damage
from cklog.parsers.kafka.batches import records
from cklog.parsers.kafka.segment import Segment, segments, walk
from cklog.storage import Root
from tests.reading.kafka import ids, scan, told
from tests.reading.kafka_dump import dumped


@pytest.fixture(scope="module")
def broker(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a broker that was killed."""
    folder = tmp_path_factory.mktemp("broker")
    subprocess.run(["tar", "-xzSf", str(shared_data / "kafka" / "broker-crash.tar.gz"), "-C", str(folder)], check=True)
    return folder / "crash"


def read_back(folder: Path) -> list[tuple[Any, ...]]:
    """The same by our reader; CRCs are verified by the walk."""
    root = Root(str(folder))
    found: list[tuple[Any, ...]] = []
    for entry in segments(root.list()):
        found.append(("file", entry.path))
        with Segment(root.uri(entry.path), entry.path, entry.size) as segment:
            for one in walk(segment, 0, entry.size):
                assert not isinstance(one, Damage)
                at, h = one
                flags = (h.transactional, h.control)
                found.append(
                    ("batch", h.base, h.last, h.count, h.producer, *flags, at, h.max_time, h.size, h.codec, h.crc)
                )
                for r in records(h, segment.bytes(at, h.size)):
                    sizes = [-1 if x is None else len(x) for x in (r.key, r.value)]
                    names = ",".join(name for name, _ in r.headers)
                    key, value = (h.control or r.key or b"", h.control or r.value or b"")
                    found.append(("record", r.offset, r.timestamp, *sizes, names, key, value))
    return found


@pytest.mark.parametrize("topic", ["none", "gzip", "snappy", "lz4", "zstd", "txn", "lat", "compact"])
def test_a_real_log_reads_as_kafka_s_own_tool_prints_it(shared_data: Path, broker: Path, topic: str) -> None:
    name = f"ck-{topic}-0"
    printed = dumped(shared_data / "kafka" / "dump-log" / f"{name}.dump.txt.gz")
    assert sum(x[0] == "record" for x in printed) >= 20
    assert read_back(broker / name) == printed


@pytest.mark.parametrize("topic", ["none-0", "none-1", "gzip-0", "lz4-1", "compact-0", "txn-0"])
def test_a_killed_broker_s_indexes_agree_with_its_log(broker: Path, topic: str) -> None:
    assert told(broker / f"ck-{topic}") == []


def test_the_open_transaction_of_the_killed_broker_is_found(broker: Path) -> None:
    found, damage = scan(broker / "ck-txn-0")
    opened = [d for d in damage if d.id == "open-transaction"]
    assert [(d.offset, d.count) for d in opened] == [(3798, 4)]
    control = [row["pos"] for row in found]
    aborted = {2, 16, 33, 34, 35, 49, 50, 51, 52, 53, 54}
    assert aborted <= set(control)
    bad = {int(d.detail.split()[2][:-1]) for d in damage if d.id == "bad-record"}
    assert sorted(bad | set(control)) == list(range(55))  # tuples of that topic are no output records
    assert {0, 1, 36} <= bad


@pytest.mark.parametrize(
    ("name", "batches", "expected"),
    [
        ("bad_crc_middle-0", 5, [("corrupt-batch", 722, 10)]),
        ("torn_mid_batch-0", 5, [("torn-tail", 1805, 1)]),
        ("zero_tail-0", 6, [("torn-tail", 2166, 1)]),
        ("compacted-0", 2, [("offset-jump", 151, 92)]),
        ("codec_gzip-0", 40, []),
        ("codec_none-0", 40, []),
        ("codec_zstd-0", 40, []),
        ("txn-0", 8, []),
        ("legacy_v0_gzip-0", 0, [("unknown-version", 0, 1)]),
    ],
)
def test_segments_of_kafka_python(
    shared_data: Path, name: str, batches: int, expected: list[tuple[str, int, int]]
) -> None:
    root = Root(str(shared_data / "kafka" / "segments" / name))
    (entry,) = segments(root.list())
    with Segment(root.uri(entry.path), entry.path, entry.size) as segment:
        found = list(walk(segment, 0, entry.size))
        good = [one for one in found if not isinstance(one, Damage)]
        assert len(good) == batches
        for at, head in good:
            assert len(list(records(head, segment.bytes(at, head.size)))) == head.count
    assert ids([one for one in found if isinstance(one, Damage)]) == expected


def test_every_message_of_an_old_segment_is_counted(shared_data: Path) -> None:
    _, damage = scan(shared_data / "kafka" / "segments" / "legacy_v1_none-0")
    assert {d.id for d in damage} == {"unknown-version"}
    assert len(damage) == 25
