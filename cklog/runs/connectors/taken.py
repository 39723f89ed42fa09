"""What of a data topic a connector writes once more: the records at its end that are behind the stored position.

A connector sends first and stores its offset now and then, so that a crash leaves records in the topic of which the
offset knows nothing. They come again, with the same `source` block; a sink that keeps no keys has them twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from cklog.inputs.connectors import TakenRecord
from cklog.source_positions.gtids import NotGtids, gtids
from cklog.source_positions.positions import Offset, compare, compare_binlogs, system_of, whole

LOOKED_BACK = 1_000
"""So many records in a row that do not come again, or that say nothing, end the search of a partition: after an earlier
crash records stand in a topic twice, and the older ones may reach farther."""


class Taken(NamedTuple):
    """What is behind a stored position in one partition of a topic, or in a file.

    `again` : records that come once more, at the most; None: nothing tells
    `newest` : the source block of the newest of all that were looked at
    `exact` : whether all of `again` surely come
    """

    log: str
    again: int | None
    newest: Mapping[str, Any] | None
    exact: bool


def taken_of(stored: Offset, log: str, records: Iterable[TakenRecord]) -> Taken:
    """Look at the records of one log from its end backwards, as far as they may come again."""
    again, row, unknown = 0, 0, 0
    newest: Mapping[str, Any] | None = None
    seen = False
    for record in records:
        source = record.source
        behind = None if source is None or is_snapshot(source) else comes_again(stored, source)
        if source is not None and not is_snapshot(source):
            seen = True
            unknown += behind is None
            newest = newer(newest, source)
        again += behind is True
        row = 0 if behind is True else row + 1
        if row >= LOOKED_BACK:
            break
    if not seen or unknown:
        return Taken(log, None, newest, exact=False)
    return Taken(log, again, newest, exact=not (whole(stored.get("event")) or whole(stored.get("row"))))


def comes_again(stored: Offset, source: Mapping[str, Any]) -> bool | None:
    """Say whether a record is written again by a connector that resumes at an offset; None: nothing tells."""
    system = system_of(stored)
    if system == "mysql":
        return _mysql_again(stored, source)
    place = position_of(source)
    order = compare(stored, place) if system_of(place) == system else None
    return None if order is None else order < 0


def _mysql_again(stored: Offset, source: Mapping[str, Any]) -> bool | None:
    """By ids where the offset has any: transactions that are in the set are done; else by file and byte.

    An offset names the beginning of a transaction, or the end of one: what lies at it comes.
    """
    if stored.get("gtids"):
        gtid = source.get("gtid")
        if not isinstance(gtid, str):
            return None
        try:
            held = gtids(str(stored["gtids"])).holds(gtids(gtid))
        except NotGtids:
            return None
        return None if held is None else not held
    order = compare_binlogs(stored, source)
    return None if order is None else order <= 0


def position_of(source: Mapping[str, Any]) -> Offset:
    """Return the position that a `source` block tells, by the names that offsets have."""
    found = dict(source)
    sequence = source.get("sequence")
    if "lsn" in source and "lsn_commit" not in source and isinstance(sequence, str):
        last = sequence.strip("[] ").split(",")[0].strip().strip('"')  # ["LSN of the last commit","LSN"]
        if whole(last) is not None:
            found["lsn_commit"] = last
    if "ord" in source and "sec" not in source and (time := whole(source.get("ts_ms"))) is not None:
        found["sec"] = time // 1000
    return found


def is_snapshot(source: Mapping[str, Any]) -> bool:
    """Return whether a record is of a snapshot, and so at no place of its own in the source's log."""
    kind = source.get("snapshot")
    return kind is True or (isinstance(kind, str) and kind.lower() not in ("", "false"))


def newer(one: Mapping[str, Any] | None, other: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the later of two source blocks; the first where nothing tells."""
    if one is None:
        return other
    if system_of(one) == "mysql" == system_of(other):
        order = compare_binlogs(one, other)
    else:
        order = compare(position_of(one), position_of(other))
    return other if order == -1 else one
