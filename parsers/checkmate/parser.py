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

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import pyarrow as pa

from cklog.arrow_errors import ARROW_ERRORS
from cklog.budgets import budgets, over, reading
from cklog.engine.scan import Damage, Listing, Split, damage_of
from cklog.inputs.offers import Format, KindName, RowFilter
from cklog.model.findings import Finding, InputUsed
from cklog.model.names import Subtask
from cklog.model.schemas import CHECKPOINTS, MESSAGES
from cklog.model.values import is_integer
from cklog.parsers.checkmate.dump import READER as LOG_READER
from cklog.parsers.checkmate.dump import (
    SENT,
    Unit,
    dump_of,
    folders_of,
    is_count,
    is_dump,
    unread_damage,
)
from cklog.parsers.checkmate.names import ROUND_BELOW, Deployment, Snapshot, snapshot_of
from cklog.parsers.checkmate.whole_dump import (
    assumed_complete,
    assumed_partitions,
    earlier_recoveries,
    emptied_logs,
    missing_snapshots,
    unreadable_channels,
    unseen_units,
    why_no_channel,
)
from cklog.parsers.pickles.restricted import Refused, load
from cklog.parsers.tables.records import BIGGEST, batch_of_rows
from cklog.progress import count_bytes
from cklog.storage import Root

READER = "cklog.parsers.checkmate.parser:read"
_PROCESSED, _TAKEN, _CLOCK = "last_messages_processed", "last_kafka_consumed", "cic_clock"
_KEYS = frozenset({SENT, _PROCESSED, _TAKEN})
_BATCH_ROWS = 1 << 12


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

    def checkpoint_at(self, path: str) -> tuple[Subtask, int] | None:
        """Return the operator and worker of a snapshot, and its moment, by its name."""
        found = snapshot_of(path, 0)
        return None if found is None else (Subtask(found.operator, found.worker), found.stamp)

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
        """Cut units or logs into runs of about `split_bytes`; each split takes the listing with it.

        Places in a split are numbers of whole units, or of whole logs. `wanted` has nothing to go by.
        """
        reader = READER if table == "checkpoints" else LOG_READER
        places = self._places(table)
        start, size = 0, 0
        for i, (path, more) in enumerate(places):
            size += more
            if size >= split_bytes or i + 1 == len(places):
                yield Split(
                    uri=self._root.uri(""),
                    path=path,
                    reader=reader,
                    start=start,
                    end=i + 1,
                    size=size,
                    follow_links=self._root.follow_links,
                    numbered=True,
                    listing=Listing.of(self._root),
                )
                start, size = i + 1, 0

    def findings(self, table: str) -> tuple[Finding, ...]:
        """Return what names, numbers and counters tell of the dump as a whole."""
        if table == "checkpoints":
            return (
                *assumed_partitions(self._dump),
                *missing_snapshots(self._dump),
                *assumed_complete(self._dump),
                *unseen_units(self._dump),
            )
        if table == "channels":
            if self._channel_findings is None:
                self._channel_findings = (
                    *unreadable_channels(self._dump),
                    *emptied_logs(self._root, self._dump),
                    *earlier_recoveries(self._root, self._dump),
                )
            return self._channel_findings
        return ()


def read(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Read the checkpoints of the units `split.start` to `split.end` of a dump; a `cklog.engine.scan.Reader`."""
    root = split.folder()
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
        if nothing came. Messages may overtake each other: so what counts is the maximum over all snapshots so far, and
        behind one that cannot be read nothing is known of it: that one may have had the highest. One that is not here
        may as well have been deleted as no longer needed.
        """
        highest: dict[str, int] = {}
        lost = False
        for number, snapshot in unit.snapshots:
            if snapshot.unread:
                lost = True
                yield unread_damage(snapshot)
                continue
            count_bytes(snapshot.size)
            try:
                row = self._read_checkpoint(number, snapshot)
            except Refused as refused:
                lost = True
                yield Damage(snapshot.path, refused.id, refused.offset, refused.why)
                continue
            except (_Unusable, OSError, *ARROW_ERRORS) as error:
                lost = True
                yield damage_of(snapshot.path, error, "")
                continue
            if lost and "received" in row:
                row["received"] = {}
            for channel, n in row.get("received", {}).items():
                highest[channel] = row["received"][channel] = max(n, highest.get(channel, 0))
            yield row

    def _read_checkpoint(self, number: int, snapshot: Snapshot) -> dict[str, Any]:
        """Read one snapshot as a row of `cklog.model.schemas.CHECKPOINTS`.

        Raises
        ------
        _Unusable, Refused : it cannot be used
        """
        with reading(snapshot.path):
            if snapshot.size > budgets().snapshot:
                raise over(f"a snapshot of {snapshot.size} bytes", budgets().snapshot)
            body = load(self._root.read(snapshot.path, snapshot.size), _KEYS)
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
                raise _Unusable(why_no_channel(self._deployment, name))
            self._names[name] = channel
        return self._names[name]


def _is_last_number(value: Any) -> bool:
    """Return whether a value can be the number of a last message: -1 for none."""
    return is_integer(value) and -1 <= value < BIGGEST - 1


class _Unusable(Exception):
    """Raised for a snapshot that is left out, and says why."""
