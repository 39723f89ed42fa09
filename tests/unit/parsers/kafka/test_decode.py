"""Records of many batches as arrays: what they are, batches that do not decode, segments, and real files."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from cklog.engine.scan import Damage, Split
from cklog.parsers.kafka import groups as kafka_groups
from cklog.parsers.kafka.batches import header
from cklog.parsers.kafka.decode import decode
from cklog.parsers.kafka.groups import SegmentPart, read_records
from cklog.parsers.kafka.joined import Fault
from tests.builders import kafka as kb
from tests.builders.kafka import Row, batch
from tests.reading.kafka_dump import dumped


def test_records_keep_their_places() -> None:
    made = [
        batch(10, [Row(b"value", b"key", 5), Row(None, b"", 900, (("h", b"x"),), delta=6)]),
        batch(30, [], last_delta=4),
        batch(40, [Row(b"", None, 7), Row(b"w", None, 8)], "gzip", kb.LOG_APPEND_TIME, max_time=99),
    ]
    found = decode([(header(one), one) for one in made])
    assert found.faults == ()
    assert found.batch.tolist() == [0, 0, 2, 2]
    assert found.offset.tolist() == [10, 16, 40, 41]
    assert found.timestamp.tolist() == [5, 900, 99, 99]
    assert found.key_length.tolist() == [3, 0, -1, -1]
    assert found.value_length.tolist() == [5, -1, 0, 1]
    assert found.headers.tolist() == [0, 1, 0, 0]
    assert found.headers_of(1) == (("h", b"x"),)
    key, value = int(found.key[0]), int(found.value[0])
    assert (found.data[key : key + 3], found.data[value : value + 5]) == (b"key", b"value")
    table = found.to_table()
    assert table["key"].to_pylist() == [b"key", b"", None, None]
    assert table["value"].to_pylist() == [b"value", None, b"", b"w"]


def test_nothing_gives_nothing() -> None:
    assert decode([]).to_table().num_rows == 0
    empty = batch(5, [], last_delta=3)
    assert decode([(header(empty), memoryview(empty))]).to_table().num_rows == 0


def test_a_batch_that_does_not_decode_is_a_fault_and_the_rest_stays() -> None:
    good = [batch(i * 10, [Row(b"v%d" % i), Row(b"w")]) for i in range(5)]
    lying = batch(0, [Row(b"v"), Row(b"w")], count=3, last_delta=2)
    packed = batch(0, [Row(b"v")], "zstd", payload=b"no zstd")
    unknown = batch(0, [Row(b"v")], flags=5)
    backwards = batch(0, [Row(b"v", delta=1), Row(b"w", delta=1)])
    made = [good[0], lying, good[1], packed, unknown, good[2], backwards]
    found = decode([(header(one), one) for one in made])
    assert found.batch.tolist() == [0, 0, 2, 2, 5, 5]
    assert found.offset.tolist() == [0, 1, 10, 11, 20, 21]
    assert [fault.batch for fault in found.faults] == [1, 3, 4, 6]
    assert found.faults[0] == Fault(1, "a number that is cut short")
    assert found.faults[2] == Fault(4, "compression codec 5, known are 0 to 4", "unknown-version")
    assert found.faults[3] == Fault(6, "offset 1 after 1 in a batch up to 1")


def test_a_segment_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_groups, "PART_BATCHES", 3)
    path = tmp_path / f"{0:020}.log"
    made = [batch(2 * i, [Row(b"v" * i), Row(None)]) for i in range(10)]
    made[4] = batch(8, [], payload=b"\x02\0", count=1, last_delta=1)
    made[7] = made[7].replace(b"vvv", b"???")
    path.write_bytes(b"".join(made))
    size = path.stat().st_size
    found = list(read_records(Split(str(path), path.name, "", 0, size, size)))
    parts = [part for part in found if isinstance(part, SegmentPart)]
    assert [offset for part in parts for offset in part.records.offset] == [*range(8), *range(10, 14), *range(16, 20)]
    assert max(len(part.heads) for part in parts) == 3
    starts = np.cumsum([0, *map(len, made)]).tolist()
    damage = [(d.id, d.offset, d.count) for d in found if isinstance(d, Damage)]
    assert sorted(damage) == [("corrupt-batch", starts[4], 1), ("corrupt-batch", starts[7], 2)]
    for part in parts:
        assert [struct.unpack_from(">q", path.read_bytes(), at)[0] for at in part.at] == [h.base for h in part.heads]


# Real files


@pytest.fixture(scope="module")
def broker(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a broker that was killed."""
    folder = tmp_path_factory.mktemp("broker")
    subprocess.run(["tar", "-xzSf", str(shared_data / "kafka" / "broker-crash.tar.gz"), "-C", str(folder)], check=True)
    return folder / "crash"


@pytest.mark.parametrize("topic", ["none", "gzip", "snappy", "lz4", "zstd", "txn", "lat", "compact"])
def test_records_of_a_real_log_are_those_that_kafka_prints(shared_data: Path, broker: Path, topic: str) -> None:
    printed = dumped(shared_data / "kafka" / "dump-log" / f"ck-{topic}-0.dump.txt.gz")
    found = []
    for path in sorted((broker / f"ck-{topic}-0").glob("*.log")):
        size = path.stat().st_size
        for part in read_records(Split(str(path), path.name, "", 0, size, size)):
            assert isinstance(part, SegmentPart), part
            for i, row in enumerate(part.records.to_table().to_pylist()):
                control = part.heads[row["batch"]].control
                sizes = [-1 if row[name] is None else len(row[name]) for name in ("key", "value")]
                names = ",".join(name for name, _ in part.records.headers_of(i))
                held = [control or row[name] or b"" for name in ("key", "value")]
                found.append(("record", row["offset"], row["timestamp"], *sizes, names, *held))
    assert found == [x for x in printed if x[0] == "record"]


def test_offsets_of_consumers_decode(broker: Path) -> None:
    total = 0
    for path in sorted(broker.glob("__*/*.log")):
        size = path.stat().st_size
        for part in read_records(Split(str(path), path.name, "", 0, size, size)):
            assert isinstance(part, SegmentPart), part
            total += len(part.records.offset)
            assert len(part.records.offset) == sum(head.count for head in part.heads)
    assert total > 20
