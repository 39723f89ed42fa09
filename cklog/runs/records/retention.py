"""Which stored checkpoints of a run may go: those that no failure can still come to need, and nobody asked for.

What is needed is the recovery line, and what the failure of any single subtask goes back to: the line of several
failures is made of those (Wang et al., checkpoint space reclamation; `cklog.lines.checkpoint_sets`). A delta needs the
chain that it stands on. Current states are left out of it: a failure that reaches them undoes no more than their own
would.

How far back message logs are needed: to what was received before the oldest line a restart may go back to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.types import Ints, Mask
from cklog.errors import NotFound
from cklog.history.history import History
from cklog.history.records import CheckpointRecords
from cklog.history.state_files import state_flaws
from cklog.inputs.offers import OffersRecords
from cklog.lines.checkpoint_sets import needing_failure
from cklog.lines.entries import protocol_of
from cklog.lines.search import search_line
from cklog.model.findings import Finding, Where
from cklog.model.question import Question
from cklog.model.verdict import LOSSES, UNREAD, Draft
from cklog.retention.files import CheckpointFate, StoredFiles, rows_of
from cklog.retention.links import CheckpointLinks, floors, links_of
from cklog.retention.plan import (
    LogTrim,
    RetentionDoubt,
    RetentionFate,
    RetentionPlan,
    RetentionRow,
    rules_of,
    totals_of,
)
from cklog.retention.policy import RetentionPolicy, named
from cklog.runs.records.evidence import Evidence
from cklog.runs.records.reading import RecordReader

RULES: Mapping[str, str] = {
    "line": "the recovery line of a failure of everything holds it",
    "failure": "a failure of the subtask that needs it would go back to it",
    "evidence": "records are damaged or missing: some line may need it that cannot be told from what is left",
    "pin": "--pin names it",
    "keep": "one of the newest of its subtask that --keep asks for",
    "window": "taken within the time that --window asks for",
    "no-time": "nothing tells when it was taken: it may be within --window",
    "unfinished": "newer than the line, and its round, or itself, may still be completed",
    "repairable": "a link of its chain is missing: mended, it would be one of the newest that stay",
    "last": "it cannot be restored, but nothing else of its subtask can be either",
    "chain": "the checkpoint that needs it is a delta on it",
    "marked": "marked as deleted; it goes with the last checkpoint that is a delta on it",
    "deletable": "marked as deleted, and nothing that stays depends on it",
    "useless": "on a Z-cycle: in no consistent line, now or ever",
    "broken": "a link of its chain is missing, and newer ones can be restored",
    "gone": "its state file is not there, and newer ones can be restored",
    "incomplete": "it was never completed, and newer ones can be restored",
    "obsolete": "in the line of no failure that can still come, and nobody asked for it",
}
_NEEDED = ("line", "failure")
_FREE = ("deletable", "useless", "gone", "broken", "incomplete", "obsolete")
"""Why what nothing holds may go; what is broken stays all the same unless `--drop-broken` asks."""

_LIMITED = ("keep", "window", "no-time")

SUSPECT = LOSSES | {
    *("watermark-decreases", "receive-without-send", "order-backwards", "trimmed-events"),
    "no-stored-checkpoint",
}
"""Findings after which a line may be older than the true one, which then needs newer checkpoints than it shows."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredRecords:
    """The checkpoint records of a run: n of them, sorted by subtask and number, volatile ones left out.

    Attributes
    ----------
    record : row of `CheckpointRecords.table`, shape (n,)
    row : row of the history, -1 for what no line may hold, shape (n,)
    subtask, number, time : of each; time in ms, -1 if not known, shape (n,)
    incomplete : shape (n,)
    line : the line's checkpoint of each subtask as a row of the history; None if there is no line
    missing : whether it names a file below PATH that is not there, shape (n,)
    lost : the same, or it stands on one that does, shape (n,)
    needing : of each row of the history, the subtask whose failure alone goes back to it; -1 for none
    """

    record: Ints
    row: Ints
    subtask: Ints
    number: Ints
    time: Ints
    incomplete: Mask
    line: Ints | None
    missing: Mask
    lost: Mask
    needing: Ints


def checkpoint_retention(
    reader: RecordReader, files: StoredFiles, policy: RetentionPolicy, hidden: bool = False
) -> Draft[RetentionPlan]:
    """Plan what may be deleted of a run of native records; `hidden`: there are records that were not looked at.

    Raises
    ------
    NotFound : there is no such checkpoint as pinned or marked
    """
    question = Question(everything=True)
    evidence = reader.evidence_of(question)
    links = links_of(evidence.records)
    searched = search_line(evidence.records, evidence.built, question)
    evidence = evidence.joined(searched.findings)
    stored = _stored(evidence, searched.line, links, reader.tables)
    evidence = evidence.joined(_without_checkpoints(evidence, stored))
    hidden = hidden or any(f.id == UNREAD for f in evidence.findings)
    doubt = "unproven" if hidden else _doubt(evidence, stored)
    marked = _named(evidence.records, stored, "--marked", policy.marked)
    masks = _masks(evidence, stored, policy, doubt, marked)
    rules, needed_by = _judged(evidence, stored, masks, marked, links)
    contradicted = _contradicted(evidence.records, stored, marked, rules)
    evidence = evidence.joined([*contradicted, *_missing(evidence.records, stored, rules)])
    free = {*_FREE} if policy.drop_broken else {*_FREE} - {"broken"}
    rows = tuple(_rows(evidence.records, stored, rules, needed_by, free, files))
    roots = stored.row[np.isin(rules, list(masks)) & (stored.row >= 0)]
    trims = trimming(evidence, stored.line, roots, bool(doubt))
    totals = totals_of(rows, "checkpoints")
    plan = RetentionPlan(
        kind="checkpoints",
        unit="checkpoints",
        rows=rows,
        totals=totals,
        folders=(),
        rules=rules_of(rows, RULES),
        jobs_stopped=False,
        trimming=trims,
        doubt=doubt,
    )
    return evidence.draft("retention", plan)


def _stored(evidence: Evidence, line: Ints | None, links: CheckpointLinks, parser: OffersRecords) -> StoredRecords:
    records, history = evidence.records, evidence.history
    table = records.table
    volatile = pc.fill_null(pc.equal(_plain(table["kind"]), "volatile"), False).to_numpy(zero_copy_only=False)
    incomplete = pc.fill_null(pc.equal(_plain(table["status"]), "incomplete"), False).to_numpy(zero_copy_only=False)
    record = np.flatnonzero(~volatile)
    row = np.full(len(records.number) + 1, -1)
    row[evidence.built.row] = np.arange(len(history.label))
    flaws, _ = state_flaws(records, parser)
    missing = np.zeros(len(records.number), np.bool_) if flaws is None else np.asarray(pc.is_valid(flaws))
    time = pc.fill_null(table["time"], -1).to_numpy().astype(np.int64)
    return StoredRecords(
        record=record,
        row=row[record],
        subtask=records.subtask[record],
        number=records.number[record],
        time=time[record],
        incomplete=incomplete[record],
        line=None if line is None else history.first[:-1] + line,
        missing=missing[record],
        lost=links.resting_on(missing)[record],
        needing=needing_failure(history),
    )


def _doubt(evidence: Evidence, stored: StoredRecords) -> RetentionDoubt:
    """Why more may be needed than the line shows; "" if nothing is in doubt."""
    if stored.line is None:
        return "no-line"
    newer = stored.number > evidence.history.label[stored.line][stored.subtask]
    if evidence.unproven or (stored.lost & newer).any():  # their files may lie elsewhere, and the line be newer
        return "unproven"
    return "damaged" if any(f.id in SUSPECT for f in evidence.findings) else ""


def _without_checkpoints(evidence: Evidence, stored: StoredRecords) -> list[Finding]:
    """Subtasks without any stored checkpoint whose messages others had received when they took theirs.

    Either it never took one, or its records are gone; then the true line is newer, and needs more than can be seen.
    """
    history = evidence.history
    bare = np.bincount(stored.subtask, minlength=len(history.subtasks)) == 0
    volatile = history.survivor[history.dst]
    last = history.received_at[1:] - 1 - volatile  # of each channel what its receiver's newest stored checkpoint has
    heard = history.received[last] > 0
    found = []
    for i in np.unique(history.src[heard & bare[history.src]]).tolist():
        name = str(history.subtasks[i])
        message = (
            f"{name} has no stored checkpoint here, and others had received its messages when they took theirs: "
            "if it has any, their records are missing, and the true line is newer: all from this one on stays"
        )
        found.append(Finding("no-stored-checkpoint", "warning", name, message))
    return found


def _masks(
    evidence: Evidence, stored: StoredRecords, policy: RetentionPolicy, doubt: RetentionDoubt, marked: Mask
) -> dict[str, Mask]:
    """Which checkpoints each rule speaks of, the strongest rule first; shape (n,) each."""
    history = evidence.history
    usable = stored.row >= 0
    whole = usable & ~stored.lost
    rank, newest = _ranks(stored, whole, len(history.subtasks))
    above = _at_or_above(history, stored)
    last = ~whole & (newest < 0)[stored.subtask]
    floor = floors(stored.subtask, stored.number, whole, policy.keep, len(history.subtasks))
    open_round = protocol_of(evidence.records) == "coordinated" and stored.line is not None
    none = np.zeros(len(usable), np.bool_)
    in_window = none if policy.since is None else (stored.time >= policy.since) | (stored.time < 0)
    masks = {
        "line": _among(history, stored.row, stored.line),
        "failure": usable & ~_useless(evidence, stored) & (stored.needing >= 0)[stored.row] if usable.any() else none,
        "evidence": above if doubt == "damaged" else np.full(len(usable), bool(doubt)),
        "pin": _named(evidence.records, stored, "--pin", policy.pins),
        "keep": whole & (rank < (policy.keep or 0)),
        "window": none if policy.since is None else usable & (stored.time >= policy.since),
        "no-time": none if policy.since is None else usable & (stored.time < 0),
        "unfinished": (stored.incomplete & (stored.number > newest[stored.subtask])) | (above if open_round else none),
        "repairable": ~whole & ((stored.number > floor[stored.subtask]) | in_window) & ~stored.incomplete & ~last,
        "last": last & ~stored.incomplete,
    }
    return {rule: mask & ~marked if rule in _LIMITED else mask for rule, mask in masks.items()}


def _ranks(stored: StoredRecords, usable: Mask, subtasks: int) -> tuple[Ints, Ints]:
    """How many usable ones of its subtask are newer than each, shape (n,); and the newest number, -1: none, (s,)."""
    total = np.bincount(stored.subtask[usable], minlength=subtasks)
    seen = np.cumsum(usable)
    rank = np.cumsum(total)[stored.subtask] - seen
    newest = np.full(subtasks, -1)
    newest[stored.subtask[usable]] = stored.number[usable]  # sorted: of each subtask the last one stays
    return rank, newest


def _at_or_above(history: History, stored: StoredRecords) -> Mask:
    """Which checkpoints are the line's or newer, whether or not they can be restored."""
    if stored.line is None:
        return np.ones(len(stored.number), np.bool_)
    return np.asarray(stored.number >= history.label[stored.line][stored.subtask])


def _among(history: History, row: Ints, line: Ints | None) -> Mask:
    held = np.zeros(len(history.label) + 1, np.bool_)  # the last one is that of row -1
    if line is not None:
        held[line] = True
    return held[row]


def _named(records: CheckpointRecords, stored: StoredRecords, option: str, texts: Sequence[str]) -> Mask:
    """The checkpoints that an option names as OP/SUB=CKPT, shape (n,)."""
    found = np.zeros(len(stored.number), np.bool_)
    index = {str(subtask): i for i, subtask in enumerate(records.subtasks)}
    for text in texts:
        name, number = named(option, text)
        mine = stored.subtask == index.get(name, -1)
        at = mine & (stored.number == number)
        if not at.any():
            there = ", ".join(map(str, stored.number[mine][-8:].tolist()))
            known = ", ".join(map(str, records.subtasks[:8]))
            hint = f"the last ones are {there}" if there else f"subtasks here: {known}"
            raise NotFound(f"{option} {text}: no such checkpoint", hint)
        found |= at
    return found


def _judged(
    evidence: Evidence, stored: StoredRecords, masks: Mapping[str, Mask], marked: Mask, links: CheckpointLinks
) -> tuple[list[str], list[str | None]]:
    """The rule of each checkpoint, and what needs it, if something else does; n of each."""
    rules = [*masks, "chain", "marked", *_FREE]
    count = len(stored.number)
    place = np.select(list(masks.values()), list(range(len(masks))), -1) if count else np.zeros(0, np.int64)
    stays = np.zeros(len(evidence.records.number), np.bool_)
    stays[stored.record] = place >= 0
    child = links.kept_by(stays)[stored.record]
    held = np.where(marked, rules.index("marked"), rules.index("chain"))
    place = np.where((place < 0) & (child >= 0), held, place)
    place = np.where(place < 0, _free(evidence, stored, marked, rules), place)
    names = [rules[i] for i in place.tolist()]
    needed_by: list[str | None] = []
    for rule, row, dependant in zip(names, stored.row.tolist(), child.tolist(), strict=True):
        if rule == "failure":
            needed_by.append(str(evidence.history.subtasks[stored.needing[row]]))
        else:
            needed_by.append(_name(evidence.records, dependant) if rule in ("chain", "marked") else None)
    return names, needed_by


def _free(evidence: Evidence, stored: StoredRecords, marked: Mask, rules: Sequence[str]) -> Ints:
    """Why each would go, if nothing held it: a place in `rules`, shape (n,)."""
    broken = (stored.row < 0) & ~stored.incomplete
    conditions = [marked, _useless(evidence, stored), stored.missing, broken, stored.incomplete]
    *places, otherwise = (rules.index(rule) for rule in _FREE)
    return np.select(conditions, places, otherwise)


def _useless(evidence: Evidence, stored: StoredRecords) -> Mask:
    """Which checkpoints are on a Z-cycle of what happened, so that no failure goes back to them, shape (n,)."""
    usable: Mask = stored.row >= 0
    return usable & evidence.execution.useless[stored.row] if usable.any() else usable


def _name(records: CheckpointRecords, record: int) -> str:
    return f"{records.subtasks[records.subtask[record]]}={records.number[record]}"


def _contradicted(
    records: CheckpointRecords, stored: StoredRecords, marked: Mask, rules: Sequence[str]
) -> list[Finding]:
    """Checkpoints that were marked as deleted although recovery still needs them."""
    found = []
    for i in np.flatnonzero(marked).tolist():
        if rules[i] in _NEEDED:
            name = _name(records, int(stored.record[i]))
            message = f"{name} is marked as deleted, but recovery needs it: {RULES[rules[i]]}"
            found.append(Finding("marked-but-needed", "warning", name, message))
    return found


def _missing(records: CheckpointRecords, stored: StoredRecords, rules: Sequence[str]) -> list[Finding]:
    """Files that are gone of checkpoints that stay; of those that may go nobody misses them."""
    found = []
    for i in np.flatnonzero(stored.missing).tolist():
        if rules[i] not in _FREE:
            name, uri = _name(records, int(stored.record[i])), records.table["uri"][int(stored.record[i])].as_py()
            told = f"checkpoint {name}: its state file {uri} is missing"
            found.append(Finding("missing-state-file", "error", name, told, (Where(uri),), effect="older-line"))
    return found


def _rows(
    records: CheckpointRecords,
    stored: StoredRecords,
    rules: Sequence[str],
    needed_by: Sequence[str | None],
    free: Set[str],
    files: StoredFiles,
) -> Iterator[RetentionRow]:
    uris = records.table["uri"].take(stored.record).to_pylist()
    sizes = records.table["bytes"].take(stored.record).to_pylist()
    judged = []
    for i, (rule, by, uri, size) in enumerate(zip(rules, needed_by, uris, sizes, strict=True)):
        name = _name(records, int(stored.record[i]))
        fate: RetentionFate = "VALID" if rule in _NEEDED else "OBSOLETE" if rule in free else "KEEP"
        row = RetentionRow(
            path=name,
            bytes=size if size is None or size >= 0 else None,
            fate=fate,
            rule=rule,
            needed_by=by,
            checkpoint=name,
            file=False,
        )
        judged.append(CheckpointFate(row, uri))
    return rows_of(judged, files)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column


def trimming(evidence: Evidence, line: Ints | None, kept: Ints, in_doubt: bool) -> tuple[LogTrim, ...]:
    """Return for each channel, below which message its log is needed by no line that a restart may go back to.

    The line of total failure is the oldest of all lines, message by message; where older checkpoints are kept because
    somebody asked for them, a restart may go back to those. In doubt nothing may be trimmed. Of a channel that
    delivers out of order all from the first message on that was missing then is needed.

    Parameters
    ----------
    line : the line's checkpoints as rows of the history, shape (n,); None if there is none
    kept : rows of the history that stay as targets of a restart
    """
    history = evidence.history
    if line is None:
        return ()
    lowest = line.copy()
    owner = np.searchsorted(history.first, kept, "right") - 1
    np.minimum.at(lowest, owner, kept)
    below = history.received_of(lowest - history.first[:-1]).tolist()
    found = []
    for k, name in enumerate(history.channels):
        receiver = int(history.dst[k])
        label = int(history.label[lowest[receiver]])
        if name in evidence.deliveries.received:
            missing = evidence.deliveries.missing(name, label, below[k])
            below[k] = missing[0][0] if missing else below[k]
        checkpoint = f"{history.subtasks[receiver]}={label}"
        found.append(LogTrim(name, None if in_doubt else below[k], checkpoint))
    return tuple(found)
