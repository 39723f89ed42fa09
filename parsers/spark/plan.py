"""What a restart does: the ranges that a batch reads from each source, out of the offsets that Spark writes.

Offsets by source, as Spark writes them: file source {"logOffset": n}, n the newest batch of its own log; rate source
a number; Kafka {topic: {partition: next offset}}; any other keeps its own JSON.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cklog.inputs.batches import SourceKind, SourceRange

Ends = dict[str, Any] | None
"""End offset per source; None: unknown."""


def kind_of(*offsets: Any) -> SourceKind:
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


def source_ranges(start: Ends, end: Ends, kind: SourceKind, planned: bool) -> list[SourceRange]:
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


def restart(
    c: int, planned: int | None, has: bool | None, fails: bool, back: int | None, rolled_back: tuple[int, ...]
) -> str:
    """What a restart does, in plain sentences.

    Parameters
    ----------
    c, planned, has : the line, the batch in flight, and whether the file sink has it
    fails : the restart fails as the files are now
    back : newest batch that going back to c has to remove first
    rolled_back : committed batches whose state cannot be loaded
    """
    said = []
    if rolled_back:
        said.append("A restart of the query fails as the files are now; the findings name the state files.")
    if back is not None:
        said.append(_going_back(c, back))
    if fails and not rolled_back:
        said.append("A restart of the query fails as the files are now; the findings say why. Once they are repaired:")
    if rolled_back and c < 0:
        return " ".join(said)
    if planned is None:
        from_ = f"from the end offsets of batch {c}" if c >= 0 else "from the beginning of its sources"
        said.append(
            f"{'Then nothing' if back is not None else 'Nothing'} is in flight. "
            f"A restart plans batch {c + 1} afresh, {from_}."
        )
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


def _going_back(c: int, back: int) -> str:
    """State files of later versions go as well: else a later restart may load a snapshot of the abandoned batches."""
    if c < 0:
        return (
            "To begin anew, use an empty checkpoint folder: all input is read again, and a sink that is not "
            "idempotent gets it twice."
        )
    which = f"{c + 1}" if back == c + 1 else f"{c + 1} to {back}"
    return (
        f"To go back to batch {c}, on a copy of the checkpoint remove the offsets and commits {which}, and the state "
        f"files of versions above {c + 1}; a file sink's log must lose the same batches, or it skips them, and any "
        "other sink gets them twice."
    )
