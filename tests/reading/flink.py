"""Flink's metadata read back: rows without their empty cells, and damage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cklog.engine.scan import Damage, Split, reader_of
from cklog.inputs.snapshots import COLUMNS
from cklog.parsers.flink.metadata import READER

Cells = dict[str, Any]


def split_of(path: Path, shown: str | None = None) -> Split:
    size = path.stat().st_size
    return Split(str(path), shown or path.name, READER, 0, size, size)


def scanned(path: Path, shown: str | None = None) -> tuple[list[Cells], list[Damage]]:
    """All rows of a metadata file with `_offset`, and its damage."""
    split, columns = split_of(path, shown), (*COLUMNS, "_path", "_offset")
    rows, damage = [], []
    for found in reader_of(split)(split, "snapshots", columns):
        if isinstance(found, Damage):
            damage.append(found)
            continue
        assert found.schema.names == list(columns)
        for one in found.to_pylist():
            assert one.pop("_path") == split.path
            rows.append({name: cell for name, cell in one.items() if cell is not None})
    return rows, damage


def said(path: Path, shown: str | None = None) -> list[Cells]:
    """The rows of an undamaged file, without their offsets; `shown`: its path below PATH.

    Of a file with a later version the one thing that is said of it.
    """
    rows, damage = scanned(path, shown)
    if damage and damage[0].id == "unknown-version":
        return [{"entry": damage[0].id, "kind": damage[0].id, "detail": damage[0].detail}]
    assert not damage
    return [{name: cell for name, cell in one.items() if name != "_offset"} for one in rows]


def of(rows: list[Cells], entry: str, **cells: Any) -> list[Cells]:
    """The rows of an entry that have these cells."""
    return [r for r in rows if r["entry"] == entry and all(r.get(name) == cell for name, cell in cells.items())]
