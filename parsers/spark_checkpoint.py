"""Checkpoint folders of Spark Structured Streaming (Spark 2.1 to 4.3): where a restart of the query goes on.

    metadata  offsets/N  commits/N  sources/I/N  state/    in the root, or in one folder just below it;
                                                           then a file sink's folder may lie beside that

The line is the newest batch with a commit that can be read. What was planned after it runs again with exactly its
stored range. State stores are not looked at here. The layout is in `spark_log`, the rules are in `spark_batches`
and `spark_files`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

import pyarrow as pa

from cklog.batches import Batch, BatchPlan, SourceRange
from cklog.engine import Damage, Kernel, Reduce, Scan, Split
from cklog.errors import NotFound
from cklog.model import Finding, InputUsed
from cklog.parsers import hadoop_crc
from cklog.parsers.records import BIGGEST, NotARecord, json_text
from cklog.parsers.small_tables import batch_of, whole
from cklog.parsers.spark_batches import Batches, Fact, back_to, cut, judge, judge_fresh, judge_target
from cklog.parsers.spark_files import SINK_LOG, find_sinks, judge_bare_sinks, judge_sink, judge_source
from cklog.parsers.spark_log import (
    Listing,
    Read,
    decode_commit,
    decode_initial,
    decode_metadata,
    decode_offsets,
    list_log,
    read,
)
from cklog.parsers.spark_plan import kind_of, source_ranges
from cklog.storage import Entry, Root

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
"""A `cklog.batches.Batch`, its offsets as JSON: an object of each source's end, null where they cannot be read."""

READER = "cklog.parsers.spark_checkpoint:read_batches"
_PLACE = re.compile(r"((?:[^/]+/)?)(metadata|(?:offsets|commits)/\.?[0-9]+(?:\.crc)?|(?:sources|state)/.+)")


class SparkCheckpoint:
    """One checkpoint folder, listed once; `plan` reads it."""

    name = "spark-checkpoint"
    tables: ClassVar = {"batches": BATCHES}

    @staticmethod
    def recognises(root: Root) -> bool:
        """Whether the root, or exactly one folder directly below it, is a checkpoint."""
        try:
            near = [*root.list("offsets"), *root.list("commits")]
            return bool(near and _prefixes(near + root.list("sources"))) or len(_prefixes(root.list())) == 1
        except OSError:
            return False

    def __init__(self, root: Root) -> None:
        self._root = root
        self._entries = root.list()
        prefixes = _prefixes(self._entries)
        if len(prefixes) != 1:
            raise NotFound(f"{root.path}: {len(prefixes)} Spark checkpoints in it, expected one")
        self._prefix = prefixes[0]

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
        found, facts = everything, judge_fresh(everything, self._entries)
        if as_of is not None:
            found, facts = cut(found, as_of)
        top = max(found.o, found.c)
        if at is not None and at != found.c:
            facts += judge_target(found, at)
            found = back_to(found, at) if at < found.c else found
        back = top if at is not None and max(found.o, found.c) < top else None
        sources, source_facts = self._sources(found)
        sink, newest, sink_facts = self._sink(sources, found, as_of is None and back is None)
        facts = [*facts, *judge(found), *source_facts, *sink_facts]
        planned = found.o if found.o > found.c else None
        has = newest >= planned if sink is not None and planned is not None else None
        fails = any(fact.stops for fact in facts)
        return BatchPlan(
            query_id=found.metadata.value if found.metadata is not None else None,
            committed=found.c,
            planned=planned,
            batches=_batches(found),
            sources=sources,
            sink=sink,
            sink_has_planned=has,
            fails=fails,
            restart=_restart(found.c, planned, has, fails, back),
            notes=_notes(sink, as_of, found.c),
            findings=tuple(sorted((fact.finding for fact in facts), key=_order)),
            inputs=self._inputs(everything, sink),
        )

    def findings(self, table: str) -> tuple[Finding, ...]:
        """What is wrong with the batches' files."""
        found = self._read()
        facts = [*judge_fresh(found, self._entries), *judge(found)]
        return tuple(sorted((fact.finding for fact in facts), key=_order))

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
        return Scan(whole(self._root, READER), table, columns, kernel, partial, reduce)

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

    def _read(self) -> Batches:
        """`metadata`, `offsets/` and `commits/`."""
        offsets = list_log(self._entries, f"{self._prefix}offsets")
        commits = list_log(self._entries, f"{self._prefix}commits")
        by_path = {entry.path: entry for entry in self._entries}
        entry = by_path.get(f"{self._prefix}metadata")
        side = by_path.get(f"{self._prefix}.metadata.crc")
        return Batches(
            self._prefix,
            read(self._root, entry, decode_metadata, side) if entry is not None else None,
            offsets,
            commits,
            self._read_all(offsets, decode_offsets),
            self._read_all(commits, decode_commit),
        )

    def _read_all(self, log: Listing, decode: Any) -> dict[int, Read[Any]]:
        return {
            n: read(self._root, entry, decode, log.sidecars.get(hadoop_crc.sidecar_of(entry.path)))
            for n, entry in sorted(log.files.items())
            if n not in log.compacts  # neither offsets nor commits are ever compacted
        }

    def _sources(self, found: Batches) -> tuple[tuple[SourceRange, ...], list[Fact]]:
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

    def _sink(self, sources: tuple[SourceRange, ...], found: Batches, now: bool) -> tuple[str | None, int, list[Fact]]:
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

    def _inputs(self, found: Batches, sink: str | None) -> tuple[InputUsed, ...]:
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
    yield batch_of(SparkCheckpoint(Root(split.uri)).rows(), BATCHES, columns)


def _held(value: int | None) -> int | None:
    """A number that a table can hold."""
    return value if value is not None and abs(value) < BIGGEST else None


def _text(offsets: dict[str, Any] | None) -> str | None:
    try:
        return None if offsets is None else json_text(offsets)
    except NotARecord:  # nested deeper than JSON is written
        return None


def _prefixes(entries: list[Entry]) -> tuple[str, ...]:
    """Folders, "" or "name/", with at least two of a checkpoint's parts, `metadata` or a numbered batch among them.

    >>> _prefixes([Entry("ck/metadata", 45), Entry("ck/offsets/0", 9), Entry("out/part-0", 1)])
    ('ck/',)
    """
    parts: dict[str, set[str]] = {}
    for entry in entries:
        match = _PLACE.fullmatch(entry.path)
        if match is not None:
            parts.setdefault(match[1], set()).add(match[2].split("/")[0])
    sure = {"metadata", "offsets", "commits"}
    return tuple(sorted(prefix for prefix, seen in parts.items() if len(seen) > 1 and seen & sure))


def _batches(found: Batches) -> tuple[Batch, ...]:
    made = []
    for n in sorted(found.offsets.keys() | found.commits.keys()):
        read = found.offsets.get(n)
        value = read.value if read is not None else None
        done = n in found.commits and found.commits[n].flaw is None
        time, watermark = (value.time, value.watermark) if value is not None else (None, None)
        made.append(Batch(n, done, read is not None, found.ends(n), time, watermark))
    return tuple(made)


def _restart(c: int, planned: int | None, has: bool | None, fails: bool, back: int | None) -> str:
    """Plain sentences; `back`: newest batch that going back to c has to remove first."""
    said = []
    if back is not None:
        said.append(
            f"To go back to batch {c}, on a copy of the checkpoint remove the offsets and commits {c + 1} to {back}; "
            f"a file sink's log must lose the same batches, or it skips them, and any other sink gets them twice."
        )
    if fails:
        said.append("A restart of the query fails as the files are now; the findings say why. Once they are repaired:")
    if planned is None:
        from_ = f"from the end offsets of batch {c}" if c >= 0 else "from the beginning of its sources"
        said.append(f"Nothing is in flight. A restart plans batch {c + 1} afresh, {from_}.")
        return " ".join(said)
    said.append(f"A restart runs batch {planned} again, with exactly its stored range, and goes on.")
    if planned > c + 1:
        which = f"batch {c + 1}" if planned == c + 2 else f"batches {c + 1} to {planned - 1}"
        said.append(f"It does not run {which}, for which there is no commit.")
    if has:
        said.append(f"The file sink's log has batch {planned} already, so its output is not written again.")
    elif has is False:
        said.append(f"The file sink's log does not have batch {planned}: readers by that log see it once.")
    else:
        said.append(f"A sink that is not idempotent (foreachBatch, Kafka, console) may get batch {planned} twice.")
    return " ".join(said)


def _notes(sink: str | None, as_of: int | None, c: int) -> tuple[str, ...]:
    notes = ["State stores were not checked; a stateful query also needs them as of the line."]
    if sink is None:
        notes.append(
            "The sink is not known: the checkpoint does not name it, and no single file sink's log is beside it."
        )
    if as_of is not None and c >= 0:
        notes.append(f"Commits carry no time: at that moment batch {c} may still have been running.")
    return tuple(notes)


def _order(finding: Finding) -> tuple[Any, ...]:
    return finding.subject, finding.id, finding.message
