"""Offsets and commits of a Spark checkpoint against each other: the last committed batch, and what stops a restart.

Let o be the newest offsets file and c the newest commit. Read off Spark 4.3 by damaging copies and restarting them:
a restart reads `metadata`, offsets/o, offsets/o-1 (also if o = c) and commits/c, and stops if one of them is missing or
cannot be read. Older ones it does not look at. With o > c+1 it runs batch o alone and never the batches
between; with o < c it runs batch o again and stops when it commits. Where progress is tracked asynchronously, the plan
before o that is here stands for offsets/o-1, and batch o reads on from there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from cklog.errors import NotFound
from cklog.inputs.batches import FileRead, MetadataLogs
from cklog.inputs.offers import OffersBatches
from cklog.model.findings import Finding, Severity, Where
from cklog.model.verdict import NOT_JUDGED, UNREAD
from cklog.model.wording import many
from cklog.runs.batches.gaps import asynchronous_finding, gap_findings
from cklog.runs.batches.offsets import kind_of, went_back
from cklog.runs.batches.repartitions import repartition_of, told_of_skipped, told_of_unfinished, unfinished, was_skipped

_COPY = "on a copy of the checkpoint"
_STATE_FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"


class Fact(NamedTuple):
    """A finding; whether a restart fails, or skips batches that are not done; files whose removal mends that."""

    finding: Finding
    stops: bool = False
    skips: bool = False
    remove: tuple[str, ...] = ()


def sorted_findings(facts: Iterable[Fact]) -> tuple[Finding, ...]:
    """Return each finding once, sorted by where it is."""
    return tuple(sorted({fact.finding for fact in facts}, key=lambda f: (f.subject, f.id, f.message)))


def file_finding(id: str, severity: Severity, path: str, message: str, offset: int | None = None) -> Finding:
    """Return a finding whose subject is a file or folder; `offset` is the byte where it shows."""
    return Finding(id, severity, path, message, where=(Where(path, offset),))


def flaw_facts(read: FileRead[Any], severity: Severity, then: str, stops: bool) -> Iterable[Fact]:
    """Yield a fact if a file cannot be used; `then` says what a restart does, and what to do now.

    `stops`: it fails, unless Spark uses the file all the same.
    """
    if read.flaw is None:
        return
    if read.flaw.passed and read.flaw.id == "checksum-mismatch":
        then = (
            f"Spark does not check it here, and a restart goes on with what the file says. Either it or {read.sidecar} "
            "is damaged, so that nothing is believed of it: compare it with a backup."
        )
    elif read.flaw.passed:
        then = (
            "Spark takes 0 for it, and a restart goes on with what else the file says. It is damaged, so that nothing "
            "is believed of it: compare it with a backup."
        )
    unsure = read.flaw.id in NOT_JUDGED
    if unsure and severity == "error":
        doubt = "what a restart does with it" if stops else "what it says"
        then = f"cklog cannot tell {doubt}. {how_to_judge(read.flaw.id)}"
    why = f"{read.path}: {read.flaw.why}. {then}"
    finding = file_finding(read.flaw.id, severity, read.path, why, read.flaw.offset)
    yield Fact(finding, stops and not read.flaw.passed and not unsure)


def how_to_judge(id: str) -> str:
    """Say what to do about a file that was not judged; `id` is one of `NOT_JUDGED`."""
    return "Ask again as a user who may read it." if id == UNREAD else "Use a newer cklog."


def checksum_findings(reads: Iterable[FileRead[Any]]) -> Iterable[Finding]:
    """Yield the checksum files that cannot be read, which Hadoop passes over with a warning."""
    for read in reads:
        if read.unchecked:
            message = f"{read.sidecar}: no checksum header; {read.path} is unchecked."
            yield file_finding("unreadable-checksum", "info", read.sidecar, message, 0)


def table_findings(parser: OffersBatches) -> tuple[Finding, ...]:
    """Return what is wrong with the logs of a query, whatever is asked of it."""
    logs = parser.logs()
    return sorted_findings([*judge_empty(logs, parser.has_state), *judge(logs)])


def seen(logs: MetadataLogs, facts: Iterable[Fact]) -> list[Fact]:
    """Leave out facts about what could not be listed: what nobody looked at is neither missing nor damaged."""
    return [fact for fact in facts if fact.finding.id in NOT_JUDGED or not logs.hides(fact.finding.subject)]


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


def _judge_links(logs: MetadataLogs) -> Iterable[Fact]:
    """Say which logs as a whole nobody read: what is not seen there may be there all the same."""
    for path in logs.linked:
        message = f"{path} is a link that is not followed: batches that it holds were not read."
        yield Fact(file_finding(UNREAD, "error", path, message))


def _judge_metadata(logs: MetadataLogs) -> Iterable[Fact]:
    """Judge the file with the id of the query."""
    then = "The restart fails. Put it back from a backup: a new id would break the tie to what the sink has."
    if logs.metadata is None:
        path = f"{logs.prefix}metadata"
        yield Fact(file_finding("missing-metadata", "error", path, f"{path} is missing. {then}"), stops=True)
        return
    yield from flaw_facts(logs.metadata, "error", then, stops=True)


def _judge_offsets(logs: MetadataLogs) -> Iterable[Fact]:
    """Judge plans that cannot be read or are missing."""
    o, before, folder = logs.planned, logs.before(logs.planned), logs.offset_log.folder
    for n, read in sorted(logs.offsets.items()):
        needed = n in (o, before)
        yield from flaw_facts(read, "error" if needed else "warning", _without_offsets(n, logs), needed)
    if o > 0 and before not in logs.offsets:
        message = f"{folder}/{before} is missing. {_without_offsets(before, logs)}"
        yield Fact(file_finding("missing-batch-file", "error", f"{folder}/{before}", message), stops=True)
    if logs.asynchronous:
        yield Fact(asynchronous_finding(logs))
    else:
        yield from map(Fact, gap_findings(logs.offset_log, logs.offsets, before))
    for n in logs.offset_log.orphans:
        if n > o:
            message = (
                f"{folder}/{n} is missing, only its checksum file is left. A restart plans batch {n} afresh, perhaps "
                "with another range: a sink that is not idempotent may get part of it twice."
            )
            yield Fact(file_finding("missing-batch-file", "warning", f"{folder}/{n}", message))


def _without_offsets(n: int, logs: MetadataLogs) -> str:
    """Say what a restart does without the plan of batch n, and what to do now."""
    o = logs.planned
    if n == o and n in logs.commits:
        return (
            f"The restart fails. Batch {n} is committed and this file says where it ended: put it back from a backup"
            f"{_or_go_back(logs)}."
        )
    if n == o:
        return (
            f"The restart fails. To go on, {_COPY} remove it and its .crc: batch {n} is then planned afresh from the "
            f"end of batch {logs.before(n)}, and a sink that is not idempotent may get part of it twice."
        )
    if n == logs.before(o):
        return (
            f"The restart fails, because batch {o} starts where batch {n} ends. Put it back from a backup"
            f"{_or_go_back(logs)}."
        )
    return f"A restart does not read it; batch {n} is no target to go back to."


def _or_go_back(logs: MetadataLogs) -> str:
    """Name the newest batch that plans and commits allow to go back to, "" if there is none."""
    back = max((n for n in logs.commits if way_back(logs, n) is not None), default=None)
    return "" if back is None else f", or go back: --at query/0={back} tells how"


def _judge_commits(logs: MetadataLogs) -> Iterable[Fact]:
    """Judge commits that cannot be read or are missing."""
    newest, folder = max(logs.commits, default=-1), logs.commit_log.folder
    for n, read in sorted(logs.commits.items()):
        then = _without_commit(n, logs) if n == newest else "A restart does not read it."
        yield from flaw_facts(read, "error" if n == newest else "warning", then, n == newest)
    if not logs.asynchronous:
        yield from map(Fact, gap_findings(logs.commit_log, logs.commits, newest))
    for n in logs.commit_log.orphans:
        if n > newest:
            message = (
                f"{folder}/{n} is missing, only its checksum file is left: batch {n} was done. A restart does not "
                "know, and a sink that is not idempotent gets it twice. Put the file back from a backup."
            )
            yield Fact(file_finding("missing-batch-file", "error", f"{folder}/{n}", message))


def _without_commit(n: int, logs: MetadataLogs) -> str:
    """Say what a restart does without the commit of batch n, the newest one, and what to do now."""
    if logs.planned > n:
        removed = f"the query goes on with batch {logs.planned} alone."
        if names_states(logs):
            removed = (
                "the restart fails, too: with state checkpoint format 2 it alone names the states that are loaded."
            )
        return (
            f"The restart fails. Batch {logs.planned} was planned after batch {n} was done, but nothing whole proves "
            f"it: the line is batch {logs.committed}. Put it back from a backup; if {_COPY} it is removed with its "
            f".crc, {removed}"
        )
    return (
        f"The restart fails. Whether batch {n} is done is unknown, so the line is batch {logs.committed}. Put it back "
        f"from a backup; if {_COPY} it is removed with its .crc, batch {n} is run again, and a sink that is not "
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
                f"{_COPY.capitalize()} remove the commits above {o} with their .crc, or put the offsets back."
            )
        message = f"{commits}/{c} is there, but no offsets above {o}. {then}"
        yield Fact(file_finding("commit-ahead-of-offsets", "error", f"{commits}/{c}", message), stops=True)
    first = max(c + 1, min(logs.offsets, default=0))
    if o > first and not (logs.asynchronous and logs.before(o) == c):
        which, those = (f"{first}", "batch") if first == o - 1 else (f"{first} to {o - 1}", "batches")
        message = (
            f"{commits}: {which} missing, though {offsets}/{o} was planned after. A restart runs batch {o} alone and "
            f"skips {which}: what they had not finished is lost, and whoever runs them again by hand may double it. "
            f"Find out from the sink whether it has {those} {which}; if so put the commits back, else {_COPY} remove "
            f"the offsets above {first} with their .crc."
        )
        if names_states(logs):
            message = (
                f"{commits}: {which} missing, though {offsets}/{o} was planned after. The restart fails: with state "
                f"checkpoint format 2 {commits}/{o - 1} alone names the states on which batch {o} stands. Put the "
                f"commits back from a backup{_or_go_back(logs)}."
            )
        finding = file_finding("missing-batch-file", "error", f"{commits}/{first}", message)
        yield Fact(finding, stops=names_states(logs), skips=not names_states(logs))


def _judge_repartition(logs: MetadataLogs) -> Iterable[Fact]:
    """Judge a newest plan that repartitions the state and was not finished."""
    if unfinished(logs) is not None:
        path = logs.offsets[logs.planned].path
        message = told_of_unfinished(logs)
        yield Fact(file_finding("unfinished-repartition", "error", path, message), stops=True, remove=(path,))


def _judge_ranges(logs: MetadataLogs) -> Iterable[Fact]:
    """Judge batches next to each other: they must name the same sources, and no source may go back."""
    for before, n in pairwise(sorted(logs.offsets)):
        start, end = logs.ends(before), logs.ends(n)
        if before != logs.before(n) or start is None or end is None:
            continue
        path, needed = logs.offsets[n].path, n >= logs.before(logs.planned)
        severity: Severity = "error" if needed else "warning"
        if start.keys() != end.keys():
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


def cut(logs: MetadataLogs, as_of: int) -> tuple[MetadataLogs, list[Fact]]:
    """Leave out the batches planned after `as_of` (ms); return what cannot be told because of damage, too.

    A batch whose time is unknown is left out if none known follows it.
    """
    times = {n: read.value.time for n, read in logs.offsets.items() if read.value is not None}
    later = min((n for n, time in times.items() if time is not None and time > as_of), default=None)
    early = [n for n, time in times.items() if time is not None and time <= as_of]
    last = max((n for n in early if later is None or n < later), default=-1)
    facts = []
    commits = logs.commit_log.folder
    if last >= 0 and last not in logs.commits and max(*logs.commits, logs.planned, -1) > last:
        message = f"{commits}/{last} is missing, though later batches were planned: batch {last} was done."
        facts.append(Fact(file_finding("missing-batch-file", "error", f"{commits}/{last}", message)))
    for n in sorted({*logs.offsets, *logs.commits, *logs.offset_log.orphans}):
        if n > last and (later is None or n < later):
            path = f"{logs.offset_log.folder}/{n}"
            message = f"{path} does not say when batch {n} was planned, so it is left out; the line may be too old."
            facts.append(Fact(file_finding("unknown-time", "error", path, message)))
    return _up_to(logs, last), facts


def judge_target(logs: MetadataLogs, at: int) -> list[Fact]:
    """Judge whether the query can go back to batch `at`.

    Raises
    ------
    NotFound : there is no such batch
    """
    names = logs.offsets.keys() | logs.commits.keys()
    if at not in names:
        there = f"batches {min(names)} to {max(names)}" if names else "no batch"
        raise NotFound(f"no batch {at} in the checkpoint, which has {there}")
    plan, commit = logs.offsets.get(at), logs.commits.get(at)
    lacking = [f"{logs.offset_log.folder}/{at}"] if plan is None or plan.flaw is not None else []
    lacking += [f"{logs.commit_log.folder}/{at}"] if commit is None or commit.flaw is not None else []
    why = f"{' and '.join(lacking)} cannot be read"
    if not lacking and way_back(logs, at) is not None:
        return []
    if not lacking and was_skipped(logs, at):
        lacking, why = [f"{logs.commit_log.folder}/{at}"], told_of_skipped(at)
    elif not lacking:
        lacking = [f"{logs.offset_log.folder}/{logs.before(at)}"]
        why = f"a restart reads {lacking[0]} or, where that is kept, offsets/{at + 1}, and neither can be used"
    message = f"No way back to batch {at}: {why}. The newest whole one before is taken."
    return [Fact(file_finding("unreachable-batch", "error", lacking[0], message))]


def has_state_ids(logs: MetadataLogs) -> bool:
    """Return whether commits name the states that batches leave (state checkpoint format 2)."""
    plan = logs.newest_plan
    set_so = plan is not None and str(plan.conf.get(_STATE_FORMAT, "")) == "2"
    return set_so or names_states(logs)


def names_states(logs: MetadataLogs) -> bool:
    """Return whether a commit names the states that its batch left, so that the query keeps some."""
    return any(read.value is not None and read.value.ids for read in logs.commits.values())


def way_back(logs: MetadataLogs, batch: int) -> Literal["afresh", "again"] | None:
    """Return how a query that goes back to `batch` goes on, None if it cannot go back there.

    Its own plan and commit must be whole. "afresh": all later plans are removed, and a restart reads the plan before.
    "again": that one is purged, but the plan after it is kept, which a restart runs again, unless it repartitions.
    """
    read = logs.commits.get(batch)
    if read is None or read.flaw is not None or logs.ends(batch) is None or was_skipped(logs, batch):
        return None
    if batch == 0 or logs.ends(logs.before(batch)) is not None:
        return "afresh"
    return "again" if logs.ends(batch + 1) is not None and repartition_of(logs, batch + 1) is None else None


def back_to(logs: MetadataLogs, at: int) -> MetadataLogs:
    """Leave out what goes when the query goes back to batch `at`, or to the newest before it to which it can.

    The plan after that batch stays where a restart has to run it again.
    """
    last = max((n for n in logs.commits if n <= at and way_back(logs, n) is not None), default=-1)
    again = last >= 0 and way_back(logs, last) == "again"
    return _up_to(logs, last, last + 1 if again else last)


def without_repartition(logs: MetadataLogs) -> MetadataLogs:
    """Leave out the newest plan where it is that of a repartition which was not finished: no restart runs it."""
    return logs if unfinished(logs) is None else _up_to(logs, max(logs.commits, default=-1))


def _up_to(logs: MetadataLogs, last: int, planned: int | None = None) -> MetadataLogs:
    """Leave out all batches after batch `last`, but for plans up to batch `planned`."""
    newest = last if planned is None else planned
    return replace(
        logs,
        offsets={n: read for n, read in logs.offsets.items() if n <= newest},
        commits={n: read for n, read in logs.commits.items() if n <= last},
        offset_log=replace(logs.offset_log, orphans=tuple(n for n in logs.offset_log.orphans if n <= newest)),
        commit_log=replace(logs.commit_log, orphans=tuple(n for n in logs.commit_log.orphans if n <= last)),
    )
