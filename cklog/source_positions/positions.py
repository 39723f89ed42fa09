"""Where in a source an offset is, and which of two comes first: as Debezium writes positions, or not at all.

    mysql       file pos [event row] [gtids] [server_id]         MySQL and MariaDB: behind `pos` so many events and
                                                                 rows are passed over
    postgresql  lsn [lsn_proc lsn_commit txId]                   goes on behind lsn_proc, in the order of commits
    sqlserver   commit_lsn change_lsn [event_serial_no]          SQL Server; Db2 with the same names
    oracle      scn commit_scn | lcr_position                    commit_scn = scn ":" thread ":" transactions, ","…
    mongodb     sec ord [resume_token]
    kafka       cluster topic partition offset                   MirrorMaker 2: the last record that was copied; the
                                                                 partition of the source has the first three
    other       whatever another connector stores: equal or not, nothing else is known

Field names and the order of each were read off Debezium's offset contexts and comparators (docs/sources.md). Where an
order is not defined (two servers, sets of which neither holds the other, another form) the answer is None, never a
guess.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from cklog.model.values import is_integer
from cklog.source_positions.gtids import NotGtids, gtids

System = Literal["mysql", "postgresql", "sqlserver", "oracle", "mongodb", "kafka", "other"]
Offset = Mapping[str, Any]

_BINLOG = re.compile(r"(.+)\.([0-9]{1,18})", re.DOTALL)
_WHOLE = re.compile(r"[0-9]{1,38}")
_PG_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")


def system_of(offset: Offset) -> System:
    """Say of which kind of source an offset is, by the names in it.

    >>> system_of({"file": "mysql-bin.000003", "pos": 154}), system_of({"offset": 7})
    ('mysql', 'other')
    """
    if "file" in offset and "pos" in offset:
        return "mysql"
    if kafka_next(offset) is not None:
        return "kafka"
    if "commit_lsn" in offset or "change_lsn" in offset:
        return "sqlserver"
    if "scn" in offset or "lcr_position" in offset or "commit_scn" in offset:
        return "oracle"
    if "lsn" in offset:
        return "postgresql"
    return "mongodb" if ("sec" in offset and "ord" in offset) or "resume_token" in offset else "other"


def compare(one: Offset, other: Offset) -> int | None:
    """Say whether an offset is before (-1), at (0) or behind (1) another; None: nothing tells.

    >>> compare({"file": "b.000009", "pos": 900}, {"file": "b.000010", "pos": 4})
    -1
    """
    system = system_of(one)
    if system != system_of(other):
        return None
    if system == "mysql":
        return _compare_mysql(one, other)
    if system == "postgresql":
        return _compare_postgresql(one, other)
    if system == "sqlserver":
        return _compare_sqlserver(one, other)
    if system == "oracle":
        return _compare_oracle(one, other)
    if system == "mongodb":
        return _compare_mongodb(one, other)
    if system == "kafka":
        same = all(one[name] == other[name] for name in _KAFKA)
        return _sign(kafka_next(one), kafka_next(other)) if same else None
    return 0 if one == other else None


def unfinished_snapshot(offset: Offset) -> str:
    """Return the kind of the snapshot that was being taken when an offset was stored; "": none was.

    >>> [unfinished_snapshot(o) for o in ({"snapshot": True}, {"snapshot": "INITIAL", "snapshot_completed": True}, {})]
    ['initial', '', '']
    """
    if _is_true(offset.get("initsync")):
        return "initial"
    kind = offset.get("snapshot")
    if kind is None or kind is False or (isinstance(kind, str) and kind.lower() in ("", "false", "last")):
        return ""
    if _is_true(offset.get("snapshot_completed")) or _is_true(offset.get("last_snapshot_record")):
        return ""
    return "initial" if _is_true(kind) else str(kind).lower()


def words(offset: Offset) -> str:
    """Write an offset as people of its system write it.

    >>> words({"file": "mysql-bin.000123", "pos": 4, "event": 2}), words({"lsn": 38723776})
    ('mysql-bin.000123:4 +2 events', '0/24EE0C0')
    """
    system = system_of(offset)
    if system == "mysql":
        skipped = "".join(f" +{n} {what}s" for what in ("event", "row") if (n := whole(offset.get(what))))
        told = f"{offset['file']}:{offset['pos']}{skipped}"
        return f"{told} gtids {offset['gtids']}" if offset.get("gtids") else told
    if system == "postgresql":
        number = _lsn(offset)
        return pg_words(number) if number is not None else str(offset["lsn"])
    if system == "sqlserver":
        return f"{offset.get('commit_lsn')} / {offset.get('change_lsn')}"
    if system == "oracle":
        told = str(offset.get("scn") or offset.get("lcr_position") or "")
        return f"scn {told}, commits {offset['commit_scn']}" if offset.get("commit_scn") else f"scn {told}"
    if system == "mongodb" and "sec" in offset:
        return f"{offset['sec']}:{offset.get('ord')}"
    if system == "kafka":
        return f"offset {kafka_next(offset)}"
    return ", ".join(f"{name}={value}" for name, value in sorted(offset.items()))


def whole(value: Any) -> int | None:
    """Return a whole number, which converters may have written as a text; None: it is none, or negative.

    >>> whole(7), whole("7"), whole(True), whole("-1"), whole(None)
    (7, 7, None, None, None)
    """
    if is_integer(value):
        return value if value >= 0 else None
    return int(value) if isinstance(value, str) and _WHOLE.fullmatch(value) else None


def _is_true(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.lower() == "true")


# MySQL, MariaDB


def binlog(name: Any) -> tuple[str, int] | None:
    """Return the base name of a binlog file and its number; None: it is called otherwise.

    >>> binlog("mysql-bin.000123")
    ('mysql-bin', 123)
    """
    found = _BINLOG.fullmatch(name) if isinstance(name, str) else None
    return (found[1], int(found[2])) if found else None


def compare_binlogs(one: Offset, other: Offset) -> int | None:
    """Compare two places in the binlogs of one server: file by its number, then the byte."""
    servers = one.get("server_id"), other.get("server_id")
    mine, theirs = binlog(one.get("file")), binlog(other.get("file"))
    if (None not in servers and servers[0] != servers[1]) or mine is None or theirs is None or mine[0] != theirs[0]:
        return None
    if mine[1] != theirs[1]:
        return _sign(mine[1], theirs[1])
    places = whole(one.get("pos")), whole(other.get("pos"))
    return None if places[0] is None or places[1] is None else _sign(places[0], places[1])


def _compare_mysql(one: Offset, other: Offset) -> int | None:
    sets = one.get("gtids"), other.get("gtids")
    if (sets[0] is None) != (sets[1] is None):
        return None
    at = compare_gtids(*sets) if sets[0] is not None else compare_binlogs(one, other)
    if at != 0:
        return at
    skipped = [(_skipped(o, "event"), _skipped(o, "row")) for o in (one, other)]
    return None if None in (*skipped[0], *skipped[1]) else _sign(skipped[0], skipped[1])


def compare_gtids(one: Any, other: Any) -> int | None:
    """Compare two sets of transactions: the one that is held by the other is before it."""
    try:
        first, second = gtids(str(one)), gtids(str(other))
    except NotGtids:
        return None
    below, above = second.holds(first), first.holds(second)
    if below is None or above is None:
        return None
    return {(True, True): 0, (True, False): -1, (False, True): 1}.get((below, above))


def _skipped(offset: Offset, name: str) -> int | None:
    return 0 if offset.get(name) is None else whole(offset[name])


# PostgreSQL


def pg_lsn(value: Any) -> int | None:
    """Return a position in PostgreSQL's log, a number or two of them in hexadecimal; None: it is none.

    >>> pg_lsn("0/24EDFE0"), pg_lsn(38723552)
    (38723552, 38723552)
    """
    found = _PG_LSN.fullmatch(value) if isinstance(value, str) else None
    return int(found[1], 16) << 32 | int(found[2], 16) if found else whole(value)


def pg_words(lsn: int) -> str:
    """Return such a position as PostgreSQL writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def _lsn(offset: Offset) -> int | None:
    """The position behind which a restart goes on."""
    processed = pg_lsn(offset.get("lsn_proc"))
    return pg_lsn(offset.get("lsn")) if processed is None else processed


def _compare_postgresql(one: Offset, other: Offset) -> int | None:
    """Changes come in the order of commits, whose transactions overlap: the last commit is compared first."""
    commits = pg_lsn(one.get("lsn_commit")), pg_lsn(other.get("lsn_commit"))
    if commits[0] is not None and commits[1] is not None and commits[0] != commits[1]:
        return _sign(commits[0], commits[1])
    places = _lsn(one), _lsn(other)
    return None if places[0] is None or places[1] is None else _sign(places[0], places[1])


# SQL Server, Db2


def hex_lsn(value: Any) -> bytes | None:
    """Return a position of SQL Server or Db2 as bytes; None: it is none, or NULL.

    >>> hex_lsn("00000027:00000ac0:0002").hex(), hex_lsn("NULL")
    ('0000002700000ac00002', None)
    """
    if not isinstance(value, str):
        return None
    digits = value.removeprefix("0x").replace(":", "")
    return bytes.fromhex(digits) if re.fullmatch(r"(?:[0-9A-Fa-f]{2}){1,64}", digits) else None


def compare_hex(one: Any, other: Any) -> int | None:
    """Compare two such positions, of one length."""
    mine, theirs = hex_lsn(one), hex_lsn(other)
    return None if mine is None or theirs is None or len(mine) != len(theirs) else _sign(mine, theirs)


def _compare_sqlserver(one: Offset, other: Offset) -> int | None:
    for name in ("commit_lsn", "change_lsn"):
        at = compare_hex(one.get(name), other.get(name))
        if at != 0:
            return at
    serials = one.get("event_serial_no"), other.get("event_serial_no")
    if serials == (None, None):
        return 0
    first, second = whole(serials[0]), whole(serials[1])
    return None if first is None or second is None else _sign(first, second)


# Oracle


def commit_scns(value: Any) -> dict[str, int] | None:
    """Return the last commit of each redo thread; None: it does not say so in a form that is known.

    >>> commit_scns("1620:1:0a00-0b00,1618:2:"), commit_scns(1620)
    ({'1': 1620, '2': 1618}, {'1': 1620})
    """
    found: dict[str, int] = {}
    for part in str(value).split(",") if value is not None else ():
        pieces = part.strip().split(":")
        scn = whole(pieces[0])
        thread = {1: "1", 3: pieces[1] if len(pieces) == 3 else "", 4: pieces[-1]}.get(len(pieces))
        if scn is None or not thread or thread in found:
            return None
        found[thread] = scn
    return found or None


def _compare_oracle(one: Offset, other: Offset) -> int | None:
    """Commits decide, thread by thread; where neither tells of any, the position of the log does."""
    if "lcr_position" in one or "lcr_position" in other:
        return 0 if one.get("lcr_position") == other.get("lcr_position") else None
    if (one.get("commit_scn") is None) != (other.get("commit_scn") is None):
        return None
    if one.get("commit_scn") is not None:
        mine, theirs = commit_scns(one["commit_scn"]), commit_scns(other["commit_scn"])
        if mine is None or theirs is None or mine.keys() != theirs.keys():
            return None
        signs = {_sign(mine[thread], theirs[thread]) for thread in mine}
        at = 0 if signs == {0} else None if {-1, 1} <= signs else max(signs, key=abs)
        if at != 0:
            return at
    places = whole(one.get("scn")), whole(other.get("scn"))
    return None if places[0] is None or places[1] is None else _sign(places[0], places[1])


# MongoDB


def _compare_mongodb(one: Offset, other: Offset) -> int | None:
    places = [(whole(o.get("sec")), whole(o.get("ord"))) for o in (one, other)]
    if None not in (*places[0], *places[1]):
        return _sign(places[0], places[1])
    return 0 if one.get("resume_token") is not None and one.get("resume_token") == other.get("resume_token") else None


# Kafka, by MirrorMaker 2

_KAFKA = ("cluster", "topic", "partition")


def placed(partition: Mapping[str, Any], offset: Offset) -> Offset:
    """Return an offset with what its partition says of the place, where an offset alone has no order.

    >>> kafka_next(placed({"cluster": "A", "topic": "orders", "partition": 0}, {"offset": 499}))
    500
    >>> placed({"file": "a.txt"}, {"offset": 499})
    {'offset': 499}
    """
    return {**partition, **offset} if {*partition} == {*_KAFKA} and {*offset} == {"offset"} else offset


def kafka_next(offset: Offset) -> int | None:
    """Return the next record that MirrorMaker 2 copies; None: it is no offset of a partition of Kafka."""
    last = whole(offset.get("offset"))
    named = isinstance(offset.get("topic"), str) and whole(offset.get("partition")) is not None
    return last + 1 if last is not None and named and "cluster" in offset else None


def kafka_partition(offset: Offset) -> str:
    """Return the partition that such an offset is in, e.g. orders-0."""
    return f"{offset['topic']}-{whole(offset['partition'])}"


def _sign(one: Any, other: Any) -> int:
    return int(one > other) - int(one < other)
