"""Files that Flink's file sink has written and not shown yet: in its committer's state, and in its writers'.

    committable (1, 2)  1e765c80 [2: utf bucket] FLAG[VERSIONED pending] FLAG[VERSIONED in progress] [2: FLAG[utf]]
    pending     (1, 2)  2c853c89 [2: FLAG[utf target] size:i64] VERSIONED place
    in progress (1, 2)  b3a4073d [2: FLAG[utf target]] VERSIONED place
    place       (1)     571e744b or 5e6c43d7, then offset:i64 target:i32 temporary:i32 and the two paths in UTF-8:
                        the file systems of this machine and of Hadoop, little-endian
    bucket      (2, 3)  1e764b79 VERSIONED bucket  utf path  created:i64 FLAG[VERSIONED in progress]
                        [2: version:i32 n:i32 (checkpoint:i64 k:i32 (length:i32 pending)*k)*n]

FLAG[x] is a byte: 0, or 1 and an x. What is pending is renamed to its target by a restore; the last two of a
committable are files to be removed, which loses nothing. Of other file systems (S3's uploads) only the target is told.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from cklog.parsers.flink.java import Cursor, Malformed, Unknown
from cklog.parsers.flink.layouts import Cells, FoundElement, expect_known, read_magic, read_versioned

FORM = "file"
_COMMITTABLE, _BUCKET = bytes.fromhex("1e765c80"), bytes.fromhex("1e764b79")
_PENDING, _IN_PROGRESS = bytes.fromhex("2c853c89"), bytes.fromhex("b3a4073d")
_PLACES = (bytes.fromhex("574b741e"), bytes.fromhex("5e6c43d7"))
_PLACE = struct.Struct("<4sqii")


def file_committable(version: int, cursor: Cursor) -> Iterator[FoundElement]:
    """Read what a committer is to rename, as FileSinkCommittableSerializer writes it."""
    read_magic(cursor, _COMMITTABLE, "committable of a file sink")
    expect_known(version, cursor.at, 1, 2)
    bucket = cursor.utf("a bucket") if version == 2 else ""
    if cursor.flag("whether a file is pending"):
        at, (inner_version, inner) = cursor.at, read_versioned(cursor, "a pending file")
        yield FoundElement(at, "pending", _read_pending(inner_version, inner) | {"name": bucket or None})
    if cursor.flag("whether a file in progress is to be removed"):
        _read_in_progress(*read_versioned(cursor, "a file in progress"))
    if version == 2 and cursor.flag("whether a compacted file is to be removed"):
        cursor.utf("a compacted file")
    cursor.done("a committable")


def file_bucket(version: int, cursor: Cursor) -> Iterator[FoundElement]:
    """Read the file that a writer goes on with, as FileWriterBucketStateSerializer writes it."""
    read_magic(cursor, _BUCKET, "bucket of a file sink")
    expect_known(version, cursor.at, 2, 3)
    read_versioned(cursor, "a bucket")
    bucket = cursor.utf("the path of a bucket")
    cursor.i64("a time")
    if cursor.flag("whether a file is in progress"):
        at, (inner_version, inner) = cursor.at, read_versioned(cursor, "a file in progress")
        cells = _read_in_progress(inner_version, inner) | {"kind": "in-progress", "name": bucket}
        yield FoundElement(at, "pending", cells)
    if version == 2:
        yield from _read_pending_by_checkpoint(cursor, bucket)
    cursor.done("a bucket")


def _read_pending_by_checkpoint(cursor: Cursor, bucket: str) -> Iterator[FoundElement]:
    """Read what writers kept themselves before there were committers."""
    version = cursor.i32("a version")
    for _ in range(cursor.count(12, "checkpoints")):
        checkpoint = cursor.i64("a checkpoint")
        for _ in range(cursor.count(4, "pending files")):
            at = cursor.blob("a pending file")
            cells = _read_pending(version, Cursor(cursor.data, at, cursor.at))
            yield FoundElement(at, "pending", cells | {"kind": "pending", "name": bucket, "checkpoint": checkpoint})


def _read_pending(version: int, cursor: Cursor) -> Cells:
    """Read a file that is complete and to be renamed."""
    read_magic(cursor, _PENDING, "pending file")
    expect_known(version, cursor.at, 1, 2)
    target = cursor.utf("a target") if version == 2 and cursor.flag("whether there is a target") else None
    if version == 2:
        cursor.i64("a size")
    cells = _read_place(*read_versioned(cursor, "a place"), target)
    cursor.done("a pending file")
    return cells


def _read_in_progress(version: int, cursor: Cursor) -> Cells:
    """Read a file that is written to."""
    read_magic(cursor, _IN_PROGRESS, "file in progress")
    expect_known(version, cursor.at, 1, 2)
    target = cursor.utf("a target") if version == 2 and cursor.flag("whether there is a target") else None
    cells = _read_place(*read_versioned(cursor, "a place"), target)
    cursor.done("a file in progress")
    return cells


def _read_place(version: int, cursor: Cursor, target: str | None) -> Cells:
    """Read where a file lies, how much of it counts, and what it becomes; of other systems only what it becomes."""
    at, size = cursor.at, cursor.end - cursor.at
    if size < _PLACE.size or cursor.data[at : at + 4] not in _PLACES:
        if target is None:
            raise Unknown("a place of another file system")
        return {"form": FORM, "detail": target, "version": version}
    expect_known(version, at, 1)
    _, length, first, second = _PLACE.unpack_from(cursor.data, cursor.skip(_PLACE.size, "a place"))
    if length < 0 or min(first, second) <= 0 or first + second != cursor.end - cursor.at:
        raise Malformed(at, "no place of a file")
    named, held = _read_path(cursor, first), _read_path(cursor, second)
    return {"form": FORM, "file": held, "bytes": length, "detail": target or named}


def _read_path(cursor: Cursor, length: int) -> str:
    at = cursor.skip(length, "a path")
    try:
        path = cursor.data[at : cursor.at].decode("utf-8")
    except UnicodeDecodeError:
        raise Malformed(at, "a path that is not UTF-8") from None
    if "/" not in path or "\0" in path:
        raise Malformed(at, "no path of a file")
    return path
