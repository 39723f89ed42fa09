"""Tables of Hudi: the timeline of what was done to a table, an instant at a time.

    .hoodie/hoodie.properties                            the table's version, and in which zone instants are
    .hoodie/INSTANT.ACTION                               done; up to table version 6; commits are JSON
    .hoodie/timeline/INSTANT_COMPLETED.ACTION            done; from table version 8 on; commits are Avro
    .../INSTANT.ACTION.requested, INSTANT[.ACTION].inflight    begun, and not seen by readers
    .hoodie/archived/, .hoodie/timeline/history/         what left the timeline: not read

Rollbacks and restores are Avro in every version; what they took back has left the timeline, but for its instant. The
library that this format keeps tells completed commits alone, so the files are read here, and the library's answers are
held against that in the tests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from cklog.budgets import reading
from cklog.errors import UsageError
from cklog.inputs.sink_tables import Operation, SinkTable, Stamp, TableCommit, Writer
from cklog.local_files import without_query
from cklog.parsers.codecs.avro import NotAvro, records_of
from cklog.parsers.sink_tables.files import Metadata, NoJson, json_of, members, require_found, text, whole
from cklog.parsers.sink_tables.hudi_stamps import stamps_of
from cklog.storage import FileEntry
from cklog.unknown_formats import UnknownFormat, require_known, require_known_name

_DONE = re.compile(r"([0-9]{14}(?:[0-9]{3})?)(?:_([0-9]{14}(?:[0-9]{3})?))?\.(?!inflight|requested)([a-z]+)")
_BEGUN = re.compile(r"([0-9]{14}(?:[0-9]{3})?)(?:\.([a-z]+))?\.(?:requested|inflight)")
_COMMITS = frozenset({"commit", "deltacommit", "replacecommit"})
_ACTIONS = (
    *sorted(_COMMITS),
    "clean",
    "clustering",
    "compaction",
    "indexing",
    "logcompaction",
    "restore",
    "rollback",
    "savepoint",
    "schemacommit",
)
_NEWEST = {"hoodie.table.version": 9, "hoodie.timeline.layout.version": 2}
_NEWEST_METADATA = 1
_BACK = {"rollback": "commitsRollback", "restore": "instantsToRollback"}
_ARCHIVES = ("archived/", "timeline/history/")
_OPERATIONS: dict[str, Operation] = {
    "INSERT": "append",
    "UPSERT": "append",
    "BULK_INSERT": "append",
    "INSERT_PREPPED": "append",
    "UPSERT_PREPPED": "append",
    "BULK_INSERT_PREPPED": "append",
    "DELETE": "delete",
    "DELETE_PREPPED": "delete",
    "DELETE_PARTITION": "delete",
    "INSERT_OVERWRITE": "overwrite",
    "INSERT_OVERWRITE_TABLE": "overwrite",
    "COMPACT": "rewrite",
    "LOG_COMPACT": "rewrite",
    "CLUSTER": "rewrite",
}
_BY_ACTION: dict[str, Operation] = {"commit": "append", "deltacommit": "append", "replacecommit": "overwrite"}


class _Instant(NamedTuple):
    """What was done: when it began and, from table version 8 on, when it was done, both as in the file's name."""

    begun: str
    done: str
    action: str
    entry: FileEntry

    @property
    def order(self) -> tuple[str, str]:
        """When readers saw it."""
        return self.done or self.begun, self.begun


def read(uri: str, branch: str = "") -> SinkTable:
    """Read a table of Hudi; a `cklog.inputs.sink_tables.ReadsTables`."""
    if branch:
        raise UsageError(f"{without_query(uri)}: tables of Hudi have no branches")
    files = Metadata(uri)
    files.require()
    listed = files.listed(".hoodie", deep=True)
    require_found("hoodie.properties" in listed, uri, ".hoodie/hoodie.properties")
    properties = _properties(files.read(".hoodie", listed["hoodie.properties"]))
    _check_versions(files, properties)
    folder = "timeline/" if any(path.startswith("timeline/") for path in listed) else ""
    here = {path.removeprefix(folder): e for path, e in listed.items() if path.startswith(folder)}
    instants = sorted(
        (_Instant(m[1], m[2] or "", m[3], e) for path, e in here.items() if (m := _DONE.fullmatch(path))),
        key=lambda instant: instant.order,
    )
    utc = properties.get("hoodie.table.timeline.timezone", "").upper() == "UTC"
    commits: dict[str, TableCommit] = {}
    taken_back: list[tuple[str, str]] = []
    found: dict[str, tuple[Stamp, ...]] = {}
    for instant in instants:
        _check_action(files, instant)
        if instant.action in _COMMITS:
            told = _told(files, instant)
            found[instant.begun], faults = stamps_of(members(told.get("extraMetadata")))
            for fault in faults:
                files.unsure("damaged-value", f".hoodie/{instant.entry.path}", fault)
            commits[instant.begun] = _commit(instant, told, found[instant.begun], utc)
        elif instant.action in _BACK:
            back, path = _told(files, instant).get(_BACK[instant.action]), f".hoodie/{instant.entry.path}"
            if not isinstance(back, list) and not files.is_flawed(path):
                files.damaged(path, f"it has no {_BACK[instant.action]}")
            undone = [text(one) for one in back if text(one)] if isinstance(back, list) else []
            taken_back += [(instant.begun, one) for one in undone]
            if instant.action == "restore":
                kept = [id for id in commits if undone and id < min(undone)]
                restores = max(kept, default=None)
                commits[instant.begun] = TableCommit(
                    instant.begun, _time(instant.begun, utc), "restore", None, restores=restores
                )
    gone = {one for _, one in taken_back}
    for one in sorted(gone - commits.keys()):
        commits[one] = TableCommit(one, _time(one, utc), "other", None, undone=True)
    done = {instant.begun: instant.order for instant in instants}
    ordered = sorted(commits.values(), key=lambda commit: done.get(commit.id, (commit.id, commit.id)))
    seen = [commit for commit in ordered if not commit.undone]
    _say_begun(files, here, {instant.begun for instant in instants})
    expired = any(path.startswith(_ARCHIVES) and _is_archive(path) for path in listed)
    table = SinkTable(
        uri=uri,
        format="hudi",
        branch="",
        commits=tuple(ordered),
        head=seen[-1].id if seen else None,
        branches={},
        remembers=_remembered(found),
        expired=expired,
        expired_before=seen[0].time if expired and seen else None,
    )
    return files.finish(table, len(instants))


def _is_archive(path: str) -> bool:
    """Return whether a file holds instants that left the timeline, and is not about such files."""
    name = path.rpartition("/")[2]
    return name.endswith(".parquet") or name.startswith(".commits_")


def _properties(data: bytes) -> dict[str, str]:
    """Return the pairs of a properties file."""
    lines = data.decode("utf-8", "replace").splitlines()
    pairs = (line.partition("=") for line in lines if not line.lstrip().startswith("#"))
    return {key.strip(): value.strip() for key, equals, value in pairs if equals}


def _check_versions(files: Metadata, properties: Mapping[str, str]) -> None:
    """Say so where the table, or its timeline, is of a version that is not known, or of none."""
    path = ".hoodie/hoodie.properties"
    for name, newest in _NEWEST.items():
        number = whole(properties.get(name, "0"))
        try:
            if number is None or number < 0:
                files.damaged(path, f"{name} is {properties[name][:40]!r}")
            else:
                require_known(f"Hudi: {name}", number, newest)
        except UnknownFormat as error:
            files.unknown(path, error)


def _check_action(files: Metadata, instant: _Instant) -> None:
    """Say so where an instant is of an action that is not known."""
    path = f".hoodie/{instant.entry.path}"
    try:
        require_known_name("Hudi: action", instant.action, _ACTIONS)
    except UnknownFormat as error:
        files.unknown(path, error)
    else:
        if instant.action not in _ACTIONS:
            files.damaged(path, "its action is one bit away from a known one")


def _told(files: Metadata, instant: _Instant) -> dict[str, Any]:
    """Return the metadata of an instant, of JSON or Avro; {} if they are damaged, which becomes a finding."""
    data = files.read(".hoodie", instant.entry)
    path = f".hoodie/{instant.entry.path}"
    try:
        with reading(files.place(path)):
            if data.startswith(b"Obj"):
                told = [*records_of(data)]
                if len(told) != 1:
                    raise NotAvro(f"it holds {len(told)} records, where metadata are one")
                return _known(_object(told[0]))
            if instant.action not in _COMMITS and data.strip():
                raise NotAvro("it does not begin as Avro files do")
            return _object(json_of(data))
    except UnknownFormat as error:
        files.unknown(path, error)
        return {}
    except (NoJson, NotAvro) as error:
        files.damaged(path, str(error))
        return {}


def _known(told: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata of an instant again, if they are of a version that is known."""
    require_known("Hudi: version of the metadata", whole(told.get("version")) or 0, _NEWEST_METADATA)
    return told


def _object(value: Any) -> dict[str, Any]:
    """Return an object of JSON or Avro; whatever else stands there tells nothing of an instant."""
    if not isinstance(value, dict):
        raise NoJson("no object")
    return value


def _commit(instant: _Instant, told: Mapping[str, Any], stamps: tuple[Stamp, ...], utc: bool) -> TableCommit:
    """Return an instant as a commit of its table."""
    operation = _OPERATIONS.get(text(told.get("operationType")), _BY_ACTION[instant.action]) if told else "other"
    stats = [
        stat for some in members(told.get("partitionToWriteStats")).values() if isinstance(some, list) for stat in some
    ]
    inserts = [whole(members(stat).get("numInserts")) for stat in stats]
    rows = sum(one for one in inserts if one is not None) if told and None not in inserts else None
    if operation in ("rewrite", "delete"):
        rows = 0
    return TableCommit(instant.begun, _time(instant.done or instant.begun, utc), operation, rows, stamps)


def _time(instant: str, utc: bool) -> int | None:
    """Return an instant as ms; None where it is in the zone of whatever machine wrote it."""
    if not utc:
        return None
    try:
        found = datetime.strptime(instant[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(found.timestamp()) * 1000 + int(instant[14:17] or 0)


def _remembered(found: Mapping[str, tuple[Stamp, ...]]) -> dict[Writer, int]:
    """Return what each writer finds: the newest instant by when it began that has a number of its own."""
    numbers: dict[Writer, int] = {}
    for begun in sorted(found, reverse=True):
        for stamp in found[begun]:
            if stamp.number is not None:
                numbers.setdefault(stamp.writer, stamp.number)
    return numbers


def _say_begun(files: Metadata, here: Mapping[str, FileEntry], done: set[str]) -> None:
    """Say so where instants were begun and are not done: no reader sees them."""
    begun = {m[1] for path in here if (m := _BEGUN.fullmatch(path))} - done
    if begun:
        what = f"{len(begun)} instants were begun and are not done, the newest {max(begun)}: no reader sees them"
        files.say("pending-instants", "info", ".hoodie", what)
