"""What a dump of the CheckMate testbed holds, by its listing alone: units with their snapshots, and senders' logs.

A unit of checkpointing is an operator's part on one worker. Uncoordinated workers take the snapshots of all their
operators at one moment, so that one whose upload failed (the testbed drops the error) is seen to be missing; with
independent moments (communication-induced) nothing shows it.

Senders' logs of the CheckMate testbed: one file a channel, written and flushed message by message.

    file   = record*        record = 0x00 0x02  pickle
    pickle = {"__COM_TYPE__", "__MSG__": {"__TIMESTAMP__", "__REC_CYC__": recoveries so far, "__PARAMS__", ...}}

No length, no checksum, no number: a message's number is its place in the file, and a pickle ends itself. So a crash
leaves a torn last record, and behind a record that cannot be read no number is known: reading stops there. A worker
that starts again deletes its folder; after a rollback in place the numbers go on, and messages that were undone stay.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

import pyarrow as pa

from cklog.arrow_errors import ARROW_ERRORS
from cklog.budgets import budgets, over, reading
from cklog.engine.scan import Damage, Split, damage_of
from cklog.errors import NotFound, UsageError
from cklog.model.schemas import MESSAGES
from cklog.model.values import is_integer
from cklog.model.verdict import UNKNOWN_VERSION
from cklog.parsers.checkmate.names import (
    ROUND_BELOW,
    Deployment,
    SenderLog,
    SentChannel,
    Snapshot,
    deployment_of,
    log_of,
    snapshot_of,
)
from cklog.parsers.pickles.restricted import CutShort, Refused, load, load_from
from cklog.parsers.tables.records import BIGGEST, PSEUDO
from cklog.progress import count_bytes
from cklog.storage import FileEntry, Root, open_file

SENT = "last_messages_sent"


class Unit(NamedTuple):
    """The snapshots of one operator on one worker, numbered from 1 in order; a missing one's number is left out."""

    worker: int
    operator: str
    snapshots: tuple[tuple[int, Snapshot], ...]

    @property
    def bytes(self) -> int:
        """Size of all snapshots of the unit."""
        return sum(snapshot.size for _, snapshot in self.snapshots)


class Missing(NamedTuple):
    """A snapshot that should be there; `newest`: of the worker's last moment, when its upload may not have ended."""

    worker: int
    operator: str
    stamp: int
    newest: bool


class Dump(NamedTuple):
    """A listing, put in order. `folder` holds the snapshot objects ("" is the root)."""

    folder: str
    units: tuple[Unit, ...]
    missing: tuple[Missing, ...]
    logs: tuple[SenderLog, ...]
    deployment: Deployment


def is_dump(entries: Iterable[FileEntry]) -> bool:
    """Return whether anything here is named as the testbed names things."""
    return any(snapshot_of(e.path, 0) or log_of(e.path, 0) or _is_in_store(e.path) for e in entries)


def folders_of(entries: Iterable[FileEntry]) -> list[str]:
    """Return the folders above those of snapshots and logs, by the names that the testbed gives to things."""
    objects = [e.path for e in entries if snapshot_of(e.path, 0) or log_of(e.path, 0)]
    stored = [posixpath.dirname(e.path) for e in entries if _is_in_store(e.path)]
    return sorted({posixpath.dirname(posixpath.dirname(path)) for path in [*objects, *stored]})


def dump_of(root: Root) -> Dump:
    """List the dump below a root and put it in order.

    Raises
    ------
    NotFound : the objects are in an object store's own layout
    UsageError : snapshots of several dumps
    """
    entries = root.list()
    unread = _unread(root)
    named = [*entries, *(FileEntry(path, 0) for path in unread)]
    snapshots = [s._replace(unread=unread.get(s.path, "")) for s in (snapshot_of(e.path, e.size) for e in named) if s]
    logs = [log._replace(unread=unread.get(log.path, "")) for log in (log_of(e.path, e.size) for e in named) if log]
    logs.sort(key=lambda log: log.path)
    if not snapshots and any(_is_in_store(e.path) for e in entries):
        message = f"{root.path}: the snapshots are in the object store's own files (xl.meta)"
        raise NotFound(message, "copy the bucket through its S3 interface, for example with `mc mirror`")
    folders = sorted({posixpath.dirname(s.path) for s in snapshots})
    if len(folders) > 1:
        message = f"{root.path}: snapshots in {len(folders)} folders, {folders[0] or '.'} and {folders[1]} among them"
        raise UsageError(message, "PATH is the folder of one run")
    missing = missing_of(snapshots)
    units = _number_units(snapshots, missing)
    sent = [SentChannel(log.worker, log.channel) for log in logs] or list(_sent_channels(root, units))
    deployment = deployment_of(snapshots, sent)
    return Dump(folder="".join(folders), units=units, missing=missing, logs=tuple(logs), deployment=deployment)


def _unread(root: Root) -> dict[str, str]:
    """Return what has the name of an object and is no file that is read, and why: its place in the order counts."""
    found = dict.fromkeys(root.unfollowed(), "a link that is not followed: what it leads to was not read")
    kept = {posixpath.dirname(e.path) for e in root.list() if _is_in_store(e.path)}
    found |= {path: "a folder lies where the object should be" for path in root.tree().folders if path not in kept}
    return {path: why for path, why in found.items() if snapshot_of(path, 0) or log_of(path, 0)}


def unread_damage(named: Snapshot | SenderLog) -> Damage:
    """Return what is said of a snapshot or log that nobody looks at."""
    return Damage(named.path, "unreadable-file", None, named.unread)


def sent_by(root: Root, snapshot: Snapshot) -> dict[str, int]:
    """Return how many messages a snapshot says to have sent, by the channel's own name; {} if it cannot be read."""
    if snapshot.unread or snapshot.size > budgets().snapshot:
        return {}
    try:
        with reading(snapshot.path):
            value = load(root.read(snapshot.path, snapshot.size), frozenset({SENT}))
    except (Refused, OSError, *ARROW_ERRORS):
        return {}  # damage, which reading the snapshots reports
    sent = value.get(SENT) if isinstance(value, dict) else None
    known = sent.items() if isinstance(sent, dict) else ()
    return {name: last + 1 for name, last in known if isinstance(name, str) and is_integer(last)}


def _sent_channels(root: Root, units: Iterable[Unit]) -> Iterator[SentChannel]:
    """Yield the channels that the smallest readable snapshot of each operator names: where there are no logs."""
    smallest: dict[str, Snapshot] = {}
    for snapshot in (snapshot for unit in units for _, snapshot in unit.snapshots):
        if snapshot.operator not in smallest or snapshot.size < smallest[snapshot.operator].size:
            smallest[snapshot.operator] = snapshot
    for snapshot in smallest.values():
        for name in sent_by(root, snapshot):
            yield SentChannel(snapshot.worker, name)


def _is_in_store(path: str) -> bool:
    """Return whether a file is a snapshot as an object store itself keeps it."""
    return posixpath.basename(path) == "xl.meta" and snapshot_of(posixpath.dirname(path), 0) is not None


def missing_of(snapshots: Iterable[Snapshot]) -> tuple[Missing, ...]:
    """Find snapshots that are missing from moments at which a worker took those of all its operators.

    A worker is taken to do so if at half of its moments at least all its operators have one.
    """
    found = []
    for worker, taken in sorted(_moments(snapshots).items()):
        if _are_together(taken):
            operators = set().union(*taken.values())
            for stamp, there in sorted(taken.items()):
                found += [Missing(worker, name, stamp, stamp == max(taken)) for name in sorted(operators - there)]
    return tuple(found)


def missing_of_rounds(snapshots: Iterable[Snapshot]) -> tuple[Missing, ...]:
    """Find snapshots that are missing from rounds of which others have theirs, behind the newest round of them all."""
    rounds: dict[int, set[tuple[int, str]]] = {}
    for s in snapshots:
        if s.stamp < ROUND_BELOW:
            rounds.setdefault(s.stamp, set()).add((s.worker, s.operator))
    units = set().union(*rounds.values())
    whole = max((number for number, there in rounds.items() if there == units), default=-1)
    found = []
    for number, there in sorted(rounds.items()):
        if number > whole:
            found += [Missing(*unit, number, number == max(rounds)) for unit in sorted(units - there)]
    return tuple(found)


def apart(snapshots: Iterable[Snapshot]) -> tuple[int, ...]:
    """Return the workers of whose snapshots nothing shows that one is missing: each has a moment of its own."""
    return tuple(worker for worker, taken in sorted(_moments(snapshots).items()) if not _are_together(taken))


def _moments(snapshots: Iterable[Snapshot]) -> dict[int, dict[int, set[str]]]:
    """Return the operators of which each worker has a snapshot, by moment; rounds are no moments."""
    found: dict[int, dict[int, set[str]]] = {}
    for s in snapshots:
        if s.stamp >= ROUND_BELOW:
            found.setdefault(s.worker, {}).setdefault(s.stamp, set()).add(s.operator)
    return found


def _are_together(taken: Mapping[int, set[str]]) -> bool:
    """Return whether a worker takes the snapshots of all its operators at one moment."""
    operators = set().union(*taken.values())
    return len(operators) > 1 and 2 * sum(there == operators for there in taken.values()) >= len(taken)


def _number_units(snapshots: Sequence[Snapshot], missing: Iterable[Missing]) -> tuple[Unit, ...]:
    """Number the snapshots of each unit by their stamps, missing ones included."""
    stamps: dict[tuple[int, str], dict[int, Snapshot | None]] = {}
    for gone in missing:
        stamps.setdefault((gone.worker, gone.operator), {})[gone.stamp] = None
    for s in snapshots:
        stamps.setdefault((s.worker, s.operator), {})[s.stamp] = s
    units = []
    for (worker, operator), taken in sorted(stamps.items()):
        numbered = [(n, taken[stamp]) for n, stamp in enumerate(sorted(taken), 1)]
        units.append(Unit(worker, operator, tuple((n, s) for n, s in numbered if s is not None)))
    return tuple(units)


READER = "cklog.parsers.checkmate.dump:read"

TAG = b"\x00\x02"
_READ_OR_NONE = (0, 2)
"""Of tags up to 255: cloudpickle, which zeros look like as well, and pickle. 1 is msgpack, later ones are not known."""
_KEYS = frozenset({"__MSG__"})
_COUNTER = re.compile(rb"__REC_CYC__(?:\x94|q.|r.{4})?(K.|M..|J.{4})", re.DOTALL)
"""Where a record's recovery counter most likely stands: enough to know that a log holds one counter only."""

_BLOCK_BYTES = 8 << 20
_BATCH_ROWS = 1 << 14


class LoggedMessage(NamedTuple):
    """A logged message: the byte where it begins, its size with the tag, its time (ms) and recovery counter."""

    at: int
    bytes: int
    time: int | None
    counter: int


def read(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Read the messages of the logs `split.start` to `split.end` of a dump; a `cklog.engine.scan.Reader`."""
    root = split.folder()
    dump = dump_of(root)
    for log in dump.logs[split.start : split.end]:
        if log.unread:
            yield unread_damage(log)
            continue
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
    except (OSError, *ARROW_ERRORS) as error:
        yield damage_of(path, error)


def _read_records(file: Any, path: str) -> Iterator[LoggedMessage | Damage]:
    """Read records block by block; one that is cut by a block's end is read again with as much behind it."""
    at, rest = 0, b""
    while data := file.read(max(_BLOCK_BYTES, len(rest))):
        count_bytes(len(data))
        rest += data
        done = 0
        while done < len(rest):
            found = _decode_record(path, rest, done, at)
            if found is None:
                break
            if isinstance(found, _NoRecord):
                why = f"{found.why}; what follows has no numbers and is left out"
                yield Damage(path, found.id, at + done, why)
                return
            yield found
            done += found.bytes
        at, rest = at + done, rest[done:]
        if len(rest) > budgets().snapshot:
            raise over("a record", budgets().snapshot).of(path, at)
    if rest:
        yield Damage(path, "torn-tail", at, f"the last record is cut short ({len(rest)} bytes)")


class _NoRecord(NamedTuple):
    """Why bytes are no record, and the id of the damage."""

    why: str
    id: str = Refused.id


def _decode_record(path: str, data: bytes, start: int, at: int) -> LoggedMessage | _NoRecord | None:
    """Decode the record at byte `start` of `data`, which begins at byte `at` of the file.

    Returns why it is no record, or None if it is cut short.
    """
    tag = data[start : start + 2]
    if tag != TAG:
        unknown = len(tag) == 2 and tag[0] == 0 and tag[1] not in _READ_OR_NONE
        why = f"the tag is {tag.hex()}, not {TAG.hex()}"
        id = UNKNOWN_VERSION if unknown else Refused.id
        return None if len(tag) < 2 and TAG.startswith(tag) else _NoRecord(why, id)
    try:
        with reading(path, at + start):
            value, end = load_from(data, start + 2, _KEYS)
    except CutShort:
        return None
    except Refused as refused:
        return _NoRecord(f"byte {at + refused.offset}: {refused.why}", refused.id)
    message = value.get("__MSG__") if isinstance(value, dict) else None
    if not isinstance(message, dict):
        return _NoRecord("a record without a message")
    counter, time = message.get("__REC_CYC__", 0), message.get("__TIMESTAMP__")
    if not is_count(counter):
        return _NoRecord("a recovery counter that is no count")
    timed = time if is_count(time) and time >= ROUND_BELOW else None
    return LoggedMessage(at + start, end - start, timed, counter)


def is_count(value: Any) -> TypeGuard[int]:
    """Return whether a value is a whole number that a table can hold."""
    return is_integer(value) and 0 <= value < BIGGEST


class Turn(NamedTuple):
    """The first record of a log with a recovery counter; `number` is its place, `at` its byte."""

    counter: int
    number: int
    at: int


def read_turns(uri: str, path: str) -> list[Turn]:
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
                count_bytes(len(data))
                rest += data
                seen.update(_COUNTER.findall(rest))
                rest = rest[-32:]
    except (OSError, *ARROW_ERRORS):
        return False
    return len(seen) == 1
