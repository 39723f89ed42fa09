"""What a snapshot has for its sinks that no sink has committed yet, and whether the files of it are there.

A restore commits it: Iceberg's committer what is above the greatest checkpoint that the table has of its job, Paimon's
what is above the greatest identifier of its user, a file sink whatever is not renamed yet. The writer of a file sink
also goes on with files in progress.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from cklog.inputs.offers import OffersSnapshots
from cklog.inputs.sink_tables import Numbered, Pending, Writer
from cklog.inputs.snapshots import SPLITS, FilePlace
from cklog.model.wording import many
from cklog.runs.snapshots.heads import rows_of
from cklog.runs.snapshots.state import operator_labels

_ROLES = (": Writer", ": Committer")
"""How Flink names the two operators of a sink, from metadata version 5 on."""

_COUNTS: Mapping[str, Numbered] = {"paimon": "identifier"}
FILES, ICEBERG, DYNAMIC, IN_PROGRESS = "file", "iceberg", "iceberg-dynamic", "in-progress"


class ShortFile(NamedTuple):
    """A file that a sink needs `needed` bytes of; `bytes` are there, None: it is gone."""

    file: str
    path: str
    needed: int
    bytes: int | None


class Waiting(NamedTuple):
    """A pending commit and what kind of sink it is for.

    `form` : as in rows of entry `pending`; "" where it is not known
    `commits` : whether a restore commits it; else a file that a writer goes on with, without which it fails
    `detail` : what its files become, or what is known of them beside their names
    `failing` : files on which a restore fails: too short for a file sink, or gone though its writer goes on with them
    `cut` : files of a file sink that are renamed already and too short since then
    """

    pending: Pending
    form: str
    commits: bool
    detail: str = ""
    failing: tuple[ShortFile, ...] = ()
    cut: tuple[ShortFile, ...] = ()

    @property
    def looked_at(self) -> bool:
        """Whether it is known of every file that it names whether that is there."""
        return self.pending.missing is not None

    @property
    def doubtful(self) -> bool:
        """Whether a restore may fail: of its files, some are unseen, or gone and nothing tells if a table has them."""
        return self.pending.unseen or bool(self.pending.missing and self.commits and self.form != FILES)


def sink_names(table: pa.Table) -> dict[str, str]:
    """Say what sink each operator is of, by the operator's id: its name without its role, its label without a name."""
    names = {row["operator"]: row["name"] or "" for row in rows_of(table, "operator")}
    found = {}
    for id, label in operator_labels(table).items():
        name = names[id]
        for role in _ROLES:
            name = name.removesuffix(role)
        found[id] = name or label
    return found


def waiting_in(parser: OffersSnapshots, folder: str, table: pa.Table, check_files: bool = True) -> list[Waiting]:
    """Return what waits for a restore of the snapshot in a folder, with files that writers go on with."""
    return waiting_told(table, _looked_up(parser, folder, _uncommitted(table)) if check_files else {})


def waiting_told(table: pa.Table, there: Mapping[str, _Seen] | None = None) -> list[Waiting]:
    """Return what waits for a restore of a snapshot by its rows, and by what was seen of the files that they name."""
    names, committers = sink_names(table), _committers(table)
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in _uncommitted(table):
        number = -1 if row["checkpoint"] is None else row["checkpoint"]
        key = (_sink(row, names), row["kind"], number, row["form"] or "", row["uid"] or "", row["operator"])
        groups.setdefault((*key, -1 if row["version"] is None else row["version"]), []).append(row)
    return [_waiting(_sink(rows[0], names), rows, committers, there or {}) for _, rows in sorted(groups.items())]


def named_by_sink(table: pa.Table, form: str) -> list[tuple[str, str]]:
    """Return what the files of a form become, as far as the snapshot names it, each with its sink."""
    names = sink_names(table)
    return [
        (_sink(row, names), row["detail"])
        for row in _uncommitted(table)
        if row["form"] == form and row["detail"] is not None
    ]


def _uncommitted(table: pa.Table) -> list[dict[str, Any]]:
    return [row for row in rows_of(table, "pending") if row["kind"] in ("pending", IN_PROGRESS)]


class SinkFile(NamedTuple):
    """A file that a snapshot names for a sink, by the path that is stored, and one of its name below PATH, if any."""

    sink: str
    stored: str
    found: str | None


def unseen_sink_files(parser: OffersSnapshots, folder: str, table: pa.Table) -> list[SinkFile]:
    """Return the files of sinks whose stored folder is not below PATH, with where a file of that name is below PATH."""
    names, found = sink_names(table), []
    for row in _uncommitted(table):
        becomes = row["detail"] if row["form"] == FILES else None
        stored = [one for one in (row["file"], becomes) if one is not None and "/" in one]
        if stored and all(place.outside for place in parser.places(folder, stored)):
            seen = [place for one in stored if (place := _of_its_name(parser, one)) is not None]
            found.append(SinkFile(_sink(row, names), stored[0], seen[0] if seen else None))
    return found


def _of_its_name(parser: OffersSnapshots, stored: str) -> str | None:
    """Return the only file below PATH with a stored file's name and that of its folder; None: none, or several."""
    above, _, name = stored.rpartition("/")
    folder = above.rpartition("/")[2]
    there = [one.path for one in parser.named(name) if posixpath.basename(posixpath.dirname(one.path)) == folder]
    return there[0] if len(there) == 1 else None


def unread_sinks(table: pa.Table) -> list[str]:
    """Return the sinks of which a snapshot has state that cklog does not read: what they have pending is not known."""
    names = sink_names(table)
    rows = [row for row in rows_of(table, "unread") if row["subtask"] is not None and row["name"] != SPLITS]
    return sorted({names.get(row["operator"], row["operator"]) for row in rows})


def _sink(row: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """What to call the sink that a row is about: the table, where one operator writes to several."""
    return str(row["name"]) if row["form"] == DYNAMIC else names.get(row["operator"], row["operator"])


def _committers(table: pa.Table) -> dict[tuple[str, str], Writer]:
    """Who commits, by operator and form, where the state says so once for all that is pending."""
    found: dict[tuple[str, str], Writer] = {}
    for row in rows_of(table, "committer"):
        paimon = row["form"] == "paimon"
        made = Writer(row["uid"], _COUNTS.get(row["form"], "checkpoint"), "" if paimon else row["operator"])
        found.setdefault((row["operator"], row["form"]), made)
    return found


def _writer(row: Mapping[str, Any], committers: Mapping[tuple[str, str], Writer]) -> Writer | None:
    if row["uid"] is not None:
        return Writer(row["uid"], "checkpoint", row["detail"] or "")
    return committers.get((row["operator"], row["form"] or ""))


def _waiting(
    sink: str,
    rows: Sequence[Mapping[str, Any]],
    committers: Mapping[tuple[str, str], Writer],
    there: Mapping[str, _Seen],
) -> Waiting:
    """Make one value of rows that are committed together."""
    first = rows[0]
    files = tuple(dict.fromkeys(row["file"] for row in rows if row["file"] is not None))
    seen = {file: there.get(file, _UNSEEN) for file in files}
    missing: tuple[str, ...] | None = tuple(file for file, its in seen.items() if its.there is False)
    nameless = any(row["file"] is None and (row["version"] is not None or row["detail"]) for row in rows)
    if not missing and (nameless or any(its.there is None for its in seen.values())):
        missing = None
    pending = Pending(
        sink=sink,
        writer=_writer(first, committers),
        number=first["checkpoint"],
        files=files,
        missing=missing,
        version=first["version"],
        renamed=first["form"] == DYNAMIC,
    )
    details = first["detail"] or "" if first["form"] == "paimon" else ""
    if first["form"] == FILES and not files:
        details = many(len(rows), "file")
    commits = first["kind"] != IN_PROGRESS
    gone = [
        (its, ShortFile(file, its.place.path, its.needed, its.place.size))
        for file, its in seen.items()
        if its.there is False and its.place is not None
    ]
    failing = tuple(file for its, file in gone if not commits or (_is_short(first["form"], file) and not its.renamed))
    cut = tuple(file for its, file in gone if its.renamed)
    return Waiting(pending, first["form"] or "", commits, details, failing, cut)


def _is_short(form: str, file: ShortFile) -> bool:
    return form == FILES and file.bytes is not None


class _Seen(NamedTuple):
    """Whether a file is there with the bytes that are needed of it (None: nobody could look), and where it was seen.

    `renamed` : whether that is under the name that a commit gives it
    """

    there: bool | None
    needed: int = 0
    place: FilePlace | None = None
    renamed: bool = False


_UNSEEN = _Seen(None)


def _looked_up(parser: OffersSnapshots, folder: str, rows: Iterable[Mapping[str, Any]]) -> dict[str, _Seen]:
    """Look for each file that is named; a pending file of a file sink is there, too, if it is renamed already."""
    named = [row for row in rows if row["file"] is not None]
    if not named:
        return {}
    places = parser.places(folder, [row["file"] for row in named])
    becomes = [row["detail"] if row["form"] == FILES and row["kind"] == "pending" else None for row in named]
    targets = iter(parser.places(folder, [one for one in becomes if one is not None]))
    found: dict[str, _Seen] = {}
    for row, place, target in zip(named, places, becomes, strict=True):
        renamed = next(targets) if target is not None else None
        found[row["file"]] = _seen(place, renamed, row["bytes"])
    return found


def _seen(place: FilePlace, renamed: FilePlace | None, least: int | None) -> _Seen:
    """What was seen of a file; `renamed`: of what it becomes."""
    needed = least or 0
    if renamed is None or place.size is not None:
        return _Seen(_is_there(place, least), needed, place)
    if renamed.size is not None:
        return _Seen(_is_there(renamed, least), needed, renamed, renamed=True)
    return _Seen(_either(_is_there(place, least), _is_there(renamed, least)), needed, place)


def _is_there(place: FilePlace, least: int | None) -> bool | None:
    if place.outside:
        return None
    return place.size is not None and place.size >= (least or 0)


def _either(one: bool | None, other: bool | None) -> bool | None:
    """Whether one of two facts holds, as far as is known.

    >>> _either(False, None), _either(None, True), _either(False, False)
    (None, True, False)
    """
    if one or other:
        return True
    return None if one is None or other is None else False
