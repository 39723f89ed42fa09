"""Numbers in Kafka's files that a later version may write, each as it stands in the bytes.

What is known, by Kafka's source: batches of magic 0 to 2 with codecs 0 to 4 and 7 bits of attributes; control records
of version 0 and types 0 to 6; keys of `__consumer_offsets` 0 to 24 and values of commits 0 to 4; files of offsets,
leader epochs and aborted transactions 0; snapshots of producers 1; tasks' `.checkpoint` 0.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import crc32c
import pytest

from tests.builders import kafka as kb
from tests.builders.kafka import CONTROL, TRANSACTIONAL, Row
from tests.builders.kafka_broker import TopicLog, broker_files, commit_batch, commit_key, commit_value, snapshot
from tests.builders.stores import APP, put_log, put_task
from tests.reading.unknown_answers import about, leaves_open, said

READ, WROTE, COMMITS = "in-0", "out-0", "__consumer_offsets-0"
LOG = f"{0:020}.log"
LATER = (9, 99, 255)


def broker(root: Path) -> Path:
    """A data folder: what a job reads, what it wrote in a transaction, what its group committed; and all side files."""
    read, wrote, commits = TopicLog(), TopicLog(), TopicLog()
    for _ in range(3):
        read.data(100)
    wrote.data(5)
    wrote.data(4, producer=77)
    wrote.end_transaction(77, kb.COMMIT)
    commits.add(commit_batch(0, [("job", "in", 0, 180)]), [0], 1, "data")
    for name, log in ((READ, read), (WROTE, wrote), (COMMITS, commits)):
        log.write(root / name)
    kept = {READ: 0, WROTE: 0, COMMITS: 0}
    broker_files(root, log_start=kept, recovery_point=kept, replication=kept, cleaner=kept)
    (root / READ / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (root / WROTE / f"{9:020}.snapshot").write_bytes(snapshot((77, 0, 3, 8, 5, -1)))
    (root / WROTE / f"{0:020}.txnindex").write_bytes(struct.pack(">hqqqq", 0, 78, 0, 4, 4))
    return root


def replaced(path: Path, change: Callable[[bytes], bytes]) -> None:
    before = path.read_bytes()
    after = change(before)
    assert after != before
    path.write_bytes(after)


def first_batch(data: bytes) -> int:
    return 12 + int.from_bytes(data[8:12], "big")


def summed(data: bytes, at: int = 0) -> bytes:
    """The same with the right checksum of the batch at `at`."""
    end = at + first_batch(data[at:])
    return data[: at + 17] + struct.pack(">I", crc32c.crc32c(data[at + 21 : end])) + data[at + 21 :]


def with_magic(number: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:16] + bytes([number]) + data[17:]


def with_attributes(number: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:21] + struct.pack(">H", number) + data[23:]


def mended(change: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    return lambda data: summed(change(data))


def numbers(first: int, quick: bool = False, top: int = 255) -> list[object]:
    found = sorted({first, *(n for n in LATER if first < n <= top)})
    return [n if n == first or (quick and n == 99) else pytest.param(n, marks=pytest.mark.slow) for n in found]


TOPICS = [READ, pytest.param(WROTE, marks=pytest.mark.slow), COMMITS]


@pytest.mark.parametrize("number", numbers(3, quick=True, top=127))
@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("right", [True, False])
def test_a_batch_of_a_later_format(topic: str, number: int, right: bool, tmp_path: Path) -> None:
    broker(tmp_path)
    change = with_magic(number)
    replaced(tmp_path / topic / LOG, change if right else lambda data: change(data[:20] + b"?" + data[21:]))
    leaves_open(tmp_path, f"{topic}/{LOG}", shown=right)


@pytest.mark.parametrize("codec", [5, pytest.param(6, marks=pytest.mark.slow), 7])
@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("right", [True, False])
def test_a_batch_of_a_later_codec(topic: str, codec: int, right: bool, tmp_path: Path) -> None:
    broker(tmp_path)
    change = with_attributes(codec)
    replaced(tmp_path / topic / LOG, mended(change) if right else change)
    leaves_open(tmp_path, f"{topic}/{LOG}", shown=False)


@pytest.mark.parametrize("bit", [7, pytest.param(8, marks=pytest.mark.slow), 15])
def test_a_batch_with_attributes_of_a_later_version(bit: int, tmp_path: Path) -> None:
    broker(tmp_path)
    replaced(tmp_path / READ / LOG, mended(with_attributes(1 << bit)))
    leaves_open(tmp_path, f"{READ}/{LOG}", shown=False)


def test_a_flipped_bit_of_the_attributes_is_damage(tmp_path: Path) -> None:
    broker(tmp_path)
    replaced(tmp_path / READ / LOG, with_attributes(1 << 9))
    _, answer = said("recovery-line", tmp_path)
    assert about(answer, f"{READ}/{LOG}").keys() >= {"corrupt-batch", "restart-cuts-log"}
    assert "unknown-version" not in about(answer, f"{READ}/{LOG}")


@pytest.mark.parametrize("number", [128, 200, 255])
def test_a_negative_format_is_damage(number: int, tmp_path: Path) -> None:
    broker(tmp_path)
    replaced(tmp_path / READ / LOG, with_magic(number))
    _, answer = said("recovery-line", tmp_path)
    assert "unknown-version" not in about(answer, f"{READ}/{LOG}")


@pytest.mark.parametrize(
    ("version", "kind"),
    [(1, 1), (0, 7), *(pytest.param(*one, marks=pytest.mark.slow) for one in ((9, 1), (99, 0), (255, 1), (0, 99)))],
)
def test_a_control_record_of_a_later_version(version: int, kind: int, tmp_path: Path) -> None:
    broker(tmp_path)
    log = TopicLog()
    log.data(4, producer=77)
    row = Row(struct.pack(">hi", 0, 0), struct.pack(">hh", version, kind))
    log.add(kb.batch(4, [row], flags=TRANSACTIONAL | CONTROL, producer=77), [4], 5, "data")
    log.write(tmp_path / WROTE)
    leaves_open(tmp_path, f"{WROTE}/{LOG}", shown=False)


@pytest.mark.parametrize("version", numbers(25))
def test_a_key_of_a_later_kind(version: int, tmp_path: Path) -> None:
    commits(tmp_path, commit_key("job", "in", 0, version), commit_value(180))
    leaves_open(tmp_path, f"{COMMITS}/{LOG}", shown=False)


@pytest.mark.parametrize("version", numbers(5))
def test_a_commit_of_a_later_version(version: int, tmp_path: Path) -> None:
    commits(tmp_path, commit_key("job", "in", 0), struct.pack(">h", version) + commit_value(180, 4)[2:])
    leaves_open(tmp_path, f"{COMMITS}/{LOG}", shown=False)


def commits(root: Path, key: bytes, value: bytes) -> None:
    """A broker's folder whose group has committed once more, in such a record."""
    broker(root)
    log = TopicLog()
    log.add(commit_batch(0, [("job", "in", 0, 100)]), [0], 1, "data")
    log.add(kb.batch(1, [Row(value, key, 1000)]), [1], 2, "data")
    log.write(root / COMMITS)


SIDE_FILES = {
    "log-start-offset-checkpoint": 1,
    "recovery-point-offset-checkpoint": 1,
    "replication-offset-checkpoint": 1,
    "cleaner-offset-checkpoint": 1,
    f"{READ}/leader-epoch-checkpoint": 1,
    f"{WROTE}/{9:020}.snapshot": 2,
    f"{WROTE}/{0:020}.txnindex": 1,
}
"""Files beside the log, with the first version that there is not."""


@pytest.mark.parametrize(
    ("name", "number"),
    [
        pytest.param(name, n, marks=() if n == first else pytest.mark.slow)
        for name, first in SIDE_FILES.items()
        for n in (first, *LATER)
    ],
)
def test_a_side_file_of_a_later_version(name: str, number: int, tmp_path: Path) -> None:
    broker(tmp_path)
    text = not name.endswith((".snapshot", ".txnindex"))
    before, after = (b"0\n", b"%d\n" % number) if text else (b"", struct.pack(">h", number))
    replaced(tmp_path / name, lambda data: after + data[len(before) if text else 2 :])
    leaves_open(tmp_path, name, shown=False)


@pytest.mark.parametrize("number", [2, pytest.param(99, marks=pytest.mark.slow)])
def test_properties_of_a_later_broker(number: int, tmp_path: Path) -> None:
    broker(tmp_path)
    (tmp_path / "meta.properties").write_text(f"cluster.id=c\nversion={number}\nnode.id=1\n")
    leaves_open(tmp_path, "meta.properties", shown=False)
    (tmp_path / "meta.properties").write_text("cluster.id=c\nversion=1\nnode.id=1\n")
    assert "unknown-version" not in about(said("recovery-line", tmp_path)[1], "meta.properties")


@pytest.mark.parametrize("name", SIDE_FILES)
def test_a_negative_version_of_a_side_file_is_damage(name: str, tmp_path: Path) -> None:
    broker(tmp_path)
    text = not name.endswith((".snapshot", ".txnindex"))
    replaced(tmp_path / name, lambda data: (b"-1\n" + data[2:]) if text else b"\xff\xff" + data[2:])
    _, answer = said("recovery-line", tmp_path)
    assert "unknown-version" not in about(answer, name)


# Kafka Streams


def streams(root: Path) -> Path:
    put_log(root / "kafka", f"{APP}-counts-changelog", 0, 50)
    return put_task(root / "state" / APP, "0_0", ("counts",), {f"{APP}-counts-changelog 0": 41})


@pytest.mark.parametrize("number", numbers(1))
def test_a_checkpoint_of_a_task_of_a_later_version(number: int, tmp_path: Path) -> None:
    replaced(streams(tmp_path) / ".checkpoint", lambda data: b"%d\n" % number + data[2:])
    leaves_open(tmp_path / "state", f"{APP}/0_0/.checkpoint", shown=number == 1)


def test_a_checkpoint_of_a_task_of_a_negative_version_is_damaged(tmp_path: Path) -> None:
    replaced(streams(tmp_path) / ".checkpoint", lambda data: b"-1\n" + data[2:])
    _, answer = said("recovery-line", tmp_path / "state")
    assert about(answer, f"{APP}/0_0/.checkpoint") == {"corrupt-file": "error"}


@pytest.mark.parametrize("kind", [12, pytest.param(99, marks=pytest.mark.slow)])
@pytest.mark.parametrize("right", [True, False])
def test_a_manifest_of_a_store_with_records_of_a_later_kind(kind: int, right: bool, tmp_path: Path) -> None:
    task = streams(tmp_path)
    (manifest,) = (task / "rocksdb" / "counts").glob("MANIFEST-*")

    def later(data: bytes) -> bytes:
        length = int.from_bytes(data[4:6], "little")
        crc = crc32c.crc32c(bytes([kind]) + data[7 : 7 + length])
        masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
        return (struct.pack("<I", masked) if right else data[:4]) + data[4:6] + bytes([kind]) + data[7:]

    replaced(manifest, later)
    leaves_open(tmp_path / "state", f"{APP}/0_0/rocksdb/counts/{manifest.name}", shown=False)
