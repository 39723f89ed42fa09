"""Senders' logs of the CheckMate testbed: one file a channel, written and flushed message by message.

    file   = record*        record = 0x00 0x02  pickle
    pickle = {"__COM_TYPE__", "__MSG__": {"__TIMESTAMP__", "__REC_CYC__": recoveries so far, "__PARAMS__", ...}}

No length, no checksum, no number: a message's number is its place in the file, and a pickle ends itself. So a crash
leaves a torn last record, and behind a record that cannot be read no number is known: reading stops there. A worker
that starts again deletes its folder; after a rollback in place the numbers go on, and messages that were undone stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeGuard

import pyarrow as pa

from cklog.engine import Damage, Split
from cklog.model.schemas import MESSAGES
from cklog.parsers.checkmate.dump import dump_of
from cklog.parsers.checkmate.names import ROUND_BELOW
from cklog.parsers.pickles.restricted import CutShort, Refused, load_from
from cklog.parsers.tables.records import BIGGEST, PSEUDO
from cklog.storage import Root, open_file

READER = "cklog.parsers.checkmate.log:read"

TAG = b"\x00\x02"
_KEYS = frozenset({"__MSG__"})
_COUNTER = re.compile(rb"__REC_CYC__(?:\x94|q.|r.{4})?(K.|M..|J.{4})", re.DOTALL)
"""Where a record's recovery counter most likely stands: enough to know that a log holds one counter only."""

_BLOCK_BYTES = 8 << 20
_RECORD_BYTES = 256 << 20
_BATCH_ROWS = 1 << 14


class LoggedMessage(NamedTuple):
    """A logged message: the byte where it begins, its size with the tag, its time (ms) and recovery counter."""

    at: int
    bytes: int
    time: int | None
    counter: int


def read(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Read the messages of the logs `split.start` to `split.end` of a dump; a `cklog.engine.Reader`."""
    root = Root(split.uri)
    dump = dump_of(root)
    for log in dump.logs[split.start : split.end]:
        channel = dump.deployment.channel(log.channel)
        if channel is None:
            continue
        rows: list[tuple[int, LoggedMessage]] = []
        for number, item in enumerate(records(root.uri(log.path), log.path)):
            if isinstance(item, Damage):
                yield item
                break
            rows.append((number, item))
            if len(rows) == _BATCH_ROWS:
                yield _message_batch(log.path, channel, rows, columns)
                rows = []
        if rows:
            yield _message_batch(log.path, channel, rows, columns)


def _message_batch(
    path: str, channel: str, rows: list[tuple[int, LoggedMessage]], columns: tuple[str, ...]
) -> pa.RecordBatch:
    """Turn numbered messages of one log into rows of `cklog.model.schemas.MESSAGES`."""
    values: dict[str, list[Any]] = {
        "channel": [channel] * len(rows),
        "seq": [number for number, _ in rows],
        "time": [record.time for _, record in rows],
        "bytes": [record.bytes for _, record in rows],
        "protocol_bytes": [None] * len(rows),
        "_path": [path] * len(rows),
        "_offset": [record.at for _, record in rows],
    }
    fields = [pa.field(name, PSEUDO[name]) if name in PSEUDO else MESSAGES.field(name) for name in columns]
    return pa.RecordBatch.from_arrays([pa.array(values[f.name], f.type) for f in fields], schema=pa.schema(fields))


def records(uri: str, path: str) -> Iterator[LoggedMessage | Damage]:
    """Read the records of a log in order; a damage is the last thing that comes."""
    try:
        with open_file(uri) as file:
            yield from _read_records(file, path)
    except (OSError, pa.ArrowException) as error:
        yield Damage(path, "corrupt-file", None, f"cannot be read on: {str(error).splitlines()[0]}")


def _read_records(file: Any, path: str) -> Iterator[LoggedMessage | Damage]:
    """Read records block by block; one that is cut by a block's end is read again with as much behind it."""
    at, rest = 0, b""
    while data := file.read(max(_BLOCK_BYTES, len(rest))):
        rest += data
        done = 0
        while done < len(rest):
            found = _decode_record(rest, done, at)
            if found is None:
                break
            if isinstance(found, str):
                yield Damage(path, "corrupt-file", at + done, f"{found}; what follows has no numbers and is left out")
                return
            yield found
            done += found.bytes
        at, rest = at + done, rest[done:]
        if len(rest) > _RECORD_BYTES:
            yield Damage(path, "corrupt-file", at, f"a record of more than {_RECORD_BYTES >> 20} MiB")
            return
    if rest:
        yield Damage(path, "torn-tail", at, f"the last record is cut short ({len(rest)} bytes)")


def _decode_record(data: bytes, start: int, at: int) -> LoggedMessage | str | None:
    """Decode the record at byte `start` of `data`, which begins at byte `at` of the file.

    Returns why it is no record, or None if it is cut short.
    """
    tag = data[start : start + 2]
    if tag != TAG:
        return None if len(tag) < 2 and TAG.startswith(tag) else f"the tag is {tag.hex()}, not {TAG.hex()}"
    try:
        value, end = load_from(data, start + 2, _KEYS)
    except CutShort:
        return None
    except Refused as refused:
        return f"byte {at + refused.offset}: {refused.why}"
    message = value.get("__MSG__") if isinstance(value, dict) else None
    if not isinstance(message, dict):
        return "a record without a message"
    counter, time = message.get("__REC_CYC__", 0), message.get("__TIMESTAMP__")
    if not is_count(counter):
        return "a recovery counter that is no count"
    timed = time if is_count(time) and time >= ROUND_BELOW else None
    return LoggedMessage(at + start, end - start, timed, counter)


def is_count(value: Any) -> TypeGuard[int]:
    """Return whether a value is a whole number that a table can hold."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < BIGGEST


class Turn(NamedTuple):
    """The first record of a log with a recovery counter; `number` is its place, `at` its byte."""

    counter: int
    number: int
    at: int


def turns(uri: str, path: str) -> list[Turn]:
    """Find where the recovery counter changes, the log's first record included; of a log with one counter, maybe []."""
    if _has_one_counter(uri):
        return []
    found: list[Turn] = []
    for number, message in enumerate(records(uri, path)):
        if isinstance(message, LoggedMessage) and (not found or message.counter != found[-1].counter):
            found.append(Turn(message.counter, number, message.at))
    return found


def _has_one_counter(uri: str) -> bool:
    """Return whether every counter that can be seen without reading the pickles is the same."""
    seen: set[bytes] = set()
    rest = b""
    try:
        with open_file(uri) as file:
            while data := file.read(_BLOCK_BYTES):
                rest += data
                seen.update(_COUNTER.findall(rest))
                rest = rest[-32:]
    except (OSError, pa.ArrowException):
        return False
    return len(seen) == 1
