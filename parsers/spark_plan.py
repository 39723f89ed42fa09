"""What a restart of a Spark Structured Streaming query would do, as values; and the ranges of its sources.

Offsets by source, as Spark writes them: file source {"logOffset": n}, n the newest batch of its own log; rate source
a number; Kafka {topic: {partition: next offset}}; any other keeps its own JSON.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from cklog.model import Finding, InputUsed, Where

Kind = Literal["file", "rate", "kafka", "other"]
Found = int | Literal["outside"] | None


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch that left an offsets or commits file. `offsets`: end per source, None if they cannot be read."""

    batch: int
    committed: bool
    planned: bool
    offsets: dict[str, Any] | None
    time: int | None
    watermark: int | None


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that the batch in flight reads; `size` in bytes, None if missing, "outside" if not looked at."""

    path: str
    size: Found
    where: Where


@dataclass(frozen=True, slots=True)
class SourceRange:
    """From where to where a source is read by the batch in flight; with none in flight, `end` is None.

    `start` is the end of the last committed batch. A None is the source's beginning (start) or no data yet (end) if
    `start_known` / `end_known`, and otherwise unknown: the file that holds it is missing or damaged. Where commits are
    missing between the line and the batch in flight, this is more than a restart reads.
    """

    source: str
    kind: Kind
    start: Any
    end: Any
    start_known: bool = True
    end_known: bool = True
    files: tuple[InputFile, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """Stored paths of input files that are no longer there."""
        return tuple(file.path for file in self.files if file.size is None)


@dataclass(frozen=True, slots=True)
class SparkPlan:
    """The recovery plan. `committed` is the line: the last batch that is done, -1 for none.

    `planned` is the batch in flight, which a restart runs again with its stored range. `sink` is the folder of the
    file sink, None if none was found; `sink_has_planned` whether its log already lists the batch in flight.
    `fails`: a restart of the query stops with an error, as the files are now.
    """

    query_id: str | None
    committed: int
    planned: int | None
    batches: tuple[Batch, ...]
    sources: tuple[SourceRange, ...]
    sink: str | None
    sink_has_planned: bool | None
    fails: bool
    restart: str
    notes: tuple[str, ...]
    findings: tuple[Finding, ...]
    inputs: tuple[InputUsed, ...]


Ends = dict[str, Any] | None
"""End offset per source; None: unknown."""


def kind_of(*offsets: Any) -> Kind:
    """What wrote an offset, by its form.

    >>> kind_of({"logOffset": 3}), kind_of(34), kind_of(None, {"clicks": {"0": 23}}), kind_of({"version": 1})
    ('file', 'rate', 'kafka', 'other')
    """
    for value in offsets:
        if log_offset(value) is not None:
            return "file"
        if is_count(value):
            return "rate"
        if _is_kafka(value):
            return "kafka"
    return "other"


def log_offset(value: Any) -> int | None:
    """The number in a file source's offset."""
    if isinstance(value, dict) and value.keys() == {"logOffset"} and is_count(value["logOffset"]):
        return int(value["logOffset"])
    return None


def is_count(value: Any) -> bool:
    """A JSON integer, which `true` is not."""
    return isinstance(value, int) and not isinstance(value, bool)


def _is_kafka(value: Any) -> bool:
    if not isinstance(value, dict) or not value:
        return False
    return all(isinstance(partitions, dict) and _are_partitions(partitions) for partitions in value.values())


def _are_partitions(partitions: dict[str, Any]) -> bool:
    return bool(partitions) and all(
        key.isascii() and key.isdigit() and is_count(offset) for key, offset in partitions.items()
    )


def source_ranges(start: Ends, end: Ends, kind: Kind, planned: bool) -> list[SourceRange]:
    """One range, or one a partition for Kafka, of the one source that `start` and `end` name."""
    [key] = {*(start or ()), *(end or ())}
    begin, stop = (start or {}).get(key), (end or {}).get(key)
    known = (start is not None, end is not None or not planned)
    found = list(_partitions(begin, stop, known)) if kind == "kafka" else []
    return found or [SourceRange(f"source/{key}", kind, begin, stop, *known)]


def _partitions(start: Any, end: Any, known: tuple[bool, bool]) -> Iterable[SourceRange]:
    starts, ends = _by_partition(start), _by_partition(end)
    for topic, partition in sorted(starts.keys() | ends.keys()):
        pair = (starts.get((topic, partition)), ends.get((topic, partition)))
        yield SourceRange(f"{topic}-{partition}", "kafka", *pair, *known)


def _by_partition(value: Any) -> dict[tuple[str, int], int]:
    if not _is_kafka(value):
        return {}
    return {(topic, int(p)): offset for topic, parts in value.items() for p, offset in parts.items()}


def went_back(start: Any, end: Any) -> bool:
    """Whether a source's end lies before its start, where both can be compared.

    >>> went_back(33, 34), went_back(33, 3), went_back({"t": {"0": 5}}, {"t": {"0": 4}}), went_back(None, 3)
    (False, True, True, False)
    """
    if is_count(start) and is_count(end):
        return bool(end < start)
    begin, stop = log_offset(start), log_offset(end)
    if begin is not None and stop is not None:
        return stop < begin
    starts, ends = _by_partition(start), _by_partition(end)
    return any(0 <= ends[key] < starts[key] for key in starts.keys() & ends.keys())
