"""Checkpoint stores in LevelDB: read from a copy, by plyvel, where that is installed; else a hint."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cklog.errors import EngineError, UsageError
from cklog.parsers.patent.parser import PatentStore
from cklog.storage import Root
from tests.builders.patent import FIGURE, export, usual
from tests.program import cklog
from tests.reading.patent import chains, newest, pieces, rows


@pytest.fixture
def plyvel() -> Any:
    return pytest.importorskip("plyvel", reason="plyvel is not installed: no LevelDB can be made or read")


def write(plyvel: Any, folder: Path, pairs: Mapping[str, bytes], compact: bool = False, **options: Any) -> Path:
    """A LevelDB with the pairs; they stay in its log unless it is compacted."""
    folder.parent.mkdir(exist_ok=True)
    database = plyvel.DB(str(folder), create_if_missing=True, **options)
    for key, value in pairs.items():
        database.put(key.encode(), value)
    if compact:
        database.compact_range()
    database.close()
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in sorted(folder.iterdir())}


@pytest.mark.parametrize("compact", [False, True])
def test_a_leveldb_says_what_its_export_says_and_stays_as_it_is(plyvel: Any, tmp_path: Path, compact: bool) -> None:
    pairs = usual().in_chunks(8)
    exported = rows(pieces(export(tmp_path / "export", "window", pairs))[0])
    before = content(write(plyvel, tmp_path / "db" / "window", pairs, compact))
    found = rows(pieces(tmp_path / "db")[0])
    assert {k: {**r, "path": ""} for k, r in found.items()} == {k: {**r, "path": ""} for k, r in exported.items()}
    assert found["window", "variable-2", 3]["path"] == "window:3 INCR 2"
    assert content(tmp_path / "db" / "window") == before
    assert newest(tmp_path / "db") == 5


def test_path_may_be_the_database_itself(plyvel: Any, tmp_path: Path) -> None:
    folder = write(plyvel, tmp_path / "window", FIGURE)
    assert PatentStore.recognises(Root(str(folder)))
    assert ("window", "variable-2", 3) in rows(pieces(folder)[0])
    assert pieces(folder)[1] == ()


def test_a_damaged_block_costs_its_keys_only(plyvel: Any, tmp_path: Path) -> None:
    sizes = {"NON": 2000, "INCR": 0, "INDEX": 0}
    pairs = {f"{k} {part}": bytes([k]) * size for k in range(1, 100) for part, size in sizes.items()}
    folder = write(plyvel, tmp_path / "window", pairs, compact=True, compression=None)
    [table] = folder.glob("*.ldb")
    spoilt = bytearray(table.read_bytes())
    spoilt[len(spoilt) // 2] ^= 1
    table.write_bytes(spoilt)
    found, findings = pieces(folder)
    assert 90 < len({r["version"] for r in found.to_pylist() if r["flaw"] is None}) < 99
    assert newest(folder) == 99
    [corrupt] = [f for f in findings if f.id == "corrupt-file"]
    assert "block checksum mismatch" in corrupt.message
    assert str(tmp_path) not in corrupt.message


def test_a_torn_log_is_read_up_to_its_end(plyvel: Any, tmp_path: Path) -> None:
    """What a crash leaves: LevelDB itself drops a last record that is not whole."""
    folder = write(plyvel, tmp_path / "window", usual().pairs)
    [log] = folder.glob("*.log")
    whole = log.read_bytes()
    log.write_bytes(whole[:-3])
    assert newest(folder) == 4
    log.write_bytes(whole[:200] + b"\xff" + whole[201:])
    found, findings = pieces(folder)
    assert "corrupt-file" in {f.id for f in findings}
    assert len(found) < 15


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("CURRENT", None),
        ("MANIFEST", None),
        ("CURRENT", b""),
        ("CURRENT", b"../../elsewhere\n"),
        ("CURRENT", b"MANIFEST-000099\n"),
        ("MANIFEST", b""),
        ("MANIFEST", b"\xff" * 64),
        ("TABLE", None),
    ],
)
def test_one_that_cannot_be_opened_is_told_beside_the_others(
    plyvel: Any, tmp_path: Path, name: str, data: bytes | None
) -> None:
    folder = write(plyvel, tmp_path / "window", usual().pairs, compact=True)
    [path] = folder.glob({"CURRENT": "CURRENT", "MANIFEST": "MANIFEST-*", "TABLE": "*.ldb"}[name])
    if data is None:
        path.unlink()
    else:
        path.write_bytes(data)
    alone = cklog("inspect", folder, "--from", "patent-store")
    assert (alone.code, alone.out) == (65, "")
    assert "no checkpoint can be read" in alone.err
    export(tmp_path, "other", FIGURE)
    table, findings = pieces(tmp_path)
    assert {operator for operator, _, _ in rows(table)} == {"other"}
    assert [(f.id, f.severity, f.subject) for f in findings] == [("corrupt-file", "error", "window")]
    assert "/" not in findings[0].message
    assert not any("tmp" in f.message for f in findings)


def test_keys_of_others_and_folders_of_rocksdb_are_no_checkpoints(plyvel: Any, tmp_path: Path) -> None:
    folder = write(plyvel, tmp_path / "window", {**FIGURE, "other": b"x", "\xff": b""})
    [finding] = pieces(folder)[1]
    assert (finding.id, finding.severity) == ("unknown-key", "warning")
    (folder / "OPTIONS-000007").write_text("")
    assert not PatentStore.recognises(Root(str(folder)))
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "CURRENT").write_text("MANIFEST-000005\n")
    assert not PatentStore.recognises(Root(str(tmp_path))), "nothing but CURRENT"


def test_no_copy_is_left(plyvel: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(plyvel, tmp_path / "window", FIGURE)
    (tmp_path / "room").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "room"))
    assert chains(folder).names
    assert list((tmp_path / "room").iterdir()) == []
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage._replace(free=5))
    with pytest.raises(UsageError, match="5 are free"):
        pieces(folder)


def test_without_plyvel_there_is_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "window"
    folder.mkdir()
    (folder / "CURRENT").write_text("MANIFEST-000001\n")
    (folder / "MANIFEST-000001").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "plyvel", None)
    with pytest.raises(EngineError) as ended:
        pieces(folder)
    assert "cklog[leveldb]" in ended.value.hint
