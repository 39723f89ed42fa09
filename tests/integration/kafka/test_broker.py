"""The data folder of a real broker that was killed, beside what Kafka's own tool prints of it."""

from __future__ import annotations

import gzip
import json
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cklog.engine.scan import Engine
from cklog.inputs.partitions import Range
from cklog.kafka_logs.logs import PartitionLogs
from cklog.lines.exports import replay_formats
from cklog.model.question import Question
from cklog.parsers.kafka.side_files import producers
from tests.conftest import SAMPLES, sample_script
from tests.reading.kafka_broker import inspected, log_of, logs_of

DUMPED = ("ck-compact", "ck-gzip", "ck-lat", "ck-lz4", "ck-none", "ck-snappy", "ck-txn", "ck-zstd")
SAMPLE_ENDS = {"orders-0": 37, "orders-1": 50, "__consumer_offsets-0": 6}
BATCH = re.compile(
    r"baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .* producerId: (-?\d+) .*isControl: (\w+) .*size: (\d+)"
)
MARKER = re.compile(r"\| offset: (\d+) .* endTxnMarker: (\w+)")
ABORTED = re.compile(r"version: 0 producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)")
COMMIT = re.compile(r"\| offset: (\d+) .* key: (\{.*?\}\}) payload: (.*)$")


@pytest.fixture(scope="module")
def broker(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a broker that was killed."""
    folder = tmp_path_factory.mktemp("broker")
    subprocess.run(["tar", "-xzSf", str(shared_data / "kafka" / "broker-crash.tar.gz"), "-C", str(folder)], check=True)
    return folder / "crash"


@pytest.fixture(scope="module")
def logs(broker: Path) -> PartitionLogs:
    return logs_of(broker)


def dump(shared_data: Path, name: str) -> list[str]:
    path = shared_data / "kafka" / "dump-log" / name
    return gzip.decompress(path.read_bytes()).decode().splitlines()


@pytest.mark.parametrize("topic", DUMPED)
def test_partitions_equal_the_dump(shared_data: Path, logs: PartitionLogs, topic: str) -> None:
    p = logs.partitions()[f"{topic}-0"]
    lines = dump(shared_data, f"{topic}-0.dump.txt.gz")
    batches = [match.groups() for line in lines if (match := BATCH.match(line))]
    assert p.batches == len(batches)
    assert p.records == sum(int(count) for _, _, count, *_ in batches)
    assert p.control == sum(int(count) for _, _, count, _, control, _ in batches if control == "true")
    assert p.bytes == sum(int(size) for *_, size in batches)
    assert p.log_end == p.restart_end == p.folder.high_watermark == int(batches[-1][1]) + 1
    assert (p.cut, p.damage) == (None, ())


def test_transactions_equal_the_dump(shared_data: Path, logs: PartitionLogs) -> None:
    lines = dump(shared_data, "ck-txn-0.dump.txt.gz")
    p = logs.partitions()["ck-txn-0"]
    printed = [tuple(map(int, match.groups())) for line in lines if (match := ABORTED.match(line))]
    assert [tuple(span) for span in p.folder.aborted] == printed
    assert [(t.producer, t.first, (t.end or 0) - 1) for t in p.transactions.aborted] == [span[:3] for span in printed]
    markers = [match.groups() for line in lines if (match := MARKER.match(line))]
    assert p.transactions.committed == sum(kind == "COMMIT" for _, kind in markers)
    assert [(t.producer, t.first, t.records) for t in p.transactions.open] == [(4, 51, 4)]
    assert (p.last_stable, p.log_end) == (51, 55)
    count = logs.count("ck-txn", 0, 0)
    assert (count.data + count.aborted + count.open, count.control) == (49, 6)
    assert (count.data, count.aborted, count.open) == (35, 10, 4)


def test_counts_equal_the_offsets_of_the_dump(shared_data: Path, logs: PartitionLogs) -> None:
    for name in ("ck-compact-0", "ck-zstd-0", "ck-none-0"):
        offsets = [
            int(o) for o in re.findall(r"^\| offset: (\d+)", "\n".join(dump(shared_data, f"{name}.dump.txt.gz")), re.M)
        ]
        topic, start = name[:-2], logs.partitions()[name].log_start
        ranges = [Range(topic, 0, a, b) for a in (0, 49, 601, 733) for b in (740, 751, 1499) if b <= offsets[-1]]
        for wanted, count in zip(ranges, logs.counts(ranges), strict=True):
            assert count.exact
            assert count.data == sum(max(wanted.start, start) <= o < (wanted.end or 0) for o in offsets)


def test_committed_offsets_equal_the_dump(shared_data: Path, logs: PartitionLogs) -> None:
    printed: dict[tuple[str, str, int], int] = {}
    for line in dump(shared_data, "consumer_offsets.txt.gz"):
        match = COMMIT.match(line)
        if match and json.loads(match[2])["type"] == "1":
            key = json.loads(match[2])["data"]
            printed[key["group"], key["topic"], key["partition"]] = json.loads(match[3])["data"]["offset"]
    commits, damage, _ = logs.commits
    assert {(c.group, c.topic, c.partition): c.offset for c in commits} == printed
    assert {c.group for c in commits} == {"brandnew", "g1", "g2", "g3"}
    assert not any(c.misplaced or c.pending is not None for c in commits)
    assert damage == ()


def test_producer_snapshots_equal_the_dump(shared_data: Path, broker: Path) -> None:
    names = [line.removeprefix("Dumping ") for line in dump(shared_data, "snapshots.txt.gz")]
    assert sorted(names) == sorted(str(path.relative_to(broker)) for path in broker.glob("*/*.snapshot"))
    assert all(producers((broker / name).read_bytes()) == () for name in names)  # the tool prints no producer either


def test_a_restart_of_this_broker_loses_nothing(broker: Path) -> None:
    answer = log_of(broker).replay(Question())
    assert answer.exit_code == 0
    assert {f.id for f in answer.findings} == {"offset-gap", "open-transaction"}
    assert replay_formats("g3")["kafka-csv"](answer) == "ck-gzip,1,1030\nck-none,0,700\nck-none,1,1300\n"
    rows = {(row["group"], row["log"]): row for row in answer.result.details["ranges"]}
    found = rows["g2", "ck-txn-0"]
    assert (found["data"], found["control"], found["aborted"], found["open"]) == (31, 6, 9, 4)


@pytest.mark.parametrize(
    ("name", "end", "restart_end", "lost", "ids"),
    [
        ("bad_crc_middle-0", 60, 20, 30, ["corrupt-batch"]),
        ("torn_mid_batch-0", 50, 50, 0, ["torn-tail"]),
        ("zero_tail-0", 60, 60, 0, ["torn-tail"]),
        ("codec_none-0", 1164, 1164, None, []),
        ("legacy_v0_gzip-0", 25, 25, None, []),
        ("legacy_v1_none-0", 25, 25, None, []),
        ("compacted-0", 110, 110, None, []),
        ("txn-0", 19, 19, None, []),
    ],
)
def test_segments_of_another_encoder(
    shared_data: Path, name: str, end: int, restart_end: int, lost: int | None, ids: list[str]
) -> None:
    (p,) = logs_of(shared_data / "kafka" / "segments" / name).partitions().values()
    assert (p.name, p.log_end, p.restart_end) == (name, end, restart_end)
    assert (p.cut and p.cut.records) == lost
    assert [d.id for d in p.damage] == ids


def test_a_bad_byte_in_the_real_log(broker: Path, tmp_path: Path) -> None:
    """What the real broker did with such a folder: 1500 records became 750, at its own cost."""
    folder = tmp_path / "ck-none-0"
    folder.mkdir()
    for path in (broker / "ck-none-0").glob("*.log"):
        (folder / path.name).write_bytes(path.read_bytes())
    second = folder / f"{700:020}.log"
    data = bytearray(second.read_bytes())
    bad = int.from_bytes(data[8:12], "big") + 12 + 100  # in the batch that follows the first one
    data[bad] ^= 1
    second.write_bytes(data)
    (p,) = logs_of(folder).partitions().values()
    assert (p.log_end, p.restart_end) == (1500, 750)
    assert p.cut is not None
    assert p.cut.records == 1500 - 800


def test_the_sample_is_what_its_script_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("kafka", reason="kafka-python made the sample")
    script = sample_script("make_kafka")
    monkeypatch.setattr(script, "HERE", tmp_path)
    script.main()
    made = {str(p.relative_to(tmp_path)): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    sample = SAMPLES / "kafka-broker"
    there = {str(p.relative_to(sample)): p.read_bytes() for p in sample.rglob("*") if p.is_file()}
    assert made == {name: data for name, data in there.items() if name not in ("README.md", "expected.json")}


def test_the_samples_answer() -> None:
    """What README.md of the sample says."""
    answer = log_of(SAMPLES / "kafka-broker").replay(Question())
    line = answer.result
    assert {f"{e.operator}/{e.subtask}": e.checkpoint for e in line.line} == {"orders/0": 37, "orders/1": 10}
    (cut,) = [row for row in line.details["cuts"] if row["batches"]]
    assert (cut["partition"], cut["records"]) == ("orders-1", 30)
    assert replay_formats("billing")["kafka-csv"](answer) == "orders,0,12\norders,1,10\n"
    (row,) = [row for row in line.details["ranges"] if (row["group"], row["log"]) == ("billing", "orders-0")]
    assert (row["records"], row["data"], row["control"], row["aborted"], row["open"]) == (25, 17, 2, 3, 3)


def mutated(data: bytes, chance: random.Random) -> bytes:
    at, length = chance.randrange(len(data)), chance.randrange(1, 40)
    made = [
        data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :],
        data[:at],
        data[:at] + bytes(length) + data[at + length :],
        data[:at] + chance.randbytes(length) + data[at + length :],
        data[:at] + data[at + length :],
    ]
    return chance.choice(made)


@pytest.mark.quarter
@pytest.mark.parametrize("seed", range(4))
def test_damaged_folders_are_answered(tmp_path: Path, seed: int) -> None:
    """Bytes changed, cut off, doubled and zeroed anywhere in a broker's folder: an answer, and never a newer line."""
    chance = random.Random(seed)
    for number in range(40):
        folder = tmp_path / str(number)
        shutil.copytree(SAMPLES / "kafka-broker", folder)
        files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".md", ".json"))
        for path in chance.sample(files, 2):
            path.write_bytes(mutated(path.read_bytes(), chance))
        log = log_of(folder)
        for answer in (log.recovery_line(Question()), log.replay(Question()), inspected(log)):
            assert answer.exit_code in (0, 3)
        ends = {name: p.log_end for name, p in log.analyses.logs.partitions().items()}
        assert all(end <= SAMPLE_ENDS.get(name, 0) for name, end in ends.items())


def test_both_engines_read_the_broker_alike(broker: Path, logs: PartitionLogs, spark: Engine) -> None:
    there = logs_of(broker, 10_000, spark)
    assert there.partitions() == logs.partitions()
    assert there.commits == logs.commits


@pytest.mark.parametrize("name", ["ck-none-0", "ck-none-1", "ck-compact-0"])
def test_a_first_segment_that_is_gone_is_missed(broker: Path, tmp_path: Path, name: str) -> None:
    """By the leader epochs of a real partition, or the log start that its broker had noted."""
    folder = tmp_path / "data"
    shutil.copytree(broker / name, folder / name)
    for path in broker.glob("*-offset-checkpoint"):
        shutil.copy(path, folder)
    shutil.copy(broker / "meta.properties", folder)
    assert not [f for f in log_of(folder).recovery_line(Question()).findings if f.id == "missing-segment"]
    first = min(path.name[:20] for path in (folder / name).glob("*.log"))
    for path in (folder / name).glob(f"{first}.*"):
        path.unlink()
    (found,) = [f for f in log_of(folder).recovery_line(Question()).findings if f.id == "missing-segment"]
    noted = "log-start-offset" if name == "ck-none-0" else "leader-epoch"
    assert f"begin at offset {50 if name == 'ck-none-0' else 0} by its {noted}-checkpoint" in found.message
