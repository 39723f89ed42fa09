"""Offsets of streams that read tables, as Spark's sources keep them: of which commit of a table was read last.

Delta    {"sourceVersion": 1, "reservoirId": the table's id, "reservoirVersion": v, "index": i, "isStartingVersion": b}
         all versions before v, and of v the files up to number i; below 0 none of them. While the table as it was at
         the start is read, b is true, and i numbers the files that it had then: any version up to v may be among them
Iceberg  {"version": 1, "snapshot_id": s, "position": n, "scan_all_files": b}
         n files of snapshot s, and all of the snapshots before it; s is -1 before the first one
"""

from __future__ import annotations

from typing import Any, NamedTuple

from cklog.model.values import is_integer


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
