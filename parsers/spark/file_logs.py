"""File logs of a Spark query: the source's, which says what a batch reads, and the sink's, which says what counts.

Read off Spark 4.3 by damaging copies: a restart reads a file source's log from its newest compact file on, and stops
if one of those files is missing or cut. An input file that is gone it takes for no data. A file sink skips every batch
up to the newest in its log, whatever the batch holds now; a log that lost files it does not notice, but readers
miss what they listed. Which folder the sink writes to is not stored in the checkpoint.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Any, Literal
from urllib.parse import unquote

from cklog.inputs.batches import FoundSize, InputFile, SourceRange
from cklog.model.findings import Finding, Where
from cklog.parsers.codecs import hadoop_crc
from cklog.parsers.spark.batches import Fact, flawed, made, unchecked
from cklog.parsers.spark.metadata_log import (
    FileRead,
    Listing,
    LoggedFile,
    decode_files,
    decode_initial,
    decode_source_files,
    list_log,
    read,
)
from cklog.parsers.spark.plan import log_offset
from cklog.storage import FileEntry, Root

SINK_LOG = "_spark_metadata"
_EXAMPLES = 3
_PLACES = 8


@dataclass(frozen=True, slots=True)
class FileLog:
    """A source's or sink's log, from its newest compact file on."""

    listing: Listing
    reads: dict[int, FileRead[tuple[LoggedFile, ...]]]

    def facts(self, then: str, gap: str, stops: bool) -> Iterable[Fact]:
        """Files that cannot be used or are missing between others; all of them error."""
        for _, file in sorted(self.reads.items()):
            if file.flaw is not None:
                yield Fact(flawed(file, "error", then), stops)
            if file.unchecked:
                yield Fact(unchecked(file))
        numbers = [self.listing.base - (0 if self.listing.compacts else 1), *sorted(self.reads)]
        for before, after in pairwise(numbers):
            if after > before + 1:
                path = f"{self.listing.folder}/{before + 1}"
                more = f" (and all up to {after - 1})" if after > before + 2 else ""
                yield Fact(made(gap, "error", path, f"{path} is missing{more}. {then}"), stops)


def read_file_log(
    root: Root, listing: Listing, decode: Callable[[bytes], tuple[LoggedFile, ...]] = decode_files
) -> FileLog:
    """Read the files of a log that whoever reads all of it needs."""
    needed = {n: entry for n, entry in listing.files.items() if n >= listing.base}
    sidecars = listing.sidecars
    return FileLog(
        listing,
        {n: read(root, entry, decode, sidecars.get(hadoop_crc.sidecar_of(entry.path))) for n, entry in needed.items()},
    )


def judge_source(
    root: Root, entries: list[FileEntry], folder: str, source: SourceRange
) -> tuple[SourceRange, list[Fact]]:
    """The source with the input files of the batch in flight, and what is wrong with its log or with them."""
    if source.kind != "file":
        return source, list(_initial(root, list_log(entries, folder), source.kind))
    log = read_file_log(root, list_log(entries, folder), decode_source_files)
    then = "The restart fails, because the file source reads its whole log. Put the file back from a backup."
    facts = list(log.facts(then, "missing-source-log", stops=True))
    reach = [n for n in map(log_offset, (source.start, source.end)) if n is not None]
    newest = max([*reach, *log.listing.orphans], default=-1)
    if newest > log.listing.newest:
        path = f"{folder}/{newest}"
        message = f"{path} is missing, though the offsets name it or its checksum file is left. {then}"
        facts.append(Fact(made("missing-source-log", "error", path, message), True))
    source = replace(source, files=tuple(_files_in_flight(root, log, source)))
    return source, facts + [Fact(finding) for finding in _judge_inputs(source, folder)]


def read_twice(folder: str, twin: str) -> Finding:
    """A file source without a log that ends where another does, as where a query reads one source twice."""
    message = (
        f"{folder} has no log, and its source ends where source {twin} does. If the query reads that one twice, as a "
        "join with itself does, nothing is missing; else the restart fails: put the folder back from a backup."
    )
    return made("missing-source-log", "warning", folder, message)


def _initial(root: Root, listing: Listing, kind: str) -> Iterable[Fact]:
    """`sources/I/0` of a source that keeps only where it began."""
    entry = listing.files.get(0)
    then = "The restart fails, or the source takes another beginning. Put the file back from a backup."
    if entry is None:
        if kind != "other" or 0 in listing.orphans:
            path = f"{listing.folder}/0"
            yield Fact(made("missing-source-log", "warning", path, f"{path} is missing. {then}"))
        return
    got: FileRead[Any] = read(root, entry, decode_initial, listing.sidecars.get(hadoop_crc.sidecar_of(entry.path)))
    if got.flaw is not None:
        yield Fact(flawed(got, "error", then))
    if got.unchecked:
        yield Fact(unchecked(got))


def _files_in_flight(root: Root, log: FileLog, source: SourceRange) -> Iterable[InputFile]:
    """Files of the source's log batches after `start`, up to `end`."""
    start, end = log_offset(source.start), log_offset(source.end)
    if end is None or not source.start_known:
        return
    first = -1 if start is None else start
    for number, file in sorted(log.reads.items()):
        whole = number in log.listing.compacts  # holds earlier batches, too
        for line in file.value or ():
            batch = line.batch if whole else number
            if batch is not None and first < batch <= end and number <= end:
                size = _look(root, line.path)
                yield InputFile(line.path, size, Where(file.path, line.offset))


def _look(root: Root, stored: str) -> FoundSize:
    """Size of an input file; Spark stores the path as a URI, in which a space is %20."""
    try:
        found = root.exists_outside(stored)
        return found if found is not None or "%" not in stored else root.exists_outside(unquote(stored))
    except (OSError, ValueError):
        return "outside"


def _judge_inputs(source: SourceRange, folder: str) -> Iterable[Finding]:
    gone = [file for file in source.files if file.size is None]
    if gone:
        yield _listed(
            "missing-input-file",
            "error",
            source,
            gone,
            f"input files of the batch in flight are missing: {_names(gone)}. A restart takes them for empty and goes "
            "on without an error: their data is lost. Put them back before the restart.",
        )
    empty = [file for file in source.files if file.size == 0]
    if empty:
        message = f"input files of the batch in flight are empty: {_names(empty)}. A restart reads no data from them."
        yield _listed("empty-input-file", "warning", source, empty, message)
    outside = [file for file in source.files if file.size == "outside"]
    if outside:
        prefix = posixpath.dirname(outside[0].path)
        yield _listed(
            "unchecked-input",
            "warning",
            source,
            outside,
            f"input files of the batch in flight were not looked at, since they lie outside PATH: {_names(outside)}. "
            f"If one is missing, a restart goes on without its data. --map {prefix}=FOLDER says where they are.",
        )


def _listed(
    id: str, severity: Literal["warning", "error"], source: SourceRange, files: list[InputFile], message: str
) -> Finding:
    where = tuple(file.where for file in files[:_PLACES])
    return Finding(id, severity, source.source, f"{source.source}: {len(files)} {message}", where)


def _names(files: list[InputFile]) -> str:
    names = ", ".join(file.path for file in islice(files, _EXAMPLES))
    return names + (f" and {len(files) - _EXAMPLES} more" if len(files) > _EXAMPLES else "")


def find_sinks(entries: list[FileEntry], prefix: str) -> tuple[str, ...]:
    """Folders beside the checkpoint that hold a file sink's log; none if PATH is the checkpoint itself."""
    if not prefix:
        return ()
    parts = (entry.path.split("/") for entry in entries)
    return tuple(sorted({path[0] for path in parts if len(path) == 3 and path[1] == SINK_LOG}))


def judge_bare_sinks(entries: list[FileEntry], prefix: str, inputs: Iterable[str]) -> list[Fact]:
    """Folders beside the checkpoint with part files as a file sink writes them, and no log of any kind.

    A batch writer leaves `_SUCCESS`, a table format its own folder; `inputs` are stored paths of input files.
    """
    read_from = {posixpath.basename(posixpath.dirname(path)) for path in inputs}
    inside: dict[str, set[str]] = {}
    for entry in entries:
        first, _, rest = entry.path.partition("/")
        if prefix and rest and first + "/" != prefix and first not in read_from:
            inside.setdefault(first, set()).add(rest)
    return [Fact(_bare(folder)) for folder, names in sorted(inside.items()) if _looks_written(names)]


def _bare(folder: str) -> Finding:
    message = (
        f"{folder} holds part files and no {SINK_LOG}. If the query's file sink wrote them, its log is lost: a restart "
        "goes on, and the earlier results are no longer listed, so readers lose them. Put the log back from a backup."
    )
    return made("sink-log-behind", "error", f"{folder}/{SINK_LOG}", message)


def _looks_written(names: set[str]) -> bool:
    parts = any(name.startswith("part-") and "/" not in name for name in names)
    return parts and not any(name.startswith(("_", ".hoodie/")) for name in names)


def judge_sink(root: Root, entries: list[FileEntry], folder: str, o: int, c: int) -> tuple[int, list[Fact]]:
    """The newest batch in the sink's log, and what is wrong with it. `o`: newest plan, `c`: newest commit."""
    log = read_file_log(root, list_log(entries, f"{folder}/{SINK_LOG}"))
    then = (
        "A restart goes on, but whoever reads the results by this log fails or misses what it listed. "
        "Put it back from a backup, or list the part files of that batch again by hand."
    )
    facts = list(log.facts(then, "sink-log-behind", stops=False))
    newest, path = log.listing.newest, f"{folder}/{SINK_LOG}"
    if newest < c:
        message = f"{path} ends at batch {newest}, but batch {c} is committed. {then}"
        facts.append(Fact(made("sink-log-behind", "error", path, message)))
    elif newest > c:
        facts.append(Fact(_ahead(f"{path}/{newest}", newest, o, c)))
    return newest, facts


def _ahead(path: str, newest: int, o: int, c: int) -> Finding:
    if newest <= o:
        message = f"{path} is there, though commits/{newest} is not: the sink has batch {newest} and skips it."
        return made("sink-log-ahead", "info", path, message)
    planned = "" if o > c else f"batch {c + 1} is planned afresh and "
    message = (
        f"The sink's log reaches batch {newest}, the checkpoint only batch {max(o, c)}: {planned}the sink skips every "
        f"batch up to {newest}, so what they read now is lost. Another query wrote here, or offsets were removed: use "
        "the checkpoint that belongs to this folder, or on a copy remove the sink's log files above the line."
    )
    return made("sink-log-ahead", "error", path, message)
