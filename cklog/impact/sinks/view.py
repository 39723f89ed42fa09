"""The impact on sinks of a distributed run as sentences and rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cklog.impact.sinks.guarantees import Guarantees
from cklog.impact.sinks.line_errors import not_shown
from cklog.impact.sinks.model import (
    PENDING,
    Again,
    OutputInterval,
    SinkGuarantee,
    SinkImpact,
    SinkTransaction,
)
from cklog.model.findings import Effect, Finding
from cklog.model.lines import UNREAD_POSITION, position_words
from cklog.model.verdict import Answer
from cklog.model.wording import first_few
from cklog.render.view import View, cut_section

WHY: Mapping[str, str] = {
    "async-progress": "only some batches are logged: later ones may have run, and what they read is read again",
    "in-flight": "planned and not committed: it is run again, with its stored range",
    "planned-afresh": "planned and not committed, and its plan is gone: it is planned anew, perhaps with another range",
    "by-batch-number": "it is run again, and a sink that has its number drops it",
    "not-run-again": "no commit, and a restart does not run it: what it had not finished never comes",
    "input-file-missing": "input files are gone, and a restart takes them for empty",
    "sink-log-has-it": "the sink's log has the batch already",
    "sink-log-lacks-it": "it is run again, and only the files of the second run will be in the sink's log",
    "left-files": "it is run again, and the first run has left files that no log lists",
    "no-left-files": "it is run again, and the first run has left no file",
    "done-again": "committed batches are planned afresh, perhaps with other boundaries",
    "sink-log-skips": "the sink skips every batch that its log has: its log must lose them too, on a copy",
    "sink-log-lost": "the sink's log lacks the batch, so readers miss what it listed",
    "result-file-gone": "the sink's log lists files that are gone or changed, and a restart does not write them again",
    "sink-skips-new": "the sink's log is ahead: what these batches read now is skipped",
    "read-again": "read again from the checkpoint on",
    "committed-later": "a newer checkpoint has committed, or may have committed, what comes again",
    "committed-by-restore": "pending in the checkpoint: the restore commits it",
    "committed-before": "pending in the checkpoint and already committed",
    "aborted-before": "pending in the checkpoint, but aborted by Kafka: no restore can commit it",
    "commit-unknown": "pending in the checkpoint; whether a restore can commit it is unknown",
    "pending-unread": "pending in the checkpoint, in a form that cklog does not read",
    "rolled-back": "taken after the checkpoint of the line, and put out",
    "taken-since": "what was taken after the checkpoint is not known",
    "in-its-queue": "its output queue has the results already: the replay filter drops them",
    "gone-from-log": "in flight, and gone from the channel's log",
    "no-log": "in flight, and no log of the channel is here",
    "below-log-start": "committed before the log's start: auto.offset.reset decides",
    "behind-commit": "after the committed offset: processed without a commit, or never processed",
    "another-log": "of a topic that was created again: never read, and before the offset at which the reader resumes",
    "open-transaction": "in a transaction without an end: nothing shows whether it will be committed or aborted",
    "offset-deleted": "the committed offset was deleted: auto.offset.reset reads them again or skips them",
    "cut-off": "a restarting broker cuts the log before them",
    "table-skipped": "the table has it already, and its sink drops it",
    "table-written": "the table takes it from here on",
    "table-twice": "the table has it already, and takes it again",
    "table-may-have": "the table may have it already, and takes it again",
    "table-skipped-wrongly": "its sink drops the number, and the table does not have these rows",
    "table-missing": "before the line, and not in the table: nobody writes it again",
    "table-fails": "the restore commits it, and its files are gone: the restore fails",
    "table-unread": "the table was not read, or not understood: it may take, drop or lack these results",
    "offsets-used-again": "committed beyond the restarted log's end: new records get these offsets",
}
"""Why an interval's results are doubled or missing, by the word of `OutputInterval.why`."""

PIECES: Mapping[str, str] = {
    "input-kept": "all that is read again is still there",
    "input-unknown": "whether what is read again of {names} is there",
    "input-gone": "what is read again of {names}: it is no longer there",
    "input-files-missing": "input files of the batches that a restart runs: {names}",
    "no-source-offsets": "where the sources go on: no offset of theirs is known",
    "channels-kept": "the messages in flight are in the channels' logs",
    "channels-gone": "messages in flight that the logs have lost: {names}",
    "records-lost": "records that are damaged or missing: one of them may say more",
    "channels-unlogged": "a log of the messages in flight: {names}",
    "state-loads": "every state store can load its version",
    "state-unknown": "whether the state can be loaded",
    "no-state": "there is no state",
    "initial-state": "it begins with the initial state",
    "snapshot-whole": "the snapshot is whole",
    "line-stored": "the line is made of stored checkpoints",
    "committed-offsets": "the committed offset is the state",
    "log-of-results": "the sink's log of results",
    "broken-log-of-results": "a sink's log that has every batch and none beyond",
    "results-gone": "every file that the sink's log lists: {names}",
    "log-not-trimmed": "a sink's log without the batches that come again: trim it, on a copy",
    "no-left-files": "no file lies in the sink's folder that its log does not list",
    "unlisted-files": "a folder without files that the sink's log does not list: {names}",
    "drops-batch-numbers": "the sink drops a batch number that it has",
    "unknown-sink": "what the sink is: a log, transactions or keys by which results are dropped that it has",
    "no-committer": "a sink with transactions, or keys by which results are overwritten: it has no committer",
    "unread-committer": "what the sink's committer holds: cklog reads those of Kafka, files, Iceberg and Paimon",
    "pending-files": "files that nobody sees before a checkpoint is complete",
    "pending-gone": "what the checkpoint has pending for the sink: {names}",
    "pending-unread": "what the checkpoint has pending for the sink: cklog does not read its form",
    "pending-unseen": "whether what the checkpoint has pending for the sink is there (--map)",
    "table-not-asked": "what the table has taken (--sink NAME=TABLE)",
    "transactions": "the sink's transactions",
    "transactions-lost": "aborted transactions: {names}",
    "transactions-unknown": "whether Kafka can still commit what is pending (--kafka with all partitions of the sink)",
    "committed-since": "a newer checkpoint: its transactions are visible and come again ({names})",
    "uncommitted-seen": "readers of committed records (isolation.level)",
    "transactional": "the sink is transactional (job.json)",
    "deduplicates": "the sink drops what it has (job.json)",
    "replay-filter": "the replay filter of the eventual checkpoint",
    "nothing-again": "nothing comes to it again",
    "delivery-not-stated": "a sink with transactions or keys: job.json states no delivery for it",
    "table-agrees": "the table {names} drops what it has, and takes what it lacks",
    "table-contradicts": "the table {names} as another line left it: cklog recovery-line --sink says which one fits",
    "table-unknown": "what the table {names} has taken",
    "line-errors": "what the errors of the line name: {names}",
    "unknown-consumer": "what the consumer does with a record that comes again",
}
"""Evidence for a guarantee, or, where it is missing, what it would take; by the word of `GuaranteeEvidence.because`."""

NOTES: Mapping[str, str] = {
    "going-back": "Going back removes offsets and commits, on a copy: see cklog recovery-line.",
    "sinks-not-named": "This metadata names no operators: what is told of any sink goes for each of the job's.",
    "sinks-by-name": "Sinks are known by their operators' names and transactions; one of an older kind is not known.",
    "reach-unknown": "No file here shows how far the job had come after its checkpoint.",
    "reach-by-snapshot": "--against SNAPSHOT gives a bound of how far the job had come.",
    "reach-by-kafka": "--kafka FOLDER with --group gives bounds of how far the job had come.",
    "reach-by-group": "--group gives a bound of how far the job had come: the offsets that its group has committed.",
    "no-sinks": "No operator is known to be a sink: each feeds another one. kind in job.json can say which is.",
    "no-groups": "No group's committed offsets are here.",
}

_FATES: Mapping[str, str] = {
    "missing": "missing",
    "may-be-missing": "may be missing",
    "unknown": "unknown",
    "doubled": "doubled",
    "may-be-doubled": "may be doubled",
    "skipped": "skipped by the sink, which has it",
    "once": "written again and seen once",
    "visible": "visible already",
}
"""The fates of results in the order of a headline, and how it says them."""

_NAMED = 3
"""So many names, or spans, are listed in a sentence; of the others only how many there are."""

_INTERVAL = ("sink", "readers", "results", "of", "from", "to", "at most", "count", "why")
_GUARANTEE = ("sink", "readers", "can be kept", "at best", "next", "which needs")
_AGAIN = ("source", "reader", "from", "to", "at most", "there")
_TRANSACTION = ("sink", "transaction", "producer", "checkpoint", "becomes", "log", "from", "to", "records")
_NAMES = ("sink", "why", "name")


def sink_impact_view(answer: Answer[SinkImpact]) -> View:
    """Show which results are doubled or missing, interval by interval, then what can be kept."""
    found = answer.result
    sections = [
        cut_section("Results", _INTERVAL, [_interval_row(row) for row in found.intervals]),
        cut_section("Guarantees", _GUARANTEE, [_guarantee_row(row) for row in found.guarantees]),
        cut_section("Read again", _AGAIN, [_again_row(row) for row in found.again]),
        cut_section("Transactions", _TRANSACTION, [_transaction_row(row) for row in found.transactions]),
        cut_section("Named", _NAMES, [(row.sink, row.why, name) for row in found.intervals for name in row.names]),
    ]
    notes = tuple(NOTES[note] for note in found.notes)
    return View(_headline(answer), tuple(s for s in sections if s.rows), notes)


def guarantee_view(answer: Answer[Guarantees]) -> View:
    """Show what can be kept, sink by sink."""
    guarantees = answer.result.guarantees
    promises = list(dict.fromkeys(_promise_words(row) for row in guarantees))
    headline = f"{first_few(promises, _NAMED, '; ')}." if promises else "No sink or output is known."
    return View(headline, (cut_section("Guarantees", _GUARANTEE, [_guarantee_row(row) for row in guarantees]),))


def _promise_words(row: SinkGuarantee) -> str:
    kept = f"none can be proven, {row.at_best} at best" if row.guarantee == "none" else row.guarantee
    return f"{_of_whom(row)}: {kept}"


def _of_whom(row: SinkGuarantee | OutputInterval) -> str:
    """Name a sink, in quotes, as its name may be any word; and for whom, or which kind of sink, a sentence holds."""
    for_whom = _FOR_WHOM.get(row.readers, f"for readers {row.readers}") if row.readers else ""
    return f'"{row.sink}"{f" {for_whom}" if for_whom else ""}'


_FOR_WHOM: Mapping[str, str] = {
    "foreachBatch, Kafka, console": "if it is foreachBatch, Kafka or console",
    "that keep batch numbers": "if it stores batch numbers",
}
"""Kinds of a sink that is not known, in a sentence."""


def _headline(answer: Answer[SinkImpact]) -> str:
    """The fates of results; before them what stops the restart, after them what errors of the line do beside."""
    found = answer.result
    errors = [finding for finding in answer.findings if finding.blocks]
    if not found.line and found.action == "undetermined":
        return "Evidence is missing: what a restart begins from is not known, so nothing can be said of its results."
    if not found.line:
        return "There is nothing that a restart could begin from, so nothing can be said of its results."
    fates = [_fate_words(found.intervals, fate) for fate in _FATES]
    said = "; ".join(text for text in fates if text)
    by_intervals = replace(found, guarantees=())  # the sentence says no more than intervals do
    beside = [_effect_words(not_shown(by_intervals, errors), effect) for effect in _EFFECTS]
    if found.action == "undetermined" and not any(error.effect == "unknown" for error in errors):
        beside.append(_EFFECTS["unknown"])
    sentences = [f"{text[:1].upper()}{text[1:]}." for text in (said, *beside) if text]
    if found.fails or any(error.effect == "restart-fails" for error in errors):
        lead = "As the files are now, a restart fails"
        return f"{lead}; once they are repaired: {' '.join(sentences)}" if sentences else f"{lead}. {_REPAIRED}"
    return " ".join(sentences) or "No result is known to be doubled or missing."


_REPAIRED = "The repair decides what becomes of results."

_EFFECTS: Mapping[Effect, str] = {
    "data-lost": "results may be missing",
    "data-duplicated": "results may be doubled",
    "unknown": "more results may be doubled or missing, because evidence is missing",
}
"""What errors of the line do to results of which no interval shows it."""


def _effect_words(errors: Sequence[Finding], effect: Effect) -> str:
    names = list(dict.fromkeys(f"{error.id} of {error.subject}" for error in errors if error.effect == effect))
    return f"{_EFFECTS[effect]} ({first_few(names, _NAMED)})" if names else ""


def _fate_words(intervals: Sequence[OutputInterval], fate: str) -> str:
    """The intervals that share a fate: a few spans, and how many more; nothing if there are none."""
    spans = list(dict.fromkeys(_span_words(row) for row in intervals if row.fate == fate))
    return f"{_FATES[fate]}: {first_few(spans, _NAMED)}" if spans else ""


def _span_words(row: OutputInterval) -> str:
    """An interval and whose results it is about.

    >>> batch = {"of": "batch", "from_": 6, "to": 7, "most": 7, "count": 1, "why": "left-files"}
    >>> _span_words(OutputInterval("out", "of all files", "may-be-doubled", **batch))
    'batch 6 of "out" for readers of all files'
    """
    whose = _of_whom(row)
    if row.of == "batch" and row.to is None:
        return f"batches from {row.from_} on of {whose}"
    if row.of == "batch":
        batches = f"batch {row.from_}" if row.to == row.from_ + 1 else f"batches {row.from_} to {row.to - 1}"
        return f"{batches} of {whose}"
    if row.of == "transaction":
        return f"{row.count} transaction{'' if row.count == 1 else 's'} of {whose}"
    if row.of == PENDING:
        return f"what is {PENDING} for {whose}"
    if row.from_ == UNREAD_POSITION:
        return f"results of {row.of} ({position_words(row.from_)}) in {whose}"
    end = row.to if row.to is not None else row.most
    bound = "on" if end is None else f"to {_plain_cell(end)}"
    return f"results of {row.of} from {_plain_cell(row.from_)} {bound} in {whose}"


def _interval_row(row: OutputInterval) -> tuple[Any, ...]:
    start = position_words(row.from_) if row.from_ == UNREAD_POSITION else row.from_
    cells = [_plain_cell(value) for value in (start, row.to, row.most, row.count)]
    return row.sink, row.readers or "-", row.fate.replace("-", " "), row.of, *cells, WHY[row.why]


def _guarantee_row(row: SinkGuarantee) -> tuple[Any, ...]:
    needs = "; ".join(PIECES.get(p.because, p.because).format(names=first_few(p.names, _NAMED)) for p in row.missing)
    best = "-" if row.at_best == row.guarantee else row.at_best
    return row.sink, row.readers or "-", row.guarantee, best, row.next or "-", needs or "-"


def _again_row(row: Again) -> tuple[Any, ...]:
    start = row.from_ if isinstance(row.from_, int) else position_words(row.from_)
    there = {True: "yes", False: "NO", None: "not known"}[row.kept]
    return row.source, row.reader, start, _plain_cell(row.to), _plain_cell(row.most), there


def _transaction_row(row: SinkTransaction) -> tuple[Any, ...]:
    numbers = [_plain_cell(value) for value in (row.from_, row.to, row.records)]
    checkpoint = _plain_cell(row.checkpoint)
    return row.sink, row.transaction, row.producer or "-", checkpoint, row.fate, row.log or "-", *numbers


def _plain_cell(value: Any) -> Any:
    if value is None:
        return "-"
    return value if isinstance(value, int | str) else json.dumps(value)
