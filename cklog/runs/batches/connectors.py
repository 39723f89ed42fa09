"""What the batch in flight reads from each source of a Spark query, and what is wrong with sources' logs and files.

Read off Spark 4.3 by damaging copies: a restart reads a file source's log from its newest compact file on, and stops
if one of those files is missing or cut. An input file that is gone it takes for no data.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from itertools import pairwise, takewhile
from typing import Any

from cklog.inputs.batches import FileLog, MetadataLogs
from cklog.inputs.offers import OffersBatches
from cklog.inputs.stored_state import StoredState
from cklog.model.findings import Finding, Severity, Where
from cklog.model.unchecked import Unchecked
from cklog.model.wording import agreeing, first_few, many
from cklog.runs.batches.facts import Fact, checksum_findings, file_finding, flaw_facts
from cklog.runs.batches.offsets import Ends, InputFile, SourceRange, kind_of, log_offset, source_ranges
from cklog.runs.batches.positions import position_facts, shards_of

_EXAMPLES = 3
_PLACES = 8


def judge_sources(
    parser: OffersBatches, logs: MetadataLogs, latest: bool = True
) -> tuple[tuple[SourceRange, ...], list[Fact]]:
    """Find the ranges from the end of the line to the end of the newest plan, with the files of file sources.

    `logs` are the batches that are asked about; `latest`: a restart from them reads what the sources list after them.
    Returns what is wrong with the sources, too.
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
            facts += _judge_file_source(log, made[0], made[0].ahead or () if latest else ())
        else:
            facts += position_facts(parser, logs, key, kind)
        ranges += made
    return tuple(ranges), [*facts, *_unplanned_sources(parser, logs)]


def read_elsewhere(parser: OffersBatches, logs: MetadataLogs, state: StoredState) -> Iterable[Unchecked]:
    """Yield what a restart reads at another place than PATH, where nobody looked."""
    for path in logs.linked:
        claim = f"{path}, a link that was not followed, leads to what a restart needs"
        yield Unchecked("stored-elsewhere", path, claim, "--follow-links")
    for operator in state.operators:
        for stored in operator.unseen_schemas[:1]:
            claim = f"the schema of operator {operator.operator} is at its stored path {stored}, outside PATH"
            yield Unchecked("stored-elsewhere", stored, claim, "--map OLD=NEW")
    for key, end in (logs.ends(logs.planned) or {}).items():
        folder = parser.source_listing(key).folder
        if shards_of(end) is not None and not parser.files_below(folder) and not logs.hidden_below(folder):
            claim = (
                f"the positions of source {key}'s shards, none of which is in {folder}, are where the source keeps them"
            )
            yield Unchecked("stored-elsewhere", f"source/{key}", claim)


def _unplanned_sources(parser: OffersBatches, logs: MetadataLogs) -> Iterable[Fact]:
    """Report folders of sources that the newest plan does not have; sources with names may come and go."""
    plan, folder = logs.newest_plan, f"{logs.prefix}sources"
    if plan is None or plan.is_named:
        return
    numbers = {path.removeprefix(f"{folder}/").partition("/")[0] for path in parser.files_below(folder)}
    for number in sorted(number for number in numbers - plan.ends.keys() if number.isdecimal()):
        message = (
            f"{folder}/{number} is there, but the newest plan that can be read names "
            f"{many(len(plan.ends), 'source')}, and none by that number. If the query reads more, the plan is cut "
            "short and the restart fails: compare it with a backup. Else the folder is left from another query."
        )
        yield Fact(file_finding("unjudged-source", "error", f"{folder}/{number}", message))


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
        f"{folder} has no log, and its source ends where source {twin} does. If the query reads source {twin} twice, "
        "as a join with itself does, nothing is missing. Otherwise the restart fails: put the folder back from a "
        "backup."
    )
    return file_finding("unjudged-source", "error", folder, message)


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


def _judge_file_source(log: FileLog, source: SourceRange, ahead: Sequence[InputFile]) -> Iterable[Fact]:
    """Judge the log of a file source, the input files of the batch in flight, and those `ahead`, of later batches."""
    then = "The restart fails, because the file source reads its whole log. Put the file back from a backup."
    yield from log_facts(log, "missing-source-log", then, stops=True)
    reach = [n for n in map(log_offset, (source.start, source.end)) if n is not None]
    newest = max([*reach, *log.listing.orphans], default=-1)
    if newest > log.listing.newest:
        path = f"{log.listing.folder}/{newest}"
        message = f"{path} is missing, though the offsets name it or its checksum file is left. {then}"
        yield Fact(file_finding("missing-source-log", "error", path, message), stops=True)
    yield from map(Fact, _input_findings(source.source, "batch in flight", source.files, "warning"))
    yield from map(Fact, _input_findings(source.source, "next batch", ahead, "info"))


def _with_files(parser: OffersBatches, log: FileLog, source: SourceRange) -> SourceRange:
    """Return a range of a file source with the files of its log that lie in it, and those behind."""
    start, end = log_offset(source.start), log_offset(source.end)
    first = -1 if start is None else start
    last = first if end is None else end
    known = source.start_known and source.end_known and (end is not None or source.end is None)
    newest = max([log.listing.newest, *log.listing.orphans])
    ahead = source.start_known and _lists_all(log, last, newest)  # where the end is not known, all since the start
    return source._replace(
        files=tuple(_files_between(parser, log, first, last)) if source.start_known else (),
        listed=known and _lists_all(log, first, last),
        ahead=tuple(_files_between(parser, log, last, newest)) if ahead else None,
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


def _input_findings(source: str, batch: str, files: Sequence[InputFile], unread: Severity) -> Iterable[Finding]:
    """Report input files of a batch that a restart runs: those that are missing, empty, or lie outside PATH.

    `unread` is how severe it is that nobody looked at one.
    """
    gone = [file for file in files if file.size is None]
    if gone:
        them = "it" if len(gone) == 1 else "them"
        message = (
            f"missing: {_file_names(gone)}. A restart takes {them} for empty and goes on without an error, and the "
            f"data is lost. Put {them} back before the restart."
        )
        yield _files_finding("missing-input-file", "error", source, batch, gone, message)
    empty = [file for file in files if file.size == 0]
    if empty:
        message = f"empty: {_file_names(empty)}. A restart reads no data from there."
        yield _files_finding("empty-input-file", "warning", source, batch, empty, message)
    outside = [file for file in files if file.size == "outside"]
    if outside:
        prefix = posixpath.dirname(outside[0].path)
        message = (
            f"outside PATH and not looked at: {_file_names(outside)}. If one is missing, a restart goes on without its "
            f"data. --map {prefix}=FOLDER says where they are."
        )
        yield _files_finding("unchecked-input", unread, source, batch, outside, message)


def _files_finding(
    id: str, severity: Severity, source: str, batch: str, files: list[InputFile], message: str
) -> Finding:
    """Return a finding about input files of a source, which counts them and says where the first are named."""
    where = tuple(file.where for file in files[:_PLACES])
    told = f"{many(len(files), 'input file')} of the {batch} {agreeing(len(files), 'are')}"
    return Finding(id, severity, source, f"{source}: {told} {message}", where=where)


def _file_names(files: list[InputFile]) -> str:
    return first_few([file.path for file in files], _EXAMPLES)
