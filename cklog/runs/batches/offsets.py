"""Offsets of sources, as Spark writes them: what wrote one, and the ranges that a batch reads.

By source: file source {"logOffset": n}, n the newest batch of its own log; rate source a number; Kafka {topic:
{partition: next offset}}; any other keeps its own JSON. That is why values here are of any type.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from cklog.inputs.batches import FoundSize
from cklog.model.findings import Where
from cklog.model.lines import UNREAD_POSITION
from cklog.model.values import is_integer

Ends = dict[str, Any] | None
"""The end offset of each source; None: unknown."""

SourceKind = Literal["file", "rate", "kafka", "other"]


class InputFile(NamedTuple):
    """A file that the batch in flight reads; `size` in bytes, None if missing, "outside" if not looked at."""

    path: str
    size: FoundSize
    where: Where


class SourceRange(NamedTuple):
    """From where to where a source is read by the batch in flight; with none in flight, `end` is None.

    `start` is the end of the last committed batch. A None is the source's beginning (start) or no data yet (end) if
    `start_known` / `end_known`, and otherwise unknown: the file that holds it is missing or damaged. Where commits are
    missing between the line and the batch in flight, this is more than a restart reads. `listed`: `files` are all that
    the batch in flight reads; False: part of the source's log that lists them is missing or damaged. `ahead` are files
    that the log lists behind the range, which later batches read; None: what it lists there is not known.
    """

    source: str
    kind: SourceKind
    start: Any
    end: Any
    start_known: bool = True
    end_known: bool = True
    files: tuple[InputFile, ...] = ()
    listed: bool = True
    ahead: tuple[InputFile, ...] | None = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """Stored paths of input files of the batch in flight that are no longer there."""
        return tuple(file.path for file in self.files if file.size is None)

    @property
    def missing_ahead(self) -> tuple[str, ...]:
        """Stored paths of files that are listed for the next batch, and no longer there."""
        return tuple(file.path for file in self.ahead or () if file.size is None)


def start_of(source: SourceRange) -> Any:
    """Return where a source starts, as answers show it: None is its beginning."""
    return source.start if source.start_known else UNREAD_POSITION


def end_of(source: SourceRange) -> Any:
    """Return where the batch in flight ends in a source, as answers show it: None is no end."""
    return source.end if source.end_known else UNREAD_POSITION


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


def kind_of(*offsets: Any) -> SourceKind:
    """Tell what wrote offsets of one source, by the form of the first that has one.

    >>> kind_of({"logOffset": 3}), kind_of(34), kind_of(None, {"clicks": {"0": 23}}), kind_of({"version": 1})
    ('file', 'rate', 'kafka', 'other')
    """
    for value in offsets:
        if log_offset(value) is not None:
            return "file"
        if is_integer(value):
            return "rate"
        if _is_kafka(value):
            return "kafka"
    return "other"


def log_offset(value: Any) -> int | None:
    """Return the number in a file source's offset, None if it is none."""
    if isinstance(value, dict) and value.keys() == {"logOffset"} and is_integer(value["logOffset"]):
        return int(value["logOffset"])
    return None


def _is_kafka(value: Any) -> bool:
    if not isinstance(value, dict) or not value:
        return False
    return all(isinstance(partitions, dict) and _are_partitions(partitions) for partitions in value.values())


def _are_partitions(partitions: dict[str, Any]) -> bool:
    return bool(partitions) and all(
        key.isascii() and key.isdigit() and is_integer(offset) for key, offset in partitions.items()
    )


def source_ranges(start: Ends, end: Ends, kind: SourceKind, planned: bool) -> list[SourceRange]:
    """Return one range, or one a partition for Kafka, of the one source that `start` and `end` name.

    `planned`: a batch is in flight, so that its end should be known.
    """
    [key] = {*(start or ()), *(end or ())}
    whole = SourceRange(
        source=f"source/{key}",
        kind=kind,
        start=(start or {}).get(key),
        end=(end or {}).get(key),
        start_known=start is not None,
        end_known=end is not None or not planned,
    )
    found = [*_partition_ranges(whole)] if kind == "kafka" else []
    return found or [whole]


def _partition_ranges(whole: SourceRange) -> Iterable[SourceRange]:
    """Cut the range of a Kafka source into those of its partitions."""
    starts, ends = _offsets_by_partition(whole.start), _offsets_by_partition(whole.end)
    for place in sorted(starts.keys() | ends.keys()):
        name = f"{place.topic}-{place.partition}"
        yield whole._replace(source=name, start=starts.get(place), end=ends.get(place))


def _offsets_by_partition(value: Any) -> dict[TopicPartition, int]:
    if not _is_kafka(value):
        return {}
    found: dict[TopicPartition, int] = {}
    for topic, partitions in value.items():
        found |= {TopicPartition(topic, int(number)): offset for number, offset in partitions.items()}
    return found


def went_back(start: Any, end: Any) -> bool:
    """Return whether a source's end lies before its start, where both can be compared.

    >>> went_back(33, 34), went_back(33, 3), went_back({"t": {"0": 5}}, {"t": {"0": 4}}), went_back(None, 3)
    (False, True, True, False)
    >>> went_back({"logOffset": 3}, {"logOffset": 1}), went_back({"logOffset": 3}, {"logOffset": 3})
    (True, False)
    """
    if is_integer(start) and is_integer(end):
        return bool(end < start)
    begin, stop = log_offset(start), log_offset(end)
    if begin is not None and stop is not None:
        return stop < begin
    starts, ends = _offsets_by_partition(start), _offsets_by_partition(end)
    return any(0 <= ends[key] < starts[key] for key in starts.keys() & ends.keys())


def records_between(start: object, end: object) -> int | None:
    """Return how many offsets lie between two of Kafka's, {topic: {partition: offset}}; None: of another form."""
    if not isinstance(start, dict) or not isinstance(end, dict):
        return None
    total = 0
    for topic, partitions in end.items():
        before = start.get(topic)
        if not isinstance(partitions, dict) or not isinstance(before, dict):
            return None
        for partition, offset in partitions.items():
            first = before.get(partition)
            if not (is_integer(offset) and is_integer(first)):
                return None
            total += max(offset - first, 0)
    return total
