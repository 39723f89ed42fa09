"""What a query reads of other jobs and writes for them, batch by batch, by its logs.

A file source's own log numbers the files that it found; a file sink's log numbers its files by batch, and drops a batch
that is not newer than its newest. A plan that is kept names what it reads, and its batch is written again as it was;
one that is dropped has read nothing.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from cklog.inputs.batches import FileLog, LogListing, MetadataLogs
from cklog.inputs.feeds import Feeds, Input, Output, Point, Written
from cklog.inputs.offers import OffersBatches
from cklog.runs.batches.offsets import kind_of, log_offset, source_ranges
from cklog.runs.batches.plan import PLAN, BatchPlan
from cklog.runs.batches.sinks import batch_restart
from cklog.runs.batches.source_tables import last_commit
from cklog.runs.batches.targets import way_back
from cklog.sink_tables.fitting import NamedTable
from cklog.sink_tables.outputs import table_outputs

QUERY = "query/0"
_FILE = re.compile(r"^file:/+")


def batch_feeds(
    parser: OffersBatches,
    plan: BatchPlan,
    asked: tuple[tuple[str, int], ...],
    most: int,
    tables: Sequence[NamedTable] = (),
) -> Feeds:
    """Return what a query reads and writes as of its newest line, which is `plan`, and of at most `most` points.

    `tables` are those that it writes to, as far as is known.
    """
    logs = parser.logs()
    sources = {key: end for _, ends in _known_ends(logs) for key, end in ends.items() if end is not None}
    logged = {key: parser.source_log(key) for key, end in sources.items() if kind_of(end) == "file"}
    inputs = {key: _file_input(parser, key, log) for key, log in logged.items()}
    outputs, written_to = _outputs(parser), table_outputs(tables, batch_restart(plan))
    streams = _table_inputs(logs)
    older = [n for n in sorted(logs.commits, reverse=True) if n < plan.committed and way_back(logs, n) is not None]
    kept = [(plan.committed, max(plan.committed, -1 if plan.planned is None else plan.planned), asked)]
    if plan.planned is not None and plan.committed >= 0 and way_back(logs, plan.committed) == "afresh":
        kept.append((plan.committed, plan.committed, ((QUERY, plan.committed), (PLAN, plan.committed))))
    kept += [(n, n + (way_back(logs, n) == "again"), ((QUERY, n),)) for n in older]
    points = []
    for committed, planned, at in kept[: most - 1]:
        if committed < 0 and planned < 0:
            continue
        read = _read(logs, planned, inputs, logged) | _tables_read(logs, planned, streams)
        written = {o.name: Written(committed + 1, planned + 1, can_cut=cut(planned + 1)) for o, cut in outputs}
        written |= {one.output.name: one.written(committed + 1, planned + 1) for one in written_to}
        label = f"batch {committed}" if committed >= 0 else "the beginning"
        label += f", the plan of batch {plan.planned} dropped" if len(at) > 1 else ""
        points.append(Point(label, at, read, written))
    names = _read(logs, -1, inputs, logged)
    begin = {output.name: Written(0) for output, _ in outputs}
    begin |= {one.output.name: one.written(0) for one in written_to}
    points.append(Point("the beginning", (), dict.fromkeys([*names, *streams], 0), begin, initial=True))
    topics = tuple(Input(name) for name in names if name not in {one.name for one in inputs.values()})
    found = (*inputs.values(), *topics, *streams.values())
    writes = (*(o for o, _ in outputs), *(one.output for one in written_to))
    return Feeds("", found, writes, tuple(points), more=len(kept) > most - 1)


def _known_ends(logs: MetadataLogs) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for n in logs.offsets:
        ends = logs.ends(n)
        if ends is not None:
            yield n, ends


def _read(
    logs: MetadataLogs, batch: int, inputs: Mapping[str, Input], logged: Mapping[str, FileLog]
) -> dict[str, int | None]:
    """How far each input is read by a batch: of a folder, in the numbers of the source's own log."""
    ends = logs.ends(batch) if batch >= 0 else {}
    found: dict[str, int | None] = {}
    for key, given in inputs.items():
        end = None if ends is None else log_offset(ends[key]) if ends.get(key) is not None else -1
        found[given.name] = None if end is None else _left_at(logged[key].listing, end + 1)
    known = {key for _, one in _known_ends(logs) for key, end in one.items() if kind_of(end) == "kafka"}
    for key in sorted(known):
        newest = max((n for n, one in _known_ends(logs) if one.get(key) is not None), default=-1)
        names = {r.source for r in source_ranges(None, {key: (logs.ends(newest) or {}).get(key)}, "kafka", True)}
        end = None if ends is None else ends.get(key)
        here = {r.source: r.end for r in source_ranges(None, {key: end}, "kafka", True)} if end is not None else {}
        for name in sorted(names):
            found[name] = None if ends is None else here.get(name, 0)
    return found


def _table_inputs(logs: MetadataLogs) -> dict[str, Input]:
    """The tables that the query reads as streams, by the offsets that it kept, under the names of its sources."""
    commits: dict[str, dict[str, None]] = {}
    ids: dict[str, str] = {}
    for _, ends in _known_ends(logs):
        for key, end in ends.items():
            found = last_commit(end)
            if found is not None:
                name = f"source/{key}"
                ids.setdefault(name, found.table)
                commits.setdefault(name, {}).update({found.commit: None} if found.commit else {})
    return {name: Input(name, commits=tuple(commits[name]), table=ids[name]) for name in sorted(ids)}


def _tables_read(logs: MetadataLogs, batch: int, streams: Mapping[str, Input]) -> dict[str, int | None]:
    """How far a batch has read each table: so many of the commits that the query has read of."""
    ends = logs.ends(batch) if batch >= 0 else {}
    found: dict[str, int | None] = {}
    for name, given in streams.items():
        end = None if ends is None else last_commit(ends.get(name.removeprefix("source/")))
        begun = end is not None and end.commit
        found[name] = None if ends is None else given.commits.index(end.commit) + 1 if end and begun else 0
    return found


def _left_at(listing: LogListing, end: int) -> int:
    """Where a source's log can be made to end, at `end` or the first place behind: a compact file lists all before."""
    newest = listing.newest + 1
    return next((n for n in range(end, newest) if _can_end(listing, n)), max(newest, end))


def _can_end(listing: LogListing, end: int) -> bool:
    """Whether a log is whole without its files from `end` on."""
    base = max((number for number in listing.compacts if number < end), default=0)
    return all(number in listing.files for number in range(base, end))


def _file_input(parser: OffersBatches, key: str, log: FileLog) -> Input:
    numbers = _numbered(log)
    whole = all(read.value is not None for read in log.reads.values()) and _can_end(log.listing, log.listing.newest + 1)
    broken = "" if whole else f"{log.listing.folder} does not tell all that was read"
    return Input(_folder_of(numbers, f"source/{key}"), numbers, _entries(parser, log.listing), broken)


def _outputs(parser: OffersBatches) -> list[tuple[Output, Callable[[int], bool]]]:
    """The folder of the file sink, with what says whether its log can end at a number; [] if it is not known."""
    sinks = parser.sinks()
    if len(sinks) != 1:
        return []
    log = parser.sink_log(sinks[0], everything=True)
    listing, numbers = log.listing, _numbered(log)
    needed = [read for number, read in log.reads.items() if number >= listing.base]
    whole = all(read.value is not None for read in needed) and _can_end(listing, listing.newest + 1)
    end = listing.newest + 1 if whole and not listing.orphans else None
    name = _folder_of(numbers, sinks[0])
    entries = _entries(parser, listing)
    found = Output(name, end, "skips", listing.newest + 1, files=numbers, entries=entries, unit="batch")
    return [(found, lambda number: _can_end(listing, min(number, listing.newest + 1)))]


def _entries(parser: OffersBatches, listing: LogListing) -> dict[int, tuple[str, ...]]:
    return {number: parser.with_checksums([entry.path]) for number, entry in listing.files.items()}


def _numbered(log: FileLog) -> dict[str, int]:
    """The number of each file of a log: that of the first file of the log to list it, if none is said."""
    found: dict[str, int] = {}
    for number, read in sorted(log.reads.items()):
        for line in read.value or ():
            path = unquote(_FILE.sub("file:/", line.path))
            found.setdefault(path, number if line.batch is None else line.batch)
    return found


def _folder_of(paths: Mapping[str, int], otherwise: str) -> str:
    """The folder in which files lie, as their paths have it."""
    return posixpath.dirname(min(paths)).removeprefix("file:") if paths else otherwise
