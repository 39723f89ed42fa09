"""The native run folder ("event log", version 1; `docs/run-folder.md`).

    job.json        one JSON object, optional: job, operators, channels, sources, failed, failure_time
    checkpoints/    local checkpoints          channels/   logged messages
    events/         raw events                 (other places belong to other commands)
    FILE            *.jsonl  *.jsonl.gz  *.jsonl.zst  *.parquet, in any number, in subfolders too
    .FILE.crc       optional beside FILE: Hadoop checksums, verified where they are
    TOPIC-N/*.log   segments of a Kafka partition whose record values are the same objects (`cklog.parsers.kafka.log`)

Names that begin with a dot or an underscore are no data. A crash may tear the last line of a file that was
being written, and the last batch of a partition; everything else that cannot be read is damage.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from typing import Any, ClassVar

from cklog.budgets import reading
from cklog.engine.scan import Split
from cklog.errors import first_line
from cklog.inputs.offers import Format, KindName, RowFilter
from cklog.model.findings import Effect, Finding, InputUsed, Severity, Where, effect_of_error
from cklog.model.names import Subtask
from cklog.model.schemas import TABLES
from cklog.model.verdict import UNKNOWN_VERSION, UNREAD
from cklog.parsers.codecs.hadoop_crc import EMPTIED, EMPTY, check_pieces, file_of, is_readable, sidecar_of
from cklog.parsers.jsonl import reader as jsonl
from cklog.parsers.jsonl.small import MOST_BYTES, TOGETHER
from cklog.parsers.native.file_formats import format_fault, is_bit_damaged
from cklog.parsers.native.manifest import checked_manifest, slips_in, tells_of_outputs_alone
from cklog.parsers.native.output_queues import PARTITION, OutputQueue, is_segment, output_queues, suffix_of
from cklog.parsers.tables import records
from cklog.progress import count_bytes, portion, stage
from cklog.storage import FileEntry, Root, open_file
from cklog.unknown_formats import UnknownFormat

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PIECE_BYTES = 4 << 20
_UNFOLLOWED = "is a link that is not followed: nothing is said of what it leads to"
_ONLY_CHECKED = "only lines with a crc32c of their own are kept"

_SLIPS = 10
"""Misspelt members of a manifest that are told at the most."""

PLACES = ("checkpoints", "channels", "events", "outputs", "state", "system")


class Native(Format):
    """A native run folder; see the module's head for its layout."""

    name = "native"
    tables: ClassVar = TABLES
    owns_below = True

    @property
    def kind(self) -> KindName:
        """Queues where there are any, or a link where some may be; they bring their records along. Else records."""
        return "queues" if self._files("outputs") or any(self._unfollowed("outputs")) else "records"

    @staticmethod
    def recognises(root: Root) -> bool:
        """Return whether the folder has a manifest or one of the places of a run folder."""
        listed = root.list()
        return any(_is_placed(e.path) for e in listed) or _names_a_run(root, listed, damaged=True)

    @staticmethod
    def runs_below(root: Root) -> list[str]:
        """Return the folders that hold a run folder's data, or its manifest beside a place of data."""
        found: set[str] = set()
        named: set[str] = set()
        for entry in root.list():
            for folder, inner in _readings(entry.path):
                if inner == "job.json":
                    named.add(folder)
                elif inner.split("/", 1)[0] in PLACES and _is_data(inner):
                    found.add(folder)
        alone = "" in named and _names_a_run(root, root.list(), damaged=False)  # damaged, it may be of any format
        return [""] if "" in found or alone else _topmost(found)

    def __init__(self, root: Root) -> None:
        self._root = root
        self._entries = root.list()
        self._links = tuple(sorted(root.unfollowed()))
        self._sizes = {entry.path: entry.size for entry in self._entries}
        self._data: dict[str, list[FileEntry]] = {}
        self._whole: dict[str, tuple[Finding, ...]] = {}
        self._partitions: dict[str, tuple[Finding, ...]] = {}
        self.manifest, self.manifest_findings = self._read_manifest()

    def findings(self, table: str) -> tuple[Finding, ...]:
        """Return what is wrong with the manifest and with files of a table as a whole, before any record is read."""
        found = [*self.manifest_findings, *self._unfollowed(table)]
        if "outputs" in self._links and table != "outputs":  # then queues would be what all is judged by
            found += self._unfollowed("outputs")
        self._check_files(table)
        for entry in self._files(table):
            found += self._check_file(entry)
        for folder in sorted({posixpath.dirname(e.path) for e in self._files(table) if is_segment(e.path)}):
            found += self._check_partition(table, folder)
        return (*found, *self._missing_files(table))

    def _missing_files(self, table: str) -> Iterable[Finding]:
        """Report data files of which only the checksum file is left."""
        for path in sorted(self._sizes):
            owner = file_of(path)
            there = owner in self._sizes or owner in self._links
            if owner and owner.startswith(f"{table}/") and _is_data(owner) and not there:
                yield _finding("missing-file", "error", owner, "is gone: only its .crc is left")

    def _unfollowed(self, table: str) -> Iterator[Finding]:
        """Report links at a table, or in it, that are not followed: what they lead to may be any of its files."""
        for path in self._links:
            hidden = any(part.startswith((".", "_")) for part in path.split("/")[1:])
            if path == table or (path.startswith(f"{table}/") and not hidden):
                yield _finding(UNREAD, "error", path, _UNFOLLOWED)

    def has(self, table: str) -> bool:
        """Return whether there is any file of the table, readable or not."""
        return bool(self._files(table)) or any(self._unfollowed(table))

    def bytes_of(self, table: str) -> int:
        """Return the size of the table's files, in bytes."""
        return sum(entry.size for entry in self._files(table))

    def inputs(self, table: str, records_read: dict[str, int]) -> tuple[InputUsed, ...]:
        """Return a row per kind of file, with the intact records that a scan counted; the manifest with checkpoints."""
        rows: dict[str, list[FileEntry]] = {}
        for entry in self._files(table):
            kind = "kafka" if is_segment(entry.path) else f"native{suffix_of(entry.path)}"
            rows.setdefault(kind, []).append(entry)
        used = [
            InputUsed(
                f"{table}/",
                kind,
                sum(e.size for e in entries),
                sum(records_read.get(e.path, 0) for e in entries),
            )
            for kind, entries in sorted(rows.items())
        ]
        if table == "checkpoints" and "job.json" in self._sizes:
            used.insert(0, InputUsed("job.json", "native", self._sizes["job.json"], int(bool(self.manifest))))
        return tuple(used)

    def queues(self) -> dict[Subtask, OutputQueue]:
        """Return the persisted output queues, by subtask."""
        about = (*self.manifest_findings, *self._unfollowed("outputs"), *self._missing_files("outputs"))
        return output_queues(self._root, self._entries, self._check_file, about)

    def checkpoint_at(self, path: str) -> tuple[Subtask, int] | None:
        """Return None: a file holds records of many checkpoints."""
        return None

    def is_stored(self, uri: str) -> bool | None:
        """Return whether a state file, or folder, that a record names is there; None: it is not below PATH.

        A relative path is below PATH if the folder that it begins with is there.
        """
        if uri.startswith("/") or _SCHEME.match(uri):
            found = self._root.resolve(uri)
            inside = None if found is None else self._root.inside(found)
            if found is not None and inside is None:
                there = self._root.look_outside(uri)
                return None if there is None else there.kind != "nothing"
        else:
            inside = posixpath.normpath(uri)
            inside = inside if inside.split("/")[0] in self._folders or inside in self._sizes else None
        if inside is None or any(f"{inside}/".startswith(f"{link}/") for link in self._links):
            return None
        return inside in self._sizes or inside in self._folders

    @cached_property
    def _folders(self) -> frozenset[str]:
        return frozenset(self._root.tree().folders)

    def splits(self, table: str, split_bytes: int, wanted: RowFilter | None = None) -> Iterator[Split]:
        """Yield the splits of a table's files; files with faults are read with care, or not at all.

        `wanted` may refuse row groups of Parquet files.
        """
        self._check_files(table)
        for entry in self._files(table):
            faults = {f.id for f in self._check_file(entry) if f.severity == "error"}
            uri = self._root.uri(entry.path)
            if is_segment(entry.path):
                from cklog.parsers.kafka import log as kafka_log

                yield from kafka_log.splits(self._root, self._beside(entry), split_bytes)
                continue
            if entry.path.endswith(".parquet"):
                from cklog.parsers.tables.parquet import row_groups

                if not faults and entry.size:
                    yield from row_groups(uri, entry.path, entry.size, split_bytes, wanted)
                continue
            if faults & {UNKNOWN_VERSION, "corrupt-file"}:
                continue
            reader = jsonl.UNTRUSTED if faults else jsonl.READER
            step = split_bytes if entry.path.endswith(".jsonl") else max(entry.size, 1)
            as_one = TOGETHER if entry.size <= MOST_BYTES and not faults and entry.path.endswith(".jsonl") else ""
            for start in range(0, entry.size, step):
                yield Split(uri, entry.path, reader, start, min(start + step, entry.size), entry.size, together=as_one)

    def _files(self, table: str) -> list[FileEntry]:
        if table not in self._data:
            self._data[table] = [e for e in self._entries if e.path.startswith(f"{table}/") and _is_data(e.path)]
        return self._data[table]

    def _beside(self, segment: FileEntry) -> list[FileEntry]:
        """Return a segment of a Kafka log with its index."""
        path = segment.path.removesuffix(".log") + ".index"
        return [segment, FileEntry(path, self._sizes[path])] if path in self._sizes else [segment]

    def _check_files(self, table: str) -> None:
        """Look for the faults of all files of a table at once: those with checksums beside them are read for it."""
        summed = [e for e in self._files(table) if e.path not in self._whole and sidecar_of(e.path) in self._sizes]
        if summed:
            with stage(f"verifying {table}", "bytes", size := sum(e.size for e in summed), size=size):
                for entry in summed:
                    with portion(entry.size):
                        self._check_file(entry)

    def _check_file(self, entry: FileEntry) -> tuple[Finding, ...]:
        """Return the faults of a file as a whole: empty, wrong checksum, no Parquet footer."""
        if entry.path not in self._whole:
            self._whole[entry.path] = tuple(self._file_faults(entry))
        return self._whole[entry.path]

    def _check_partition(self, table: str, folder: str) -> tuple[Finding, ...]:
        """Return what indexes and the offsets of segments say against a Kafka partition as a whole.

        A compacted topic may leave out offsets; but events are a history, in which nothing may be missing.
        """
        if folder not in self._partitions:
            from cklog.parsers.kafka import log as kafka_log

            inside = [e for e in self._entries if posixpath.dirname(e.path) == folder]
            id = "missing-events" if table == "events" else "offset-jump"
            severity: Severity = "error" if table == "events" else "warning"
            jumps = kafka_log.unjoined(self._root.uri, inside)
            found = [_finding(id, severity, where.path, what, where.offset) for where, what in jumps]
            self._partitions[folder] = (*found, *kafka_log.reconcile(self._root.read, self._root.uri, inside))
        return self._partitions[folder]

    def _file_faults(self, entry: FileEntry) -> Iterable[Finding]:
        """Look for the faults that `_check_file` keeps: the size, the checksums beside the file, the footer."""
        if is_segment(entry.path):
            return  # an empty one waits for records; batches have checksums of their own
        sums, wrong = None, None
        if (sidecar := sidecar_of(entry.path)) in self._sizes:
            try:
                sums = self._root.read(sidecar)
                wrong = check_pieces(self._pieces(entry), sums)
            except OSError:
                pass  # not seen, and so the root says of it
        if sums is not None and not is_readable(sums):
            yield _finding("unchecked-file", "warning", entry.path, "has a .crc without a header: not verified")
        opened = partial(open_file, self._root.uri(entry.path), entry.size)
        unreadable = format_fault(entry.path, opened, wrong is not None) if entry.size else None
        if isinstance(unreadable, UnknownFormat):
            id, why = unreadable.id, f"is not read: {unreadable}. Use a newer cklog"
            if wrong is not None and is_bit_damaged(entry.path, self._root.read(entry.path), sums or b""):
                id, why = "corrupt-file", f"is not read: {unreadable}. Its .crc shows that one bit is damaged"
            yield _finding(id, "error", entry.path, why)
            return
        if wrong is not None:
            offset = wrong.offset if entry.size else None
            yield _finding("checksum-mismatch", "error", entry.path, _mismatch(entry, wrong.why), offset)
            return
        if entry.size == 0:
            yield _finding("empty-file", "warning", entry.path, EMPTY)
            return
        if unreadable is not None and not self._root.is_refused(entry.path, unreadable):
            reason = first_line(unreadable)
            yield _finding("corrupt-file", "error", entry.path, f"has no Parquet footer that can be read: {reason}")

    def _pieces(self, entry: FileEntry) -> Iterator[bytes]:
        """Read a file of any size, piece by piece."""
        with self._root.open(entry.path) as file:
            while piece := file.read(_PIECE_BYTES):
                count_bytes(len(piece))
                yield piece

    def _read_manifest(self) -> tuple[dict[str, Any], tuple[Finding, ...]]:
        if "job.json" in self._links:
            return {}, (_finding(UNREAD, "error", "job.json", _UNFOLLOWED),)
        if "job.json" not in self._sizes:
            return {}, ()
        try:
            with reading("job.json"):
                found = records.strict_json(self._root.read("job.json").rstrip(b"\n"))
                manifest = checked_manifest(found)
            told = (f"{why} If so, the answer is wrong: correct it" for why in slips_in(manifest)[:_SLIPS])
            return manifest, tuple(_finding("unknown-member", "warning", "job.json", why) for why in told)
        except UnknownFormat as error:
            return {}, (_finding(error.id, "error", "job.json", f"is not read: {error}. Use a newer cklog"),)
        except (records.NotARecord, OSError) as error:
            hint = "it is ignored: operators and failed subtasks come from the records alone"
            return {}, (_finding("bad-manifest", "error", "job.json", f"cannot be used: {error}; {hint}"),)


def _is_placed(path: str) -> bool:
    """Whether a file lies in a place of a run folder; other systems too call a folder `state` or `system`."""
    place = path.split("/", 1)[0]
    return place in PLACES and (place not in ("state", "system") or _is_data(path))


def _readings(path: str) -> Iterable[tuple[str, str]]:
    """Split a path into (folder of a run, path inside it): at the manifest, and at parts that are called like a place.

    >>> list(_readings("a/checkpoints/x.jsonl"))
    [('a', 'checkpoints/x.jsonl')]
    """
    parts = path.split("/")
    for i, part in enumerate(parts):
        if part in PLACES or (part == "job.json" and i == len(parts) - 1):
            yield "/".join(parts[:i]), "/".join(parts[i:])


def _names_a_run(root: Root, listed: Iterable[FileEntry], damaged: bool) -> bool:
    """Whether there is a manifest that is not only that of a run of another format; `damaged` if it has no meaning."""
    if not any(entry.path == "job.json" for entry in listed):
        return False
    try:
        with reading("job.json"):
            return not tells_of_outputs_alone(root.read("job.json"))
    except (OSError, ValueError, records.NotARecord):
        return damaged


def _topmost(folders: Iterable[str]) -> list[str]:
    """Return the folders that lie in no other.

    >>> _topmost(["a", "a-b", "a/x"])
    ['a', 'a-b']
    """
    kept: list[str] = []
    for folder in sorted(folders, key=lambda path: path.split("/")):  # "-" sorts before "/"
        if not kept or not folder.startswith(kept[-1] + "/"):
            kept.append(folder)
    return sorted(kept)


def _mismatch(entry: FileEntry, why: str) -> str:
    """Say what a wrong checksum of a file means for its records."""
    if entry.size == 0:
        return EMPTIED
    kept = "it is left out" if entry.path.endswith(".parquet") else _ONLY_CHECKED
    return f"does not match its .crc; {kept}: {why}"


def _is_data(path: str) -> bool:
    """Whether a file in a place holds records: by its suffix, or as a segment in a folder TOPIC-N."""
    place, *inner = path.split("/")
    if any(part.startswith((".", "_")) for part in inner):
        return False
    in_topic = len(inner) > 1 and PARTITION.fullmatch(inner[-2]) is not None
    return bool(suffix_of(path)) or (is_segment(path) and in_topic and place not in ("state", "system"))


def _finding(id: str, severity: Severity, path: str, message: str, offset: int | None = None) -> Finding:
    where = (Where(path, offset),)
    hidden: Effect = "data-lost" if path.startswith("channels/") else "older-line"  # messages choose no line
    effect = effect_of_error(severity, "unknown" if id in (UNREAD, UNKNOWN_VERSION, "bad-manifest") else hidden)
    return Finding(id=id, severity=severity, subject=path, message=f"{path} {message}", where=where, effect=effect)
