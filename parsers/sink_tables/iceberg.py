"""Tables of Iceberg: the snapshots in a metadata file, which pyiceberg parses; no manifest and no data file is opened.

    metadata/vN.metadata.json            N counts up; written by engines without a catalog, with version-hint.text
    metadata/NNNNN-UUID.metadata.json    the same with a catalog, which alone knows which of them is the table
    *.gz.metadata.json                   either, compressed

A writer makes the next file and then publishes it. A hint that was not rewritten, or a crash in between, leaves
numbers that disagree, which is said; two files of one number leave open which of them is the table.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterable, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

import pyarrow as pa

from cklog.budgets import inflating, reading
from cklog.errors import CklogError, NotFound, Unreadable, UsageError, first_line
from cklog.inputs.sink_tables import Operation, SinkTable, Stamp, TableCommit
from cklog.local_files import without_file_scheme, without_query
from cklog.masking import masked_options
from cklog.parsers.codecs.streams import open_stream
from cklog.parsers.sink_tables.ancestry import reached, way_back
from cklog.parsers.sink_tables.files import Metadata, NoJson, json_of, require_found, text, whole
from cklog.parsers.sink_tables.iceberg_names import check_known
from cklog.parsers.sink_tables.iceberg_stamps import Remembered, stamps_of
from cklog.storage import FileEntry, Root
from cklog.unknown_formats import UnknownFormat

MAIN = "main"
CATALOG = "catalog:"

_NAME = re.compile(r"(?:v([0-9]{1,18})|([0-9]{1,18})-[^/]*?)(?:\.gz)?\.metadata\.json(?:\.gz)?")
_TRIED = 5
"""Metadata files that are tried before a table is given up: the newest, and older ones where it is damaged."""

_OPERATIONS: dict[str, Operation] = {
    "append": "append",
    "replace": "rewrite",
    "overwrite": "overwrite",
    "delete": "delete",
}


class _Snapshot(NamedTuple):
    """What is needed of a snapshot: its `order` is that of commits to the table, whatever the branch."""

    id: int
    parent: int | None
    order: tuple[int, int]
    time: int | None
    summary: Mapping[str, str]
    stamps: tuple[Stamp, ...]
    faults: tuple[str, ...]


def read(uri: str, branch: str = "") -> SinkTable:
    """Read a table of Iceberg; a `cklog.inputs.sink_tables.ReadsTables`."""
    _imported()
    if uri.startswith(CATALOG):
        return _read_catalog(uri, branch)
    if is_metadata_file(uri):
        folder, name = Root(without_file_scheme(uri)).parent()
        files = Metadata(folder.path, folder)
        entry = next((e for e in files.listed("").values() if e.path == name), None)
        require_found(entry is not None, uri, "such file")
        assert entry is not None
        found = _parsed(files, "", entry)
        if found is None:
            files.refuse_flawed()
        newer = [e.path for e in files.listed("").values() if (_number(e) or 0) > (_number(entry) or 0)]
        if newer:
            files.say("older-metadata", "warning", name, f"{max(newer)} beside it is newer, and was not read")
    else:
        files = Metadata(uri)
        files.require()
        found = _newest(files)
    return _table(files, uri, branch, found)


def is_metadata_file(uri: str) -> bool:
    """Return whether a URI names a metadata file, by its form."""
    return without_query(uri).endswith((".metadata.json", ".metadata.json.gz"))


def _imported() -> Any:
    """Import the library's parser, which not everybody has."""
    try:
        _leave_out_working_directory()
        from pyiceberg.table.metadata import TableMetadataUtil
    except ImportError:
        message = "tables of Iceberg are read with pyiceberg, which is not installed: pip install 'cklog[iceberg]'"
        raise UsageError(message) from None
    return TableMetadataUtil


@cache
def _leave_out_working_directory() -> None:
    """Let the library read `.pyiceberg.yaml` of PYICEBERG_HOME or of the home directory, and none of where we run.

    It would look there, too. A catalog in such a file may name any server, and the code that is loaded for it.
    """
    import pyiceberg.utils.config as config

    places = [os.environ.get(config.PYICEBERG_HOME, ""), os.path.expanduser("~")]
    trusted = [os.path.join(place, config.PYICEBERG_YML) for place in places if os.path.isabs(place)]
    # an absolute path: wherever the library looks, it finds this file
    config.PYICEBERG_YML = next(filter(os.path.isfile, trusted), os.devnull)


def _read_catalog(uri: str, branch: str) -> SinkTable:
    """Read a table by its name in a catalog, which the library finds by its own configuration."""
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    name, dot, table = uri[len(CATALOG) :].partition(".")
    if not (name and dot and "." in table):
        raise UsageError(f"{uri}: expected catalog:NAME.NAMESPACE.TABLE")
    try:
        loaded = load_catalog(name).load_table(table)
    except (NoSuchTableError, NoSuchNamespaceError):
        raise NotFound(f"{uri}: the catalog {name} has no such table") from None
    except MemoryError:
        raise
    except Exception as error:  # whatever a catalog's client raises: a network's errors, a configuration's, its own
        why = masked_options(f"{type(error).__name__}: {first_line(error)}")
        raise Unreadable(f"{uri}: the catalog cannot be asked: {why}", "see ~/.pyiceberg.yaml") from None
    files = Metadata(uri)
    return _table(files, uri, branch, loaded.metadata)


def _newest(files: Metadata) -> Any:
    """Return the newest metadata of a table's folder; an older one only with a finding.

    Raises
    ------
    NotFound : there is none
    CorruptInput : none of the newest can be read
    """
    listed = files.listed("metadata")
    numbered = sorted(((number, e) for e in listed.values() if (number := _number(e)) is not None), key=_by_number)
    require_found(bool(numbered), files.uri, "metadata/*.metadata.json")
    newest = numbered[-1][0]
    _check_hint(files, listed.get("version-hint.text"), newest)
    same = [entry for number, entry in numbered if number == newest]
    for _, entry in reversed(numbered[-_TRIED:]):
        if (found := _parsed(files, "metadata", entry)) is not None:
            break
    else:
        files.refuse_flawed()
    if len(same) > 1:
        names = " and ".join(e.path for e in same[:3])
        files.unsure(
            "ambiguous-table",
            "metadata",
            f"{names} have the same number, and only the catalog knows which of them is the table; read was "
            f"{entry.path}: name the table by its catalog, or the file that it names",
        )
    elif entry.path != numbered[-1][1].path:
        files.unsure(
            "older-metadata",
            f"metadata/{numbered[-1][1].path}",
            f"the newest metadata cannot be read, and {entry.path} is older: the table may have taken more",
        )
    elif not entry.path.startswith("v"):
        files.say(
            "read-without-catalog",
            "info",
            f"metadata/{entry.path}",
            "the newest file by its number is taken for the table; only the catalog knows whether it was published",
        )
    return found


def _by_number(row: tuple[int, FileEntry]) -> tuple[int, str]:
    return row[0], row[1].path


def _number(entry: FileEntry) -> int | None:
    """Return the number of a metadata file, None for other files."""
    match = _NAME.fullmatch(entry.path)
    return int(match[1] or match[2]) if match else None


def _check_hint(files: Metadata, hint: FileEntry | None, newest: int) -> None:
    """Say so where the hint names another version than the newest."""
    if hint is None:
        return
    said = files.read("metadata", hint).decode("utf-8", "replace").strip()
    match = re.fullmatch(r"v?([0-9]{1,18})", said) or _NAME.fullmatch(said)
    named = int(next(group for group in match.groups() if group)) if match else None
    if named != newest:
        what = f"names version {named}" if named is not None else "is no version"
        files.say("stale-hint", "warning", "metadata/version-hint.text", f"it {what}; version {newest} was read")


def _parsed(files: Metadata, folder: str, entry: FileEntry) -> Any:
    """Return the metadata that a file holds, as the library has them; None if it is damaged, which is a finding."""
    library = _imported()
    data = files.read(folder, entry)
    path = f"{folder}/{entry.path}" if folder else entry.path
    try:
        with reading(files.place(path)):
            if data[:2] == b"\x1f\x8b":
                data = _inflated(data)
            check_known(json_of(data))
        return library.parse_raw(data.decode("utf-8"))
    except UnknownFormat as error:
        files.unknown(path, error)
    except NoJson as error:
        files.damaged(path, str(error))
    except (CklogError, MemoryError):
        raise
    except Exception as error:  # the library raises its own, pydantic's and plain ones
        files.damaged(path, f"pyiceberg does not understand it: {' '.join(str(error).split())[:200]}")
    return None


def _inflated(data: bytes) -> bytes:
    """Decompress a file, within the budgets."""
    try:
        with open_stream(pa.BufferReader(data), "gzip") as stream:
            return b"".join(inflating(iter(partial(stream.read, 1 << 20), b""), len(data)))
    except UnknownFormat:
        raise
    except OSError as error:
        raise NoJson(f"it cannot be decompressed: {error}") from None


def _table(files: Metadata, uri: str, branch: str, found: Any) -> SinkTable:
    """Make the table of its metadata."""
    name = branch or MAIN
    heads = {text(ref): about.snapshot_id for ref, about in found.refs.items()}
    if found.current_snapshot_id is not None and found.current_snapshot_id != -1:
        heads.setdefault(MAIN, found.current_snapshot_id)
    if name != MAIN and name not in heads:
        raise NotFound(f"{without_query(uri)}: no branch {name!r}", f"there are {', '.join(sorted(heads)) or 'none'}")
    if name in found.refs and str(found.refs[name].snapshot_ref_type.value) == "tag":
        raise UsageError(f"{without_query(uri)}: {name!r} is a tag, to which nothing is written: name a branch")
    snapshots = {snapshot.id: snapshot for snapshot in map(_snapshot, found.snapshots)}
    if len(snapshots) < len(found.snapshots):
        files.damaged("", "two snapshots have the same id")
    head = heads.get(name)
    parents = {snapshot.id: snapshot.parent for snapshot in snapshots.values()}
    way, gone, circle = way_back(head, parents) if head is not None else ([], None, False)
    if circle or (head is not None and not way):
        files.damaged("", "its snapshots are each other's parents" if circle else f"its head, {head}, is not there")
    here = [snapshots[id] for id in reversed(way)]
    undone = [snapshots[id] for id in _rolled_back(found, name, parents) - {*way}]
    for snapshot in here:
        for fault in snapshot.faults:
            files.unsure("damaged-value", "", f"snapshot {snapshot.id}: {fault}")
    current = way if name == MAIN else way_back(heads[MAIN], parents)[0] if MAIN in heads else []
    asked_here, asked_of_main = (_remembered(snapshots[id] for id in ids) for ids in (way, current))
    expired = bool(way) and (gone is not None or _had_older(here[0], snapshots.values()))
    table = SinkTable(
        uri=uri,
        format="iceberg",
        branch=name,
        commits=_commits(here, undone),
        head=None if head is None else str(head),
        branches={ref: str(id) for ref, id in sorted(heads.items())},
        remembers=asked_here.numbers("checkpoint") | asked_of_main.numbers("batch"),
        expired=expired,
        expired_before=here[0].time if expired else None,
        id=str(found.table_uuid),
        before=str(here[0].parent) if expired and here[0].parent is not None else "",
        location=str(found.location),
    )
    return files.finish(table, len(snapshots))


def _remembered(back: Iterable[_Snapshot]) -> Remembered:
    """Return what writers find on a way back from a head."""
    found = Remembered()
    for snapshot in back:
        found.take(snapshot.stamps)
    return found


def _snapshot(found: Any) -> _Snapshot:
    """Take what is needed of one of the library's snapshots."""
    summary = {}
    if found.summary is not None:
        summary = {"operation": found.summary.operation.value, **found.summary.additional_properties}
    time = whole(found.timestamp_ms)
    stamps, faults = stamps_of(summary)
    return _Snapshot(
        id=found.snapshot_id,
        parent=found.parent_snapshot_id,
        order=(found.sequence_number or 0, time or 0),
        time=time,
        summary=summary,
        stamps=stamps,
        faults=faults,
    )


def _had_older(oldest: _Snapshot, snapshots: Iterable[_Snapshot]) -> bool:
    """Return whether a snapshot without a parent had one: some libraries cut the link when they expire the parent.

    Snapshots are numbered without gaps in version 2, and say what the table held with them.
    """
    number = oldest.order[0]
    if number > 1 and len({s.order[0] for s in snapshots if 0 < s.order[0] < number}) < number - 1:
        return True
    totals = ((f"total-{what}", f"added-{what}") for what in ("data-files", "records"))
    return any((whole(oldest.summary.get(all)) or 0) > (whole(oldest.summary.get(own)) or 0) for all, own in totals)


def _rolled_back(found: Any, branch: str, parents: Mapping[int, int | None]) -> set[int]:
    """Return the snapshots that were once in a branch, as its log of heads proves; only the main one has a log."""
    return reached((entry.snapshot_id for entry in found.snapshot_log), parents) if branch == MAIN else set()


def _commits(here: list[_Snapshot], undone: list[_Snapshot]) -> tuple[TableCommit, ...]:
    """Return the snapshots of a branch as commits, and those that were undone between them, as they were made."""
    made = deque(sorted(undone, key=lambda snapshot: (snapshot.order, snapshot.id)))
    commits: list[TableCommit] = []
    for snapshot in here:
        while made and made[0].order < snapshot.order:
            commits.append(_commit(made.popleft(), undone=True))
        commits.append(_commit(snapshot, undone=False))
    return (*commits, *(_commit(snapshot, undone=True) for snapshot in made))


def _commit(snapshot: _Snapshot, undone: bool) -> TableCommit:
    """Return a snapshot as a commit of its table."""
    operation = _OPERATIONS.get(snapshot.summary.get("operation", ""), "other")
    rows = 0 if operation == "rewrite" else whole(snapshot.summary.get("added-records"))
    return TableCommit(str(snapshot.id), snapshot.time, operation, rows, snapshot.stamps, undone=undone)
