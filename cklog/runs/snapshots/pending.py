"""What a snapshot has for its sinks that they have not been told whether to commit, and whether its files are there.

A restore commits it: Iceberg's committer what is above the greatest checkpoint that the table has of its job, Paimon's
what is above the greatest identifier of its user, a file sink whatever is not renamed yet. Whether a manifest that is
gone was committed, and deleted for that, or lost, only the table can tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypedDict

import pyarrow as pa

from cklog.inputs.offers import OffersSnapshots
from cklog.inputs.sink_tables import Numbered, Pending, Writer
from cklog.inputs.snapshots import FilePlace
from cklog.model.findings import Finding, Where
from cklog.model.lines import RecoveryLine
from cklog.model.verdict import Draft
from cklog.model.wording import agreeing, many
from cklog.runs.snapshots.findings import name_of
from cklog.runs.snapshots.heads import rows_of
from cklog.runs.snapshots.plan import SnapshotPlan
from cklog.runs.snapshots.state import operator_labels
from cklog.runs.snapshots.verdicts import JudgedSnapshot

_ROLES = (": Writer", ": Committer")
"""How Flink names the two operators of a sink, from metadata version 5 on."""

_COUNTS: Mapping[str, Numbered] = {"paimon": "identifier"}
FILES, DYNAMIC, IN_PROGRESS = "file", "iceberg-dynamic", "in-progress"
_NOUNS: Mapping[str, str] = {FILES: "file", "paimon": "file"}


_SAID = 5
"""So many pending commits are told in sentences; all of them are rows."""


class PendingRow(TypedDict):
    """A pending commit of a snapshot.

    `state` is pending or in-progress; it names `named` files, which are `files`, and of these `gone` are `missing`;
    None if nobody could look. `writer` and `operator` are who commits, as the table knows it; `version` is of what is
    not understood any further.
    """

    snapshot: str
    sink: str
    state: str
    checkpoint: int | None
    writer: str | None
    operator: str | None
    form: str | None
    named: int
    gone: int | None
    files: list[str]
    missing: list[str] | None
    version: int | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pending commit and what kind of sink it is for.

    `form` : as in rows of entry `pending`; "" where it is not known
    `commits` : whether a restore commits it; else a file that a writer goes on with, without which it fails
    `detail` : what its files become, or what is known of them beside their names
    """

    pending: Pending
    form: str
    commits: bool
    detail: str = ""

    @property
    def looked_at(self) -> bool:
        """Whether it is known of every file that it names whether that is there."""
        return self.pending.missing is not None

    @property
    def doubtful(self) -> bool:
        """Whether a restore may fail: of its files, some are unseen, or gone and nothing tells if a table has them."""
        return self.pending.unseen or bool(self.pending.missing and self.commits and self.form != FILES)


class PendingIn(NamedTuple):
    """What waits for a restore of snapshots; `doubtful` are the folders of those of which it may fail for that."""

    rows: list[PendingRow]
    said: list[str]
    findings: list[Finding]
    doubtful: set[str]


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


def pending_of(
    parser: OffersSnapshots, judged: JudgedSnapshot, table: pa.Table, check_files: bool = True
) -> tuple[Pending, ...]:
    """Return what a restore of a snapshot commits to its sinks, in the order of sinks and numbers.

    Kafka's transactions are not among them (`cklog.runs.snapshots.state.transactions`).

    Parameters
    ----------
    table : the snapshot's rows
    check_files : whether to look for the files that are named
    """
    return tuple(one.pending for one in waiting_in(parser, judged, table, check_files) if one.commits)


def waiting_in(
    parser: OffersSnapshots, judged: JudgedSnapshot, table: pa.Table, check_files: bool = True
) -> list[Waiting]:
    """Return what waits for a restore of a snapshot, with files that writers go on with."""
    there = _existing(parser, judged, _uncommitted(table)) if check_files else {}
    return waiting_told(table, there)


def waiting_told(table: pa.Table, there: Mapping[str, bool | None] | None = None) -> list[Waiting]:
    """Return what waits for a restore of a snapshot by its rows alone; `there`: whether files are, as far as known."""
    names, committers = sink_names(table), _committers(table)
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in _uncommitted(table):
        number = -1 if row["checkpoint"] is None else row["checkpoint"]
        key = (_sink(row, names), row["kind"], number, row["form"] or "", row["uid"] or "", row["operator"])
        groups.setdefault((*key, -1 if row["version"] is None else row["version"]), []).append(row)
    return [_waiting(_sink(rows[0], names), rows, committers, there or {}) for _, rows in sorted(groups.items())]


def _uncommitted(table: pa.Table) -> list[dict[str, Any]]:
    return [row for row in rows_of(table, "pending") if row["kind"] in ("pending", IN_PROGRESS)]


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
    there: Mapping[str, bool | None],
) -> Waiting:
    """Make one value of rows that are committed together."""
    first = rows[0]
    files = tuple(dict.fromkeys(row["file"] for row in rows if row["file"] is not None))
    missing: tuple[str, ...] | None = tuple(file for file in files if there.get(file) is False)
    nameless = any(row["file"] is None and (row["version"] is not None or row["detail"]) for row in rows)
    if not missing and (nameless or any(there.get(file) is None for file in files)):
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
    return Waiting(pending, first["form"] or "", first["kind"] != IN_PROGRESS, details)


def _existing(
    parser: OffersSnapshots, judged: JudgedSnapshot, rows: Iterable[Mapping[str, Any]]
) -> dict[str, bool | None]:
    """Whether each file that is named is there, as long as it has to be; None: nobody could look.

    A pending file of a file sink is there, too, if it is renamed already.
    """
    named = [row for row in rows if row["file"] is not None]
    if not named:
        return {}
    places = parser.places(judged.folder.path, [row["file"] for row in named])
    becomes = [row["detail"] if row["form"] == FILES and row["kind"] == "pending" else None for row in named]
    targets = iter(parser.places(judged.folder.path, [one for one in becomes if one is not None]))
    found: dict[str, bool | None] = {}
    for row, place, target in zip(named, places, becomes, strict=True):
        its = _is_there(place, row["bytes"])
        if target is not None:
            renamed = _is_there(next(targets), None)
            its = _either(its, renamed) if place.size is None else its
        found[row["file"]] = its
    return found


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


def pending_sentence(one: Waiting) -> str:
    """Say what is pending, of how many files, and how many of them are gone.

    >>> made = Pending("orders", None, 17, ("a/m-1.avro", "a/m-2.avro"), ("a/m-1.avro",))
    >>> pending_sentence(Waiting(made, "iceberg", True))
    'pending for sink orders: checkpoint 17: 2 manifests, 1 of them is gone'
    """
    pending = one.pending
    noun = _NOUNS.get(one.form, "manifest") if one.form else "file"
    number = "" if pending.number is None else f"checkpoint {pending.number}: "
    what = many(len(pending.files), noun)
    if not pending.files:
        unknown = pending.version is not None or one.detail
        what = f"{one.detail or 'a commit'}, whose files are not known" if unknown else "nothing but its number"
    lead = "pending for" if one.commits else "in progress of"
    gone = pending.missing or ()
    if gone:
        what += f", {len(gone)} of them {agreeing(len(gone), 'are')} gone" if len(pending.files) > 1 else ", gone"
    return f"{lead} sink {pending.sink}: {number}{what}"


def pending_row(judged: JudgedSnapshot, one: Waiting) -> PendingRow:
    """Return a pending commit as a row of answers."""
    pending, writer = one.pending, one.pending.writer
    return {
        "snapshot": name_of(judged),
        "sink": pending.sink,
        "state": "pending" if one.commits else IN_PROGRESS,
        "checkpoint": pending.number,
        "writer": None if writer is None else writer.id,
        "operator": None if writer is None else writer.operator or None,
        "form": one.form or None,
        "named": len(pending.files),
        "gone": None if pending.missing is None else len(pending.missing),
        "files": list(pending.files),
        "missing": None if pending.missing is None else list(pending.missing),
        "version": pending.version,
    }


def pending_in(
    parser: OffersSnapshots, judged: Iterable[JudgedSnapshot], tables: Mapping[str, pa.Table], check_files: bool
) -> PendingIn:
    """Return what waits for a restore of some snapshots."""
    rows, said, findings, doubtful = [], [], [], set()
    for j in judged:
        found = waiting_in(parser, j, tables[j.folder.path], check_files)
        rows += [pending_row(j, one) for one in found]
        said += [pending_sentence(one) for one in found]
        findings += pending_findings(j, found) if check_files else []
        if check_files and any(one.doubtful for one in found):
            doubtful.add(j.folder.path)
    return PendingIn(rows, said, findings, doubtful)


def with_pending(
    draft: Draft[RecoveryLine],
    parser: OffersSnapshots,
    plan: SnapshotPlan,
    check_files: bool,
    with_tables: bool = False,
) -> Draft[RecoveryLine]:
    """Add to a line what its snapshots have for sinks; a line of snapshots that have nothing stays as it is.

    `with_tables`: tables of the job are looked at next, and tell whether it matters that files are gone or unseen.
    """
    chosen = [plan.chosen[group.job] for group in plan.groups]
    restored = [judged for judged in chosen if judged is not None]
    rows, said, findings, doubtful = pending_in(parser, restored, plan.survey.tables, check_files)
    if not rows:
        return draft
    line = draft.result
    notes = (*(f"{_capital(one)}." for one in said[:_SAID]), *line.notes)
    if len(said) > _SAID:
        notes = (*notes[:_SAID], f"{len(said) - _SAID} more are pending for sinks.", *line.notes)
    runs = line.runs
    if not with_tables:
        unknown = [judged is not None and judged.folder.path in doubtful for judged in chosen]
        runs = tuple(
            replace(run, action="undetermined") if its else run for run, its in zip(runs, unknown, strict=True)
        )
    result = replace(line, notes=notes, runs=runs, details={**line.details, "pending": rows})
    return replace(draft, result=result, findings=[*draft.findings, *findings])


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def pending_findings(judged: JudgedSnapshot, found: Sequence[Waiting]) -> list[Finding]:
    """Return what is gone of what a restore commits, or goes on with, and what nobody could look for."""
    place = judged.folder.metadata or name_of(judged)
    said = [_gone(judged, one, place) for one in found if one.pending.missing]
    unseen: dict[str, list[str]] = {}
    for one in found:
        if one.pending.unseen:
            unseen.setdefault(one.pending.sink, []).extend(one.pending.files)
    return said + [_unseen(judged, sink, files, place) for sink, files in unseen.items()]


def _unseen(judged: JudgedSnapshot, sink: str, files: Sequence[str], place: str) -> Finding:
    """Report the pending files of a sink that were not looked for."""
    message = (
        f"{name_of(judged)}: cklog did not look for {many(len(files), 'file')} pending for sink {sink} (first "
        f"{files[0]}). A restore fails or loses rows if a file is missing and was not committed before. Give the "
        "files' folder with --map OLD=NEW, or the table with --sink"
    )
    return Finding("pending-unchecked", "error", sink, message, (Where(place),), effect="unknown")


def _gone(judged: JudgedSnapshot, one: Waiting, place: str) -> Finding:
    """Say of what it is gone, and what a restore makes of that."""
    gone = one.pending.missing or ()
    if not one.commits:
        after = "its writer goes on with it, and a restore fails without"
    elif one.form == FILES:
        after = (
            "it is there under neither of its names, or is too short. A restore fails on a short one, and passes over "
            "one that is gone: its rows are lost, unless it was taken from there after it was complete"
        )
    else:
        after = (
            "a committer deletes manifests once it has committed them. If the table has taken this checkpoint of "
            f"{_who(one.pending.writer)}, a restore passes over them; if not, it fails (--sink NAME=TABLE tells)"
        )
    message = f"{name_of(judged)}: {pending_sentence(one)} (first {gone[0]}): {after}"
    return Finding("pending-file-missing", "error", one.pending.sink, message, (Where(place),), effect="data-lost")


def _who(writer: Writer | None) -> str:
    return "this job" if writer is None else f"job {writer.id}"
