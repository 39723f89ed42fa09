"""What Flink's source of Iceberg keeps of the table that it reads, by the format and independent of the reader."""

from __future__ import annotations

from collections.abc import Sequence

from tests.builders import flink as fb


def iceberg_enumerator(snapshot: int | None, splits: Sequence[tuple[bytes, str]] = (), version: int = 2) -> bytes:
    """What a source of Iceberg keeps; a position without a snapshot is that of an empty table."""
    there = b"\0" if snapshot is None else b"\1" + fb.i64(snapshot)
    position = there + (b"\0" if snapshot is None else b"\1" + fb.i64(1_795_462_000_000))
    data = b"\1" + fb.versioned(1, position) + fb.i32(3, len(splits))
    data += b"".join(fb.blob(split) + fb.utf(status) for split, status in splits)
    return data + (fb.i32(2, 5, 0) if version == 2 else b"")
