"""Dumps of the CheckMate testbed: what its uncoordinated, communication-induced and coordinated runs leave.

    universalis-snapshots/snapshot_{worker}_{operator}_{stamp}.bin   a pickled dict, in a bucket or a copy of it
    worker-{worker}-logs/{channel}.bin                               see `cklog.parsers.checkmate.log`

    snapshot = {"local_state_data": any, "last_kafka_consumed": {str(partition): last offset taken},
                "last_messages_sent": {channel: last number sent, -1 none}             not if coordinated
                "last_messages_processed": {channel: highest number taken since the snapshot before}   the same
                "cic_clock": int                                                       only communication-induced}

Numbers there are of the last message; here they are of the next. The testbed never deletes an object, marks no timeline
and drops failures of uploads: what was undone by an earlier recovery stays, and a snapshot may be missing in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

import pyarrow as pa

from cklog.engine import Damage, Kernel, Reduce, Scan, Split
from cklog.inputs.offers import KindName
from cklog.model.findings import Finding, InputUsed, Where
from cklog.model.names import parse_channel
from cklog.model.schemas import CHECKPOINTS, MESSAGES
from cklog.parsers.checkmate import log as checkmate_log
from cklog.parsers.checkmate.dump import Dump, Unit, dump_of, folders_of, is_dump
from cklog.parsers.checkmate.names import ROUND_BELOW, Deployment, Snapshot, endings
from cklog.parsers.pickles.restricted import Refused, load
from cklog.parsers.tables.records import BIGGEST, PSEUDO
from cklog.storage import Root

READER = "cklog.parsers.checkmate.parser:read"
_SENT, _PROCESSED, _TAKEN, _CLOCK = "last_messages_sent", "last_messages_processed", "last_kafka_consumed", "cic_clock"
_KEYS = frozenset({_SENT, _PROCESSED, _TAKEN})
_SNAPSHOT_BYTES = 1 << 30
_BATCH_ROWS = 1 << 12


class CheckMate:
    """A dump of the testbed; see the module's head for its layout."""

    name = "checkmate"
    kind: KindName = "records"
    tables: ClassVar = {"checkpoints": CHECKPOINTS, "channels": MESSAGES}
    gathers = False
    owns_below = False
    reads_beside: tuple[str, ...] = ()

    @staticmethod
    def recognises(root: Root) -> bool:
        """Whether anything here is named as the testbed names things."""
        return is_dump(root.list())

    @staticmethod
    def runs_below(root: Root) -> list[str]:
        """Return the folders that hold those of snapshots and of logs."""
        return folders_of(root.list())

    def __init__(self, root: Root) -> None:
        self._root = root
        self._dump = dump_of(root)
        self._turned: tuple[Finding, ...] | None = None
        named = {c for c in map(self._dump.deployment.channel, sorted({log.channel for log in self._dump.logs})) if c}
        self.manifest: Mapping[str, Any] = {"channels": [{"channel": name} for name in sorted(named)]}

    def has(self, table: str) -> bool:
        """Whether there are objects of the table, readable or not."""
        return bool({"checkpoints": self._dump.units, "channels": self._dump.logs}.get(table))

    def bytes_of(self, table: str) -> int:
        """Size of the table's objects."""
        return sum(size for _, size in self._places(table))

    def is_stored(self, uri: str) -> bool | None:
        """Return None: a snapshot holds its state itself, and names no file."""
        return None

    def _places(self, table: str) -> list[tuple[str, int]]:
        """(path, size) of what a split counts: units of snapshots, or logs."""
        if table == "checkpoints":
            return [(self._dump.folder, unit.bytes) for unit in self._dump.units]
        return [(log.path, log.size) for log in self._dump.logs] if table == "channels" else []

    def inputs(self, table: str, records_read: dict[str, int]) -> tuple[InputUsed, ...]:
        """One row a table, with the intact records that a scan counted."""
        if not self.has(table):
            return ()
        path = f"{self._dump.folder or '.'}/" if table == "checkpoints" else "worker-*-logs/"
        return (InputUsed(path, "checkmate", self.bytes_of(table), sum(records_read.values())),)

    def scan(
        self,
        table: str,
        columns: tuple[str, ...],
        kernel: Kernel,
        partial: pa.Schema,
        reduce: Reduce | None,
        split_bytes: int,
        wanted: Callable[[dict[str, tuple[Any, Any]]], bool] | None = None,
    ) -> Scan:
        """A scan of whole units, or of whole logs: numbers are places in them. `wanted` has nothing to go by."""
        return Scan(tuple(self._splits(table, split_bytes)), table, columns, kernel, partial, reduce)

    def _splits(self, table: str, split_bytes: int) -> Iterator[Split]:
        """Runs of units or logs of about `split_bytes`: every split lists the dump again."""
        reader = READER if table == "checkpoints" else checkmate_log.READER
        places = self._places(table)
        start, size = 0, 0
        for i, (path, more) in enumerate(places):
            size += more
            if size >= split_bytes or i + 1 == len(places):
                yield Split(self._root.uri(""), path, reader, start, i + 1, size)
                start, size = i + 1, 0

    def findings(self, table: str) -> tuple[Finding, ...]:
        """What names, numbers and counters tell of the dump as a whole."""
        if table == "checkpoints":
            return (*_assumed(self._dump), *_missing(self._dump), *_unseen(self._dump))
        if table == "channels":
            if self._turned is None:
                self._turned = (*_unreadable(self._dump), *_turned(self._root, self._dump))
            return self._turned
        return ()


def _assumed(dump: Dump) -> Iterable[Finding]:
    """What is not written down anywhere, and what it was taken to be."""
    deployment = dump.deployment
    counts = ", ".join(f"{operator} {deployment.count(operator)}" for operator in deployment.operators)
    message = (
        f"nothing here says how many partitions an operator has or where they run: taken as one on each of the "
        f"{len(deployment.workers)} workers, {'as the log folders have it' if deployment.hosts else 'in their order'} "
        f"(partitions: {counts}); a subtask is an operator's part on one worker, by the worker's number"
    )
    yield Finding("assumed-partitions", "info", dump.folder or ".", message)


def _missing(dump: Dump) -> Iterable[Finding]:
    for gone in dump.missing:
        name = f"snapshot_{gone.worker}_{gone.operator}_{gone.stamp}.bin"
        subject = f"{dump.folder}/{name}" if dump.folder else name
        if gone.newest:
            told = f"{subject} is not here: its upload had not ended, or failed; older snapshots are used"
            yield Finding("unfinished-upload", "info", subject, told)
            continue
        told = f"{subject} is missing: worker {gone.worker} has others of that moment; what it had received is lost"
        yield Finding("missing-file", "error", subject, told)


def _unseen(dump: Dump) -> Iterable[Finding]:
    """Coordinated rounds look complete without a unit that never left a snapshot."""
    if not any(s.stamp < ROUND_BELOW for unit in dump.units for _, s in unit.snapshots):
        return
    seen = {(unit.operator, unit.worker) for unit in dump.units}
    named = {name for name in map(dump.deployment.channel, {log.channel for log in dump.logs}) if name}
    for channel in filter(None, map(parse_channel, named)):
        seen |= {(end.operator, end.subtask) for end in (channel.sender, channel.receiver)}
    for operator in dump.deployment.operators:
        for worker in dump.deployment.workers:
            if (operator, worker) not in seen:
                told = f"worker {worker} left nothing of {operator}: if it hosts it, no round is complete"
                yield Finding("unit-without-snapshots", "warning", f"{operator}/{worker}", told)


def _unreadable(dump: Dump) -> Iterable[Finding]:
    """Logs whose names do not tell their channel."""
    for log in dump.logs:
        if dump.deployment.channel(log.channel) is None:
            yield Finding(
                "ambiguous-channel", "error", log.path, f"{log.path}: {_why_not(dump.deployment, log.channel)}"
            )


def _why_not(deployment: Deployment, channel: str) -> str:
    ends = endings(channel, deployment.operators)
    if ends is None:
        return f"channel {channel} cannot be told apart into two of the operators {', '.join(deployment.operators)}"
    counts = f"{deployment.count(ends[0])} × {deployment.count(ends[1])}"
    return f"channel {channel} has a number beyond the {counts} partitions that its operators are taken to have"


def _turned(root: Root, dump: Dump) -> Iterable[Finding]:
    """Whether the job has recovered before: then there are undone messages, and undone snapshots, here."""
    found = [(log.path, checkmate_log.turns(root.uri(log.path), log.path)) for log in dump.logs if log.size]
    late = [(path, turns) for path, turns in found if turns and (len(turns) > 1 or turns[0].counter > 0)]
    if not late:
        return
    path, turns = late[0]
    first = next((turn for turn in turns if turn.counter > 0), turns[-1])
    message = (
        f"the job has recovered before: {len(late)} logs hold messages sent after a recovery, {path} from message "
        f"{first.number} on (recovery {first.counter}). Messages before that, and snapshots, may be of a timeline that "
        "the recovery undid; nothing marks such snapshots, and they are used like the others. If the coordinator's log "
        "names the line of that recovery, move the snapshots between it and the recovery out of a copy"
    )
    places = tuple(Where(path, turn.at) for path, turns in late for turn in turns if turn.counter > 0)
    yield Finding("dead-timeline", "warning", path, message, places[:100])


def read(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Checkpoints of the units `split.start` to `split.end` of a dump; a `cklog.engine.Reader`."""
    root = Root(split.uri)
    dump = dump_of(root)
    reading = _SnapshotReading(root, dump.deployment)
    rows: list[dict[str, Any]] = []
    for unit in dump.units[split.start : split.end]:
        for item in reading.checkpoints(unit):
            if isinstance(item, Damage):
                yield item
                continue
            rows.append(item)
            if len(rows) == _BATCH_ROWS:
                yield _batch(rows, columns)
                rows = []
    if rows:
        yield _batch(rows, columns)


def _batch(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> pa.RecordBatch:
    fields = [pa.field(name, PSEUDO[name]) if name in PSEUDO else CHECKPOINTS.field(name) for name in columns]
    arrays = [pa.array([row.get(f.name) for row in rows], f.type) for f in fields]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


class _SnapshotReading:
    """Snapshots as checkpoint records; names of channels are read once."""

    def __init__(self, root: Root, deployment: Deployment) -> None:
        self._root = root
        self._deployment = deployment
        self._names: dict[str, str] = {}

    def checkpoints(self, unit: Unit) -> Iterator[dict[str, Any] | Damage]:
        """The records of a unit in order.

        What a snapshot has received is the highest number since the one before it, and messages may overtake each
        other: so the maximum over all snapshots so far. A channel without a receipt since is not mentioned.
        """
        highest: dict[str, int] = {}
        for number, snapshot in unit.snapshots:
            try:
                row = self._checkpoint(number, snapshot)
            except (_Unusable, Refused, OSError, pa.ArrowException) as why:
                offset = why.offset if isinstance(why, Refused) else None
                told = why.why if isinstance(why, Refused) else str(why).splitlines()[0]
                yield Damage(snapshot.path, "corrupt-file", offset, told)
                continue
            for channel, n in row.get("received", {}).items():
                highest[channel] = row["received"][channel] = max(n, highest.get(channel, 0))
            yield row

    def _checkpoint(self, number: int, snapshot: Snapshot) -> dict[str, Any]:
        if snapshot.size > _SNAPSHOT_BYTES:
            raise _Unusable(f"{snapshot.size} bytes are too many for a snapshot")
        body = load(self._root.read(snapshot.path, None), _KEYS)
        if not isinstance(body, dict) or "local_state_data" not in body:
            raise _Unusable("is no snapshot: it has no local_state_data")
        row: dict[str, Any] = {
            "operator": snapshot.operator,
            "subtask": snapshot.worker,
            "checkpoint": number,
            "sources": self._next(body, _TAKEN, lambda name: f"{snapshot.operator}-{name}"),
            "bytes": snapshot.size,
            "uri": snapshot.path,
            "_path": snapshot.path,
            "_offset": 0,
        }
        if _SENT not in body and _PROCESSED not in body:
            timed = {"time": snapshot.stamp} if snapshot.stamp >= ROUND_BELOW else {}
            return row | {"kind": "coordinated", "round": snapshot.stamp} | timed
        marks = {
            "sent": self._next(body, _SENT, self._channel),
            "received": self._next(body, _PROCESSED, self._channel),
        }
        clock = body.get(_CLOCK)
        indexed = {"index": clock} if checkmate_log.is_count(clock) else {}
        return row | marks | indexed | {"kind": "local", "time": snapshot.stamp}

    def _next(self, body: dict[str, Any], key: str, name: Callable[[str], str]) -> dict[str, int]:
        """{name: next number} of {name: last number}.

        Raises
        ------
        _Unusable : it is something else; without its watermarks a snapshot could be taken for an older one
        """
        found = body.get(key, {})
        if not isinstance(found, dict):
            raise _Unusable(f"{key} is no dict")
        for channel, last in found.items():
            if not isinstance(channel, str) or not _is_last(last):
                raise _Unusable(f"{key} does not map names to the number of a last message")
        return {name(channel): last + 1 for channel, last in sorted(found.items())}

    def _channel(self, name: str) -> str:
        if name not in self._names:
            channel = self._deployment.channel(name)
            if channel is None:
                raise _Unusable(_why_not(self._deployment, name))
            self._names[name] = channel
        return self._names[name]


def _is_last(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -1 <= value < BIGGEST - 1


class _Unusable(Exception):
    """Why a snapshot is left out."""
