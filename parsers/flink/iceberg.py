"""What Flink's sinks and sources for Iceberg have in their state: manifests that wait to be committed, by checkpoint;
and up to which snapshot a stream has looked for files.

    committable (1)     utf job  utf operator  checkpoint:i64  length:i32 MANIFESTS
    dynamic     (1)     utf table  utf branch  schema:i32 spec:i32 upsert:bool n:i32 field:i32*n
                        utf job  utf operator  checkpoint:i64  length:i32 MANIFESTS
                (2)     utf table  utf branch  utf job  utf operator  checkpoint:i64  n:i32 (length:i32 MANIFESTS)*n
    by checkpoint       n:i32 (checkpoint:i64 null:bool [length:i32 MANIFESTS])*n, of one list element
    job                 the id of the job that wrote the state, as Flink writes a string
    MANIFESTS           nothing, or version:i32 length:i32 and
                (1)     MANIFEST
                (2)     length:i32 [MANIFEST] length:i32 [MANIFEST] n:i32 (utf data file)*n      data, then deletes
    MANIFEST            c2 01  utf schema  and a record by it in Avro's binary form, its path first

    enumerator  (1)     there:bool [1:i32 length:i32 POSITION]  version:i32 n:i32 (length:i32 split  utf status)*n
                (2)     the same  m:i32 count:i32*m
    POSITION            there:bool [snapshot:i64]  there:bool [time:i64]

The first two are committables of the sinks on Flink's own committer, `by checkpoint` and `job` the older sink's lists.
A restore asks the table for the greatest checkpoint that it has of this job and operator, and commits what is above it.
Once committed, the manifests named here are deleted: one that is gone may be committed, or lost.

A stream reads on behind the snapshot of its position; what it has found up to there waits as splits, here and with its
readers. A bounded read has no position, and before its first look neither has a stream.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cklog.parsers.codecs.varints import BadVarint, unsigned_varint
from cklog.parsers.flink.java import Cursor, Malformed, Unknown
from cklog.parsers.flink.layouts import Cells, FoundElement, expect_version, read_magic, read_versioned

_ID = re.compile("[0-9a-f]{32}")
_MANIFEST = bytes.fromhex("c201")
_PATH_FIRST = re.compile(r'"fields"\s*:\s*\[\s*\{\s*"name"\s*:\s*"manifest_path"\s*,\s*"type"\s*:\s*"string"')
_KNOWN = (1, 2)
_SPLIT_VERSIONS = (1, 2, 3, 4)
_STATUSES = ("UNASSIGNED", "ASSIGNED", "COMPLETED")
_LONGEST_PATH = 1 << 14


def iceberg_committable(version: int, cursor: Cursor) -> Iterator[FoundElement]:
    """Read the manifests of one checkpoint, as IcebergCommittableSerializer writes them."""
    expect_version(version, 1)
    at = cursor.at
    cells = _read_writer(cursor) | {"form": "iceberg"}
    start = cursor.blob("manifests")
    cursor.done("a committable")
    yield from _pending(at, cells, Cursor(cursor.data, start, cursor.at))


def dynamic_committable(version: int, cursor: Cursor) -> Iterator[FoundElement]:
    """Read the manifests of one checkpoint and table, as DynamicCommittableSerializer writes them."""
    expect_version(version, 1, 2)
    at = cursor.at
    table, branch = cursor.utf("a table"), cursor.utf("a branch")
    if not table or not branch:
        raise Malformed(at, "a table or branch without a name")
    if version == 1:
        cursor.skip(8, "a schema and a spec")
        cursor.flag("whether it upserts")
        cursor.skip(4 * cursor.count(4, "fields"), "fields")
    name = table if branch == "main" else f"{table} {branch}"
    cells = _read_writer(cursor) | {"form": "iceberg-dynamic", "name": name}
    places = []
    for _ in range(cursor.count(4, "manifests") if version == 2 else 1):
        start = cursor.blob("manifests")
        places.append(Cursor(cursor.data, start, cursor.at))
    cursor.done("a committable")
    for place in places:
        yield from _pending(at, cells, place)


def iceberg_enumerator(version: int, cursor: Cursor) -> Iterator[FoundElement]:
    """Read up to which snapshot a source has looked for files, as IcebergEnumeratorStateSerializer writes it."""
    expect_version(version, 1, 2)
    at = cursor.at
    snapshot = _read_position(cursor) if cursor.flag("whether there is a position") else None
    expect_version(cursor.i32("a version of splits"), *_SPLIT_VERSIONS)
    for _ in range(cursor.count(6, "splits")):
        cursor.blob("a split")
        if cursor.utf("a status") not in _STATUSES:
            raise Malformed(cursor.at, "no status of a split")
    if version == 2:
        cursor.skip(4 * cursor.count(4, "counts"), "counts of splits")
    cursor.done("an enumerator")
    yield FoundElement(at, "enumerator", {"kind": "iceberg", "offset": snapshot})


def _read_position(cursor: Cursor) -> int | None:
    """Read the snapshot of a position; None: the table had none."""
    version, inner = read_versioned(cursor, "a position")
    expect_version(version, 1)
    snapshot = inner.i64("a snapshot") if inner.flag("whether there is a snapshot") else None
    if inner.flag("whether there is a time"):
        inner.i64("a time")
    inner.done("a position")
    return snapshot


def iceberg_by_checkpoint(cursor: Cursor) -> Iterator[FoundElement]:
    """Read all that the older sink's committer has pending: manifests by checkpoint, in their order."""
    before = -1
    for _ in range(cursor.count(9, "checkpoints")):
        at, checkpoint = cursor.at, cursor.i64("a checkpoint")
        if checkpoint <= before:
            raise Malformed(at, f"checkpoint {checkpoint} behind {before}")
        before = checkpoint
        if cursor.flag("whether there are no manifests"):
            continue
        start = cursor.blob("manifests")
        cells: Cells = {"form": "iceberg-files", "kind": "pending", "checkpoint": checkpoint}
        yield from _pending(at, cells, Cursor(cursor.data, start, cursor.at))


def iceberg_job(cursor: Cursor) -> Iterator[FoundElement]:
    """Read the id of the job that a restore of the older sink asks the table for."""
    at, job = cursor.at, read_text(cursor)
    if not _ID.fullmatch(job):
        raise Malformed(at, "no id of a job")
    yield FoundElement(at, "committer", {"uid": job, "form": "iceberg-files"})


def read_text(cursor: Cursor) -> str:
    """Read a string as Flink's own serializer writes it: one more than its length, and its characters, in sevens."""
    at = cursor.at
    length = _read_sevens(cursor) - 1
    if not 0 <= length <= cursor.end - cursor.at:
        raise Malformed(at, f"a string of {length} characters where {cursor.end - cursor.at} bytes are left")
    return "".join(chr(_read_sevens(cursor, 16)) for _ in range(length))


def _read_sevens(cursor: Cursor, bits: int = 31) -> int:
    """Read a number of seven bits a byte, the lowest first; each but the last has its top bit set."""
    at = cursor.at
    try:
        found, size = unsigned_varint(cursor.data[at : min(at + 5, cursor.end)], 0, bits)
    except BadVarint as reason:
        raise Malformed(at, str(reason)) from None
    cursor.skip(size, "a number")
    return found


def _read_writer(cursor: Cursor) -> Cells:
    """Read by whom and under which number the table is to know a commit."""
    at, job, operator = cursor.at, cursor.utf("a job"), cursor.utf("an operator")
    if not _ID.fullmatch(job) or not _ID.fullmatch(operator):
        raise Malformed(at, "no id of a job, or of an operator")
    return {"uid": job, "detail": operator, "checkpoint": cursor.size("a checkpoint")}


def _pending(at: int, cells: Cells, cursor: Cursor) -> Iterator[FoundElement]:
    """Yield a row for each manifest; one without a file where there is none, or where they are not understood."""
    if cursor.at == cursor.end:
        yield FoundElement(at, "pending", cells)
        return
    version, inner = read_versioned(cursor, "manifests")
    cursor.done("manifests")
    try:
        paths = _read_manifests(version, inner)
    except Unknown:
        yield FoundElement(at, "pending", cells | {"version": version})
        return
    for path in paths:
        yield FoundElement(at, "pending", cells | {"file": path})
    if not paths:
        yield FoundElement(at, "pending", cells)


def _read_manifests(version: int, cursor: Cursor) -> list[str]:
    """Read the paths of the data manifest and the delete manifest, as DeltaManifestsSerializer writes them."""
    expect_version(version, *_KNOWN)
    if version == 1:
        return [_read_manifest(cursor)]
    found = []
    for _ in range(2):
        start = cursor.blob("a manifest")
        if start != cursor.at:
            found.append(_read_manifest(Cursor(cursor.data, start, cursor.at)))
    for _ in range(cursor.count(2, "data files")):
        cursor.utf("a data file")
    cursor.done("manifests")
    return found


def _read_manifest(cursor: Cursor) -> str:
    """Read a manifest's path; the numbers behind it are passed over."""
    read_magic(cursor, _MANIFEST, "manifest")
    if not _PATH_FIRST.search(cursor.utf("a schema")):
        raise Unknown("a manifest whose path is not the first that is told of it")
    at = cursor.at
    length = _read_sevens(cursor)
    if length % 2 or not 0 < length // 2 <= _LONGEST_PATH:  # Avro's zigzag: negative ones are odd
        raise Malformed(at, "a manifest without a path")
    start = cursor.skip(length // 2, "the path of a manifest")
    try:
        path = cursor.data[start : cursor.at].decode("utf-8")
    except UnicodeDecodeError:
        raise Malformed(start, "a path that is not UTF-8") from None
    if "/" not in path or not path.isprintable():
        raise Malformed(start, "no path of a manifest")
    return path
