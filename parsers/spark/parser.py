"""Checkpoint folders of Spark Structured Streaming (Spark 2.1 to 4.3), and what lies beside them.

    metadata  offsets/N  commits/N  sources/I/N  state/    in the root, or in one folder just below it;
                                                           then a file sink's folder may lie beside that

The layout of the logs is in `cklog.parsers.spark.metadata_log`, that of state in `cklog.parsers.spark.state.listing`.
Where a restart of the query goes on is judged in `cklog.runs.batches`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import pyarrow as pa

from cklog.engine.scan import Damage, Split
from cklog.errors import NotFound
from cklog.inputs.batches import FileLog, FileRead, FoundSize, LogListing, MetadataLogs, is_asynchronous
from cklog.inputs.offers import Format, KindName
from cklog.inputs.sink_files import SinkFiles
from cklog.model.findings import Finding, InputUsed
from cklog.parsers.codecs import hadoop_crc
from cklog.parsers.spark.file_sinks import SINK_LOG, find_bare_sinks, find_sinks, read_sink_log, sink_files
from cklog.parsers.spark.metadata_log import (
    decode_commit,
    decode_initial,
    decode_metadata,
    decode_offsets,
    decode_source_files,
    list_log,
    read,
    read_file_log,
    size_of,
)
from cklog.parsers.spark.state.checksums import sidecars_of
from cklog.parsers.spark.state.listing import newest_has_id
from cklog.parsers.spark.state.versions import StateVersions
from cklog.parsers.tables.records import BIGGEST, NotARecord, batch_of_rows, json_text
from cklog.parsers.tables.records_parser import whole_folder
from cklog.progress import stage
from cklog.storage import FileEntry, Root
from cklog.stores.trees import moved_below

BATCHES = pa.schema(
    [
        pa.field("batch", pa.int64(), nullable=False),
        pa.field("planned", pa.bool_(), nullable=False),
        pa.field("committed", pa.bool_(), nullable=False),
        pa.field("time", pa.int64()),
        pa.field("watermark", pa.int64()),
        pa.field("offsets", pa.string()),
    ]
)
"""A `cklog.inputs.batches.Batch`, its offsets as JSON: an object of each source's end, null where unreadable."""

READER = "cklog.parsers.spark.parser:read_batches"
_Value = TypeVar("_Value")
_PARTS = r"(metadata|(?:offsets|commits)/\.?[0-9]+(?:\.crc)?|(?:sources|state)/.+)"
_PLACE = re.compile(r"((?:[^/]+/)?)" + _PARTS)
_PARTS_OF_QUERY = re.compile(r"(metadata|offsets|commits|sources|state)(/.*)?")
_OF_SINK = re.compile(rf"[^/]+(/{SINK_LOG}(/.*)?)?")
_ANYWHERE = re.compile(r"((?:[^/]+/)*?)" + _PARTS)


class SparkCheckpoint(Format):
    """One checkpoint folder, listed once; its small files are read anew whenever somebody asks for them."""

    name = "spark-checkpoint"
    kind: KindName = "batches"
    tables: ClassVar = {"batches": BATCHES}
    marks_beside: ClassVar[str] = rf"{SINK_LOG}|part-.*"

    @staticmethod
    def recognises(root: Root) -> bool:
        """Return whether the root, or exactly one folder directly below it, is a checkpoint."""
        try:
            near = [*root.list("offsets"), *root.list("commits")]
            return bool(near and _find_prefixes(near + root.list("sources"))) or len(_find_prefixes(root.list())) == 1
        except OSError:
            return False

    @staticmethod
    def runs_below(root: Root) -> list[str]:
        """Return the folders with at least two of a checkpoint's parts."""
        return [prefix.rstrip("/") for prefix in _find_prefixes(root.list(), _ANYWHERE)]

    @staticmethod
    def whole_of(root: Root, folder: str) -> str:
        """Return the folder above a checkpoint, if it is the only one there and a file sink wrote beside it."""
        if not folder:
            return folder
        above = posixpath.dirname(folder)
        entries = moved_below(root.tree(), above).files if above else root.tree().files
        prefix = f"{posixpath.basename(folder)}/"
        alone = _find_prefixes([*entries]) == (prefix,)
        return above if alone and (find_sinks(entries, prefix) or find_bare_sinks(entries, prefix)) else folder

    def __init__(self, root: Root) -> None:
        self._root = root
        listed = root.list()
        seen = {entry.path for entry in listed}
        self._refused = sorted(path for path in root.refused() if path not in seen)
        unread = [FileEntry(path, 0) for path in self._refused]  # they are there, and reading one is refused
        entries = sorted([*listed, *root.unfollowed_files(), *unread], key=lambda entry: entry.path)
        prefixes = _find_prefixes(entries)
        if len(prefixes) != 1:
            raise NotFound(f"{root.path}: {len(prefixes)} Spark checkpoints in it, expected one")
        self._prefix = prefixes[0]
        state = f"{self._prefix}state/"
        self._state_files = [entry for entry in entries if entry.path.startswith(state)]
        self._entries = [entry for entry in entries if not entry.path.startswith(state)]

    @property
    def has_state(self) -> bool:
        """Whether there is any file of state, or a folder of it that could not be listed."""
        return bool(self._state_files) or f"{self._prefix}state" in self._refused

    def logs(self) -> MetadataLogs:
        """Read `metadata`, `offsets/` and `commits/`."""
        offsets = list_log(self._entries, f"{self._prefix}offsets")
        commits = list_log(self._entries, f"{self._prefix}commits")
        by_path = {entry.path: entry for entry in self._entries}
        entry = by_path.get(f"{self._prefix}metadata")
        side = by_path.get(f"{self._prefix}.metadata.crc")
        linked = tuple(path for path in sorted(self._root.unfollowed()) if self._is_log(path))
        logs = MetadataLogs(
            prefix=self._prefix,
            metadata=read(self._root, entry, decode_metadata, side) if entry is not None else None,
            offset_log=offsets,
            commit_log=commits,
            offsets=self._read_all(offsets, decode_offsets),
            commits=self._read_all(commits, decode_commit),
            linked=linked,
            unseen=(*linked, *filter(self._is_part, self._refused)),
        )
        plan = logs.newest_plan
        return replace(
            logs,
            asynchronous=not self.has_state and not self.sinks() and is_asynchronous(logs),
            continuous=not self.has_state and plan is not None and plan.is_continuous,
            state_has_ids=self._state_has_ids,
        )

    @cached_property
    def _state_has_ids(self) -> bool:
        return newest_has_id((entry.path for entry in self._state_files), f"{self._prefix}state/")

    def _is_log(self, path: str) -> bool:
        """Return whether a folder holds one of the query's logs, or several: a source's, or a sink's beside it."""
        folders = rf"{re.escape(self._prefix)}(offsets|commits|sources(/[0-9]+)?|state)|[^/]+/{SINK_LOG}"
        return re.fullmatch(folders, path) is not None

    def _is_part(self, path: str) -> bool:
        """Return whether a path is one of the query's files or folders, or may be one of its sink's."""
        if path.startswith(self._prefix):
            return _PARTS_OF_QUERY.fullmatch(path, len(self._prefix)) is not None
        return _OF_SINK.fullmatch(path) is not None

    def _read_all(self, log: LogListing, decode: Callable[[bytes], _Value]) -> dict[int, FileRead[_Value]]:
        found: dict[int, FileRead[_Value]] = {}
        with stage(f"reading {log.folder}", "files", len(log.files)) as told:
            for n, entry in sorted(log.files.items()):
                if n not in log.compacts:  # neither offsets nor commits are ever compacted
                    found[n] = read(self._root, entry, decode, log.sidecars.get(hadoop_crc.sidecar_of(entry.path)))
                told.advance(1)
        return found

    def state(self, logs: MetadataLogs, thorough: bool = False, needed: int | None = None) -> StateVersions:
        """Return the state stores as of the batches in `logs`, of which a restart loads version `needed`."""
        return StateVersions(self._root, self._state_files, logs, self.name, thorough, needed)

    def source_listing(self, source: str) -> LogListing:
        """List `sources/I` of a source."""
        return list_log(self._entries, f"{self._prefix}sources/{source}")

    def source_log(self, source: str) -> FileLog:
        """Read the log of a file source."""
        return read_file_log(self._root, self.source_listing(source), decode_source_files)

    def first_offset(self, source: str, verify: bool) -> FileRead[Any] | None:
        """Read `sources/I/0` of a source that keeps only where it began; None if that is missing."""
        listing = self.source_listing(source)
        entry = listing.files.get(0)
        if entry is None:
            return None
        sidecar = listing.sidecars.get(hadoop_crc.sidecar_of(entry.path)) if verify else None
        return read(self._root, entry, decode_initial, sidecar)

    def size_of(self, stored: str) -> FoundSize:
        """Return the size of an input file, given by its stored path."""
        return size_of(self._root, stored)

    def sinks(self) -> tuple[str, ...]:
        """Return the folders beside the checkpoint that hold a file sink's log, sorted."""
        return find_sinks(self._entries, self._prefix)

    def sink_log(self, folder: str, everything: bool = False) -> FileLog:
        """Read the log of the file sink that wrote to a folder."""
        return read_sink_log(self._root, self._entries, folder, everything)

    def bare_sinks(self) -> tuple[str, ...]:
        """Return the folders beside the checkpoint that look written to by a file sink, but have no log, sorted."""
        return find_bare_sinks(self._entries, self._prefix)

    def sink_files(self, folder: str, log: FileLog) -> SinkFiles:
        """Compare what lies in a file sink's folder with its log."""
        return sink_files(self._root, self._entries, folder, log)

    def files_below(self, folder: str) -> tuple[str, ...]:
        """Return every file in a folder of the checkpoint, whatever it is, sorted."""
        every = (entry.path for entry in (*self._entries, *self._state_files))
        return tuple(sorted(path for path in every if path.startswith(f"{folder}/")))

    def with_checksums(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Return paths, and those of their checksum files that are there, sorted."""
        there = {entry.path for entry in (*self._entries, *self._state_files)}
        found = set(paths)
        for path in tuple(found):
            found.update(side for side in sidecars_of(path) if side in there)
        return tuple(sorted(found))

    def inputs(self, logs: MetadataLogs, sink: str | None) -> tuple[InputUsed, ...]:
        """Return the logs of the query, and that of its sink, as inputs of an answer."""
        offsets = sum(read.flaw is None for read in logs.offsets.values())
        commits = sum(read.flaw is None for read in logs.commits.values())
        used = [
            InputUsed(logs.offset_log.folder, self.name, logs.offset_log.bytes(), offsets),
            InputUsed(logs.commit_log.folder, self.name, logs.commit_log.bytes(), commits),
        ]
        folders = [f"{self._prefix}sources"] + ([f"{sink}/{SINK_LOG}"] if sink is not None else [])
        for folder in folders:
            size = sum(entry.size for entry in self._entries if entry.path.startswith(folder + "/"))
            used.append(InputUsed(folder, self.name, size, None))
        return tuple(used)

    def findings(self, table: str) -> tuple[Finding, ...]:
        """Return nothing: what is wrong with the logs is judged with them (`cklog.runs.batches.judge`)."""
        return ()

    def splits(self, table: str, split_bytes: int) -> tuple[Split, ...]:
        """Return one split, of all batches."""
        return whole_folder(self._root, READER)

    def rows(self) -> list[dict[str, Any]]:
        """Return the batches as rows of `BATCHES`, each with its file of offsets, else of its commit, as its place."""
        logs = self.logs()
        made = []
        for one in logs.batches():
            log = logs.offset_log if one.planned else logs.commit_log
            row = {
                "batch": one.batch,
                "planned": one.planned,
                "committed": one.committed,
                "time": _column_number(one.time),
                "watermark": _column_number(one.watermark),
                "offsets": _offsets_text(one.offsets),
            }
            made.append(row | {"_path": log.files[one.batch].path, "_offset": 0})
        return made


def read_batches(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """Read the batches, as `BATCHES`; a `cklog.engine.scan.Reader`. What is wrong with them is judged apart."""
    yield batch_of_rows(SparkCheckpoint(split.folder()).rows(), BATCHES, columns)


def _column_number(value: int | None) -> int | None:
    """Return a number that a column can hold; None for a longer one."""
    return value if value is not None and abs(value) < BIGGEST else None


def _offsets_text(offsets: dict[str, Any] | None) -> str | None:
    """Return offsets as JSON; None where they are nested deeper than JSON is written."""
    try:
        return None if offsets is None else json_text(offsets)
    except NotARecord:
        return None


def _find_prefixes(entries: list[FileEntry], place: re.Pattern[str] = _PLACE) -> tuple[str, ...]:
    """Find folders with at least two of a checkpoint's parts, `metadata` or a numbered batch among them.

    "" or "name/", or of any depth with `_ANYWHERE` as the place.

    >>> _find_prefixes([FileEntry("ck/metadata", 45), FileEntry("ck/offsets/0", 9), FileEntry("out/part-0", 1)])
    ('ck/',)
    """
    parts: dict[str, set[str]] = {}
    for entry in entries:
        match = place.fullmatch(entry.path)
        if match is not None:
            parts.setdefault(match[1], set()).add(match[2].split("/")[0])
    sure = {"metadata", "offsets", "commits"}
    return tuple(sorted(prefix for prefix, seen in parts.items() if len(seen) > 1 and seen & sure))
