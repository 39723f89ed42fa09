"""Stores that RocksDB refuses to open, or opens without their newest records, are no plain restart."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders.rocksdb import rocksdict, store
from tests.builders.stores import put_log
from tests.program import cklog


def zeroed(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def halved(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def last_lost(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def run_with_store(folder: Path) -> Path:
    """A task with one store, as RocksDB wrote it, and the offset that it holds."""
    task = folder / "app" / "0_0"
    (task / "rocksdb").mkdir(parents=True)
    (task / ".checkpoint").write_text("0\n1\napp-counts-changelog 0 299\n")
    return store(task / "rocksdb" / "counts")


def opens(database: Path) -> bool:
    """Whether RocksDB opens a store."""
    rocks = rocksdict()
    try:
        rocks.Rdict(str(database), rocks.Options(raw_mode=True)).close()
    except Exception:
        return False
    return True


@pytest.mark.parametrize(
    ("name", "damage", "refused"),
    [
        ("CURRENT", zeroed, True),
        ("CURRENT", emptied, True),
        ("CURRENT", halved, True),
        ("MANIFEST", zeroed, True),
        ("MANIFEST", emptied, True),
        ("MANIFEST", last_lost, False),
        ("MANIFEST", Path.unlink, True),
    ],
)
def test_a_store_that_cannot_be_opened_as_it_was_is_deleted_first(
    name: str, damage: Callable[[Path], None], refused: bool, tmp_path: Path
) -> None:
    database = run_with_store(tmp_path / "state")
    put_log(tmp_path / "kafka", "app-counts-changelog", 0, 300)
    asked = ("recovery-line", tmp_path / "state", "--kafka", tmp_path / "kafka")
    assert cklog(*asked).code == 0
    (file,) = database.glob(f"{name}*")
    damage(file)
    ended = cklog(*asked, "--json")
    answer = json.loads(ended.out)
    (run,) = answer["result"]["runs"]
    assert (ended.code, run["action"], run["command"]) == (3, "repair-first", "rm -r -- ./app/0_0")
    (finding,) = [f for f in answer["findings"] if f["severity"] == "error"]
    assert finding["id"] == "corrupt-file"
    assert "RocksDB refuses to open the store" in finding["message"]
    assert opens(database) is not refused


def test_a_segment_of_a_windowed_store_is_looked_at_too(tmp_path: Path) -> None:
    database = run_with_store(tmp_path)
    segment = database / "counts.1700000000000"
    segment.parent.rename(tmp_path / "moved")
    database.mkdir()
    (tmp_path / "moved").rename(segment)
    assert cklog("recovery-line", tmp_path).code == 0
    zeroed(segment / "CURRENT")
    assert cklog("recovery-line", tmp_path).code == 3


def test_space_that_was_reserved_at_the_end_of_a_manifest_is_no_damage(tmp_path: Path) -> None:
    database = run_with_store(tmp_path)
    (manifest,) = database.glob("MANIFEST*")
    manifest.write_bytes(manifest.read_bytes() + bytes(64))
    assert cklog("recovery-line", tmp_path).code == 0
    assert opens(database)
