"""Offsets and commits of a Spark checkpoint against each other: the last committed batch, and what stops a restart.

Let o be the newest offsets file and c the newest commit. Read off Spark 4.3 by damaging copies and restarting them:
a restart reads `metadata`, offsets/o, offsets/o-1 (also if o = c) and commits/c, and stops if one of them is missing or
cannot be read. Older ones it does not look at. With o > c+1 it runs batch o alone and never the batches
between; with o < c it runs batch o again and stops when it commits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

from cklog.errors import NotFound
from cklog.model.findings import Finding, Severity, Where
from cklog.parsers.codecs import hadoop_crc
from cklog.parsers.spark.metadata_log import BatchOffsets, FileRead, Listing
from cklog.parsers.spark.plan import kind_of, went_back
from cklog.storage import FileEntry

_COPY = "on a copy of the checkpoint"


class Fact(NamedTuple):
    """A finding, and whether it makes a restart of the query fail."""

    finding: Finding
    stops: bool = False


@dataclass(frozen=True, slots=True)
class MetadataLogs:
    """Everything in `metadata`, `offsets/` and `commits/`."""

    prefix: str
    metadata: FileRead[str] | None
    offset_log: Listing
    commit_log: Listing
    offsets: dict[int, FileRead[BatchOffsets]] = field(default_factory=dict)
    commits: dict[int, FileRead[Any]] = field(default_factory=dict)

    @property
    def o(self) -> int:
        """Newest planned batch, -1 for none."""
        return max(self.offsets, default=-1)

    @property
    def c(self) -> int:
        """The line: the newest batch whose commit can be read, -1 for none."""
        return max((n for n, read in self.commits.items() if read.flaw is None), default=-1)

    def ends(self, batch: int) -> dict[str, Any] | None:
        """End offset per source of a batch, None if unknown."""
        read = self.offsets.get(batch)
        return read.value.ends if read is not None and read.value is not None else None


def made(id: str, severity: Severity, path: str, message: str, offset: int | None = None) -> Finding:
    """A finding whose subject is a file or folder."""
    return Finding(id, severity, path, message, (Where(path, offset),))


def flawed(read: FileRead[Any], severity: Severity, then: str) -> Finding:
    """A finding about a file that cannot be used. `then`: what a restart does, and what to do now."""
    assert read.flaw is not None
    why = f"{read.path}: {read.flaw.why}. {then}"
    if read.flaw.id == "checksum-mismatch":
        side = hadoop_crc.sidecar_of(read.path)
        why += f" Either it or {side} is damaged; Spark does not always check, and then reads it as it is."
    return made(read.flaw.id, severity, read.path, why, read.flaw.offset)


def judge(found: MetadataLogs) -> list[Fact]:
    """Every fact about `metadata`, `offsets/` and `commits/`."""
    facts = [*_metadata(found), *_offset_files(found), *_commit_files(found), *_order(found), *_ranges(found)]
    reads: list[FileRead[Any]] = [*found.offsets.values(), *found.commits.values()]
    reads += [found.metadata] if found.metadata is not None else []
    return facts + [Fact(unchecked(read)) for read in reads if read.unchecked]


def unchecked(read: FileRead[Any]) -> Finding:
    """A checksum file that Hadoop passes over with a warning."""
    side = hadoop_crc.sidecar_of(read.path)
    return made("unreadable-checksum", "info", side, f"{side}: no checksum header; {read.path} is unchecked.", 0)


def _metadata(found: MetadataLogs) -> Iterable[Fact]:
    then = "The restart fails. Put it back from a backup: a new id would break the tie to what the sink has."
    if found.metadata is None:
        path = f"{found.prefix}metadata"
        yield Fact(made("missing-metadata", "error", path, f"{path} is missing. {then}"), True)
    elif found.metadata.flaw is not None:
        yield Fact(flawed(found.metadata, "error", then), True)


def _offset_files(found: MetadataLogs) -> Iterable[Fact]:
    o, folder = found.o, found.offset_log.folder
    for n, read in sorted(found.offsets.items()):
        if read.flaw is not None:
            needed = n in (o, o - 1)
            yield Fact(flawed(read, "error" if needed else "warning", _offsets_then(n, found)), needed)
    if o > 0 and o - 1 not in found.offsets:
        message = f"{folder}/{o - 1} is missing. {_offsets_then(o - 1, found)}"
        yield Fact(made("missing-batch-file", "error", f"{folder}/{o - 1}", message), True)
    yield from map(Fact, _holes(found.offset_log, found.offsets, o - 1))
    for n in found.offset_log.orphans:
        if n > o:
            message = (
                f"{folder}/{n} is missing, only its checksum file is left. A restart plans batch {n} afresh, perhaps "
                "with another range: a sink that is not idempotent may get part of it twice."
            )
            yield Fact(made("missing-batch-file", "warning", f"{folder}/{n}", message))


def _offsets_then(n: int, found: MetadataLogs) -> str:
    o = found.o
    if n == o and n in found.commits:
        return (
            f"The restart fails. Batch {n} is committed and this file says where it ended: put it back from a backup, "
            f"or {_COPY} remove the offsets and commits above the newest batch that is whole."
        )
    if n == o:
        return (
            f"The restart fails. To go on, {_COPY} remove it and its .crc: batch {n} is then planned afresh from the "
            f"end of batch {n - 1}, and a sink that is not idempotent may get part of it twice."
        )
    if n == o - 1:
        return (
            f"The restart fails, because batch {o} starts where batch {n} ends. Put it back from a backup, or {_COPY} "
            f"remove the offsets and commits above the newest batch that is whole."
        )
    return f"A restart does not read it; batch {n} is no target to go back to."


def _holes(log: Listing, present: Iterable[int], below: int) -> Iterable[Finding]:
    """Missing files between others, but for `below` itself and above, which have findings of their own."""
    for before, after in pairwise(sorted(present)):
        last = min(after, below) - 1
        if last > before:
            which = f"{before + 1}" if last == before + 1 else f"{before + 1} to {last}"
            message = f"{log.folder}: {which} missing between {before} and {after}. A restart does not read them."
            yield made("batch-gap", "warning", f"{log.folder}/{before + 1}", message)


def _commit_files(found: MetadataLogs) -> Iterable[Fact]:
    newest, folder = max(found.commits, default=-1), found.commit_log.folder
    for n, read in sorted(found.commits.items()):
        if read.flaw is not None and n == newest:
            yield Fact(flawed(read, "error", _commit_then(n, found)), True)
        elif read.flaw is not None:
            yield Fact(flawed(read, "warning", "A restart does not read it."))
    yield from map(Fact, _holes(found.commit_log, found.commits, newest))
    for n in found.commit_log.orphans:
        if n > newest:
            message = (
                f"{folder}/{n} is missing, only its checksum file is left: batch {n} was done. A restart does not "
                "know, and a sink that is not idempotent gets it twice. Put the file back from a backup."
            )
            yield Fact(made("missing-batch-file", "error", f"{folder}/{n}", message))


def _commit_then(n: int, found: MetadataLogs) -> str:
    if found.o > n:
        return (
            f"The restart fails. Batch {found.o} was planned after batch {n} was done, but nothing whole proves "
            f"it: the line is batch {found.c}. Put it back from a backup; if {_COPY} it is removed with its .crc, "
            f"the query goes on with batch {found.o} alone."
        )
    return (
        f"The restart fails. Whether batch {n} is done is unknown, so the line is batch {found.c}. Put it back from a "
        f"backup; if {_COPY} it is removed with its .crc, batch {n} is run again, and a sink that is not idempotent "
        "may get it twice."
    )


def _order(found: MetadataLogs) -> Iterable[Fact]:
    o, c = found.o, max(found.commits, default=-1)
    offsets, commits = found.offset_log.folder, found.commit_log.folder
    if c > o:
        then = (
            f"The restart runs batch {o} again and fails when it commits (concurrent update to the log). "
            f"{_COPY.capitalize()} remove the commits above {o}, or put the offsets back."
            if o >= 0
            else "The restart begins at batch 0 and fails, or reads all input again where there is no state."
        )
        message = f"{commits}/{c} is there, but no offsets above {o}. {then}"
        yield Fact(made("commit-ahead-of-offsets", "error", f"{commits}/{c}", message), True)
    first = max(c + 1, min(found.offsets, default=0))
    if o > first:
        which = f"{first}" if first == o - 1 else f"{first} to {o - 1}"
        message = (
            f"{commits}: {which} missing, though {offsets}/{o} was planned after. A restart runs batch {o} alone and "
            f"skips {which}: what they had not finished is lost, and whoever runs them again by hand may double it. "
            f"Find out from the sink whether batch {which} is in it; if so put the commits back, else {_COPY} remove "
            f"the offsets above {first}."
        )
        yield Fact(made("missing-batch-file", "error", f"{commits}/{first}", message))


def _ranges(found: MetadataLogs) -> Iterable[Fact]:
    """Batches next to each other must name the same sources, and no source may go back."""
    for before, n in pairwise(sorted(found.offsets)):
        start, end = found.ends(before), found.ends(n)
        if n != before + 1 or start is None or end is None:
            continue
        path, needed = found.offsets[n].path, n >= found.o - 1
        severity: Severity = "error" if needed else "warning"
        if start.keys() != end.keys():
            message = f"{path} names {len(end)} sources, the batch before {len(start)}. " + (
                "The restart fails: one of the two is cut short, or the query was changed." if needed else ""
            )
            yield Fact(made("torn-batch-file", severity, path, message.rstrip()), needed)
        for key in sorted(start.keys() & end.keys()):
            if None not in (start[key], end[key]) and kind_of(start[key]) != kind_of(end[key]):
                message = f"{path}: source {key} has another form of offset than in batch {before}; one is wrong."
                yield Fact(made("torn-batch-file", severity, path, message), needed)
            if went_back(start[key], end[key]):
                message = f"{path}: source {key} ends before the end of batch {before}; one of the two is wrong."
                yield Fact(made("offset-went-back", severity, path, message))


def judge_fresh(found: MetadataLogs, entries: Iterable[FileEntry]) -> list[Fact]:
    """A checkpoint without any batch must not have state or a source's log beyond the first batch."""
    if found.offsets or found.commits:
        return []
    sources, state = f"{found.prefix}sources/", f"{found.prefix}state/"
    rest = re.compile(re.escape(sources) + r"[^/]+/(?!0$)[0-9]+(\.compact)?|" + re.escape(state) + ".*", re.DOTALL)
    if not any(rest.fullmatch(entry.path) for entry in entries):
        return []
    path = found.offset_log.folder
    message = (
        f"{path} and {found.commit_log.folder} are empty, though batches have run. A restart begins at batch 0: it "
        "fails if there is state, else it reads all input again. Put both folders back from a backup."
    )
    return [Fact(made("missing-batch-file", "error", path, message), True)]


def cut(found: MetadataLogs, as_of: int) -> tuple[MetadataLogs, list[Fact]]:
    """Without the batches planned after `as_of`; one whose time is unknown is left out if none known follows it."""
    times = {n: read.value.time for n, read in found.offsets.items() if read.value is not None}
    later = min((n for n, time in times.items() if time is not None and time > as_of), default=None)
    early = [n for n, time in times.items() if time is not None and time <= as_of]
    last = max((n for n in early if later is None or n < later), default=-1)
    facts = []
    commits = found.commit_log.folder
    if last >= 0 and last not in found.commits and max(*found.commits, found.o, -1) > last:
        message = f"{commits}/{last} is missing, though later batches were planned: batch {last} was done."
        facts.append(Fact(made("missing-batch-file", "error", f"{commits}/{last}", message)))
    for n in sorted({*found.offsets, *found.commits, *found.offset_log.orphans}):
        if n > last and (later is None or n < later):
            path = f"{found.offset_log.folder}/{n}"
            message = f"{path} does not say when batch {n} was planned, so it is left out; the line may be too old."
            facts.append(Fact(made("unknown-time", "error", path, message)))
    return _up_to(found, last), facts


def judge_target(found: MetadataLogs, at: int) -> list[Fact]:
    """Whether the query can go back to batch `at`."""
    names = found.offsets.keys() | found.commits.keys()
    if at not in names:
        there = f"batches {min(names)} to {max(names)}" if names else "no batch"
        raise NotFound(f"no batch {at} in the checkpoint, which has {there}")
    lacking = [
        f"{log.folder}/{at}"
        for log, reads in ((found.offset_log, found.offsets), (found.commit_log, found.commits))
        if at not in reads or reads[at].flaw is not None
    ]
    if not lacking:
        return []
    message = (
        f"No way back to batch {at}: {' and '.join(lacking)} cannot be read. The newest whole one before is taken."
    )
    return [Fact(made("unreachable-batch", "error", lacking[0], message))]


def back_to(found: MetadataLogs, at: int) -> MetadataLogs:
    """As if nothing had happened after batch `at`, or after the newest whole one before it."""
    whole = [n for n, read in found.commits.items() if n <= at and read.flaw is None and found.ends(n) is not None]
    return _up_to(found, max(whole, default=-1))


def _up_to(found: MetadataLogs, last: int) -> MetadataLogs:
    return replace(
        found,
        offsets={n: read for n, read in found.offsets.items() if n <= last},
        commits={n: read for n, read in found.commits.items() if n <= last},
        offset_log=replace(found.offset_log, orphans=tuple(n for n in found.offset_log.orphans if n <= last)),
        commit_log=replace(found.commit_log, orphans=tuple(n for n in found.commit_log.orphans if n <= last)),
    )
