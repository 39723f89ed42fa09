"""Checkpoint folders of Spark Structured Streaming (Spark 2.1 to 4.3): where a restart of the query goes on.

    metadata  offsets/N  commits/N  sources/I/N  state/    in the root, or in one folder just below it;
                                                           then a file sink's folder may lie beside that

The line is the newest batch with a commit that can be read, whose state every store can load. What was planned after
it runs again with exactly its stored range. The layout is in `spark_log` and `spark_state`, the rules are in
`spark_batches`, `spark_files` and `spark_state_line`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Any, ClassVar

import pyarrow as pa

from cklog.engine import Damage, Kernel, Reduce, Scan, Split
from cklog.errors import NotFound
from cklog.inputs.batches import Batch, BatchPlan, SourceRange
from cklog.inputs.offers import KindName
from cklog.inputs.pieces import PiecesRead, Together
from cklog.inputs.sink_files import SinkFiles
from cklog.model.findings import Finding, InputUsed
from cklog.parsers.codecs import hadoop_crc
from cklog.parsers.spark.batches import Fact, MetadataLogs, back_to, cut, judge, judge_fresh, judge_target
from cklog.parsers.spark.file_logs import SINK_LOG, find_sinks, judge_bare_sinks, judge_sink, judge_source, read_twice
from cklog.parsers.spark.metadata_log import (
    FileRead,
    Listing,
    decode_commit,
    decode_initial,
    decode_metadata,
    decode_offsets,
    list_log,
    read,
)
from cklog.parsers.spark.plan import kind_of, restart, source_ranges
from cklog.parsers.spark.sink import sink_files
from cklog.parsers.spark.state.facts import chain_note, state_facts, state_notes
from cklog.parsers.spark.state.line import State
from cklog.parsers.tables.records import BIGGEST, NotARecord, batch_of_rows, json_text
from cklog.parsers.tables.records_parser import whole_folder
from cklog.storage import FileEntry, Root

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
_PARTS = r"(metadata|(?:offsets|commits)/\.?[0-9]+(?:\.crc)?|(?:sources|state)/.+)"
_PLACE = re.compile(r"((?:[^/]+/)?)" + _PARTS)
_ANYWHERE = re.compile(r"((?:[^/]+/)*?)" + _PARTS)


class SparkCheckpoint:
    """One checkpoint folder, listed once; `plan` reads it."""

    name = "spark-checkpoint"
    kind: KindName = "batches"
    tables: ClassVar = {"batches": BATCHES}
    restored_together: Together = "run"
    """State stores of one query go back to one batch."""
    gathers = False
    owns_below = False
    reads_beside: tuple[str, ...] = ()

    @staticmethod
    def recognises(root: Root) -> bool:
        """Whether the root, or exactly one folder directly below it, is a checkpoint."""
        try:
            near = [*root.list("offsets"), *root.list("commits")]
            return bool(near and _prefixes(near + root.list("sources"))) or len(_prefixes(root.list())) == 1
        except OSError:
            return False

    @staticmethod
    def runs_below(root: Root) -> list[str]:
        """Return the folders with at least two of a checkpoint's parts."""
        return [prefix.rstrip("/") for prefix in _prefixes(root.list(), _ANYWHERE)]

    def __init__(self, root: Root) -> None:
        self._root = root
        entries = root.list()
        prefixes = _prefixes(entries)
        if len(prefixes) != 1:
            raise NotFound(f"{root.path}: {len(prefixes)} Spark checkpoints in it, expected one")
        self._prefix = prefixes[0]
        state = f"{self._prefix}state/"
        self._state_files = [entry for entry in entries if entry.path.startswith(state)]
        self._entries = [entry for entry in entries if not entry.path.startswith(state)]

    def plan(self, as_of: int | None = None, at: int | None = None) -> BatchPlan:
        """What a restart does.

        Parameters
        ----------
        as_of : leave out batches planned after this time (ms since the epoch)
        at : plan to go back to this batch instead of the newest commit

        Raises
        ------
        NotFound : there is no batch `at`. Damage is a finding, never raised
        """
        everything = self._read()
        asked, back, facts = self._asked(everything, as_of, at)
        state = State(self._root, self._state_files, asked)
        judged = state.judge()
        facts += [*judge(asked), *state_facts(state, judged)]
        found = asked
        rolled_back: tuple[int, ...] = ()
        if judged.batch < asked.c:
            found, back = back_to(asked, judged.batch), max(everything.o, everything.c)
            rolled_back = tuple(n for n, read in asked.commits.items() if n > judged.batch and read.flaw is None)
            facts += [*judge(found), *self._sources(asked)[1]]
        sources, source_facts = self._sources(found)
        sink, newest, sink_facts = self._sink(sources, found, as_of is None and back is None)
        facts += [*source_facts, *sink_facts]
        planned = found.o if found.o > found.c else None
        has = newest >= planned if sink is not None and planned is not None else None
        fails = any(fact.stops for fact in facts)
        return BatchPlan(
            query_id=found.metadata.value if found.metadata is not None else None,
            committed=found.c,
            planned=planned,
            batches=_batches(asked),
            sources=sources,
            sink=sink,
            sink_has_planned=has,
            fails=fails,
            restart=restart(found.c, planned, has, fails, back, rolled_back),
            notes=(*state_notes(state, judged), *_notes(sink, as_of, found.c)),
            findings=_sorted(facts),
            inputs=(*self._inputs(everything, sink), *state.inputs(self.name)),
            rolled_back=rolled_back,
            stores=tuple(state.rows(judged.batch)),
            unjudged=judged.unjudged,
            remove=() if back is None else self._later(everything, found.c, state),
        )

    def _asked(
        self, everything: MetadataLogs, as_of: int | None, at: int | None
    ) -> tuple[MetadataLogs, int | None, list[Fact]]:
        """The batches that are asked about, and the newest that going back to them removes; None: nothing is."""
        found, facts = everything, judge_fresh(everything, self._state_files)
        if as_of is not None:
            found, facts = cut(found, as_of)
        top = max(found.o, found.c)
        if at is not None and at != found.c:
            facts += judge_target(found, at)
            found = back_to(found, at) if at < found.c else found
        return found, top if at is not None and max(found.o, found.c) < top else None, facts

    def pieces(self) -> PiecesRead:
        """Every state file up to the newest commit's version, each read, as rows of `cklog.inputs.pieces.PIECES`."""
        found = self._read()
        state = State(self._root, self._state_files, found)
        state.read_all()
        judged = state.judge()
        facts = [*judge_fresh(found, self._state_files), *state_facts(state, judged)]
        return PiecesRead(state.table(), _sorted(facts), state.inputs(self.name), (chain_note(judged),))

    def _later(self, everything: MetadataLogs, batch: int, state: State) -> tuple[str, ...]:
        """What goes when the query goes back to `batch`: newer plans, commits and versions, with their checksums."""
        logs = (everything.offset_log.files, everything.commit_log.files)
        paths = [entry.path for files in logs for n, entry in files.items() if n > batch] + state.later_files(batch)
        sides = {entry.path for entry in self._entries} | {entry.path for entry in self._state_files}
        with_sums = [*paths, *(side for side in map(hadoop_crc.sidecar_of, paths) if side in sides)]
        return tuple(sorted(with_sums))

    def sink_files(self, folder: str) -> SinkFiles:
        """What lies in the file sink's folder, against its log."""
        return sink_files(self._root, self._entries, folder)

    def findings(self, table: str) -> tuple[Finding, ...]:
        """What is wrong with the batches' files."""
        found = self._read()
        return _sorted([*judge_fresh(found, self._state_files), *judge(found)])

    def scan(
        self,
        table: str,
        columns: tuple[str, ...],
        kernel: Kernel,
        partial: pa.Schema,
        reduce: Reduce | None,
        split_bytes: int,
    ) -> Scan:
        """A scan of all batches, in one split."""
        return Scan(whole_folder(self._root, READER), table, columns, kernel, partial, reduce)

    def rows(self) -> list[dict[str, Any]]:
        """The batches as rows of `BATCHES`, each with the file that tells of it: of its offsets, else of its commit."""
        found = self._read()
        made = []
        for one in _batches(found):
            log = found.offset_log if one.planned else found.commit_log
            told = {"time": _held(one.time), "watermark": _held(one.watermark), "offsets": _text(one.offsets)}
            row = {"batch": one.batch, "planned": one.planned, "committed": one.committed}
            made.append(row | told | {"_path": log.files[one.batch].path, "_offset": 0})
        return made

    def _read(self) -> MetadataLogs:
        """`metadata`, `offsets/` and `commits/`."""
        offsets = list_log(self._entries, f"{self._prefix}offsets")
        commits = list_log(self._entries, f"{self._prefix}commits")
        by_path = {entry.path: entry for entry in self._entries}
        entry = by_path.get(f"{self._prefix}metadata")
        side = by_path.get(f"{self._prefix}.metadata.crc")
        return MetadataLogs(
            self._prefix,
            read(self._root, entry, decode_metadata, side) if entry is not None else None,
            offsets,
            commits,
            self._read_all(offsets, decode_offsets),
            self._read_all(commits, decode_commit),
        )

    def _read_all(self, log: Listing, decode: Any) -> dict[int, FileRead[Any]]:
        return {
            n: read(self._root, entry, decode, log.sidecars.get(hadoop_crc.sidecar_of(entry.path)))
            for n, entry in sorted(log.files.items())
            if n not in log.compacts  # neither offsets nor commits are ever compacted
        }

    def _sources(self, found: MetadataLogs) -> tuple[tuple[SourceRange, ...], list[Fact]]:
        """Ranges from the end of the line to the end of the newest plan, with the files of file sources."""
        c, o = found.c, found.o
        end = found.ends(o) if o > c else None
        start = found.ends(c) if c >= 0 else self._initial(end or {})
        keys = dict.fromkeys([*(start or ()), *(end or ())])
        ranges: list[SourceRange] = []
        facts: list[Fact] = []
        for key in keys:
            folder = f"{self._prefix}sources/{key}"
            kind = kind_of(*(ends.get(key) for ends in (end, start) if ends is not None))
            pair = [None if ends is None else {key: ends.get(key)} for ends in (start, end)]
            made = source_ranges(pair[0], pair[1], kind, planned=o > c)
            twin = _twin(key, keys, start, end)
            if kind == "file" and twin is not None and not list_log(self._entries, folder).files:
                ranges, facts = ranges + made, [*facts, Fact(read_twice(folder, twin))]
                continue
            first, more = judge_source(self._root, self._entries, folder, made[0])
            ranges += [first, *made[1:]]
            facts += more
        return tuple(ranges), facts

    def _initial(self, ends: dict[str, Any]) -> dict[str, Any]:
        """Where Kafka sources began, for batch 0; other sources begin at their beginning."""
        found: dict[str, Any] = dict.fromkeys(ends)
        for key in ends:
            log = list_log(self._entries, f"{self._prefix}sources/{key}")
            if kind_of(ends[key]) == "kafka" and 0 in log.files:
                found[key] = read(self._root, log.files[0], decode_initial, None).value
        return found

    def _sink(
        self, sources: tuple[SourceRange, ...], found: MetadataLogs, now: bool
    ) -> tuple[str | None, int, list[Fact]]:
        """The file sink's folder, the newest batch in its log, and what is wrong with it."""
        sinks = find_sinks(self._entries, self._prefix)
        if len(sinks) == 1:
            newest, facts = judge_sink(self._root, self._entries, sinks[0], found.o, found.c)
            if not now:  # of an older line the sink is ahead, and that is no damage
                facts = [fact for fact in facts if fact.finding.id != "sink-log-ahead"]
            return sinks[0], newest, facts
        inputs = [file.path for source in sources for file in source.files]
        done = not sinks and found.c >= 0
        return None, -1, judge_bare_sinks(self._entries, self._prefix, inputs) if done else []

    def _inputs(self, found: MetadataLogs, sink: str | None) -> tuple[InputUsed, ...]:
        offsets = sum(read.flaw is None for read in found.offsets.values())
        commits = sum(read.flaw is None for read in found.commits.values())
        used = [
            InputUsed(found.offset_log.folder, self.name, found.offset_log.bytes(), offsets),
            InputUsed(found.commit_log.folder, self.name, found.commit_log.bytes(), commits),
        ]
        folders = [f"{self._prefix}sources"] + ([f"{sink}/{SINK_LOG}"] if sink is not None else [])
        for folder in folders:
            size = sum(entry.size for entry in self._entries if entry.path.startswith(folder + "/"))
            used.append(InputUsed(folder, self.name, size, None))
        return tuple(used)


def read_batches(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch | Damage]:
    """The batches, as `BATCHES`; a `cklog.engine.Reader`. What is wrong is among the findings."""
    yield batch_of_rows(SparkCheckpoint(Root(split.uri)).rows(), BATCHES, columns)


def _held(value: int | None) -> int | None:
    """A number that a table can hold."""
    return value if value is not None and abs(value) < BIGGEST else None


def _text(offsets: dict[str, Any] | None) -> str | None:
    try:
        return None if offsets is None else json_text(offsets)
    except NotARecord:  # nested deeper than JSON is written
        return None


def _prefixes(entries: list[FileEntry], place: re.Pattern[str] = _PLACE) -> tuple[str, ...]:
    """Folders with at least two of a checkpoint's parts, `metadata` or a numbered batch among them.

    "" or "name/", or of any depth with `_ANYWHERE` as the place.

    >>> _prefixes([FileEntry("ck/metadata", 45), FileEntry("ck/offsets/0", 9), FileEntry("out/part-0", 1)])
    ('ck/',)
    """
    parts: dict[str, set[str]] = {}
    for entry in entries:
        match = place.fullmatch(entry.path)
        if match is not None:
            parts.setdefault(match[1], set()).add(match[2].split("/")[0])
    sure = {"metadata", "offsets", "commits"}
    return tuple(sorted(prefix for prefix, seen in parts.items() if len(seen) > 1 and seen & sure))


def _batches(found: MetadataLogs) -> tuple[Batch, ...]:
    made = []
    for n in sorted(found.offsets.keys() | found.commits.keys()):
        read = found.offsets.get(n)
        value = read.value if read is not None else None
        done = n in found.commits and found.commits[n].flaw is None
        time, watermark = (value.time, value.watermark) if value is not None else (None, None)
        made.append(Batch(n, done, read is not None, found.ends(n), time, watermark))
    return tuple(made)


def _notes(sink: str | None, as_of: int | None, c: int) -> tuple[str, ...]:
    notes = []
    if sink is None:
        notes.append(
            "The sink is not known: the checkpoint does not name it, and no single file sink's log is beside it."
        )
    if as_of is not None and c >= 0:
        notes.append(f"Commits carry no time: at that moment batch {c} may still have been running.")
    return tuple(notes)


def _twin(key: str, keys: Iterable[str], *ends: dict[str, Any] | None) -> str | None:
    """A source before this one with the same offsets, where they are known."""
    known = [end for end in ends if end is not None]
    before = takewhile(lambda other: other != key, keys)
    return next((other for other in before if all(end.get(other) == end.get(key) for end in known)), None)


def _sorted(facts: Iterable[Fact]) -> tuple[Finding, ...]:
    """Each finding once, by where it is."""
    return tuple(sorted({fact.finding for fact in facts}, key=_order))


def _order(finding: Finding) -> tuple[Any, ...]:
    return finding.subject, finding.id, finding.message
