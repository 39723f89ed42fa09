"""What sinks of Flink have in operator state: transactions and files that a restore commits, by their committers.

    writer      (1)  utf prefix
                (2)  utf prefix  subtask:i32  subtasks:i32  ownership:i32  n:i32 (utf id  checkpoint:i64)*n
    collector   (1)  b91f252c LIST(committable)                   (2)  b91f252c LIST(checkpoint)
    checkpoint  (0, 1)     id:i64 [1: subtasks:i32] LIST(subtask)
    subtask     (0, 1, 2)  [1, 2: subtask:i32] LIST(request) n:i32 [0, 1: drained:i32] failed:i32
    request     (0)        VERSIONED committable  retries:i32  state:i32
    committable            of Kafka (1): epoch:i16 producer:i64 utf id;  of files: `sink_files`;  of Iceberg: `iceberg`
    Paimon      (2 to 6)   identifier:i64 FLAG(none) [watermark:i64] [2 to 4: n:i32 (bucket:i32 offset:i64)*n]
                           [4 on: n:i32 (utf key utf value)*n] [6: n:i32 (schema:i64 k:i32 (utf column)*k)*n]
                           version:i32 messages:i32 …, which name the files
    user                   who commits to Paimon, as Flink writes a string

Every sink on Flink's committer keeps a collector, Paimon's committer its own committables under the same name. Of a
committable that fits nothing known, its checkpoint and version are told, and no more. What stands behind the number of
Paimon's messages is not decoded: rows of its own binary form, in ten versions.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cklog.parsers.flink.iceberg import dynamic_committable, iceberg_committable, read_text
from cklog.parsers.flink.java import Cursor, Malformed, wrong_number
from cklog.parsers.flink.layouts import (
    Cells,
    ElementLayout,
    FoundElement,
    expect_known,
    expect_version,
    fitting,
    read_list,
    read_magic,
    read_versioned,
)
from cklog.parsers.flink.sink_files import file_committable

_COLLECTOR = bytes.fromhex("b91f252c")
_FATES = {0: "pending", 1: "pending", 2: "failed", 3: "committed"}
"""Of a request to commit: received, to be tried again, failed, done."""

_PAIMON = range(2, 7)
NEWEST_PAIMON = _PAIMON[-1]
_OFFSETS_UNTIL, _PROPERTIES_FROM, _COLUMNS_FROM = 4, 4, 6
_LAST_IDENTIFIER = (1 << 63) - 1
_MOST_IDENTIFIER = 1 << 48
"""Checkpoints are counted from 1; a batch has the greatest number that there is. What lies between is no identifier."""

_MOST_MESSAGES_VERSION = 99


def kafka_writer(version: int, cursor: Cursor) -> Iterator[FoundElement]:
    """Read transactions of a writer that are to be committed, as KafkaWriterStateSerializer writes them."""
    expect_version(version, 1, 2)
    at = cursor.at
    yield FoundElement(at, "transaction", {"name": _read_transaction_id(cursor), "kind": "prefix"})
    if version == 2:
        cursor.skip(12, "whose transactions they are")
        for _ in range(cursor.count(10, "transactions")):
            at = cursor.at
            cells: Cells = {"name": _read_transaction_id(cursor), "kind": "open"}
            yield FoundElement(at, "transaction", cells | {"checkpoint": cursor.i64("a checkpoint")})
    cursor.done("a writer")


def _read_transaction_id(cursor: Cursor) -> str:
    name = cursor.utf("a transactional id")
    if not name:
        raise Malformed(cursor.at, "an empty transactional id")
    return name


def _kafka_committable(version: int, cursor: Cursor) -> Iterator[FoundElement]:
    """Read a transaction that was to be committed when the checkpoint was complete."""
    expect_version(version, 1)
    at = cursor.skip(2, "an epoch")
    epoch = int.from_bytes(cursor.data[at : cursor.at], "big", signed=True)
    producer = cursor.i64("a producer")
    cells: Cells = {"name": _read_transaction_id(cursor), "detail": f"producer {producer} epoch {epoch}"}
    cursor.done("a committable")
    yield FoundElement(at, "transaction", cells)


def _unknown_committable(version: int, cursor: Cursor) -> Iterator[FoundElement]:
    """Say that there is a committable, and its version: all that a collector tells of one that fits nothing known.

    Raises `UnknownVersion` where it fits an earlier version of a known one.
    """
    fitting(_COMMITTABLES, version, cursor)
    yield FoundElement(cursor.at, "pending", {"version": version})


def _collector(committable: ElementLayout, version: int, cursor: Cursor) -> Iterator[FoundElement]:
    """Read a committer's state whose committables are all of one layout."""
    read_magic(cursor, _COLLECTOR, "collector of committables")
    expect_known(version, cursor.at, 1, 2)
    for inner, number in read_list(cursor, () if version == 1 else (0, 1)):
        if version == 1:
            for found in committable(number, inner):
                yield found._replace(cells=found.cells | {"kind": "pending"})
        else:
            yield from _read_checkpoint_committables(committable, inner, number)
    cursor.done("a collector")


def _read_checkpoint_committables(committable: ElementLayout, cursor: Cursor, version: int) -> Iterator[FoundElement]:
    """Read a checkpoint of a collector: the requests of all subtasks."""
    checkpoint = cursor.i64("a checkpoint")
    if version == 1:
        cursor.i32("the number of subtasks")
    for inner, number in read_list(cursor, (0, 1, 2)):
        if number:
            inner.i32("a subtask")
        for request, _ in read_list(inner, (0,)):
            yield from _read_request(committable, request, checkpoint)
        inner.skip(8 if number == 2 else 12, "counts of committables")
        inner.done("a subtask's committables")
    cursor.done("a checkpoint's committables")


def _read_request(committable: ElementLayout, cursor: Cursor, checkpoint: int) -> Iterator[FoundElement]:
    """Read a request to commit something, and what became of it."""
    version, inner = read_versioned(cursor, "a committable")
    cursor.i32("a number of retries")
    fate = cursor.i32("the state of a request")
    if fate not in _FATES:
        raise wrong_number(cursor.at - 4, fate, max(_FATES), f"a request in state {fate}")
    cursor.done("a request")
    of: Cells = {"checkpoint": checkpoint}
    for found in committable(version, inner):
        yield found._replace(cells=of | found.cells | {"kind": _FATES[fate]})


def paimon_committable(version: int, cursor: Cursor) -> Iterator[FoundElement]:
    """Read under which identifier Paimon's committer commits, as ManifestCommittableSerializer writes it."""
    expect_version(version, *_PAIMON)
    at, identifier = cursor.at, cursor.size("an identifier")
    if _MOST_IDENTIFIER <= identifier != _LAST_IDENTIFIER:
        raise Malformed(at, f"an identifier of {identifier}")
    if not cursor.flag("whether there is no watermark"):
        cursor.i64("a watermark")
    if version <= _OFFSETS_UNTIL:
        cursor.skip(12 * cursor.count(12, "offsets"), "offsets")
    if version >= _PROPERTIES_FROM:
        for _ in range(cursor.count(4, "properties")):
            cursor.utf("a property")
            cursor.utf("the value of a property")
    if version >= _COLUMNS_FROM:
        for _ in range(cursor.count(12, "lists of columns")):
            cursor.i64("a schema")
            for _ in range(cursor.count(2, "columns")):
                cursor.utf("a column")
    of, messages = cursor.i32("a version"), cursor.count(12, "messages")
    if not 0 < of <= _MOST_MESSAGES_VERSION:
        raise Malformed(cursor.at - 8, f"commit messages of version {of}")
    cells: Cells = {"kind": "pending", "form": "paimon", "checkpoint": identifier}
    if messages:
        cells |= {"version": of, "detail": f"{messages} commit message{'s' if messages > 1 else ''}"}
        cursor.skip(cursor.end - cursor.at, "commit messages")
    elif version < _COLUMNS_FROM:
        cursor.done("a committable")
    yield FoundElement(at, "pending", cells)


def commit_user(cursor: Cursor) -> Iterator[FoundElement]:
    """Read who a job is for Paimon: it stays so in all its restarts."""
    at, user = cursor.at, read_text(cursor)
    if not user or not user.isprintable():
        raise Malformed(at, "no user")
    yield FoundElement(at, "committer", {"uid": user, "form": "paimon"})


_COMMITTABLES: tuple[ElementLayout, ...] = (
    iceberg_committable,
    dynamic_committable,
    file_committable,
    _kafka_committable,
)

COMMITTERS: tuple[ElementLayout, ...] = (
    *(partial(_collector, one) for one in (*_COMMITTABLES, _unknown_committable)),
    paimon_committable,
)
"""What a committer's state may be, the narrowest layout first."""
