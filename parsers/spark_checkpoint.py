"""Checkpoint folders of Spark Structured Streaming (Spark 2.1 to 4.3): where a restart of the query goes on.

    <root>/metadata  offsets/  commits/  sources/  state/        or the same in one folder below the root, with a file
                                                                 sink's folder beside it

The line is the newest batch with a commit that can be read. What was planned after it runs again with exactly its stored
range. State stores are not looked at here. The layout is in `spark_log`, the rules in `spark_batches` and `spark_files`.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

from cklog.errors import NotFound
from cklog.model import InputUsed
from cklog.parsers import hadoop_crc
from cklog.parsers.spark_batches import Batches, Fact, judge
from cklog.parsers.spark_files import find_bare_sinks, find_sinks, judge_sink, judge_source
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
from cklog.parsers.spark_plan import SourceRange, SparkPlan, source_ranges
from cklog.storage import Root

T = TypeVar("T")

_PARTS = ("metadata", "offsets/", "commits/", "sources/", "state/")
_NUMBERED = re.compile(r"(?:[^/]+/)?(?:offsets|commits)/\.?[0-9]+(?:\.crc)?")


class SparkCheckpoint:
    """One checkpoint folder, listed once; `plan` reads it."""

    name = "spark-checkpoint"

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

    def plan(self, as_of: int | None = None, at: int | None = None) -> SparkPlan:
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
        found, facts = (everything, judge(everything)) if as_of is None else _cut(everything, as_of)
        if at is not None and at != found.c:
            facts += _judge_target(found, at)
            if at < found.c:
                found = _back_to(found, at)
        now = as_of is None and at is None
        c, o = found.c, found.o
        sources, source_facts = self._sources(found)
        sink, newest, sink_facts = self._sink(sources, o, c, now)
        facts = [*facts, *source_facts, *sink_facts]
        planned = o if o > c else None
        has = newest >= planned if sink is not None and planned is not None else None
        fails = any(fact.stops for fact in facts)
        return SparkPlan(
            query_id=found.metadata.value if found.metadata is not None else None,
            committed=c,
            planned=planned,
            batches=_batches(found),
            sources=sources,
            sink=sink,
            sink_has_planned=has,
            fails=fails,
            restart=_restart(c, planned, has, fails, at if at is not None and at == c else None),
            notes=self._notes(sink, as_of, c, found),
            findings=tuple(sorted((fact.finding for fact in facts), key=_order)),
            inputs=self._inputs(everything, sink),
        )

    def _read(self) -> Batches:
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
        start = found.ends(c) if c >= 0 else self._initial(found.ends(o))
        end = found.ends(o) if o > c else None
        facts: list[Fact] = []
        ranges: list[SourceRange] = []
        judged: set[str] = set()
        for source in source_ranges(start, end, c < 0, o > c):
            key = source.source.removeprefix("source/")
            if source.kind == "kafka":
                ranges.append(source)
                continue
            judged.add(key)
            source, more = judge_source(self._root, self._entries, f"{self._prefix}sources/{key}", source)
            ranges.append(source)
            facts += more
        return tuple(ranges), facts

    def _initial(self, ends: dict[str, Any] | None) -> dict[str, Any]:
        """Where Kafka sources began, for batch 0; other sources begin at their beginning."""
        found: dict[str, Any] = {}
        for key in ends or ():
            log = list_log(self._entries, f"{self._prefix}sources/{key}")
            if 0 in log.files:
                value = read(self._root, log.files[0], decode_initial, None).value
                found |= {key: value} if isinstance(value, dict) and "path" not in value else {}
        return found

    def _sink(
        self, sources: tuple[SourceRange, ...], o: int, c: int, now: bool
    ) -> tuple[str | None, int, list[Fact]]:
        sinks = find_sinks(self._entries, self._prefix)
        if len(sinks) == 1:
            newest, facts = judge_sink(self._root, self._entries, sinks[0], o, c)
            if not now:  # then the sink is ahead of the line, which is no damage
                facts = [fact for fact in facts if fact.finding.id != "sink-log-ahead"]
            return sinks[0], newest, facts
        inputs = [file.path for source in sources for file in source.files]
        bare = find_bare_sinks(self._entries, self._prefix, inputs) if not sinks and c >= 0 else ()
        return None, -1, [Fact(_bare(folder)) for folder in bare]

    def _notes(self, sink: str | None, as_of: int | None, c: int, found: Batches) -> tuple[str, ...]:
        notes = ["State stores were not checked: a restart also needs them at the version after the line."]
        if sink is None:
            notes.append("The sink is not known: the checkpoint does not name it, and no file sink's log is beside it.")
        if as_of is not None and c >= 0:
            notes.append(f"Commits carry no time: at that moment batch {c} may still have been running.")
        return tuple(notes)

    def _inputs(self, found: Batches, sink: str | None) -> tuple[InputUsed, ...]:
        pass
