"""The ranges that a batch reads from each source, out of the offsets that Spark writes.

Offsets by source, as Spark writes them: file source {"logOffset": n}, n the newest batch of its own log; rate source
a number; Kafka {topic: {partition: next offset}}; any other keeps its own JSON.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cklog.batches import Kind, SourceRange

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
