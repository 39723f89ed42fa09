"""Rows, sentences and findings about what a snapshot has for its sinks that no sink has committed yet.

Whether a manifest of Iceberg that is gone was committed, and deleted for that, or lost, only the table can tell.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypedDict

import pyarrow as pa

from cklog.inputs.offers import OffersSnapshots
from cklog.inputs.sink_tables import Writer
from cklog.model.findings import Effect, Finding, Where
from cklog.model.lines import RecoveryLine
from cklog.model.verdict import Draft
from cklog.model.wording import agreeing, many
from cklog.runs.snapshots.beside.shown import shown_findings, shown_since
from cklog.runs.snapshots.findings import name_of
from cklog.runs.snapshots.plan import SnapshotPlan, older_than
from cklog.runs.snapshots.verdicts import JudgedSnapshot
from cklog.runs.snapshots.waiting import DYNAMIC, FILES, ICEBERG, IN_PROGRESS, Waiting, waiting_in
from cklog.storage import Root

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


class PendingIn(NamedTuple):
    """What waits for a restore of snapshots; `doubtful` are the folders of those of which it may fail for that."""

    rows: list[PendingRow]
    said: list[str]
    findings: list[Finding]
    doubtful: set[str]


def pending_sentence(one: Waiting) -> str:
    """Say what is pending, of how many files, and how many of them are gone.

    >>> from cklog.inputs.sink_tables import Pending
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
        how = "gone or too short" if one.cut or any(file.bytes is not None for file in one.failing) else "gone"
        what += f", {len(gone)} of them {agreeing(len(gone), 'are')} {how}" if len(pending.files) > 1 else f", {how}"
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
    parser: OffersSnapshots,
    judged: Iterable[JudgedSnapshot],
    tables: Mapping[str, pa.Table],
    check_files: bool,
    instead: Callable[[JudgedSnapshot], str] = lambda judged: "",
    with_tables: bool = False,
) -> PendingIn:
    """Return what waits for a restore of some snapshots; `instead` says what to restore where that loses rows."""
    rows, said, findings, doubtful = [], [], [], set()
    for j in judged:
        found = waiting_in(parser, j.folder.path, tables[j.folder.path], check_files)
        rows += [pending_row(j, one) for one in found]
        said += [pending_sentence(one) for one in found]
        findings += (
            pending_findings(j, found, instead(j) if any(map(_loses_rows, found)) else "", with_tables)
            if check_files
            else []
        )
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
    tables = plan.survey.tables

    def instead(judged: JudgedSnapshot) -> str:
        return _with_all_files(parser, plan, judged)

    rows, said, findings, doubtful = pending_in(parser, restored, tables, check_files, instead, with_tables)
    if not rows:
        return draft
    for judged in restored if check_files else ():
        findings += shown_findings(judged, shown_since(parser, judged.folder.path, tables[judged.folder.path]))
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


def pending_tables(parser: OffersSnapshots, root: Root, plan: SnapshotPlan) -> tuple[str, ...]:
    """Return the Iceberg tables, as `--sink` takes them, from whose metadata pending manifests are gone.

    A manifest is in the table's folder `metadata`, unless the job's settings say otherwise. Only tables below PATH, or
    where a map leads, are returned, and of several jobs none: nothing says which of them writes to a table.
    """
    found: dict[str, str] = {}
    for judged in plan.groups[0].snapshots if len(plan.groups) == 1 else ():
        table = plan.survey.tables.get(judged.folder.path)
        for one in waiting_in(parser, judged.folder.path, table) if table is not None else ():
            folder = posixpath.dirname((one.pending.missing or ("",))[0])
            if one.form not in (ICEBERG, DYNAMIC) or posixpath.basename(folder) != "metadata":
                continue
            info, here = root.look_outside(folder), root.resolve(posixpath.dirname(folder))
            if info is not None and info.kind == "folder" and here is not None:
                found.setdefault(one.pending.sink, here)
    return tuple(f"{sink}={uri}" for sink, uri in found.items())


def _loses_rows(one: Waiting) -> bool:
    """Whether a restore passes over files of a file sink that are gone."""
    return bool(one.pending.missing) and one.commits and one.form == FILES and not one.failing


def _with_all_files(parser: OffersSnapshots, plan: SnapshotPlan, judged: JudgedSnapshot) -> str:
    """Name the newest older snapshot that has all files of its sinks, "" if none has."""
    [group] = [group for group in plan.groups if judged in group.snapshots]
    for older in older_than(group, judged):
        found = waiting_in(parser, older.folder.path, plan.survey.tables[older.folder.path])
        if all(one.looked_at and not one.pending.missing for one in found):
            ask = f"--at {parser.job_id(group.job)}/0={older.id}"
            return f". {name_of(older)} has all of its files ({ask}): from it the job writes the rows since then again"
    return ""


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def pending_findings(
    judged: JudgedSnapshot, found: Sequence[Waiting], instead: str = "", with_tables: bool = False
) -> list[Finding]:
    """Return what is gone of what a restore commits, or goes on with, and what nobody could look for.

    `instead` is added where rows are lost; `with_tables`: the tables of the job were given.
    """
    place = judged.folder.metadata or name_of(judged)
    said = [_gone(judged, one, place, instead, with_tables) for one in found if one.pending.missing]
    unseen: dict[str, list[str]] = {}
    for one in found:
        if one.pending.unseen:
            unseen.setdefault(one.pending.sink, []).extend(one.pending.files)
    of_tables = {one.pending.sink for one in found if one.form != FILES}
    return said + [
        _unseen(judged, sink, files, place, not with_tables and sink in of_tables) for sink, files in unseen.items()
    ]


def _unseen(judged: JudgedSnapshot, sink: str, files: Sequence[str], place: str, ask_table: bool) -> Finding:
    """Report the pending files of a sink that were not looked for."""
    message = (
        f"{name_of(judged)}: cklog did not look for {many(len(files), 'file')} pending for sink {sink} (first "
        f"{files[0]}). A restore fails or loses rows if a file is missing and was not committed before. Give the "
        f"files' folder with --map OLD=NEW{', or the table with --sink' if ask_table else ''}"
    )
    return Finding("pending-unchecked", "error", sink, message, (Where(place),), effect="unknown")


def _gone(judged: JudgedSnapshot, one: Waiting, place: str, instead: str, with_tables: bool) -> Finding:
    """Say of what it is gone, and what a restore makes of that."""
    first = (one.pending.missing or ())[0]
    effect: Effect = "data-lost"
    if one.failing:
        first, effect = one.failing[0].file, "restart-fails"
        after = "a restore fails on it"
    elif one.form == FILES:
        after = (
            f"a restore passes over a file that is under neither of its names{_or_cut(one)}. Its rows are lost, unless "
            f"another program took the file away after it was complete{instead}"
        )
    else:
        tells = "" if with_tables else " (--sink NAME=TABLE tells)"
        after = (
            "a committer deletes manifests once it has committed them. If the table has taken this checkpoint of "
            f"{_who(one.pending.writer)}, a restore passes over them; if not, it fails{tells}"
        )
    message = f"{name_of(judged)}: {pending_sentence(one)} (first {first}): {after}"
    return Finding("pending-file-missing", "error", one.pending.sink, message, (Where(place),), effect=effect)


def _or_cut(one: Waiting) -> str:
    """Say of a file that was renamed and is too short since then what there is and what there was."""
    if not one.cut:
        return ""
    first = one.cut[0]
    return f", and over one that is renamed (of {first.path} {first.bytes} of {first.needed} bytes are there)"


def _who(writer: Writer | None) -> str:
    return "this job" if writer is None else f"job {writer.id}"
