"""Offsets and commits of a Spark checkpoint against each other: the last committed batch, and what stops a restart.

Let o be the newest offsets file and c the newest commit. Read off Spark 4.3 by damaging copies and restarting them:
a restart reads `metadata`, offsets/o, offsets/o-1 (also if o = c) and commits/c, and stops if one of them is missing or
cannot be read. Older ones it does not look at. With o > c+1 it runs batch o alone and never the batches
between; with o < c it runs batch o again and stops when it commits. Where progress is tracked asynchronously, the plan
before o that is here stands for offsets/o-1, and batch o reads on from there.
Batches of which nothing is left between others are damage that stops nothing, or such progress tracking.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from cklog.inputs.batches import FileRead, LogListing, MetadataLogs, lost_entries, spark_version
from cklog.inputs.offers import OffersBatches
from cklog.model.findings import Finding, Severity, Where
from cklog.model.verdict import NOT_JUDGED, UNREAD
from cklog.model.wording import first_few, many
from cklog.runs.batches.done import advice_without_commits
from cklog.runs.batches.facts import (
    COPY,
    Fact,
    checksum_findings,
    file_finding,
    flaw_facts,
    how_to_judge,
    seen,
    sorted_findings,
)
from cklog.runs.batches.offsets import kind_of, went_back
from cklog.runs.batches.repartitions import repartition_of, unfinished, unfinished_message
from cklog.runs.batches.targets import any_named, can_plan_afresh, needs_state_ids, or_go_back

_EXAMPLES = 5
_NEEDS_METADATA = (4, 2)
_NEW_ID = (
    "An older Spark silently takes a new query id: a sink that drops batches by query id and number (Delta's txn for "
    "instance) takes a batch again that it has. Put the file back from a backup."
)


def table_findings(parser: OffersBatches) -> tuple[Finding, ...]:
    """Return what is wrong with the logs of a query, whatever is asked of it."""
    logs = parser.logs()
    return sorted_findings([*judge_empty(logs, parser.has_state), *judge(logs)])


def judge(logs: MetadataLogs) -> list[Fact]:
    """Return every fact about `metadata`, `offsets/` and `commits/`, as far as they could be looked at."""
    reads: list[FileRead[Any]] = [*logs.offsets.values(), *logs.commits.values()]
    reads += [logs.metadata] if logs.metadata is not None else []
    facts = [
        *_judge_links(logs),
        *_judge_metadata(logs),
        *_judge_offsets(logs),
        *_judge_commits(logs),
        *([] if logs.hidden_log else [*_judge_order(logs), *_judge_repartition(logs)]),
        *_judge_ranges(logs),
        *map(Fact, checksum_findings(reads)),
    ]
    return seen(logs, facts)


def later_facts(everything: MetadataLogs, logs: MetadataLogs, goes_back: bool) -> list[Fact]:
    """Say what is wrong with the files of batches after those in `logs`, which are not asked about.

    `goes_back`: they are removed. Else they stay, and a restart of the files as they are now reads them.
    """
    if goes_back:
        later: list[FileRead[Any]] = [read for n, read in sorted(everything.offsets.items()) if n > logs.planned]
        later += [read for n, read in sorted(everything.commits.items()) if n > logs.committed]
        return seen(everything, [Fact(_removed(read, logs.committed)) for read in later if read.flaw is not None])
    known = {fact.finding.subject for fact in judge(logs)}
    weighs = (f for f in judge(everything) if f.stops or f.skips or f.finding.id in NOT_JUDGED)
    return [fact._replace(remove=()) for fact in weighs if fact.finding.subject not in known]


def _removed(read: FileRead[Any], line: int) -> Finding:
    """Report a file that cannot be used, and that going back to a batch removes."""
    id, why = (read.flaw.id, read.flaw.why) if read.flaw is not None else ("", "")
    unsure = id in NOT_JUDGED
    then = (
        f"cklog cannot tell what going back would undo. {how_to_judge(id)}"
        if unsure
        else f"Going back to batch {line} removes it."
    )
    return file_finding(id, "error" if unsure else "warning", read.path, f"{read.path}: {why}. {then}")


def _judge_links(logs: MetadataLogs) -> Iterable[Fact]:
    """Say which logs as a whole nobody read: what is not seen there may be there all the same."""
    for path in logs.linked:
        message = f"{path} is a link that is not followed: batches that it holds were not read."
        yield Fact(file_finding(UNREAD, "error", path, message))


def _judge_metadata(logs: MetadataLogs) -> Iterable[Fact]:
    """Judge the file with the id of the query."""
    then = "The restart fails. Put it back from a backup: a new id would break the tie to what the sink has."
    if logs.metadata is not None:
        yield from flaw_facts(logs.metadata, "error", then, stops=True)
        return
    path, version = f"{logs.prefix}metadata", spark_version(logs)
    refused = version.since(_NEEDS_METADATA)
    if refused:
        then = f"The restart fails, as of Spark 4.2 ({version}). {then.partition('. ')[2]}"
    elif refused is None:
        then = f"The restart fails as of Spark 4.2, and nothing shows an older version. {_NEW_ID}"
    else:
        then = f"The restart does not fail ({version}; it does as of 4.2). {_NEW_ID}"
    finding = file_finding("missing-metadata", "error", path, f"{path} is missing. {then}")
    yield Fact(finding, stops=refused is not False)


def _judge_offsets(logs: MetadataLogs) -> Iterable[Fact]:
    """Judge plans that cannot be read or are missing."""
    o, before, folder = logs.planned, logs.before(logs.planned), logs.offset_log.folder
    for n, read in sorted(logs.offsets.items()):
        needed = n == o or (n == before and not logs.continuous)
        remove = (read.path,) if n == o and can_plan_afresh(logs) else ()
        yield from flaw_facts(read, "error" if needed else "warning", _without_offsets(n, logs), needed, remove)
    if o > 0 and before not in logs.offsets and not logs.continuous:
        message = f"{folder}/{before} is missing. {_without_offsets(before, logs)}"
        yield Fact(file_finding("missing-batch-file", "error", f"{folder}/{before}", message), stops=True)
    if logs.asynchronous:
        yield Fact(_asynchronous_finding(logs))
        lost = lost_entries(logs.offsets, logs.commits, o)
        yield from map(Fact, _gap_findings(logs.offset_log, [(n, n) for n in lost]))
    else:
        yield from map(Fact, _gap_findings(logs.offset_log, _stretches(logs.offsets, before)))
    for n in logs.offset_log.orphans:
        if n > o:
            left = f"{folder}/.{n}.crc"
            message = (
                f"{folder}/{n} is missing, only its checksum file is left. {_left_over(left, f'plans batch {n}')} Put "
                f"the file back from a backup, or {COPY} remove {left}: batch {n} is then planned afresh, perhaps "
                "with another range, and a sink that is not idempotent may get part of it twice."
            )
            yield Fact(file_finding("missing-batch-file", "error", f"{folder}/{n}", message), True, remove=(left,))


def _without_offsets(n: int, logs: MetadataLogs) -> str:
    """Say what a restart does without the plan of batch n, and what to do now."""
    o = logs.planned
    if n == o and n in logs.commits:
        return (
            f"The restart fails. Batch {n} is committed and this file says where it ended: put it back from a backup"
            f"{or_go_back(logs)}."
        )
    if n == o and can_plan_afresh(logs):
        return (
            f"The restart fails. To go on, {COPY} remove it and its .crc: batch {n} is then planned afresh from the "
            f"end of batch {logs.before(n)}, and a sink that is not idempotent may get part of it twice."
        )
    if n == o == 0:
        return (
            f"The restart fails. To start over, {COPY} remove the folders offsets, commits and state, and from a file "
            "sink's log batch 0 with its .crc: else the sink skips batch 0. Other sinks may get part of batch 0 twice."
        )
    if n == o:
        return f"The restart fails. Put it back from a backup{or_go_back(logs)}."
    if n == logs.before(o):
        return (
            f"The restart fails, because batch {o} starts where batch {n} ends. Put it back from a backup"
            f"{or_go_back(logs)}."
        )
    return f"A restart does not read it; batch {n} is no target to go back to."


def _judge_commits(logs: MetadataLogs) -> Iterable[Fact]:
    """Judge commits that cannot be read or are missing."""
    newest, folder = max(logs.commits, default=-1), logs.commit_log.folder
    for n, read in sorted(logs.commits.items()):
        then = _without_commit(n, logs) if n == newest else "A restart does not read it."
        remove = (read.path,) if n == newest and logs.shown_done >= n else ()
        yield from flaw_facts(read, "error" if n == newest else "warning", then, n == newest, remove)
    if logs.asynchronous:
        lost = lost_entries(logs.commits, logs.offsets, logs.planned)
        yield from map(Fact, _gap_findings(logs.commit_log, [(n, n) for n in lost]))
    else:
        yield from map(Fact, _gap_findings(logs.commit_log, _stretches(logs.commits, newest)))
    for n in logs.commit_log.orphans:
        if n > newest and (n >= logs.planned or logs.asynchronous):  # else a restart never writes this commit
            left = f"{folder}/.{n}.crc"
            message = (
                f"{folder}/{n} is missing, only its checksum file is left: batch {n} was done. "
                f"{_left_over(left, f'commits batch {n}')} Put the file back from a backup; if {COPY} {left} is "
                f"removed, batch {n} is run again, and a sink that is not idempotent gets it twice."
            )
            yield Fact(file_finding("missing-batch-file", "error", f"{folder}/{n}", message), stops=True)


def _left_over(path: str, when: str) -> str:
    """Say what a checksum file does that was left behind, as Spark 3.5, 4.0 and 4.3 showed it."""
    return f"The restart fails when it {when}: on a local file system {path} stops it (concurrent queries)."


def _without_commit(n: int, logs: MetadataLogs) -> str:
    """Say what a restart does without the commit of batch n, the newest one, and what to do now."""
    if logs.sink_lists is not None and logs.shown_done >= n:
        return (
            f"The restart fails. {logs.sink_lists.sentence_subject} and the state show that batch {n} is done: {COPY} "
            f"remove this file and its .crc, and a restart runs batch {logs.planned} alone and writes nothing twice."
        )
    if logs.planned > n:
        removed = f"the query goes on with batch {logs.planned} alone."
        if needs_state_ids(logs):
            removed = (
                "the restart fails, too: with state checkpoint format 2 it alone names the states that are loaded."
            )
        return (
            f"The restart fails. Batch {logs.planned} was planned after batch {n} was done, but nothing whole proves "
            f"it: the line is batch {logs.committed}. Put it back from a backup; if {COPY} it is removed with its "
            f".crc, {removed}"
        )
    return (
        f"The restart fails. Whether batch {n} is done is unknown, so the line is batch {logs.committed}. Put it back "
        f"from a backup; if {COPY} it is removed with its .crc, batch {n} is run again, and a sink that is not "
        "idempotent may get it twice."
    )


def _judge_order(logs: MetadataLogs) -> Iterable[Fact]:
    """Judge the newest plan and the newest commit against each other."""
    o, c = logs.planned, max(logs.commits, default=-1)
    offsets, commits = logs.offset_log.folder, logs.commit_log.folder
    if c > o:
        then = "The restart begins at batch 0 and fails, or reads all input again where there is no state."
        if o >= 0:
            then = (
                f"The restart runs batch {o} again and fails when it commits (concurrent update to the log). "
                f"{COPY.capitalize()} remove the commits above {o} with their .crc, or put the offsets back."
            )
        message = f"{commits}/{c} is there, but no offsets above {o}. {then}"
        yield Fact(file_finding("commit-ahead-of-offsets", "error", f"{commits}/{c}", message), stops=True)
    first = max(c + 1, min(logs.offsets, default=0))
    if o > first and not logs.asynchronous:
        which, those = (f"{first}", "batch") if first == o - 1 else (f"{first} to {o - 1}", "batches")
        shown = logs.shown_done >= o - 1
        message = f"{commits}: {which} missing, though {offsets}/{o} was planned after. "
        if needs_state_ids(logs):
            message += (
                f"The restart fails: with state checkpoint format 2 {commits}/{o - 1} alone names the states that "
                f"batch {o} needs. Put the commits back from a backup{or_go_back(logs)}."
            )
        elif logs.sink_lists is not None and shown:
            message += (
                f"{logs.sink_lists.sentence_subject} has {those} {which}, and all that batch {o} needs of the state is "
                f"there, so nothing is lost: a restart runs batch {o} alone, and writes nothing twice."
            )
        else:
            advice = advice_without_commits(first, f"{those} {which}", logs)
            message += f"A restart runs batch {o} alone and skips {which}. {advice}"
        finding = file_finding("missing-batch-file", "warning" if shown else "error", f"{commits}/{first}", message)
        yield Fact(finding, stops=needs_state_ids(logs), skips=not needs_state_ids(logs) and not shown)


def _judge_repartition(logs: MetadataLogs) -> Iterable[Fact]:
    """Judge a newest plan that repartitions the state and was not finished."""
    if unfinished(logs) is not None:
        path = logs.offsets[logs.planned].path
        message = unfinished_message(logs)
        yield Fact(file_finding("unfinished-repartition", "error", path, message), stops=True, remove=(path,))


def _judge_ranges(logs: MetadataLogs) -> Iterable[Fact]:
    """Judge batches next to each other: they name the same sources, none goes back, and no two are one plan."""
    for before, n in pairwise(sorted(logs.offsets)):
        start, end = logs.ends(before), logs.ends(n)
        if before != logs.before(n) or start is None or end is None:
            continue
        path, needed = logs.offsets[n].path, n >= logs.before(logs.planned)
        severity: Severity = "error" if needed else "warning"
        if start.keys() != end.keys() and any_named(logs, before, n):
            yield from map(Fact, _lost_names(path, start.keys() - end.keys(), severity))
        elif start.keys() != end.keys():
            message = f"{path} names {many(len(end), 'source')}, the batch before {len(start)}."
            if needed:
                message += " The restart fails: one of the two is cut short, or the query was changed."
            yield Fact(file_finding("torn-batch-file", severity, path, message), stops=needed)
        for key in sorted(start.keys() & end.keys()):
            if None not in (start[key], end[key]) and kind_of(start[key]) != kind_of(end[key]):
                message = f"{path}: source {key} has another form of offset than in batch {before}; one is wrong."
                yield Fact(file_finding("torn-batch-file", severity, path, message), stops=needed)
            if went_back(start[key], end[key]) and repartition_of(logs, n) is None:
                message = f"{path}: source {key} ends before the end of batch {before}; one of the two is wrong."
                yield Fact(file_finding("offset-went-back", severity, path, message))
        if logs.offsets[n].value == logs.offsets[before].value and not logs.continuous:
            message = (
                f"{path} is a copy of {logs.offsets[before].path}: the same offsets, planned at the same time. What "
                f"batch {n} read is not known."
            )
            if needed:
                message += (
                    f" A restart reads it again, from the end of batch {before}, and a sink may get it twice. Put the "
                    "file back from a backup."
                )
            yield Fact(file_finding("repeated-plan", severity, path, message))


def _lost_names(path: str, names: Iterable[str], severity: Severity) -> Iterable[Finding]:
    """Report sources with names that a plan lacks, though the one before has them (Spark 4.2 on): no restart fails."""
    for name in sorted(names):
        message = (
            f"{path} has no line for source {name}, which the batch before has. If the query still reads it, a restart "
            f"silently reads all of {name} again from its start. Put the file back from a backup, unless {name} was "
            "removed from the query."
        )
        yield file_finding("torn-batch-file", severity, path, message)


def judge_empty(logs: MetadataLogs, has_state: bool) -> list[Fact]:
    """Judge a checkpoint without any batch, which must not have state."""
    if logs.offsets or logs.commits or logs.hidden_log or not has_state:
        return []
    path = logs.offset_log.folder
    message = (
        f"{path} and {logs.commit_log.folder} are empty, though batches have run. A restart begins at batch 0: it "
        "fails if there is state, else it reads all input again. Put both folders back from a backup."
    )
    return [Fact(file_finding("missing-batch-file", "error", path, message), stops=True)]


def _asynchronous_finding(logs: MetadataLogs) -> Finding:
    """Report logs that leave out the same batches. Read off Spark 4.3: nothing else in them says so."""
    folder, line = logs.offset_log.folder, logs.committed
    left_out = _stretches(logs.offsets.keys() | logs.commits.keys())
    resumes = f"A restart resumes at the end of batch {line} with batch {max(logs.planned, line + 1)}."
    if logs.planned > line:
        resumes = f"A restart runs batch {logs.planned} again, from the end of batch {line} on."
    message = (
        f"{folder} and {logs.commit_log.folder} lack the same batches, {_named(left_out)}: the query tracks its "
        f"progress asynchronously. {resumes} Batches after {line} may have run already, so a sink may get their "
        "results again, in other batches. Start the query with asyncProgressTrackingEnabled, as before: otherwise it "
        "stops at the first missing batch."
    )
    return Finding("async-progress", "info", folder, message, where=(Where(folder),))


def _gap_findings(log: LogListing, missing: list[tuple[int, int]]) -> Iterable[Finding]:
    """Yield a finding for files that are missing between others, if there are any; those above have their own."""
    if missing:
        verb = "is" if missing == [(missing[0][0], missing[0][0])] else "are"
        which = f"{'batch' if verb == 'is' else 'batches'} {_named(missing)}"
        path = f"{log.folder}/{missing[0][0]}"
        message = f"{log.folder}: {which} {verb} missing. A restart does not read {'it' if verb == 'is' else 'them'}."
        yield Finding("batch-gap", "warning", path, message, where=(Where(path),))


def _stretches(present: Iterable[int], below: int | None = None) -> list[tuple[int, int]]:
    """The first and the last batch of each gap between batches, but for `below` itself and above."""
    gaps = [(before + 1, after - 1) for before, after in pairwise(sorted(present)) if after > before + 1]
    return gaps if below is None else [(first, min(last, below - 1)) for first, last in gaps if first < below]


def _named(stretches: list[tuple[int, int]]) -> str:
    return first_few([str(a) if a == b else f"{a} to {b}" for a, b in stretches], _EXAMPLES)
