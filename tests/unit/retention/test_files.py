"""Files that several checkpoints name, as rows."""

from __future__ import annotations

from pathlib import Path

from cklog.retention.files import CheckpointFate, StoredFiles, rows_of
from cklog.retention.plan import RetentionFate, RetentionRow
from cklog.storage import Root


def fate(name: str, found: RetentionFate) -> CheckpointFate:
    return CheckpointFate(RetentionRow(name, None, found, "rule", name, name), "stored/one")


def test_who_needs_a_file_most_decides_and_of_equals_the_first(tmp_path: Path) -> None:
    (tmp_path / "stored").mkdir()
    (tmp_path / "stored" / "one").write_bytes(b"abc")
    files = StoredFiles(Root(str(tmp_path)))
    judged = [fate("a", "OBSOLETE"), fate("b", "KEEP"), fate("c", "KEEP"), fate("d", "OBSOLETE")]
    (row,) = rows_of(judged, files)
    assert (row.path, row.bytes, row.fate, row.needed_by, row.checkpoint) == ("stored/one", 3, "KEEP", "b", "b")
