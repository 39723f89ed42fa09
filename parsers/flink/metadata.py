"""Flink's `_metadata`: what a checkpoint or savepoint consists of. Versions 2 to 6 (Flink 1.3 to 2.3), and 7.

    file      = magic 4960672d  version:i32  checkpoint:i64  n:i32 MASTER*n  n:i32 OPERATOR*n  [4-: properties]
    MASTER    = magic c96b1696  length:i32  (version:i32  utf name  length:i32 bytes)
    OPERATOR  = [5-: utf name  utf uid]  id:16  parallelism:i32  most:i32  [2: 1:i32]  [3-: STREAM, the coordinator's]
                n:i32  (index:i32 SUBTASK)*n     from version 3 on: n < 0, all of it had finished and nothing follows;
                                                 index < 0, instance -index - 1 had finished and has no SUBTASK
    SUBTASK   = [2: duration:i64 0:i32]  0|1:i32 [STATES] managed  0|1:i32 [STATES] raw  KEYED managed  KEYED raw
                [3-: n:i32 CHANNEL*n input  n:i32 CHANNEL*n output]  [7: 0|1:u8 [checkpoint:i64]]
    properties = a serialized CheckpointProperties, or a serialized null

Integers are big-endian; STREAM, STATES, KEYED and CHANNEL are those of `cklog.parsers.flink.handles`. The job manager
writes the file last. It has no checksum: a cut or a longer file does not decode, a flipped bit may well. Version 7 is
not released; in it, an instance's state may be that of an older checkpoint. Of a file that does not decode to its last
byte only its damage is returned: where decoding stopped, and why.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from itertools import islice

import pyarrow as pa

from cklog.arrow_errors import ARROW_ERRORS
from cklog.budgets import budgets, over
from cklog.engine.scan import Damage, Split, Together, damage_of
from cklog.parsers.flink.contents import ByteStretch
from cklog.parsers.flink.derived import MOST_KEY_GROUPS, key_groups, operator_id
from cklog.parsers.flink.elements import OperatorSource, coordinated
from cklog.parsers.flink.handles import Handles
from cklog.parsers.flink.java import Constant, Cursor, Instance, Malformed, Unknown, UnknownVersion, serialized
from cklog.parsers.flink.rows import Owner, Row, batch, handle_row, row
from cklog.progress import portion
from cklog.storage import open_file
from cklog.unknown_formats import is_one_bit_off

READER = "cklog.parsers.flink.metadata:read"
TOGETHER = "cklog.parsers.flink.metadata:read_together"
LINKED = "cklog.parsers.flink.metadata:unread"
"""The reader of metadata that is a link which is not followed."""

VERSIONS = range(2, 8)
_OLDEST, UNRELEASED = 1, 7

_MAGIC, _MASTER_MAGIC = "4960672d", "c96b1696"
_ROWS_AT_ONCE = 1 << 13
_FEW_BYTES = 64 << 10
"""A file with more is read alone."""

_BYTES_OF_ROW, _ROWS_HELD = 32, 1 << 18
"""A row of a real file takes more. If rows are smaller, or more, the file is decoded twice, so that they need not be
held: none is believed before its end."""

_PROPERTIES = "org.apache.flink.runtime.checkpoint.CheckpointProperties"
_KINDS = ("Checkpoint", "Full Checkpoint", "Savepoint", "Suspend Savepoint", "Terminate Savepoint")

_PROPERTIES_LIMIT = 16 << 10
"""Bytes of properties that are decoded; real ones take less than one thousand."""

_OWN = re.compile(r"(?s)(.*/chk-([0-9]{1,19}))(?:/|\Z)")
_SAVEPOINT = re.compile(r"(?s)(.*/savepoint-[0-9a-f]{6}-[0-9a-f]{12})(?:/|\Z)")
_JOB = re.compile(r"(?s)(.*/[0-9a-f]{32})/(?:shared|taskowned)(?:/|\Z)")


def unread(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Say of metadata that nobody looked at what it leads to; a `cklog.engine.scan.Reader`."""
    yield Damage(split.path, "unreadable-file", None, "a link that is not followed: what it leads to was not read")


def read(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Read one whole `_metadata`: its rows, or its damage. A `cklog.engine.scan.Reader` for the table snapshots."""
    if split.size > budgets().metadata:
        raise over(f"metadata of {split.size} bytes", budgets().metadata, split.path)
    try:
        with open_file(split.uri, split.size) as file:
            data: bytes = file.read(min(file.size(), budgets().metadata))  # pyarrow allocates what it is asked for
    except (OSError, ValueError, *ARROW_ERRORS) as error:
        yield damage_of(split.path, error, "cannot be read: ")
        return
    try:
        yield from _record_batches(split, data, columns)
    except Malformed as reason:
        yield Damage(split.path, "corrupt-metadata", reason.at, reason.why)
    except UnknownVersion as reason:
        yield Damage(split.path, "unknown-version", reason.at, reason.why)


def _record_batches(split: Split, data: bytes, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """Yield all rows, once the whole file is known to decode."""
    found = rows(split, data)
    most = min(_ROWS_HELD, _ROWS_AT_ONCE + len(data) // _BYTES_OF_ROW)
    held = list(islice(found, most))
    if len(held) < most:
        yield batch(held, columns, {split.path: len(held)})
        return
    del held
    for _ in found:
        pass
    found = rows(split, data)
    while held := list(islice(found, _ROWS_AT_ONCE)):
        yield batch(held, columns, {split.path: len(held)})


def read_together(splits: Sequence[Split], table: str, columns: tuple[str, ...]) -> Iterator[Together | Split]:
    """Read small files, many of them as one batch, and hand back the others, and those that are damaged.

    Arrays of a few rows cost as much as of a thousand, and threads wait for each other at every one of them. A
    `cklog.engine.scan.Gatherer`.
    """
    held: list[Row] = []
    files: dict[str, int] = {}
    for split in splits:
        found = _small(split)
        if found is None:
            yield split
            continue
        held += found
        files[split.path] = len(found)
        if len(held) >= _ROWS_AT_ONCE:
            yield Together(batch(held, columns, files), files)
            held, files = [], {}
    if held:
        yield Together(batch(held, columns, files), files)


def _small(split: Split) -> list[Row] | None:
    """Return the rows of a small file that is as it was listed; None where it has to be read with more care."""
    if split.size > min(_FEW_BYTES, budgets().metadata):
        return None
    try:
        with portion(split.cost()), open_file(split.uri) as file:
            data: bytes = file.read(split.size + 1)
        return [*rows(split, data)] if len(data) == split.size else None
    except (OSError, ValueError, *ARROW_ERRORS, Malformed, UnknownVersion):  # which reading it alone will tell
        return None


def rows(split: Split, data: bytes) -> Iterator[Row]:
    """Yield rows of the table of snapshots in the order of the file, the snapshot itself as the last one.

    Raises
    ------
    Malformed
        where the bytes stop making sense; the rows before are not to be believed either.
    UnknownVersion
        where a number is later than all that are known; the rows before are not to be believed either.
    """
    cursor = Cursor(data)
    _expect_magic(cursor, _MAGIC, "a metadata file")
    version = cursor.i32("a version")
    if version < _OLDEST:
        raise Malformed(4, f"version {version}; there is none before {_OLDEST}")
    if version not in VERSIONS:
        raise UnknownVersion(4, f"version {version}; known are {VERSIONS[0]} to {VERSIONS[-1]}")
    checkpoint = cursor.i64("a checkpoint")
    if checkpoint < 0:
        raise Malformed(8, f"the checkpoint is {checkpoint}")
    handles = Handles(cursor, split)
    for _ in range(cursor.count(8, "master hooks")):
        yield _read_master_hook(cursor)
    for _ in range(cursor.count(28, "operators")):
        yield from _read_operator(cursor, handles, version)
    if version == UNRELEASED:
        detail = "version 7 is of no release of Flink; it is read as it was proposed"
        yield row(4, "unread", kind="unreleased-version", detail=detail)
    properties: dict[str, str | None] = {}
    if version >= 4:
        at = cursor.at
        try:
            properties = _read_properties(cursor)
        except UnknownVersion:
            raise
        except Unknown as reason:
            yield row(at, "unread", kind="unknown-properties", detail=str(reason))
    else:
        cursor.done("the last operator")
    folder = _written_folder(handles.folders, checkpoint, properties.get("name"))
    yield row(0, "snapshot", checkpoint=checkpoint, version=version, bytes=len(data), file=folder, **properties)


def _expect_magic(cursor: Cursor, magic: str, what: str) -> None:
    at = cursor.skip(4, f"the start of {what}")
    if cursor.data[at : cursor.at].hex() != magic:
        raise Malformed(at, f"{what} begins with {magic}, and here is {cursor.data[at : cursor.at].hex()}")


def _read_master_hook(cursor: Cursor) -> Row:
    """Read the state of a hook in the job manager."""
    at = cursor.at
    _expect_magic(cursor, _MASTER_MAGIC, "the state of a master hook")
    inner = Cursor(cursor.data, cursor.blob("the state of a master hook"), cursor.at)
    inner.i32("a version")
    name = inner.utf("the name of a master hook")
    start = inner.blob("the state of a master hook")
    inner.done("the state of a master hook")
    piece = ByteStretch("inline", None, None, inner.at - start, at=start)
    return handle_row(at, Owner(None, None, "master"), piece, name)


def _read_operator(cursor: Cursor, handles: Handles, version: int) -> Iterator[Row]:
    """Read an OPERATOR with all its subtasks."""
    at = cursor.at
    name, uid = (cursor.utf("an operator's name"), cursor.utf("an operator's uid")) if version >= 5 else ("", "")
    start = cursor.skip(16, "an operator's id")
    operator = cursor.data[start : cursor.at].hex()
    parallelism, most = cursor.i32("a parallelism"), cursor.i32("a highest parallelism")
    if uid and operator_id(uid) != operator:
        raise Malformed(start, f"the operator {operator} where its uid {uid} makes it {operator_id(uid)}")
    if not 0 < parallelism <= most:
        raise Malformed(cursor.at - 8, f"a parallelism of {parallelism}, {most} at the most")
    if most > MOST_KEY_GROUPS:
        raise Malformed(cursor.at - 4, f"{most} key groups; there are {MOST_KEY_GROUPS} at the most")
    if version == 2:
        cursor.i32("the length of a chain")
    place = cursor.at
    piece = handles.coordinator() if version >= 3 else None
    handles.source = OperatorSource()
    count = cursor.i32("the number of subtasks")
    if count > parallelism or (count < 0 and version == 2):
        raise Malformed(cursor.at - 4, f"{count} subtasks where the parallelism is {parallelism}")
    yield row(
        at,
        "operator",
        operator=operator,
        name=name or None,
        uid=uid or None,
        parallelism=parallelism,
        max_parallelism=most,
        kind="finished" if count < 0 else None,
        detail=None if piece is None else str(piece.bytes),
    )
    if piece is not None:
        yield handle_row(place, Owner(operator, None, "coordinator"), piece)
        yield from coordinated(cursor.data, piece, operator, handles.source)
    seen = bytearray(parallelism if count > 0 else 0)
    for _ in range(count):
        at = cursor.at
        subtask = yield from _read_subtask(cursor, handles, version, operator, (parallelism, most))
        if seen[subtask]:
            raise Malformed(at, f"subtask {subtask} a second time")
        seen[subtask] = 1
    yield from handles.source.unread_enumerator(operator)


def _read_subtask(
    cursor: Cursor, handles: Handles, version: int, operator: str, of: tuple[int, int]
) -> Generator[Row, None, int]:
    """Read the index of a subtask, which is returned, and its SUBTASK unless it had finished.

    `of` are the operator's parallelism and the highest that it can have.
    """
    at, (parallelism, most) = cursor.at, of
    index = cursor.i32("a subtask")
    finished = index < 0 and version >= 3
    subtask = -index - 1 if finished else index
    if not 0 <= subtask < parallelism:
        raise Malformed(at, f"subtask {subtask} where the parallelism is {parallelism}")
    if finished:
        yield row(at, "finished", operator=operator, subtask=subtask)
        return subtask
    if version == 2:
        cursor.i64("a duration")
        if cursor.i32("the number of legacy states"):
            raise Malformed(cursor.at - 4, "state of Flink 1.2 or before")
    yield from handles.operator_state(operator, subtask, "managed-operator")
    yield from handles.operator_state(operator, subtask, "raw-operator")
    groups = key_groups(subtask, parallelism, most)
    yield from handles.keyed_state(operator, subtask, "managed-keyed", groups)
    yield from handles.keyed_state(operator, subtask, "raw-keyed", groups)
    if version >= 3:
        yield from handles.channels(operator, subtask, "input", version >= 6)
        yield from handles.channels(operator, subtask, "output", version >= 6)
    if version == UNRELEASED and cursor.flag("whether the state is an older checkpoint's"):
        place, older = cursor.at, cursor.i64("a checkpoint")
        yield row(place, "reference", operator=operator, subtask=subtask, checkpoint=older)
    return subtask


def _read_properties(cursor: Cursor) -> dict[str, str | None]:
    """Read name and kind (the way of writing) of the snapshot, and as its detail the settings that are on."""
    length = cursor.end - cursor.at
    if length > _PROPERTIES_LIMIT:
        raise Unknown(f"{length} bytes of properties")
    found = serialized(cursor)
    if found is None:
        return {}
    kind = found.fields.get("checkpointType") if isinstance(found, Instance) else None
    if isinstance(found, Instance) and is_one_bit_off(found.name, [_PROPERTIES]):
        raise Malformed(cursor.end - length, f"properties of a class that there is not: {found.name:.99}")
    if not isinstance(found, Instance) or not isinstance(kind, Instance) or found.name != _PROPERTIES:
        raise UnknownVersion(cursor.end - length, "properties of an unknown class")
    name, written = kind.fields.get("name"), kind.fields.get("formatType", kind.fields.get("sharingFilesStrategy"))
    if name not in _KINDS:  # Flink does not compare it: where a bit of it is wrong, a restore does not fail
        damaged = isinstance(name, str) and is_one_bit_off(name, _KINDS)
        why = f"a snapshot of the unknown kind {name!r:.99}"
        raise Unknown(why) if damaged else UnknownVersion(cursor.end - length, why)
    return {
        "name": name,
        "kind": written.name if isinstance(written, Constant) else None,
        "detail": ",".join(sorted(name for name, value in found.fields.items() if value is True)),
    }


def _written_folder(folders: set[str], checkpoint: int, name: str | None) -> str | None:
    """Infer where the snapshot's own folder was when it was written; None if its handles do not tell, or disagree.

    >>> _written_folder({"file:/a/chk-3", "file:/a/shared", "file:/a/chk-2"}, 3, "Checkpoint")
    'file:/a/chk-3'
    >>> _written_folder({f"s3://b/{'0a' * 16}/taskowned/x"}, 3, "Checkpoint")
    's3://b/0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a/chk-3'
    """
    if name is not None and "Savepoint" in name:
        found = {match[1] for folder in folders if (match := _SAVEPOINT.match(folder))}
        return found.pop() if len(found) == 1 else None
    own = {match[1] for folder in folders if (match := _OWN.match(folder)) and int(match[2]) == checkpoint}
    jobs = {f"{match[1]}/chk-{checkpoint}" for folder in folders if (match := _JOB.match(folder))}
    found = own or jobs
    return found.pop() if len(found) == 1 else None
