"""Whether a source's log still holds the position that a connector resumes at, by what `--source-from` tells of it."""

from __future__ import annotations

import re
from typing import NamedTuple

from cklog.errors import UsageError
from cklog.model.wording import agreeing, many
from cklog.source_positions.gtids import NotGtids, gtids
from cklog.source_positions.positions import (
    Offset,
    binlog,
    compare_binlogs,
    compare_hex,
    hex_lsn,
    kafka_next,
    kafka_partition,
    pg_lsn,
    pg_words,
    system_of,
    whole,
    words,
)

FORMS = {
    "mysql": "FILE:POS of the oldest binlog (SHOW BINARY LOGS), or the set in @@gtid_purged",
    "postgresql": "the slot's restart_lsn (pg_replication_slots)",
    "sqlserver": "sys.fn_cdc_get_min_lsn of the capture instance, in hexadecimal",
    "oracle": "the FIRST_CHANGE# of the oldest redo or archive log",
    "kafka": "the first offset of the partition (kafka-get-offsets.sh --time earliest)",
    "mongodb": "the ts of the oplog's first entry, as SECONDS or SECONDS:ORDINAL",
}
"""What `--source-from` takes for each system."""


class Retained(NamedTuple):
    """Whether a position is held (None: nothing tells), and why."""

    held: bool | None
    because: str


def retained(offset: Offset, told: str) -> Retained:
    """Say whether a log that begins where `told` says still holds a position.

    Raises
    ------
    UsageError : `told` is no position of the system that the offset is of
    """
    system = system_of(offset)
    if system == "mysql":
        return _mysql(offset, told)
    if system == "postgresql":
        start, at = pg_lsn(told), pg_lsn(offset.get("lsn_proc") or offset.get("lsn"))
        if start is None:
            raise _refused(system, told)
        return _by(None if at is None else start <= at, words(offset), pg_words(start))
    if system == "sqlserver":
        if hex_lsn(told) is None:
            raise _refused(system, told)
        order = compare_hex(told, offset.get("commit_lsn"))
        return _by(None if order is None else order <= 0, str(offset.get("commit_lsn")), told)
    if system == "oracle":
        scn, at = whole(told), whole(offset.get("scn"))
        if scn is None:
            raise _refused(system, told)
        return _by(None if at is None else scn <= at, words(offset), told)
    if system == "mongodb":
        found = re.fullmatch(r"(\d{1,12})(?::(\d{1,12}))?", told)
        if not found:
            raise _refused(system, told)
        sec, ordinal = whole(offset.get("sec")), whole(offset.get("ord"))
        known = sec is not None and ordinal is not None
        oldest = (int(found[1]), int(found[2] or 0))
        return _by(oldest <= (sec or 0, ordinal or 0) if known else None, words(offset), told)
    if system == "kafka":
        first = whole(told)
        if first is None:
            raise _refused(system, told)
        return in_log(offset, first)
    return Retained(None, f"cklog does not know the order of such offsets: {words(offset)}")


def in_log(offset: Offset, first: int, end: int | None = None) -> Retained:
    """Say whether a Kafka log of the offsets [first, end) has the next record of MirrorMaker 2, or will have it."""
    after, name = kafka_next(offset) or 0, kafka_partition(offset)
    if after < first:
        gone = first - after
        lost = f"{many(gone, 'offset')} from {after} on {agreeing(gone, 'were')} deleted"
        return Retained(False, f"the log of {name} begins at {first}: {lost} and will be missing from the copy")
    if end is not None and after > end:
        why = "the log was truncated, or the topic was deleted and created again"
        return Retained(False, f"the log of {name} ends at {end}: {why}. A copy from its start has duplicates")
    return Retained(True, f"the log of {name} begins at {first}, not after offset {after}")


def _mysql(offset: Offset, told: str) -> Retained:
    file, colon, pos = told.rpartition(":")
    start = {"file": file, "pos": whole(pos)} if colon else {"file": told, "pos": 4}
    mine = offset.get("gtids")
    if binlog(start["file"]) is not None and start["pos"] is not None:
        if mine:
            why = "the connector uses GTIDs and may read another server's binlogs: give @@gtid_purged instead"
            return Retained(None, why)
        order = compare_binlogs(start, offset)
        return _by(None if order is None else order <= 0, words(offset), told)
    try:
        purged = gtids(told)
    except NotGtids as reason:
        raise UsageError(f"--source-from {told}: {reason}", FORMS["mysql"]) from None
    if not mine:
        return Retained(None, "the offset was stored without GTIDs: give FILE:POS of the oldest binlog instead")
    try:
        held = gtids(str(mine)).holds(purged)
    except NotGtids as reason:
        return Retained(None, f"the offset's GTIDs cannot be compared: {reason}")
    if held is None:
        return Retained(None, "the GTID sets cannot be compared: they name other servers or have different formats")
    if held:
        return Retained(True, "the connector has read every transaction that the server purged")
    return Retained(False, "the server purged transactions that the connector has not read")


def _by(held: bool | None, position: str, start: str) -> Retained:
    if held is None:
        return Retained(None, f"{position} and {start} cannot be compared")
    return Retained(held, f"the source's log begins at {start}, {'not after' if held else 'after'} {position}")


def _refused(system: str, told: str) -> UsageError:
    return UsageError(f"--source-from {told}: not a position of {system}", FORMS[system])
