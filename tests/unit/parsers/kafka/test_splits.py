"""Kafka partitions in splits, by their indexes, and looked up by time."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cklog.parsers.kafka import segment, side_files
from cklog.parsers.kafka.log import first_at, reconcile, splits, tail_splits
from cklog.parsers.kafka.segment import segments
from cklog.parsers.kafka.table import read
from cklog.storage import FileEntry, Root, open_file
from tests.builders import kafka as kb
from tests.builders.kafka import Log, Row, batch, cec
from tests.examples import examples
from tests.reading.kafka import COLUMNS, NAME, rows_of, scan, told, written


def partition(folder: Path, padding: int = 100, indexed: bool = True) -> Path:
    """Three segments of about 40 KB, batches of 1 to 12 records, and what else a broker leaves in the folder."""
    offset = 0
    for _ in range(3):
        log = Log(base=offset)
        while len(log.data) < 40_000:
            size = 1 + offset * 7 % 12
            log.add(batch(offset, [cec(offset + i, offset + i, pad="x" * 50) for i in range(size)]))
            offset += size
        log.write(folder, padding, indexed)
    Log(base=offset).write(folder)
    for name in (f"{5:020}.log.deleted", f"{5:020}.snapshot", "leader-epoch-checkpoint", "5.log"):
        (folder / name).write_bytes(b"x")
    return folder


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return partition(tmp_path_factory.mktemp("queue"))


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return partition(tmp_path_factory.mktemp("bare"), indexed=False)


@pytest.fixture(scope="module")
def misled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Indexes of another log: positions between batches, beyond the file, and offsets that are elsewhere."""
    folder = partition(tmp_path_factory.mktemp("misled"))
    for path in folder.glob("*.index"):
        path.write_bytes(kb.index_bytes([(i * 3, i * 3001) for i in range(1, 50)]))
    return folder


@pytest.mark.parametrize("kind", ["queue", "bare", "misled"])
@pytest.mark.parametrize("step", [1, 5_000, 30_000, 1 << 20])
def test_splits_of_any_step_give_the_rows_of_one_read(kind: str, step: int, request: pytest.FixtureRequest) -> None:
    folder: Path = request.getfixturevalue(kind)
    root = Root(str(folder))
    whole, damage = scan(folder)
    assert damage == []
    made = splits(root, root.list(), step)
    assert scan(folder, made) == (whole, [])
    backwards = list(tail_splits(root, root.list(), step, 4 * step))
    assert scan(folder, backwards[::-1]) == (whole, [])
    if step == 1 and kind == "bare":
        assert len(made) == len({(row["_path"], row["_offset"]) for row in whole})
    if step == 5_000:
        assert 20 <= len(made) <= 30
        sizes = [split.end - split.start for split in backwards]
        assert sizes[0] < 5_000 + 6_000 < sizes[2]


def test_an_index_that_leads_into_a_record_cuts_no_batch(tmp_path: Path) -> None:
    """A value may itself hold a batch: mirrors and backups write such topics."""
    inner = batch(70, [cec(70, 70)])
    carrier = Row(inner, headers=[("cec.type", b"emit"), ("cec.ts", b"1")])
    log = written(tmp_path, batch(0, [cec(0, 0)]), batch(1, [carrier]), batch(2, [cec(2, 2)]))
    log.index = [(1, log.data.index(inner))]
    log.write(tmp_path)
    root = Root(str(tmp_path))
    whole, damage = scan(tmp_path)
    assert damage == []
    assert scan(tmp_path, splits(root, root.list(), log.index[0][1])) == (whole, [])


def test_one_read_gives_every_row_in_log_order(queue: Path) -> None:
    found, _ = scan(queue)
    assert [row["pos"] for row in found] == list(range(len(found)))
    assert len(found) > 600


class Counted:
    """A file that counts what is read of it."""

    def __init__(self, file: Any, log: list[int]) -> None:
        self._file, self._log = file, log

    def __enter__(self) -> Counted:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def seek(self, at: int) -> None:
        self._file.seek(at)

    def read(self, size: int) -> bytes:
        data: bytes = self._file.read(size)
        self._log.append(len(data))
        return data

    def readinto(self, room: memoryview) -> int:
        count: int = self._file.readinto(room)
        self._log.append(count)
        return count


def test_the_tail_of_a_large_log_costs_an_index_and_a_probe_per_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log()
    for i in range(300):
        log.add(batch(i, [cec(i, i, pad="x" * 20_000)]))
    log.write(tmp_path, padding=200_000)
    reads: list[int] = []
    for module in (side_files, segment):
        monkeypatch.setattr(module, "open_file", lambda uri: Counted(open_file(uri), reads))
    root = Root(str(tmp_path))
    made = tail_splits(root, root.list(), 256 << 10, 1 << 20)
    first = [next(made) for _ in range(3)]
    assert [round((s.end - s.start) / (256 << 10)) for s in first] == [1, 2, 4]
    assert len(reads) <= 1 + 2 * len(first)
    assert max(reads) <= 64 << 10


def test_reading_a_split_reads_no_more_than_the_split(queue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Root(str(queue))
    split = splits(root, root.list(), 5_000)[2]
    reads: list[int] = []
    monkeypatch.setattr(segment, "open_file", lambda uri: Counted(open_file(uri), reads))
    assert rows_of(read(split, "outputs", COLUMNS))[0]
    assert sum(reads) <= split.end - split.start + 61


# Recovery step 1, and time


def test_a_running_broker_s_indexes_agree_with_its_log(queue: Path, bare: Path) -> None:
    assert told(queue) == []
    assert told(bare) == []
    assert reconcile(Root(".").read, Root(".").uri, []) == ()


def active(folder: Path, batches: int = 30, size: int = 1000) -> Log:
    return written(folder, *(batch(i, [cec(i, 1000 + i, pad="x" * size)]) for i in range(batches)))


def test_a_log_shorter_than_its_indexes_is_found(tmp_path: Path) -> None:
    log = active(tmp_path)
    assert told(tmp_path) == []
    cut = log.index[-2][1] + 20
    (tmp_path / NAME).write_bytes(log.data[:cut])
    root = Root(str(tmp_path))
    (finding,) = reconcile(root.read, root.uri, root.list())
    assert (finding.id, finding.severity) == ("index-beyond-log", "warning")
    assert finding.where[0].offset == log.index[-2][1]
    assert "2 positions and 2 timestamps up to" in finding.message


def test_an_empty_log_with_an_index_is_found(tmp_path: Path) -> None:
    active(tmp_path)
    (tmp_path / NAME).write_bytes(b"")
    assert told(tmp_path) == [("index-beyond-log", "warning", 0)]


def test_a_timestamp_that_no_batch_has_is_found(tmp_path: Path) -> None:
    log = active(tmp_path)
    log.times[-1] = (5000, log.times[-1][1])
    log.write(tmp_path)
    assert told(tmp_path) == [("index-beyond-log", "warning", len(log.data))]


def test_an_old_newest_timestamp_is_normal(tmp_path: Path) -> None:
    """The largest timestamp so far may stand in the first batch."""
    log = Log()
    for i in range(30):
        log.add(batch(i, [cec(i, 9000 - i, pad="x" * 1000)]))
    log.write(tmp_path)
    assert log.times[-1][0] == 9000
    assert told(tmp_path) == []


def test_a_log_that_goes_on_behind_its_index_is_told(tmp_path: Path) -> None:
    log = active(tmp_path)
    del log.index[2:], log.times[2:]
    log.write(tmp_path, padding=1000)
    last = log.starts.index(log.index[-1][1])
    root = Root(str(tmp_path))
    (finding,) = reconcile(root.read, root.uri, root.list())
    assert (finding.id, finding.severity) == ("log-beyond-index", "info")
    behind = len(log.data) - log.starts[last + 1]
    assert f"{29 - last} batches ({behind} bytes)" in finding.message
    assert finding.where[0].offset == log.starts[last + 1]


def test_without_any_index_only_large_batches_tell(tmp_path: Path) -> None:
    active(tmp_path / "small").write(tmp_path / "small", indexed=False)
    for path in (tmp_path / "small").glob("*index"):
        path.unlink()
    assert told(tmp_path / "small") == []
    one_large = [batch(0, [cec(0, 1000, pad="x" * 5000)]), *(batch(i, [cec(i, 1000 + i)]) for i in range(1, 90))]
    written(tmp_path / "one", *one_large)
    for path in (tmp_path / "one").glob("*index"):
        path.unlink()
    assert told(tmp_path / "one") == []
    log = active(tmp_path / "large", size=5000)
    log.index, log.times = [], []
    log.write(tmp_path / "large")
    assert told(tmp_path / "large") == [("log-beyond-index", "info", log.starts[1])]


@given(st.data())
@settings(max_examples=examples(40))
def test_the_first_record_at_a_time_is_that_of_a_plain_search(data: st.DataObject) -> None:
    times = data.draw(st.lists(st.integers(0, 50), min_size=1, max_size=40))
    with TemporaryDirectory() as name:
        log, size = Log(interval=data.draw(st.integers(0, 600))), data.draw(st.integers(1, 4))
        for i in range(0, len(times), size):
            log.add(batch(i, [cec(i + j, t) for j, t in enumerate(times[i : i + size])]))
        log.write(Path(name), padding=data.draw(st.integers(0, 3)), indexed=data.draw(st.booleans()))
        ts = data.draw(st.integers(-1, 51))
        root = Root(name)
        found = first_at(root.uri, root.read, root.list(), ts)
    expected = next((i for i, t in enumerate(times) if t >= ts), None)
    assert found == (None if expected is None else (expected, NAME, log.starts[expected // size]))


def test_a_wrong_time_index_does_not_hide_the_first_record(tmp_path: Path) -> None:
    log = active(tmp_path)
    log.times = [(1, log.index[2][0])]  # says that batches of 1000 and more are older than 2
    log.write(tmp_path)
    root = Root(str(tmp_path))
    assert first_at(root.uri, root.read, root.list(), 1001) == (1, NAME, log.starts[1])


def test_markers_and_damaged_batches_are_no_first_record(tmp_path: Path) -> None:
    spoilt = bytearray(batch(1, [cec(1, 9)]))
    spoilt[spoilt.index(b"check")] ^= 1
    log = written(tmp_path, kb.marker(0, kb.COMMIT, 1, time=9), bytes(spoilt), batch(2, [cec(2, 3), cec(3, 9)]))
    root = Root(str(tmp_path))
    assert first_at(root.uri, root.read, root.list(), 5) == (3, NAME, log.starts[2])


def test_segments_are_sorted_logs_and_nothing_else() -> None:
    names = [f"{9:020}.log", f"{1:020}.log", f"{1:020}.index", f"{2:020}.log.swap", f"{3:020}.log.cleaned", "1.log"]
    assert [e.path for e in segments(FileEntry(n, 0) for n in names)] == [f"{1:020}.log", f"{9:020}.log"]
