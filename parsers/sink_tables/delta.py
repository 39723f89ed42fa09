"""Tables of Delta: the log of actions, one file of JSON lines a version, and the checkpoints made of it.

    _delta_log/VERSION.json                      the actions of a commit, an object a line; 20 digits
    _delta_log/VERSION.checkpoint*.parquet       what all actions up to a version come to; in parts, or one of several,
                                                 or as JSON: `delta_checkpoints`
    _delta_log/_staged_commits/VERSION.ID.json   proposed to a catalog, which alone knows whether they count

The library that this format keeps, `deltalake`, answers what an application's last transaction was, for who knows the
application's name; that of a query that ran elsewhere nobody knows beforehand. So the log is read here, and the
library's answers are held against it in the tests. A transaction is forgotten by a table that was told to, after a
time; it is not taken back by RESTORE.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from cklog.errors import UsageError
from cklog.inputs.sink_tables import SinkTable, Stamp, TableCommit, Writer
from cklog.local_files import without_query
from cklog.model.verdict import UNKNOWN_VERSION
from cklog.model.wording import many, utc
from cklog.parsers.sink_tables.ancestry import reached
from cklog.parsers.sink_tables.delta_actions import Changes, Commit, changes_of, commit_of
from cklog.parsers.sink_tables.delta_checkpoints import Checkpoint, FlawedCheckpoint, newest_checkpoint
from cklog.parsers.sink_tables.delta_restores import Restores
from cklog.parsers.sink_tables.files import Metadata, require_found
from cklog.storage import FileEntry

LOG = "_delta_log"
RETENTION = "delta.setTransactionRetentionDuration"

_VERSION = re.compile(r"([0-9]{20})\.json")
_STAGED = re.compile(r"_(?:staged_)?commits/([0-9]{20})\.[^/]+\.json")
_DURATION = re.compile(r"(?:interval\s+)?([0-9]{1,9})\s+(week|day|hour|minute|second|millisecond)s?", re.IGNORECASE)
_UNITS = {"week": 604_800_000, "day": 86_400_000, "hour": 3_600_000, "minute": 60_000, "second": 1000, "millisecond": 1}


@dataclass(slots=True)
class _State:
    """What the log comes to: the last transaction of each application with its time, the table's properties and id."""

    transactions: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    id: str = ""


def read(uri: str, branch: str = "") -> SinkTable:
    """Read a table of Delta; a `cklog.inputs.sink_tables.ReadsTables`."""
    if branch:
        raise UsageError(f"{without_query(uri)}: tables of Delta have no branches")
    files = Metadata(uri)
    files.require()
    listed = files.listed(LOG, deep=True)
    versions = dict(sorted((int(m[1]), entry) for path, entry in listed.items() if (m := _VERSION.fullmatch(path))))
    checkpoint, flawed = newest_checkpoint(files, LOG, listed)
    base = checkpoint.version if checkpoint else -1
    _tell_flawed(files, flawed, base, versions.keys())
    if not versions and checkpoint is None:
        files.refuse_flawed()
    require_found(bool(versions) or checkpoint is not None, uri, f"{LOG}/*.json")
    commits = {version: commit_of(files, LOG, entry) for version, entry in versions.items()}
    head = max([*versions, base])
    _check_whole(files, [*versions], base, listed)
    for version, commit in commits.items():
        if commit.ahead:
            names = f"writers need features that cklog does not know: {', '.join(commit.ahead)[:200]}"
            files.say(UNKNOWN_VERSION, "warning", f"{LOG}/{version:020}.json", names)
    state = _state_of(checkpoint, commits)
    restores = Restores(partial(_changes, files, versions), len(versions))
    parents = _parents(files, commits, restores)
    kept = reached([*versions][-1:], parents)
    writers = _writers(commits, state)
    first = min(versions, default=None)
    expired = first is None or first > 0
    table = SinkTable(
        uri=uri,
        format="delta",
        branch="",
        commits=tuple(_commit(v, commit, writers, parents, v not in kept) for v, commit in commits.items()),
        head=str(head),
        branches={},
        remembers=_remembered(files, state, writers, int(time.time() * 1000)),
        expired=expired,
        expired_before=commits[first].time if expired and first is not None else None,
        id=state.id,
        before=str(first - 1) if first else "",
    )
    return files.finish(table, len(commits))


def _tell_flawed(files: Metadata, flawed: Sequence[FlawedCheckpoint], base: int, versions: Set[int]) -> None:
    """Say which checkpoints are damaged, or of a version that is not known.

    Where each commit behind the one before is there, all is known without them.

    One that an engine still reads may make it forget what the commits tell. Delta before 4.0 reads a table by its
    commits where a checkpoint cannot be read; 4.0 does not read it at all.
    """
    newest = max([*versions, *(one.version for one in flawed)], default=base)
    known = sum(base < version <= newest for version in versions) == newest - base
    for one in flawed:
        if one.unknown and known:
            why = f"not read: {one.why}. Every commit exists as JSON, so nothing is unknown. Use a newer cklog"
            files.say(UNKNOWN_VERSION, "warning", one.path, why)
        elif one.unknown:
            files.unknown(one.path, one.why)
        elif known and not one.read:
            files.say(
                "corrupt-file",
                "warning",
                one.path,
                f"the checkpoint cannot be read: {one.why.rstrip('.')}. Every commit exists as JSON, so "
                f"nothing is unknown, but Delta 4.0 does not open the table until this file and {LOG}/_last_checkpoint "
                "are moved away",
            )
        else:
            files.damaged(one.path, one.why)


def _check_whole(files: Metadata, versions: list[int], base: int, listed: dict[str, FileEntry]) -> None:
    """Say which versions are missing: before the checkpoint they are history, behind it the table cannot be read."""
    ends = [base, *(v for v in versions if v > base)]
    for before, after in pairwise(ends):
        if after > before + 1:
            what = f"version {before + 1}" if after == before + 2 else f"versions {before + 1} to {after - 1}"
            files.unsure(
                "missing-table-version",
                LOG,
                f"the log lacks {what}, and there is no checkpoint behind: what was taken then is not known, and an "
                "engine refuses the table",
            )
    old = [v for v in versions if v <= base]
    holes = sum(b - a - 1 for a, b in pairwise(old))
    if holes:
        files.say(
            "missing-table-version",
            "warning",
            LOG,
            f"the log lacks {many(holes, 'older version')}: what was done then is not known",
        )
    staged = [m for path in listed if (m := _STAGED.fullmatch(path))]
    newer = [int(m[1]) for m in staged if int(m[1]) > max([base, *versions])]
    if newer:
        files.unsure("ambiguous-table", LOG, f"version {max(newer)} is staged: only a catalog knows whether it counts")


def _state_of(checkpoint: Checkpoint | None, commits: Mapping[int, Commit]) -> _State:
    """Return what the log comes to, as an engine makes it: the checkpoint, and every commit behind it."""
    state = _State()
    if checkpoint is not None:
        state = _State(dict(checkpoint.transactions), checkpoint.properties, checkpoint.id)
    for version, commit in commits.items():
        if checkpoint is None or version > checkpoint.version:
            state.transactions.update(commit.transactions)
            if commit.properties is not None:
                state.properties, state.id = commit.properties, commit.id
    return state


def _changes(files: Metadata, versions: Mapping[int, FileEntry], version: int) -> Changes | None:
    """Return the files that a version added and removed; None: nobody can tell."""
    return changes_of(files, LOG, versions[version]) if version in versions else None


def _parents(files: Metadata, commits: Mapping[int, Commit], restores: Restores) -> dict[int, int | None]:
    """Return for each version the one whose rows it goes on from: the one before, or the one that it restored."""
    parents: dict[int, int | None] = {}
    before: int | None = None
    for version, commit in commits.items():
        parents[version] = before
        if commit.operation == "restore":
            target = restores.target(version, commit.target or {})
            parents[version] = target
            if target is None:
                files.unsure(
                    "unknown-restore",
                    f"{LOG}/{version:020}.json",
                    "it restores the table, and nobody can tell to which version: what it undid is not known",
                )
                parents[version] = before
        before = version
    return parents


def _writers(commits: Mapping[int, Commit], state: _State) -> dict[str, Writer]:
    """Return who an application's name stands for. Flink's sink counts checkpoints, all others batches."""
    flink = {app for commit in commits.values() if commit.engine.startswith("flink") for app in commit.transactions}
    apps = {app for commit in commits.values() for app in commit.transactions} | set(state.transactions)
    return {app: Writer(app, "checkpoint" if app in flink else "batch") for app in apps}


def _remembered(files: Metadata, state: _State, writers: Mapping[str, Writer], now: int) -> dict[Writer, int]:
    """Return the last number of each application that the table has not forgotten.

    Where the table has a time for it, an engine passes over transactions that are older, and over those without one.
    """
    told = state.properties.get(RETENTION)
    if told is None:
        return {writers[app]: number for app, (number, _) in sorted(state.transactions.items())}
    match = _DURATION.fullmatch(told.strip())
    if match is None:
        files.unsure(
            "damaged-value", LOG, f"{RETENTION} is {told[:40]!r}, which is no time: nobody knows what is forgotten"
        )
        return {writers[app]: number for app, (number, _) in sorted(state.transactions.items())}
    since = now - int(match[1]) * _UNITS[match[2].lower()]
    kept = {}
    for app, (number, updated) in sorted(state.transactions.items()):
        if updated is not None and updated > since:
            kept[writers[app]] = number
        else:
            when = f"was last told of at {utc(updated)}" if updated is not None else "says no time"
            files.say(
                "forgotten-transaction",
                "warning",
                LOG,
                f"the transaction of {app[:80]!r} {when} and the table forgets after {told}: it takes batch {number} "
                "of this writer again",
            )
    return kept


def _commit(
    version: int, commit: Commit, writers: Mapping[str, Writer], parents: Mapping[int, int | None], undone: bool
) -> TableCommit:
    """Return a version as a commit of its table."""
    stamps = tuple(Stamp(writers[app], number) for app, (number, _) in sorted(commit.transactions.items()))
    back = parents[version]
    restores = str(back) if commit.operation == "restore" and commit.target is not None and back is not None else None
    return TableCommit(str(version), commit.time, commit.operation, commit.rows, stamps, restores, undone)
