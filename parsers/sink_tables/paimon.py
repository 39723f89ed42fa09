"""Tables of Paimon: one JSON file a snapshot, by whom it was committed and under which identifier.

    snapshot/snapshot-N                    N counts up from 1, without gaps; old ones expire
    snapshot/LATEST, snapshot/EARLIEST     hints, written after the snapshot and never believed here
    tag/tag-NAME                           the snapshot that a tag keeps
    branch/branch-NAME/                    the same folders for a branch

A rollback deletes the snapshots behind its target, and their numbers are used again: nothing tells of them. The
library that this format keeps opens tables through a catalog and needs an older pyarrow, so the files are read here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cklog.errors import NotFound
from cklog.inputs.sink_tables import Operation, SinkTable, Stamp, TableCommit, Writer
from cklog.local_files import without_query
from cklog.model.verdict import UNKNOWN_VERSION
from cklog.model.wording import many
from cklog.parsers.sink_tables.files import Metadata, members, require_found, text, whole
from cklog.storage import FileEntry
from cklog.unknown_formats import UnknownFormat, require_known, require_known_name

MAIN = "main"
BATCH = (1 << 63) - 1
"""The identifier of whoever commits only once."""

_SNAPSHOT = re.compile(r"snapshot-([1-9][0-9]{0,18})")
_HINTS = ("LATEST", "EARLIEST")
_NEWEST_VERSION = 3
_KINDS = ("APPEND", "COMPACT", "OVERWRITE", "ANALYZE")
_OPERATIONS: dict[str, Operation] = {"APPEND": "append", "COMPACT": "rewrite", "OVERWRITE": "overwrite"}


def read(uri: str, branch: str = "") -> SinkTable:
    """Read a table of Paimon; a `cklog.inputs.sink_tables.ReadsTables`."""
    files = Metadata(uri)
    files.require()
    name = branch or MAIN
    branches = _branches(files)
    if name != MAIN and name not in branches:
        raise NotFound(f"{without_query(uri)}: no branch {name!r}", f"there are {', '.join([MAIN, *sorted(branches)])}")
    folder = "snapshot" if name == MAIN else f"branch/branch-{name}/snapshot"
    listed = files.listed(folder)
    require_found(bool(listed) or bool(files.listed("schema")), uri, "snapshot/snapshot-* and schema/schema-*")
    entries = dict(sorted((int(m[1]), entry) for path, entry in listed.items() if (m := _SNAPSHOT.fullmatch(path))))
    snapshots = {number: _snapshot(files, folder, entry) for number, entry in entries.items()}
    _check_hints(files, folder, listed, list(entries))
    _check_whole(files, folder, snapshots)
    first = min(entries, default=None)
    expired = first is not None and first > 1
    heads = {} if not entries else {name: str(max(entries))}
    table = SinkTable(
        uri=uri,
        format="paimon",
        branch=name,
        commits=tuple(_commit(number, snapshot) for number, snapshot in snapshots.items()),
        head=str(max(entries)) if entries else None,
        branches=dict(sorted({**_heads(files, branches), **_tags(files), **heads}.items())),
        remembers=_remembered(snapshots),
        expired=expired,
        expired_before=whole(snapshots[first].get("timeMillis")) if expired and first is not None else None,
    )
    return files.finish(table, len(snapshots))


def _snapshot(files: Metadata, folder: str, entry: FileEntry) -> dict[str, Any]:
    """Return the members of a snapshot; none where it is damaged, or of a version or kind that is not known."""
    found = members(files.parsed(folder, entry))
    path, kind, version = f"{folder}/{entry.path}", text(found.get("commitKind")), found.get("version", 1)
    try:
        if found and ((number := whole(version)) is None or number < 1):
            files.damaged(path, f"its version is {str(version)[:40]}")
            return {}
        require_known("Paimon: version of the snapshot", whole(version) or 1, _NEWEST_VERSION)
        if kind:
            require_known_name("Paimon: commitKind", kind, _KINDS)
            if kind not in _KINDS:
                files.damaged(path, f"its commitKind is {kind[:40]!r}, one bit away from a known one")
    except UnknownFormat as error:
        files.unknown(path, error)
        return {}
    return found


def _branches(files: Metadata) -> dict[str, list[int]]:
    """Return the numbers of the snapshots of each branch."""
    found: dict[str, list[int]] = {}
    for path in files.listed("branch", deep=True):
        parts = path.split("/")
        if parts[0].startswith("branch-"):
            numbers = found.setdefault(parts[0].removeprefix("branch-"), [])
            if len(parts) == 3 and parts[1] == "snapshot" and (match := _SNAPSHOT.fullmatch(parts[2])):
                numbers.append(int(match[1]))
    return found


def _heads(files: Metadata, branches: Mapping[str, list[int]]) -> dict[str, str]:
    """Return the newest snapshot of each branch, the main one among them."""
    main = [int(m[1]) for path in files.listed("snapshot") if (m := _SNAPSHOT.fullmatch(path))]
    return {name: str(max(numbers)) for name, numbers in {**branches, MAIN: main}.items() if numbers}


def _tags(files: Metadata) -> dict[str, str]:
    """Return the snapshot that each tag keeps."""
    tags = {}
    for path, entry in files.listed("tag").items():
        if path.startswith("tag-"):
            found = members(files.parsed("tag", entry))
            if (version := whole(found.get("version")) or 1) > _NEWEST_VERSION:
                files.say(UNKNOWN_VERSION, "warning", f"tag/{path}", f"its version is {version}. Use a newer cklog")
            number = whole(found.get("id"))
            if number is not None:
                tags[text(path.removeprefix("tag-"))] = str(number)
    return tags


def _check_hints(files: Metadata, folder: str, listed: Mapping[str, FileEntry], numbers: list[int]) -> None:
    """Say so where a hint names another snapshot than the newest, or the oldest."""
    for hint, right in zip(_HINTS, (numbers[-1:], numbers[:1]), strict=True):
        if hint in listed and right:
            said = whole(files.read(folder, listed[hint]).decode("utf-8", "replace").strip())
            if said != right[0]:
                told = f"names snapshot {said}" if said is not None else "names no snapshot"
                files.say("stale-hint", "warning", f"{folder}/{hint}", f"it {told}, and {right[0]} is there")


def _check_whole(files: Metadata, folder: str, snapshots: Mapping[int, dict[str, Any]]) -> None:
    """Say which snapshots are missing in the middle, and which are not what their names say."""
    numbers = list(snapshots)
    holes = numbers[-1] - numbers[0] + 1 - len(numbers) if numbers else 0
    if holes:
        files.unsure("missing-table-version", folder, f"{many(holes, 'snapshot')} between others gone")
    for number, snapshot in snapshots.items():
        if whole(snapshot.get("id")) != number and not files.is_flawed(f"{folder}/snapshot-{number}"):
            files.damaged(f"{folder}/snapshot-{number}", f"its id is {str(snapshot.get('id'))[:40]}")


def _commit(number: int, snapshot: Mapping[str, Any]) -> TableCommit:
    """Return a snapshot as a commit of its table."""
    operation = _OPERATIONS.get(text(snapshot.get("commitKind")), "other")
    added = whole(snapshot.get("deltaRecordCount")) if operation == "append" else None  # else less what it took away
    rows = 0 if operation == "rewrite" else added
    stamp = _stamp(snapshot)
    stamps = () if stamp is None else (Stamp(stamp[0], None if stamp[1] == BATCH else stamp[1]),)
    return TableCommit(str(number), whole(snapshot.get("timeMillis")), operation, rows, stamps)


def _stamp(snapshot: Mapping[str, Any]) -> tuple[Writer, int] | None:
    """Return who committed a snapshot, and under which identifier."""
    user, identifier = text(snapshot.get("commitUser")), whole(snapshot.get("commitIdentifier"))
    return None if not user or identifier is None else (Writer(user, "identifier"), identifier)


def _remembered(snapshots: Mapping[int, Mapping[str, Any]]) -> dict[Writer, int]:
    """Return the identifier of each user's newest snapshot, of whatever kind: a restart drops what is not greater.

    Whoever only ever committed once is no stream, and does not ask.
    """
    found: dict[Writer, int] = {}
    streams: set[Writer] = set()
    for snapshot in reversed([*snapshots.values()]):
        stamp = _stamp(snapshot)
        if stamp is not None:
            found.setdefault(*stamp)
            if stamp[1] != BATCH:
                streams.add(stamp[0])
    return {writer: number for writer, number in found.items() if writer in streams}
