"""Heads of snapshots, made of all of them in one pass, beside each by itself, row by row, as they are defined."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from cklog.inputs.snapshots import SNAPSHOTS
from cklog.runs.snapshots.heads import heads_of

HANDLES = st.fixed_dictionaries(
    {
        "entry": st.just("handle"),
        "file": st.sampled_from([None, "a", "b", "c"]),
        "start": st.sampled_from([None, None, 0, 5]),
        "bytes": st.sampled_from([None, 0, 3, 10]),
        "uid": st.sampled_from([None, "u", "v"]),
    }
)
OTHERS = st.sampled_from(["operator", "source"]).map(lambda entry: {"entry": entry, "uid": "no keyed state"})
SNAPSHOT = st.lists(HANDLES | OTHERS, max_size=8)


def of_one(rows: list[dict[str, Any]]) -> tuple[int, bool, frozenset[str]]:
    """State inlined, and where parts of files are named each part once; whole files are counted elsewhere."""
    handles = [row for row in rows if row["entry"] == "handle"]
    parted = any(row["start"] is not None for row in handles)
    inlined = sum(row["bytes"] or 0 for row in handles if row["file"] is None)
    parts: dict[tuple[str, int | None], int] = {}
    for row in handles:
        if parted and row["file"] is not None:
            key = (row["file"], row["start"])
            parts[key] = max(parts.get(key, 0), row["bytes"] or 0)
    return inlined + sum(parts.values()), not parted, frozenset(row["uid"] for row in handles if row["uid"])


@given(st.lists(SNAPSHOT, min_size=1, max_size=6), st.sets(st.integers(0, 5)))
def test_heads_are_those_of_each_snapshot_alone(snapshots: list[list[dict[str, Any]]], headless: set[int]) -> None:
    rows: list[dict[str, Any]] = []
    folders = []
    for number, found in enumerate(snapshots):
        begin = len(rows)
        rows += found
        rows += [] if number in headless else [{"entry": "snapshot", "checkpoint": number, "name": "Checkpoint"}]
        folders.append((f"job/chk-{number}", begin, len(rows)))
    table = pa.Table.from_pylist(rows, SNAPSHOTS)
    heads = heads_of(table, [folder for folder in folders if folder[1] < folder[2]])
    for number, found in enumerate(snapshots):
        head = heads.get(f"job/chk-{number}")
        if number in headless:
            assert head is None
            continue
        assert head is not None
        assert (head.row["checkpoint"], head.row["name"], head.row["version"]) == (number, "Checkpoint", None)
        assert (head.bytes, head.whole_files, head.backends) == of_one(found)
