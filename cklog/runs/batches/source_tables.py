"""Delta tables that a query reads as streams, held against the positions at which it resumes.

Read in Delta's source: a stream reads on at a version of the log, and stops if that version is no longer there, unless
the query is told to go on without it. Where nothing is in flight Spark plans the last batch once more, and so asks for
the version at which that one began.

Offsets of streams that read tables, as Spark's sources keep them: of which commit of a table was read last.

Delta    {"sourceVersion": 1, "reservoirId": the table's id, "reservoirVersion": v, "index": i, "isStartingVersion": b}
         all versions before v, and of v the files up to number i; below 0 none of them. While the table as it was at
         the start is read, b is true, and i numbers the files that it had then: any version up to v may be among them
Iceberg  {"version": 1, "snapshot_id": s, "position": n, "scan_all_files": b}
         n files of snapshot s, and all of the snapshots before it; s is -1 before the first one
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from cklog.model.findings import Finding, Where
from cklog.model.values import is_integer
from cklog.runs.batches.plan import BatchPlan
from cklog.sink_tables.fitting import NamedTable


class ReadTable(NamedTuple):
    """A table that a source reads, and the version of its log that a restart asks for."""

    source: str
    table: NamedTable
    version: int


def tables_read(plan: BatchPlan, tables: Sequence[NamedTable]) -> list[ReadTable]:
    """Return those tables that the query reads, by their ids, and not their sinks."""
    return list(_read(plan, {one.table.id: one for one in tables if one.table.format == "delta" and one.table.id}))


def _read(plan: BatchPlan, by_id: dict[str, NamedTable]) -> Iterator[ReadTable]:
    ends = {batch.batch: batch.offsets or {} for batch in plan.batches}
    for source in plan.sources:
        key = source.source.removeprefix("source/")
        before = ends.get(plan.committed - 1, {}).get(key) if plan.planned is None else None
        start = source.start if before is None else before
        table = by_id.get(start.get("reservoirId", "")) if isinstance(start, dict) else None
        if table is not None and is_integer(start.get("reservoirVersion")):
            yield ReadTable(source.source, table, start["reservoirVersion"])


def cleaned_findings(read: Sequence[ReadTable]) -> Iterator[Finding]:
    """Report tables whose log no longer has the version that a restart asks for."""
    for source, named, version in read:
        table = named.table
        first = min((int(commit.id) for commit in table.commits), default=None)
        if first is None or first <= version:
            continue
        message = (
            f"{source} resumes Delta table {table.id} at version {version}, but the log at {table.uri} begins with "
            f"version {first}. The restart fails. Restore the log from version {version} on from a backup, or resume "
            f"at {first} (failOnDataLoss=false): rows that were added before are lost."
        )
        yield Finding(
            "source-table-cleaned", "error", source, message, where=(Where(table.uri),), effect="restart-fails"
        )


class TableOffset(NamedTuple):
    """How far a table was read: the id of the table, "" if it is not said, and of its last commit, "" for none.

    A commit of which a part was read counts as read.
    """

    table: str
    commit: str


def last_commit(value: Any) -> TableOffset | None:
    """Return how far an offset lies in a table; None if it is no offset of one.

    >>> last_commit({"reservoirId": "t", "reservoirVersion": 3, "index": -1, "isStartingVersion": False})
    TableOffset(table='t', commit='2')
    >>> last_commit({"reservoirId": "t", "reservoirVersion": 3, "index": -1, "isStartingVersion": True})
    TableOffset(table='t', commit='')
    >>> last_commit({"version": 1, "snapshot_id": 77, "position": 2, "scan_all_files": False}).commit
    '77'
    """
    if not isinstance(value, dict):
        return None
    table, version, index = value.get("reservoirId"), value.get("reservoirVersion"), value.get("index")
    if isinstance(table, str) and is_integer(version) and is_integer(index):
        last = version if index >= 0 else -1 if value.get("isStartingVersion") is True else version - 1
        return TableOffset(table, str(last) if last >= 0 else "")
    snapshot, position = value.get("snapshot_id"), value.get("position")
    if is_integer(snapshot) and is_integer(position):
        return TableOffset("", str(snapshot) if snapshot >= 0 else "")
    return None
