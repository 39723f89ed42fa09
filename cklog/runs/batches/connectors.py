"""What the batch in flight reads from each source of a Spark query, and what is wrong with sources' logs and files.

Read off Spark 4.3 by damaging copies: a restart reads a file source's log from its newest compact file on, and stops
if one of those files is missing or cut. An input file that is gone it takes for no data.

What is wrong with the log of a Spark query's file sink, and folders whose log is lost.

Read off Spark 4.3 by damaging copies: a file sink skips every batch up to the newest in its log, whatever the batch
holds now; a log that lost files it does not notice, but readers miss what they listed.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise, takewhile
from typing import Any, NamedTuple

from cklog.inputs.batches import FileLog, LogListing, MetadataLogs
from cklog.inputs.offers import OffersBatches
from cklog.model.findings import Finding, Severity, Where
from cklog.model.wording import agreeing, first_few, many
from cklog.runs.batches.judge import (
    Fact,
    checksum_findings,
    file_finding,
    flaw_facts,
    has_state_ids,
    names_states,
)
from cklog.runs.batches.offsets import Ends, InputFile, SourceRange, kind_of, log_offset, source_ranges
from cklog.runs.batches.positions import position_facts

_EXAMPLES = 3
_PLACES = 8


def judge_sources(parser: OffersBatches, logs: MetadataLogs) -> tuple[tuple[SourceRange, ...], list[Fact]]:
    """Find the ranges from the end of the line to the end of the newest plan, with the files of file sources.

    `logs` are the batches that are asked about. Returns what is wrong with the sources, too.
    """
    in_flight = logs.planned > logs.committed
    end = logs.ends(logs.planned) if in_flight else None
    start = logs.ends(logs.committed) if logs.committed >= 0 else _first_offsets(parser, end or {})
    keys = dict.fromkeys([*(start or ()), *(end or ())])
    ranges: list[SourceRange] = []
    facts: list[Fact] = []
    for key in keys:
        kind = kind_of(*(ends.get(key) for ends in (end, start) if ends is not None))
        made = source_ranges(_of_source(start, key), _of_source(end, key), kind, planned=in_flight)
        twin = _twin(key, keys, start, end)
        listing = parser.source_listing(key)
        if kind == "file" and twin is not None and not listing.files:
            facts.append(Fact(_read_twice(listing.folder, twin)))
        elif kind == "file":
            log = parser.source_log(key)
            made[0] = _with_files(parser, log, made[0])
            facts += _judge_file_source(log, made[0])
        else:
            facts += position_facts(parser, logs, key, kind)
        ranges += made
    return tuple(ranges), facts


def _of_source(ends: Ends, key: str) -> Ends:
    """Return the end of one source alone."""
    return None if ends is None else {key: ends.get(key)}


def _first_offsets(parser: OffersBatches, ends: dict[str, Any]) -> dict[str, Any]:
    """Return where sources began, for batch 0: Kafka's say so, other sources begin at their beginning (None)."""
    found: dict[str, Any] = dict.fromkeys(ends)
    for key in ends:
        read = parser.first_offset(key, verify=False) if kind_of(ends[key]) == "kafka" else None
        found[key] = read.value if read is not None else None
    return found


def _twin(key: str, keys: Iterable[str], *ends: Ends) -> str | None:
    """Return a source before this one with the same offsets, where they are known; None if there is none."""
    known = [end for end in ends if end is not None]
    before = takewhile(lambda other: other != key, keys)
    return next((other for other in before if all(end.get(other) == end.get(key) for end in known)), None)


def _read_twice(folder: str, twin: str) -> Finding:
    """Report a file source without a log that ends where another does, as where a query reads one source twice."""
    message = (
        f"{folder} has no log, and its source ends where source {twin} does. If the query reads that one twice, as a "
        "join with itself does, nothing is missing; else the restart fails: put the folder back from a backup."
    )
    return file_finding("missing-source-log", "warning", folder, message)


def log_facts(log: FileLog, gap: str, then: str, stops: bool) -> Iterable[Fact]:
    """Yield the files of a source's or sink's log that cannot be used, or are missing between others; all are errors.

    `gap` is the id of the finding for a missing file, `then` what follows and what to do, `stops` whether a restart
    fails.
    """
    for _, read in sorted(log.reads.items()):
        yield from flaw_facts(read, "error", then, stops)
        yield from map(Fact, checksum_findings([read]))
    listing = log.listing
    numbers = [listing.base - (0 if listing.compacts else 1), *sorted(log.reads)]
    for before, after in pairwise(numbers):
        if after > before + 1:
            path = f"{listing.folder}/{before + 1}"
            more = f" (and all up to {after - 1})" if after > before + 2 else ""
            yield Fact(file_finding(gap, "error", path, f"{path} is missing{more}. {then}"), stops)


def sources_reach(parser: OffersBatches, logs: MetadataLogs, batch: int) -> bool:
    """Return whether the logs of file sources reach as far as a batch read: a restart after it looks there."""
    ends = logs.ends(batch) or {}
    reach = {key: log_offset(end) for key, end in ends.items() if kind_of(end) == "file"}
    newest = {key: parser.source_listing(key).newest for key in reach}
    # without any file a source may be one that the query reads twice
    return all(end is None or newest[key] < 0 or end <= newest[key] for key, end in reach.items())


def _judge_file_source(log: FileLog, source: SourceRange) -> Iterable[Fact]:
    """Judge the log of a file source, and the input files of the batch in flight."""
    then = "The restart fails, because the file source reads its whole log. Put the file back from a backup."
    yield from log_facts(log, "missing-source-log", then, stops=True)
    reach = [n for n in map(log_offset, (source.start, source.end)) if n is not None]
    newest = max([*reach, *log.listing.orphans], default=-1)
    if newest > log.listing.newest:
        path = f"{log.listing.folder}/{newest}"
        message = f"{path} is missing, though the offsets name it or its checksum file is left. {then}"
        yield Fact(file_finding("missing-source-log", "error", path, message), stops=True)
    yield from map(Fact, _input_findings(source))


def _with_files(parser: OffersBatches, log: FileLog, source: SourceRange) -> SourceRange:
    """Return a range of a file source with the files of its log that lie in it, and those behind."""
    start, end = log_offset(source.start), log_offset(source.end)
    first = -1 if start is None else start
    last = first if end is None else end
    known = source.start_known and source.end_known and (end is not None or source.end is None)
    newest = max([log.listing.newest, *log.listing.orphans])
    return replace(
        source,
        files=tuple(_files_between(parser, log, first, last)) if source.start_known else (),
        listed=known and _lists_all(log, first, last),
        ahead=tuple(_files_between(parser, log, last, newest)) if known and _lists_all(log, last, newest) else None,
    )


def _files_between(parser: OffersBatches, log: FileLog, first: int, last: int) -> Iterable[InputFile]:
    """Yield the files of the source's log batches after `first`, up to `last`."""
    for number, file in sorted(log.reads.items()):
        compact = number in log.listing.compacts  # holds earlier batches, too, and says whose each file is
        for line in file.value or ():
            batch = line.batch if compact else number
            if batch is not None and first < batch <= last and number <= last:
                yield InputFile(line.path, parser.size_of(line.path), Where(file.path, line.offset))


def _lists_all(log: FileLog, first: int, last: int) -> bool:
    """Return whether the source's log can be read of every batch after `first`, up to `last`."""
    whole = {number for number, read in log.reads.items() if read.value is not None and number <= last}
    compact = max(whole & log.listing.compacts, default=-1)  # lists all before, too
    return all(number in whole for number in range(max(compact, first) + 1, last + 1))


def _input_findings(source: SourceRange) -> Iterable[Finding]:
    """Report input files of the batch in flight that are missing, empty, or lie where nobody looked."""
    gone = [file for file in source.files if file.size is None]
    if gone:
        message = (
            f"missing: {_file_names(gone)}. A restart takes it for empty and goes on without an error, and its data is "
            "lost. Put it back before the restart."
        )
        yield _files_finding("missing-input-file", "error", source, gone, message)
    empty = [file for file in source.files if file.size == 0]
    if empty:
        names = _file_names(empty)
        message = f"empty: {names}. A restart reads no data from there."
        yield _files_finding("empty-input-file", "warning", source, empty, message)
    outside = [file for file in source.files if file.size == "outside"]
    if outside:
        prefix = posixpath.dirname(outside[0].path)
        message = (
            f"outside PATH and not looked at: {_file_names(outside)}. If one is missing, a restart goes on without its "
            f"data. --map {prefix}=FOLDER says where they are."
        )
        yield _files_finding("unchecked-input", "warning", source, outside, message)


def _files_finding(id: str, severity: Severity, source: SourceRange, files: list[InputFile], message: str) -> Finding:
    """Return a finding about input files of a source, which counts them and says where the first are named."""
    where = tuple(file.where for file in files[:_PLACES])
    told = f"{many(len(files), 'input file')} of the batch in flight {agreeing(len(files), 'are')}"
    return Finding(id, severity, source.source, f"{source.source}: {told} {message}", where=where)


def _file_names(files: list[InputFile]) -> str:
    return first_few([file.path for file in files], _EXAMPLES)


_SINK_LOG = "_spark_metadata"
_NO_STATE_IDS = (
    "With state checkpoint format 2 a commit needs the ids of the states that its tasks wrote; a sink that skips a "
    "batch runs no task, and there are none."
)


class JudgedSink(NamedTuple):
    """What is known of the query's file sink.

    Attributes
    ----------
    folder : None if no single one is known
    newest : the newest batch in its log, once `remove` is gone; -1 for none
    facts : what is wrong with the log
    remove : files of the log that a restart, on a copy, must not find
    stuck : batches would have to leave the log and cannot, so that the sink would skip them
    """

    folder: str | None
    newest: int
    facts: list[Fact]
    remove: tuple[str, ...] = ()
    stuck: bool = False


def judge_sink(
    parser: OffersBatches, logs: MetadataLogs, sources: Iterable[SourceRange], goes_back: bool, is_today: bool
) -> JudgedSink:
    """Find the folder of the file sink and judge its log against plans and commits.

    `sources` are read by the query, so that their folders are no sinks; `goes_back`: later batches than those in `logs`
    are removed, of the sink's log too; `is_today`: nothing later was left out of the question.
    """
    sinks = parser.sinks()
    with_ids = has_state_ids(logs) and (parser.has_state or names_states(logs))
    if len(sinks) == 1:
        log = parser.sink_log(sinks[0])
        if goes_back:
            return _sink_that_goes_back(sinks[0], log.listing, logs.committed)
        removed = _entries_after(log.listing, max(logs.planned - 1, logs.committed))
        lost = _lost_without(parser, sinks[0], removed) if with_ids and removed else None
        facts = [*_judge_sink_log(log, logs, with_ids, removed, lost)]
        if not is_today:  # of an older line the sink is ahead, and that is no damage
            facts = [fact for fact in facts if fact.finding.id != "sink-log-ahead"]
        stops = any(fact.stops for fact in facts)
        return JudgedSink(sinks[0], log.listing.newest, facts, removed if stops and lost is None else ())
    unseen = [Fact(_unseen_sink(logs, sinks))] if with_ids and logs.planned > logs.committed and not goes_back else []
    if sinks or logs.committed < 0:
        return JudgedSink(None, -1, unseen)
    read_from: set[str] = set()
    for source in sources:
        read_from |= {posixpath.basename(posixpath.dirname(file.path)) for file in source.files}
    bare = [folder for folder in parser.bare_sinks() if folder not in read_from]
    return JudgedSink(None, -1, [*unseen, *(Fact(_lost_log(folder)) for folder in bare)])


def _entries_after(listing: LogListing, batch: int) -> tuple[str, ...]:
    """Return the files of a log for later batches."""
    return tuple(entry.path for number, entry in sorted(listing.files.items()) if number > batch)


def _lost_without(parser: OffersBatches, folder: str, removed: tuple[str, ...]) -> int | None:
    """Return the first batch that a sink's log lists no more once files are removed; None: it loses none of them.

    A compact file holds all batches before, which their own files then must list: readers need them, and so does the
    sink when it writes that compact file again.
    """
    log = parser.sink_log(folder, everything=True)
    left = {n: read for n, read in log.reads.items() if read.path not in removed}
    if all(n in left for n in log.listing.compacts):
        return None
    whole = {n for n, read in left.items() if read.flaw is None}
    base = max(whole & log.listing.compacts, default=0)
    first = min(n for n, read in log.reads.items() if read.path in removed)
    return next((n for n in range(base, first) if n not in whole), None)


def _sink_that_goes_back(folder: str, listing: LogListing, batch: int) -> JudgedSink:
    """Say which files a sink's log loses when the query goes back to `batch`, if it can do without them.

    A compact file holds all batches before: what is left must be whole without it.
    """
    kept = [number for number in listing.files if number <= batch]
    base = max((number for number in listing.compacts if number <= batch), default=0)
    gone = sorted(set(range(base, batch + 1)) - set(kept))
    remove = _entries_after(listing, batch)
    if not remove or not gone:
        return JudgedSink(folder, max(kept, default=-1), [], remove)
    message = (
        f"{listing.folder} cannot lose the batches after {batch}: {listing.folder}/{gone[0]} is no longer there, only "
        f"a later file lists its results. So the sink would skip every batch up to {listing.newest}, and what they "
        f"read now would be lost. Let the query write to a new folder, whose {_SINK_LOG} holds one file, "
        f"{batch}.compact with the line v1: without it, the query fails when it compacts that log. The results of "
        f"batches up to {batch} are here."
    )
    fact = Fact(file_finding("sink-log-ahead", "error", f"{listing.folder}/{listing.newest}", message))
    return JudgedSink(folder, listing.newest, [fact], stuck=True)


def _unseen_sink(logs: MetadataLogs, sinks: Iterable[str]) -> Finding:
    """Report that a restart may fail for good because of a sink that was not looked at, or is one of several."""
    which = f"which of {', '.join(sinks)} is the query's is not known" if sinks else "no sink is below PATH"
    message = (
        f"Whether a file sink has batch {logs.planned} already was not looked at: {which}. {_NO_STATE_IDS} If it has, "
        f"no restart succeeds before {_SINK_LOG}/{logs.planned} is removed there, on a copy. Give as PATH the folder "
        "that holds both the checkpoint and what the sink writes to. Other sinks are not concerned."
    )
    return file_finding("unchecked-sink", "warning", f"{logs.prefix}offsets/{logs.planned}", message)


def _lost_log(folder: str) -> Finding:
    """Report a folder that looks written to by a file sink, but has no log."""
    message = (
        f"{folder} holds part files and no {_SINK_LOG}. If the query's file sink wrote them, its log is lost: a "
        "restart goes on, and the earlier results are no longer listed, so readers lose them. Put the log back from a "
        "backup."
    )
    return file_finding("sink-log-behind", "error", f"{folder}/{_SINK_LOG}", message)


def _judge_sink_log(
    log: FileLog, logs: MetadataLogs, with_ids: bool, removed: tuple[str, ...], lost: int | None
) -> Iterable[Fact]:
    """Judge the files of a sink's log, and where it ends against the newest commit.

    `with_ids`: commits name the states that batches leave; `removed` are the files for the batch that a restart runs
    and later ones, without which batch `lost` would be listed no more.
    """
    then = (
        "A restart goes on, but whoever reads the results by this log fails or misses what it listed. "
        "Put it back from a backup, or list the part files of that batch again by hand."
    )
    yield from log_facts(log, "sink-log-behind", then, stops=False)
    newest, path, committed = log.listing.newest, log.listing.folder, logs.committed
    if newest < committed:
        message = f"{path} ends at batch {newest}, but batch {committed} is committed. {then}"
        yield Fact(file_finding("sink-log-behind", "error", path, message))
    elif newest > committed:
        place = f"{path}/{newest}"
        if with_ids and newest == logs.planned:
            yield Fact(_never_committed(path, logs, removed, lost), stops=True)
        else:
            ahead = _log_ahead(place, newest, logs.planned, committed)
            yield Fact(ahead, stops=with_ids and newest > logs.planned)


def _never_committed(folder: str, logs: MetadataLogs, entries: tuple[str, ...], lost: int | None) -> Finding:
    """Report the batch in flight, which the sink has in `entries` and which can never be committed.

    Read off Spark 4.3: `assertion failed: CheckpointInfo length: 0`; with the sink's entry removed it restarts.
    """
    newest, entry = logs.planned, " and ".join(entries)
    repair = (
        f"On a copy remove {entry} with its checksum: then batch {newest} runs again and is written anew; the part "
        "files that it left are listed no more."
    )
    if lost is not None:
        repair = (
            f"{entry} cannot simply be removed: the results of batch {lost} are listed nowhere else, since "
            f"{folder}/{lost} is not there whole. Put the earlier files of the log back from a backup first."
        )
    message = (
        f"{entries[-1]} is there, though {logs.commit_log.folder}/{newest} is not. {_NO_STATE_IDS} Every restart "
        f"fails (CheckpointInfo length: 0). {repair}"
    )
    return file_finding("sink-log-ahead", "error", entries[-1], message)


def _log_ahead(path: str, newest: int, planned: int, committed: int) -> Finding:
    """Report a sink's log that has a batch without a commit: the one in flight, or one that nobody planned."""
    if newest <= planned:
        then = "skips it" if newest == planned else f"a restart does not run it, but batch {planned}"
        message = f"{path} is there, though commits/{newest} is not: the sink has batch {newest} and {then}."
        return file_finding("sink-log-ahead", "info", path, message)
    afresh = "" if planned > committed else f"batch {committed + 1} is planned afresh and "
    message = (
        f"The sink's log reaches batch {newest}, the checkpoint only batch {max(planned, committed)}: {afresh}the sink "
        f"skips every batch up to {newest}, so what they read now is lost. Another query wrote here, or offsets were "
        "removed: use the checkpoint that belongs to this folder, or on a copy remove the sink's log files above the "
        "line."
    )
    return file_finding("sink-log-ahead", "error", path, message)
