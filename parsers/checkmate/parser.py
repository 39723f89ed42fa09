"""Dumps of the CheckMate testbed: what its uncoordinated, communication-induced and coordinated runs leave.

    universalis-snapshots/snapshot_{worker}_{operator}_{stamp}.bin   a pickled dict, in a bucket or a copy of it
    worker-{worker}-logs/{channel}.bin                               see `cklog.parsers.checkmate.dump`

    snapshot = {"local_state_data": any, "last_kafka_consumed": {str(partition): last offset taken},
                "last_messages_sent": {channel: last number sent, -1 none}             not if coordinated
                "last_messages_processed": {channel: highest number taken since the snapshot before}   the same
                "cic_clock": int                                                       only communication-induced}

Numbers there are of the last message; here they are of the next. The testbed never deletes an object, marks no timeline
and drops failures of uploads: what was undone by an earlier recovery stays, and a snapshot may be missing in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, ClassVar

import pyarrow as pa

from cklog.engine.scan import Damage, Split, damage_of
from cklog.inputs.offers import Format, KindName, RowFilter
from cklog.model.findings import Finding, InputUsed, Severity, Where
from cklog.model.names import parse_channel
from cklog.model.schemas import CHECKPOINTS, MESSAGES
from cklog.model.values import is_integer
from cklog.model.wording import first_few, many
from cklog.parsers.checkmate.dump import READER as LOG_READER
from cklog.parsers.checkmate.dump import (
    SENT,
    SNAPSHOT_BYTES,
    Dump,
    Unit,
    apart,
    dump_of,
    folders_of,
    is_count,
    is_dump,
    read_turns,
    sent_by,
    unread_damage,
)
from cklog.parsers.checkmate.names import ROUND_BELOW, Deployment, Snapshot, endings
from cklog.parsers.pickles.restricted import Refused, load
from cklog.parsers.tables.records import BIGGEST, batch_of_rows
from cklog.storage import Root

READER = "cklog.parsers.checkmate.parser:read"
_PROCESSED, _TAKEN, _CLOCK = "last_messages_processed", "last_kafka_consumed", "cic_clock"
_KEYS = frozenset({SENT, _PROCESSED, _TAKEN})
_BATCH_ROWS = 1 << 12
_PLACES = 100
"""Places that one finding lists at the most."""

_DEPLOYMENTS, _UNSEEN = 3, 1_000
"""Deployments, and channels, that a finding names; channels without a log that are counted at the most."""


class CheckMate(Format):
    """A dump of the testbed; see the module's head for its layout."""

    name = "checkmate"
    kind: KindName = "records"
    tables: ClassVar = {"checkpoints": CHECKPOINTS, "channels": MESSAGES}

    @staticmethod
    def recognises(root: Root) -> bool:
        """Return whether anything here is named as the testbed names things."""
        return is_dump(root.list())

    @staticmethod
    def runs_below(root: Root) -> list[str]:
        """Return the folders that hold those of snapshots and of logs."""
        return folders_of(root.list())

    def __init__(self, root: Root) -> None:
        self._root = root
        self._dump = dump_of(root)
        self._channel_findings: tuple[Finding, ...] | None = None
        named = {c for c in map(self._dump.deployment.channel, sorted({log.channel for log in self._dump.logs})) if c}
        self.manifest: Mapping[str, Any] = {
            "channels": [{"channel": name} for name in sorted(named)],
            "sources": [
                {"source": f"{part.operator}-{part.partition}", "operator": part.operator, "subtask": part.worker}
                | {"offset": 0}
                for part in self._dump.deployment.ingress()
            ],
        }

    def has(self, table: str) -> bool:
        """Return whether there are objects of the table, readable or not."""
        return bool({"checkpoints": self._dump.units, "channels": self._dump.logs}.get(table))

    def bytes_of(self, table: str) -> int:
        """Return the size of the table's objects."""
        return sum(size for _, size in self._places(table))

    def is_stored(self, uri: str) -> bool | None:
        """Return None: a snapshot holds its state itself, and names no file."""
        return None

    def _places(self, table: str) -> list[tuple[str, int]]:
        """List (path, size) of what splits are counted in: units of snapshots, or logs."""
        if table == "checkpoints":
            return [(self._dump.folder, unit.bytes) for unit in self._dump.units]
        return [(log.path, log.size) for log in self._dump.logs] if table == "channels" else []

    def inputs(self, table: str, records_read: dict[str, int]) -> tuple[InputUsed, ...]:
        """Return one row a table, with the intact records that a scan counted."""
        if not self.has(table):
            return ()
        path = f"{self._dump.folder or '.'}/" if table == "checkpoints" else "worker-*-logs/"
        return (InputUsed(path, "checkmate", self.bytes_of(table), sum(records_read.values())),)

    def splits(self, table: str, split_bytes: int, wanted: RowFilter | None = None) -> Iterator[Split]:
        """Cut units or logs into runs of about `split_bytes`; each split lists the dump.

        Places in a split are numbers of whole units, or of whole logs. `wanted` has nothing to go by.
        """
        reader = READER if table == "checkpoints" else LOG_READER
        places = self._places(table)
        start, size = 0, 0
        for i, (path, more) in enumerate(places):
            size += more
            if size >= split_bytes or i + 1 == len(places):
                yield Split(uri=self._root.uri(""), path=path, reader=reader, start=start, end=i + 1, size=size)
                start, size = i + 1, 0

    def findings(self, table: str) -> tuple[Finding, ...]:
        """Return what names, numbers and counters tell of the dump as a whole."""
        if table == "checkpoints":
            return (
                *_assumed_partitions(self._dump),
                *_missing_snapshots(self._dump),
                *_assumed_complete(self._dump),
                *_unseen_units(self._dump),
            )
        if table == "channels":
            if self._channel_findings is None:
                self._channel_findings = (
                    *_unreadable_channels(self._dump),
                    *_emptied_logs(self._root, self._dump),
                    *_earlier_recoveries(self._root, self._dump),
                )
            return self._channel_findings
        return ()


def _assumed_partitions(dump: Dump) -> Iterable[Finding]:
    """Report what is not written down anywhere, and what it was taken to be."""
    deployment = dump.deployment
    counts = {operator: deployment.count(operator) for operator in deployment.operators}
    listed = ", ".join(f"{operator} {count}" for operator, count in counts.items())
    workers = len(deployment.workers)
    each, rest = divmod(min(counts.values(), default=0), max(workers, 1))
    alike = len(set(counts.values())) == 1 and not rest
    everywhere = f"each of the {workers} workers" if workers > 1 else "the one worker"
    by = "as the log folders have it" if dump.logs else "as their channels are numbered"
    message = (
        f"nothing here says how many partitions an operator has or where they run: taken as "
        f"{each if alike and each > 1 else 'one'} on {everywhere}, {by if deployment.hosts else 'in their order'} "
        f"(partitions: {listed}); a subtask is an operator's part on one worker, by the worker's number"
    )
    severity: Severity = "warning" if deployment.others or not deployment.fits else "info"
    yield Finding("assumed-partitions", severity, dump.folder or ".", "; ".join([message, *_doubts(dump)]))


def _doubts(dump: Dump) -> Iterable[str]:
    """Say what else the channels' names may mean, and which channels would be there and are not."""
    deployment = dump.deployment
    if deployment.others:
        others = [
            f"{many(len(w), 'worker')} with {many(count, 'partition')} of each operator"
            for w, count in deployment.others
        ]
        yield (
            f"the names fit other deployments as well ({first_few(others, _DEPLOYMENTS)}): if one of those is true, "
            "there are other workers or channels than this answer knows"
        )
    unseen = [*islice(deployment.unseen(), _UNSEEN)] if dump.logs else []
    if unseen:
        count = f"{_UNSEEN} or more" if len(unseen) == _UNSEEN else str(len(unseen))
        among = f"{count} logs that there would be are missing, {', '.join(unseen[:_DEPLOYMENTS])} among them"
        yield f"the log of {unseen[0]}, which there would be, is missing" if len(unseen) == 1 else among
    if not deployment.fits:
        why = "because logs are missing" if unseen else "which some channels contradict"
        yield f"the names of the channels here prove no deployment, {why}: what was taken is a guess"


def _missing_snapshots(dump: Dump) -> Iterable[Finding]:
    """Report snapshots that should be there: lost ones, and those whose upload may not have ended."""
    for gone in dump.missing:
        name = f"snapshot_{gone.worker}_{gone.operator}_{gone.stamp}.bin"
        subject = f"{dump.folder}/{name}" if dump.folder else name
        if gone.newest:
            message = f"{subject} is not here: its upload had not ended, or failed; older snapshots are used"
            yield Finding("unfinished-upload", "info", subject, message)
            continue
        message = f"{subject} is missing: worker {gone.worker} has others of that moment; what it had received is lost"
        yield Finding("missing-file", "error", subject, message)


def _assumed_complete(dump: Dump) -> Iterable[Finding]:
    """Report that a snapshot could be missing and nothing would show it."""
    workers = apart(snapshot for unit in dump.units for _, snapshot in unit.snapshots)
    if workers:
        who = f"worker {workers[0]}" if len(workers) == 1 else f"{len(workers)} workers"
        message = (
            f"the operators of {who} take snapshots each at a moment of its own, and nothing numbers them: if one is "
            "missing, what it had received is lost, and a line behind it is too new. Compare the folder with the bucket"
        )
        yield Finding("assumed-complete", "info", dump.folder or ".", message)


def _unseen_units(dump: Dump) -> Iterable[Finding]:
    """Report units that never left a snapshot: without them, coordinated rounds look complete."""
    if not any(s.stamp < ROUND_BELOW for unit in dump.units for _, s in unit.snapshots):
        return
    seen = {(unit.operator, unit.worker) for unit in dump.units}
    named = {name for name in map(dump.deployment.channel, {log.channel for log in dump.logs}) if name}
    for channel in filter(None, map(parse_channel, named)):
        seen |= {(end.operator, end.subtask) for end in (channel.sender, channel.receiver)}
    for operator in dump.deployment.operators:
        for worker in dump.deployment.workers:
            if (operator, worker) not in seen:
                message = f"worker {worker} left nothing of {operator}: if it hosts it, no round is complete"
                yield Finding("unit-without-snapshots", "warning", f"{operator}/{worker}", message)


def _unreadable_channels(dump: Dump) -> Iterable[Finding]:
    """Report logs whose names do not tell their channel."""
    for log in dump.logs:
        if dump.deployment.channel(log.channel) is None:
            message = f"{log.path}: {_why_no_channel(dump.deployment, log.channel)}"
            yield Finding("ambiguous-channel", "error", log.path, message)


def _why_no_channel(deployment: Deployment, channel: str) -> str:
    """Say why a channel's name cannot be read."""
    ends = endings(channel, deployment.operators)
    if ends is None:
        return f"channel {channel} cannot be told apart into two of the operators {', '.join(deployment.operators)}"
    counts = f"{deployment.count(ends.sender)} × {deployment.count(ends.receiver)}"
    return f"channel {channel} has a number beyond the {counts} partitions that its operators are taken to have"


def _emptied_logs(root: Root, dump: Dump) -> Iterable[Finding]:
    """Report logs without a byte of channels on which snapshots say that messages were sent: each is logged first."""
    empty = [log for log in dump.logs if not log.size and not log.unread]
    if len(empty) == len(dump.logs):
        return  # a coordinated run: it makes the files, and logs nothing
    newest = {(unit.worker, unit.operator): unit.snapshots[-1][1] for unit in dump.units if unit.snapshots}
    sent: dict[tuple[int, str], dict[str, int]] = {}
    for log in empty:
        ends = endings(log.channel, dump.deployment.operators)
        by = (log.worker, ends.sender if ends is not None else "")
        if by in newest and by not in sent:
            sent[by] = sent_by(root, newest[by])
        count = sent.get(by, {}).get(log.channel, 0)
        if count > 0:
            message = (
                f"{log.path} holds nothing, though {newest[by].path} says that {count} messages were sent: written but "
                "never filled, or cut to 0"
            )
            yield Finding("empty-file", "warning", log.path, message, where=(Where(log.path),))


def _earlier_recoveries(root: Root, dump: Dump) -> Iterable[Finding]:
    """Report if the job has recovered before: then there are undone messages, and undone snapshots, here."""
    found = [(log.path, read_turns(root.uri(log.path), log.path)) for log in dump.logs if log.size]
    late = [(path, turns) for path, turns in found if turns and (len(turns) > 1 or turns[0].counter > 0)]
    if not late:
        return
    path, turns = late[0]
    first = next((turn for turn in turns if turn.counter > 0), turns[-1])
    message = (
        f"the job has recovered before: {many(len(late), 'log', 'hold')} messages sent after a recovery, {path} "
        f"from message {first.number} on (recovery {first.counter}). Messages before that, and snapshots, may be of a "
        "timeline that the recovery undid; nothing marks such snapshots, and they are used like the others. If the "
        "coordinator's log names the line of that recovery, move the snapshots between it and the recovery out of a "
        "copy"
    )
    places: list[Where] = []
    for log, turns in late:
        places += [Where(log, turn.at) for turn in turns if turn.counter > 0]
    yield Finding("dead-timeline", "warning", path, message, where=tuple(places[:_PLACES]))


def read(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Read the checkpoints of the units `split.start` to `split.end` of a dump; a `cklog.engine.scan.Reader`."""
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
                yield batch_of_rows(rows, CHECKPOINTS, columns)
                rows = []
    if rows:
        yield batch_of_rows(rows, CHECKPOINTS, columns)


class _SnapshotReading:
    """A reader of snapshots as checkpoint records, which remembers names of channels."""

    def __init__(self, root: Root, deployment: Deployment) -> None:
        self._root = root
        self._deployment = deployment
        self._names: dict[str, str] = {}

    def checkpoints(self, unit: Unit) -> Iterator[dict[str, Any] | Damage]:
        """Read the records of a unit in order.

        What a snapshot says to have received of a channel is the highest number since the snapshot before, and nothing
        if nothing came. Messages may overtake each other: so what counts is the maximum over all snapshots so far.
        """
        highest: dict[str, int] = {}
        for number, snapshot in unit.snapshots:
            if snapshot.unread:
                yield unread_damage(snapshot)
                continue
            try:
                row = self._read_checkpoint(number, snapshot)
            except Refused as refused:
                yield Damage(snapshot.path, "corrupt-file", refused.offset, refused.why)
                continue
            except (_Unusable, OSError, pa.ArrowException) as error:
                yield damage_of(snapshot.path, error, "")
                continue
            for channel, n in row.get("received", {}).items():
                highest[channel] = row["received"][channel] = max(n, highest.get(channel, 0))
            yield row

    def _read_checkpoint(self, number: int, snapshot: Snapshot) -> dict[str, Any]:
        """Read one snapshot as a row of `cklog.model.schemas.CHECKPOINTS`.

        Raises
        ------
        _Unusable, Refused : it cannot be used
        """
        if snapshot.size > SNAPSHOT_BYTES:
            raise _Unusable(f"{snapshot.size} bytes are too many for a snapshot")
        body = load(self._root.read(snapshot.path, None), _KEYS)
        if not isinstance(body, dict) or "local_state_data" not in body:
            raise _Unusable("is no snapshot: it has no local_state_data")
        row: dict[str, Any] = {
            "operator": snapshot.operator,
            "subtask": snapshot.worker,
            "checkpoint": number,
            "sources": self._next_numbers(body, _TAKEN, lambda name: f"{snapshot.operator}-{name}"),
            "bytes": snapshot.size,
            "uri": snapshot.path,
            "_path": snapshot.path,
            "_offset": 0,
        }
        if SENT not in body and _PROCESSED not in body:
            timed = {"time": snapshot.stamp} if snapshot.stamp >= ROUND_BELOW else {}
            return row | {"kind": "coordinated", "round": snapshot.stamp} | timed
        marks = {
            "sent": self._next_numbers(body, SENT, self._channel_name),
            "received": self._next_numbers(body, _PROCESSED, self._channel_name),
        }
        clock = body.get(_CLOCK)
        indexed = {"index": clock} if is_count(clock) else {}
        return row | marks | indexed | {"kind": "local", "time": snapshot.stamp}

    def _next_numbers(self, body: dict[str, Any], key: str, name: Callable[[str], str]) -> dict[str, int]:
        """Turn {name: last number}, which `body` has under `key`, into {name: next number}, named by `name`.

        Raises
        ------
        _Unusable : it is something else; without its watermarks a snapshot could be taken for an older one
        """
        found = body.get(key, {})
        if not isinstance(found, dict):
            raise _Unusable(f"{key} is no dict")
        for channel, last in found.items():
            if not isinstance(channel, str) or not _is_last_number(last):
                raise _Unusable(f"{key} does not map names to the number of a last message")
        return {name(channel): last + 1 for channel, last in sorted(found.items())}

    def _channel_name(self, name: str) -> str:
        """Name a channel as cklog does."""
        if name not in self._names:
            channel = self._deployment.channel(name)
            if channel is None:
                raise _Unusable(_why_no_channel(self._deployment, name))
            self._names[name] = channel
        return self._names[name]


def _is_last_number(value: Any) -> bool:
    """Return whether a value can be the number of a last message: -1 for none."""
    return is_integer(value) and -1 <= value < BIGGEST - 1


class _Unusable(Exception):
    """Raised for a snapshot that is left out, and says why."""
