"""Offsets inside the RocksDB of stores: read, never written to, and honestly unknown where they cannot be read."""

from __future__ import annotations

import errno
import os
import struct
import tempfile
from pathlib import Path

import pytest

from cklog.model.question import Question
from cklog.parsers.kafka.state import child, rocksdb
from cklog.storage import Root
from tests.builders.stores import APP, content, put_log, put_store, put_task
from tests.program import cklog
from tests.reading.stores import opened

pytest.importorskip("rocksdict", reason="the extra rocksdb is not installed")

OPEN, CLOSED = 1, 0


def put_streams_store(task: Path, store: str, status: int | None = CLOSED, **offsets: int) -> Path:
    """A store of Kafka Streams 4.3; offsets by name of the store that the changelog is of."""
    pairs = {f"{APP}-{name}-changelog-{task.name.rpartition('_')[2]}".encode(): n for name, n in offsets.items()}
    return put_store(task / "rocksdb" / store, "offsets", pairs | ({} if status is None else {b"status": status}))


def rows(folder: Path, logs: Path | None = None) -> dict[str, tuple[str, int | None, bool | None]]:
    answer = opened(folder, logs).line("recovery-line", Question())
    return {
        row["store"]: (row["start"], row["restore_from"], row["unclean"]) for row in answer.result.details["stores"]
    }


def findings(folder: Path) -> list[tuple[str, str]]:
    return [(f.id, f.severity) for f in opened(folder).line("recovery-line", Question()).findings]


def test_a_closed_and_an_open_store(tmp_path: Path) -> None:
    task = put_task(tmp_path / APP, "0_1", (), None)
    put_streams_store(task, "counts", CLOSED, counts=41)
    put_streams_store(task, "sums", OPEN, sums=99)
    put_streams_store(task, "fresh", None, fresh=7)
    assert rows(tmp_path) == {
        "counts": ("checkpoint", 42, False),
        "sums": ("checkpoint", 100, True),
        "fresh": ("checkpoint", 8, False),
    }
    assert findings(tmp_path) == [("unclean-store", "warning")]
    answer = opened(tmp_path).line("recovery-line", Question())
    assert [(entry.checkpoint, entry.state) for entry in answer.result.line] == [(8, "stored")]
    assert "with exactly-once 3 of these are wiped" in answer.result.details["headline"]


def test_the_range_is_that_of_the_changelog(tmp_path: Path) -> None:
    task = put_task(tmp_path / "state" / APP, "0_1", (), None)
    put_streams_store(task, "counts", CLOSED, counts=41)
    put_log(tmp_path / "kafka", f"{APP}-counts-changelog", 1, 60)
    answer = opened(tmp_path / "state", tmp_path / "kafka").line("recovery-line", Question())
    (row,) = answer.result.details["stores"]
    assert (row["restore_from"], row["restore_to"], row["records"]) == (42, 60, 18)


def test_a_file_of_the_version_before_is_taken_over(tmp_path: Path) -> None:
    task = put_task(tmp_path / APP, "0_1", (), {f"{APP}-counts-changelog 1": 12})
    put_streams_store(task, "counts", CLOSED, counts=41)
    put_streams_store(task, "sums", CLOSED, sums=5)
    assert rows(tmp_path) == {"counts": ("checkpoint", 13, False), "sums": ("checkpoint", 6, False)}


def test_a_file_of_one_store(tmp_path: Path) -> None:
    task = put_task(tmp_path / APP, "0_1", ("mine",), None)
    (task / ".checkpoint_mine").write_text(f"0\n1\n{APP}-mine-changelog 1 30\n")
    put_streams_store(task, "counts", CLOSED, counts=41)
    assert rows(tmp_path) == {"mine": ("checkpoint", 31, None), "counts": ("checkpoint", 42, False)}


def test_a_store_without_an_offset_begins_anew(tmp_path: Path) -> None:
    task = put_task(tmp_path / APP, "0_1", (), None)
    put_streams_store(task, "counts", CLOSED, counts=41)
    put_streams_store(task, "sums", CLOSED)
    assert rows(tmp_path)["sums"] == ("beginning", None, None)
    assert findings(tmp_path) == [("store-without-entry", "warning")]


def test_a_store_with_segments_is_as_far_as_the_least_of_them(tmp_path: Path) -> None:
    task = put_task(tmp_path / APP, "0_1", (), None)
    for segment, offset in ((0, 50), (60000, 44)):
        pairs = {f"{APP}-w-changelog-1".encode(): offset, b"status": CLOSED}
        put_store(task / "rocksdb" / "w" / f"w.{segment}", "offsets", pairs)
    assert rows(tmp_path) == {"w": ("checkpoint", 45, False)}


def test_the_original_is_not_touched_and_no_copy_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = put_task(tmp_path / "state" / APP, "0_1", (), None)
    put_streams_store(task, "counts", OPEN, counts=41)
    broken = put_streams_store(task, "sums", OPEN, sums=41)
    table = next(broken.glob("*.sst"))
    table.write_bytes(bytes(table.stat().st_size))
    copies = tmp_path / "copies"
    copies.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(copies))
    before = content(task)
    assert rows(tmp_path / "state")["counts"] == ("checkpoint", 42, True)
    assert content(task) == before
    assert not [*copies.iterdir()]


@pytest.mark.parametrize("what", ["zeroed", "gone", "value", "child"])
def test_what_cannot_be_read_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    task = put_task(tmp_path / APP, "0_1", (), None)
    put_streams_store(task, "good", CLOSED, good=41)
    store = put_streams_store(task, "bad", CLOSED, bad=41)
    if what == "zeroed":
        for table in store.glob("*.sst"):
            table.write_bytes(bytes(table.stat().st_size))
    elif what == "gone":
        for table in store.glob("*.sst"):
            table.unlink()
    elif what == "value":
        put_store(store, "offsets", {b"no-offset": 1})
    else:
        script = tmp_path / "child.py"
        script.write_text("import sys\nfor line in sys.stdin:\n    sys.exit(1)\n")
        monkeypatch.setattr(child, "__file__", str(script))
    found = rows(tmp_path)
    assert found["bad"] == ("unknown", None, None)
    assert found["good"] == (("unknown", None, None) if what == "child" else ("checkpoint", 42, False))
    answer = opened(tmp_path).line("recovery-line", Question())
    assert (answer.verdict, answer.exit_code) == ("indeterminate", 5)
    assert [(f.id, f.severity) for f in answer.findings] == [("unread-store", "error")]
    assert str(tempfile.gettempdir()) not in answer.findings[0].message


def test_a_current_that_names_no_manifest_beside_it_is_not_followed(tmp_path: Path) -> None:
    task = put_task(tmp_path / APP, "0_1", (), None)
    put_streams_store(task, "good", CLOSED, good=41)
    store = put_streams_store(task, "bad", CLOSED, bad=41)
    (store / "CURRENT").write_bytes(b"../../good/MANIFEST-000005\n")
    assert rows(tmp_path) == {"good": ("checkpoint", 42, False), "bad": ("beginning", None, None)}
    answer = opened(tmp_path).line("recovery-line", Question())
    assert (answer.exit_code, answer.result.action) == (3, "repair-first")
    assert ("corrupt-file", "error") in [(f.id, f.severity) for f in answer.findings]


def test_a_task_with_an_unknown_store_is_not_at_its_initial_state(tmp_path: Path) -> None:
    """One store begins anew; of the other nothing is known, so that the task may be anywhere."""
    task = put_task(tmp_path / APP, "0_1", (), None)
    put_streams_store(task, "fresh", CLOSED)
    for table in put_streams_store(task, "bad", CLOSED, bad=41).glob("*.sst"):
        table.unlink()
    answer = opened(tmp_path).line("recovery-line", Question())
    assert rows(tmp_path) == {"bad": ("unknown", None, None), "fresh": ("beginning", None, None)}
    assert [(entry.checkpoint, entry.state) for entry in answer.result.line] == [(None, "stored")]
    assert (answer.verdict, answer.exit_code) == ("indeterminate", 5)


@pytest.mark.parametrize(
    ("offset", "holds"), [(42, {"restorable": None, "maximal": None}), (43, {"restorable": False, "maximal": True})]
)
def test_of_a_store_that_cannot_be_read_nothing_is_proved(
    tmp_path: Path, offset: int, holds: dict[str, bool | None]
) -> None:
    """The other store of the task is at 42; this one may be below, and the line with it."""
    task = put_task(tmp_path / APP, "0_1", (), None)
    put_streams_store(task, "good", CLOSED, good=41)
    for table in put_streams_store(task, "bad", CLOSED, bad=41).glob("*.sst"):
        table.unlink()
    (entry,) = opened(tmp_path).line("recovery-line", Question()).result.line
    answer = opened(tmp_path).verify({f"{entry.operator}/{entry.subtask}": offset}, True, Question())
    checks = {check.check: check.holds for check in answer.result.checks}
    assert {name: checks[name] for name in holds} == holds
    assert answer.exit_code == 5


def test_stores_that_cannot_be_read_for_one_reason_are_one_finding_at_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = put_task(tmp_path / APP, "0_1", (), None)
    for store in ("a", "b", "c"):
        put_streams_store(task, store, CLOSED, **{store: 41})
    monkeypatch.setattr(rocksdb, "LIBRARY", "no_such_library")
    (finding,) = opened(tmp_path).line("recovery-line", Question()).findings
    places = [f"{APP}/0_1/rocksdb/{store}" for store in ("a", "b", "c")]
    assert (finding.subject, [where.path for where in finding.where]) == (places[0], places)
    assert "the offsets of 3 stores" in finding.message


@pytest.mark.parametrize(
    ("stores", "told"), [(("a",), "a of task 1/1 was open"), (("a", "b"), "a, b of task 1/1 were open")]
)
def test_open_stores_are_told_in_words_that_fit(tmp_path: Path, stores: tuple[str, ...], told: str) -> None:
    task = put_task(tmp_path / APP, "1_1", (), None)
    for store in stores:
        put_streams_store(task, store, OPEN, **{store: 41})
    answer = opened(tmp_path).line("recovery-line", Question())
    assert answer.findings[0].message.startswith(told)
    number = {1: "1 of these is wiped", 2: "2 of these are wiped"}[len(stores)]
    assert number in answer.result.details["headline"]


def test_a_store_whose_manifest_a_disk_does_not_give_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = put_task(tmp_path / APP, "0_1", (), None)
    put_streams_store(task, "good", CLOSED, good=41)
    put_streams_store(task, "bad", CLOSED, bad=41)
    whole = Root.read

    def read(root: Root, path: str) -> bytes:
        if "/bad/MANIFEST" in path:
            raise OSError(errno.EIO, "Input/output error", path)
        return whole(root, path)

    monkeypatch.setattr(Root, "read", read)
    assert rows(tmp_path) == {"good": ("checkpoint", 42, False), "bad": ("unknown", None, None)}
    assert findings(tmp_path) == [("unread-store", "error")]


def test_a_name_that_goes_on_in_the_next_block_of_a_manifest_is_found(tmp_path: Path) -> None:
    """Manifests of many tables are longer than a block, and a record is parted wherever one ends."""
    (tmp_path / "CURRENT").write_bytes(b"MANIFEST-000005\n")
    head, added = struct.Struct("<IHB"), b"\xc8\x01\x01\xc9\x01\x07offsets"
    block = (32 << 10) - 2 * head.size
    for before in range(1, len(added)):
        data = head.pack(0, block - before, 1) + bytes(block - before)
        data += head.pack(0, before, 2) + added[:before]
        data += head.pack(0, len(added) - before, 4) + added[before:]
        (tmp_path / "MANIFEST-000005").write_bytes(data)
        root = Root(str(tmp_path))
        assert rocksdb.has_family(root, root.list(), "offsets")
        assert not rocksdb.has_family(root, root.list(), "__metadata__")


def test_without_the_library_the_answer_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = put_task(tmp_path / APP, "0_1", (), None)
    put_streams_store(task, "counts", CLOSED, counts=41)
    put_streams_store(task, "sums", CLOSED, sums=41)
    put_task(tmp_path / APP, "0_2", ("old",), {f"{APP}-old-changelog 2": 12})
    monkeypatch.setattr(rocksdb, "LIBRARY", "no_such_library")
    ended = cklog("recovery-line", tmp_path)
    assert ended.code == 5
    assert ended.out.count("pip install 'cklog[rocksdb]'") == 1
    assert "the offsets of 2 stores" in ended.out
    assert rows(tmp_path)["old"] == ("checkpoint", 13, None)
    assert cklog("inspect", tmp_path).code == 5
    assert opened(tmp_path).verify({"0/2": 13}, False, Question()).exit_code == 5


def test_stores_of_older_versions_need_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a store keeps offsets inside is told by its manifest."""
    task = put_task(tmp_path / APP, "0_1", (), {f"{APP}-counts-changelog 1": 12})
    put_store(task / "rocksdb" / "counts", "keyValueWithTimestamp", {b"k": 1})
    monkeypatch.setattr(rocksdb, "LIBRARY", "no_such_library")
    assert rows(tmp_path) == {"counts": ("checkpoint", 13, None)}
    assert findings(tmp_path) == []


def test_the_folder_after_the_layout_of_4_3(shared_data: Path) -> None:
    folder = shared_data / "engine-verified" / "kafka-streams-43" / "state"
    before = os.listdir(folder / "orders-app" / "0_1" / "rocksdb" / "counts")
    assert rows(folder) == {"counts": ("checkpoint", 1235, True)}
    assert os.listdir(folder / "orders-app" / "0_1" / "rocksdb" / "counts") == before
