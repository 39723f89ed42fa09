"""What a restart of a micro-batch query does to the results of its sink: batch by batch.

A batch without a commit may have written any part of its output, and all of it comes again. A file sink with a log
keeps readers of that log from seeing it twice; who reads all files of the folder sees both. Other sinks (foreachBatch,
Kafka, console) get the batch twice unless they drop a batch number that they have. Read off Spark 4.3: with commits
missing before the newest plan, only the newest plan is run again, and none of the batches between.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace

from cklog.impact.sinks.guarantees import all_hold, guarantee_of
from cklog.impact.sinks.model import Again, GuaranteeEvidence, OutputInterval, ResultFate, SinkGuarantee, SinkImpact
from cklog.impact.sinks.sources import BoundLogs, offset_of
from cklog.inputs.offers import OffersBatches
from cklog.inputs.sink_files import LostResult, SinkFiles
from cklog.model.question import Question
from cklog.model.verdict import Draft
from cklog.runs.batches.offsets import SourceRange, start_of
from cklog.runs.batches.plan import BatchPlan
from cklog.sink_tables.numbers import Spans, spans_of

UNNAMED = "query/0"
"""The sink of a query whose checkpoint does not tell what it writes to."""

OF_LOG, OF_FILES = "of the log", "of all files"
ANY, BY_BATCH = "foreachBatch, Kafka, console", "that keep batch numbers"
_REPEATABLE = ("rate",)


def batch_impact(
    parser: OffersBatches, plan: BatchPlan, question: Question, logs: BoundLogs | None
) -> Draft[SinkImpact]:
    """Say what the restart that `plan` tells of does to results, without the findings, which are those of its line.

    Parameters
    ----------
    plan : as the question asks for it; with `question.at`, of going back to that batch
    """
    files, top = plan.sink_files, _top(plan)
    result = SinkImpact(
        system="spark",
        line=({"operator": "query", "subtask": 0, "checkpoint": None if plan.uncounted else plan.committed},),
        intervals=tuple(_intervals(plan, files, top, question.as_of is None)),
        guarantees=tuple(_guarantees(plan, files, top, logs, question.as_of is None)),
        again=tuple(_again(plan, logs, _goes_back(plan, top), question.as_of is None)),
        fails=plan.fails,
        notes=("going-back",) if _goes_back(plan, top) else (),
    )
    return Draft("impact-sinks", result, (), plan.inputs)


def _top(plan: BatchPlan) -> int:
    """The newest batch that was planned or committed, those that going back removes among them."""
    removed = [] if plan.removed_to is None else [plan.removed_to]  # known even where no way back is offered
    return max([plan.committed, *plan.rolled_back, *removed, *(batch.batch for batch in plan.batches)])


def _goes_back(plan: BatchPlan, top: int) -> bool:
    """Whether batches that were planned have to be removed first."""
    return top > max(plan.committed, -1 if plan.planned is None else plan.planned)


def _again(plan: BatchPlan, logs: BoundLogs | None, back: bool, now: bool) -> Iterable[Again]:
    for source in plan.sources:
        kept = False if source.missing or (now and source.missing_ahead) else _kept(source, logs, back)
        yield Again(
            source=source.source, reader=UNNAMED, from_=start_of(source), to=source.end, most=source.end, kept=kept
        )


def _intervals(plan: BatchPlan, files: SinkFiles | None, top: int, now: bool) -> Iterable[OutputInterval]:
    """Every batch after the line, and what readers lose; `now`: of today's line, not of one in the past."""
    first, planned = plan.committed + 1, plan.planned
    if _goes_back(plan, top):
        yield from _undone(plan, files, first, top)
    elif planned is not None and not plan.asynchronous:
        if planned > first:
            for start, end in _not_run_again(files, first, planned):
                yield _batches(plan, "", "may-be-missing", start, end, "not-run-again")
        yield from _in_flight(plan, files, planned)
    if plan.asynchronous:
        yield replace(
            _batches(plan, "", "may-be-doubled", first, first, "async-progress"), to=None, most=None, count=None
        )
    for batch in plan.lost_plans:
        yield _batches(plan, "", "may-be-doubled", batch, batch + 1, "planned-afresh")
    if files is not None:
        yield from _unread(plan, files, top if now else max(top, files.newest))
        if now:
            yield from _lost_results(plan, _lost(plan, files, top), "may-be-missing" if files.is_bare else "missing")
    for source in plan.sources:
        if source.missing:
            batch = top if planned is None else planned
            yield _batches(plan, "", "missing", batch, batch + 1, "input-file-missing", source.missing)
        if now and source.missing_ahead:
            batch = 1 + (plan.committed if planned is None else planned)
            yield _batches(plan, "", "missing", batch, batch + 1, "input-file-missing", source.missing_ahead)


def _not_run_again(files: SinkFiles | None, first: int, planned: int) -> Spans:
    """Return the stretches of batches before the planned one that have no commit, nor an entry of the sink's log.

    A log that reaches beyond the planned batch may be another query's, and shows nothing.
    """
    if files is None or files.newest > planned:
        return ((first, planned),)
    return spans_of((n, n + 1) for n in range(first, planned) if n > files.newest or n in files.lacking)


def _batches(
    plan: BatchPlan, readers: str, fate: ResultFate, start: int, end: int, why: str, names: tuple[str, ...] = ()
) -> OutputInterval:
    return OutputInterval(
        sink=plan.sink or UNNAMED,
        readers=readers,
        fate=fate,
        of="batch",
        from_=start,
        to=end,
        most=end,
        count=end - start,
        why=why,
        names=names,
    )


def _in_flight(plan: BatchPlan, files: SinkFiles | None, planned: int) -> Iterable[OutputInterval]:
    """The batch that runs again, by what the sink is."""
    end = planned + 1
    if files is None:
        yield _batches(plan, ANY, "may-be-doubled", planned, end, "in-flight")
        yield _batches(plan, BY_BATCH, "once", planned, end, "by-batch-number")
    elif plan.sink_has_planned and not _loses_entries(plan):
        yield _batches(plan, "", "skipped", planned, end, "sink-log-has-it")
    else:
        left = _left_files(plan, files)
        yield _batches(plan, OF_LOG, "once", planned, end, "sink-log-lacks-it")
        fate: ResultFate = "may-be-doubled" if left else "once"
        yield _batches(plan, OF_FILES, fate, planned, end, "left-files" if left else "no-left-files", left)


def _loses_entries(plan: BatchPlan) -> bool:
    """Whether the repair takes entries out of the sink's log, so that their batches are written again."""
    return plan.sink is not None and any(path.startswith(f"{plan.sink}/") for path in plan.remove)


def _left_files(plan: BatchPlan, files: SinkFiles) -> tuple[str, ...]:
    """Return the files that the sink's log does not list once the query is repaired."""
    taken = [paths for batch, paths in files.listed.items() if batch > plan.committed] if _loses_entries(plan) else []
    return tuple(sorted({*files.unlisted, *itertools.chain.from_iterable(taken)}))


def _undone(plan: BatchPlan, files: SinkFiles | None, first: int, top: int) -> Iterable[OutputInterval]:
    """Batches that were done and are planned afresh, perhaps with other boundaries: their results come again."""
    if files is None:
        yield _batches(plan, "", "doubled", first, top + 1, "done-again")
        return
    mine = [path for batch, paths in files.listed.items() if batch >= first for path in paths]
    yield _batches(plan, OF_LOG, "may-be-missing", first, top + 1, "sink-log-skips")
    yield _batches(plan, OF_FILES, "doubled", first, top + 1, "done-again", tuple(sorted([*mine, *files.unlisted])))


def _unread(plan: BatchPlan, files: SinkFiles, top: int) -> Iterable[OutputInterval]:
    """What readers of the sink's log lose: batches that it lacks, and those that it will skip."""
    for batch in files.lacking:
        if batch <= plan.committed:
            yield _batches(plan, OF_LOG, "missing", batch, batch + 1, "sink-log-lost")
    if files.newest < plan.committed:
        yield _batches(plan, OF_LOG, "missing", files.newest + 1, plan.committed + 1, "sink-log-lost")
    if files.newest > top:
        yield _batches(plan, "", "missing", top + 1, files.newest + 1, "sink-skips-new")


def _lost(plan: BatchPlan, files: SinkFiles, top: int) -> list[LostResult]:
    """Return the listed files that are gone or changed, but those of batches that the query does again."""
    last = plan.committed if _goes_back(plan, top) or _loses_entries(plan) else files.newest
    return [file for file in files.lost if file.entry <= last]


def _lost_results(plan: BatchPlan, lost: Iterable[LostResult], fate: ResultFate) -> Iterable[OutputInterval]:
    """What every reader lacks: files that the log lists and that are gone, by the batch that wrote them."""
    by_entry: dict[tuple[int, bool], list[str]] = {}
    for file in lost:
        by_entry.setdefault((file.entry, file.compacted), []).append(file.path)
    for (entry, compacted), paths in sorted(by_entry.items()):
        some = _batches(plan, "", fate, entry, entry + 1, "result-file-gone", tuple(paths))
        yield replace(some, from_=0, to=None, count=None) if compacted else some


def _guarantees(
    plan: BatchPlan, files: SinkFiles | None, top: int, logs: BoundLogs | None, now: bool
) -> Iterable[SinkGuarantee]:
    sink, back = plan.sink or UNNAMED, _goes_back(plan, top)
    base = [_input(plan, logs, back, now), _state(plan)]
    if files is None:
        yield guarantee_of(sink, ANY, [*base, GuaranteeEvidence("output", None, "unknown-sink")])
        drops = None if back or plan.lost_plans or plan.asynchronous else True
        yield guarantee_of(sink, BY_BATCH, [*base, GuaranteeEvidence("output", drops, "drops-batch-numbers")])
        return
    whole = not files.lacking and plan.committed <= files.newest <= top
    lost = tuple(file.path for file in _lost(plan, files, top))
    gone = [GuaranteeEvidence("state", None if files.is_bare else False, "results-gone", lost)] if lost else []
    untrimmed = [GuaranteeEvidence("output", False, "log-not-trimmed")] if back else []
    log = GuaranteeEvidence("output", True, "log-of-results")
    if not whole:  # its readers miss results
        log = GuaranteeEvidence("state", False, "broken-log-of-results")
    left = _left_files(plan, files)
    unread = GuaranteeEvidence("output", not left, "unlisted-files" if left else "no-left-files", left)
    yield guarantee_of(sink, OF_LOG, [*base, *gone, *(untrimmed or [log])])
    yield guarantee_of(sink, OF_FILES, [*base, *gone, *(untrimmed or [unread])])


def _input(plan: BatchPlan, logs: BoundLogs | None, back: bool, now: bool) -> GuaranteeEvidence:
    """Whether the input of the batch in flight is still there, and what is read after it.

    Where nothing names the sources, as before the first batch, nothing tells.
    """
    missing = tuple(path for s in plan.sources for path in (*s.missing, *(s.missing_ahead if now else ())))
    if missing:
        return GuaranteeEvidence("input", False, "input-files-missing", missing)
    kept = {source.source: _kept(source, logs, back) for source in plan.sources}
    if plan.lost_plans:  # nothing says which files are read again
        kept |= {source.source: None for source in plan.sources if source.kind == "file"}
    holds = all_hold(kept.values()) if kept else None
    some = (tuple(n for n, held in kept.items() if held is holds) or ("its sources",)) if holds is not True else ()
    return GuaranteeEvidence(
        "input", holds, "input-kept" if holds else "input-unknown" if holds is None else "input-gone", some
    )


def _kept(source: SourceRange, logs: BoundLogs | None, back: bool) -> bool | None:
    """Whether a source can be read again from where it stands: what only a broker knows needs its logs.

    Of a file source the files of the batch in flight are read again, and all later ones of its log by going `back`.
    """
    if source.kind == "file":
        ahead = source.ahead if back else ()
        files = (*source.files, *(ahead or ()))
        if any(file.size is None for file in files):
            return False
        return None if not source.listed or ahead is None or any(file.size == "outside" for file in files) else True
    log = None if logs is None or source.kind != "kafka" else logs.partition(source.source)
    start = offset_of(source.start)
    if logs is not None and log is not None and start is not None:
        return logs.holds(log, start)
    return True if source.kind in _REPEATABLE else None


def _state(plan: BatchPlan) -> GuaranteeEvidence:
    if plan.unjudged:
        return GuaranteeEvidence("state", None, "state-unknown")
    if plan.committed < 0:
        return GuaranteeEvidence("state", True, "initial-state")
    return GuaranteeEvidence("state", True, "state-loads" if plan.stores else "no-state")
