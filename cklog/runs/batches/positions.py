"""Files below `sources/` in which a source keeps a position of its own: where it began, or how far each shard is.

Read off Spark 3.5 and 4.3: a rate source without its start time takes a new one. A restart then fails as soon as it
plans a batch, for that would end before it starts; a batch in flight runs with its stored range, and after it the
source goes on, with other times in its rows. Read in the sources of the connectors: Kafka's is asked for its beginning
only where no batch is committed, and Kinesis' reads the shard files of the batch before when it plans a batch.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from typing import Any

from cklog.inputs.batches import LogListing, MetadataLogs
from cklog.inputs.offers import OffersBatches
from cklog.model.values import is_integer
from cklog.model.wording import first_few
from cklog.runs.batches.facts import Fact, checksum_findings, file_finding, flaw_facts
from cklog.runs.batches.offsets import SourceKind
from cklog.runs.batches.targets import way_back

_BACK = "Put the file back from a backup"
_TIMED_WITHIN = 3
"""Seconds by which the offsets of a rate source may differ from the times of its batches."""

_BATCH = re.compile(r"(0|[1-9][0-9]{0,17})")
_EXAMPLES = 3


def position_facts(parser: OffersBatches, logs: MetadataLogs, key: str, kind: SourceKind) -> Iterable[Fact]:
    """Yield what is wrong with the files of a source that keeps no log of files."""
    yield from _beginning_facts(parser, logs, key, kind)
    yield from _shard_facts(parser, logs, key)


def _beginning_facts(parser: OffersBatches, logs: MetadataLogs, key: str, kind: SourceKind) -> Iterable[Fact]:
    """Judge the file that says where a source began."""
    read = parser.first_offset(key, verify=True)
    listing = parser.source_listing(key)
    if read is None:
        yield from _lost_beginning(logs, listing, key, kind)
        return
    then = f"The restart fails. {_BACK}."
    yield from flaw_facts(read, "error", then, stops=True)
    yield from map(Fact, checksum_findings([read]))
    known = kind == "kafka" or (kind == "rate" and not _counts_otherwise(logs, key))
    if known and read.flaw is None and read.value is None:
        message = f"{read.path} does not begin with a version, and the source needs one there. {then}"
        yield Fact(file_finding("torn-batch-file", "error", read.path, message, 0), stops=True)


def _lost_beginning(logs: MetadataLogs, listing: LogListing, key: str, kind: SourceKind) -> Iterable[Fact]:
    """Judge a source whose file is not there, or never was: only rate and Kafka sources are known to keep one."""
    path = f"{listing.folder}/0"
    if 0 in listing.orphans:
        message = (
            f"{path} is missing; only its checksum file is left. The source cannot create the file again, so the "
            f"restart fails. {_BACK}."
        )
        yield Fact(file_finding("missing-source-log", "error", path, message), stops=True)
    elif kind == "rate" and not _counts_otherwise(logs, key):
        yield _without_start_time(logs, path, key)
    elif kind == "kafka" and logs.committed >= 0:
        message = (
            f"{path} is missing. The file only records where the query began: a restart resumes from the offsets of "
            f"batch {logs.committed} without it."
        )
        yield Fact(file_finding("missing-source-log", "warning", path, message))
    elif kind == "kafka":
        message = (
            f"{path} is missing. The file records where batch 0 begins. A restart starts at the query's "
            f"startingOffsets instead: it may skip records, or fail. {_BACK}."
        )
        yield Fact(file_finding("missing-source-log", "error", path, message), stops=True)


def _without_start_time(logs: MetadataLogs, path: str, key: str) -> Fact:
    """Judge a rate source without its start time, by whether a batch is in flight."""
    ends = logs.ends(max(logs.committed, 0)) or {}
    began = _began(logs, key)
    create = (
        f", or create it with two lines: v1, and the start time in ms ({began} according to the batches)"
        if began
        else ""
    )
    repair = f"{_BACK}{create}. A socket or memory source has no such file, and loses the data that it had received."
    if logs.planned <= logs.committed and ends.get(key) != 0:
        message = (
            f"{path} is missing. A rate source keeps its start time there. With a new start time the next batch would "
            f"end before its start ({ends.get(key)}), so the restart fails. {repair}"
        )
        return Fact(file_finding("missing-source-log", "error", path, message), stops=True)
    message = (
        f"{path} is missing. A rate source keeps its start time there. A restart uses a new start time, so the rows "
        f"have other times. {repair}"
    )
    return Fact(file_finding("missing-source-log", "warning", path, message))


def _known(logs: MetadataLogs, key: str) -> list[tuple[int, int]]:
    """The time of each batch in ms and the number at which a source ends in it, where both are known."""
    plans = (read.value for _, read in sorted(logs.offsets.items()))
    found = ((plan.time, plan.ends.get(key)) for plan in plans if plan is not None)
    return [(time, end) for time, end in found if time is not None and is_integer(end)]


def _counts_otherwise(logs: MetadataLogs, key: str) -> bool:
    """Whether the numbers of a source do not go with the time, as the seconds of a rate source do."""
    known = _known(logs, key)
    if not known:
        return False
    (first, start), (last, end) = known[0], known[-1]
    return abs((end - start) - (last - first) / 1000) > _TIMED_WITHIN


def _began(logs: MetadataLogs, key: str) -> int | None:
    """When a rate source began (ms), at the latest, by the times of batches; None: not known."""
    return min((time - 1000 * end for time, end in _known(logs, key)), default=None)


def _shard_facts(parser: OffersBatches, logs: MetadataLogs, key: str) -> Iterable[Fact]:
    """Judge the folders that a source keeps for each batch, as Kinesis' do for the position of each shard."""
    folder = parser.source_listing(key).folder
    kept = _folders_by_batch(parser.files_below(folder), folder)
    end = (logs.ends(logs.committed) or {}).get(key)
    asked = shards_of(end)
    for place, by_batch in kept.items():
        if asked is None:
            yield from _ends_early(logs, place, by_batch)
            continue
        batch, shards = asked
        if logs.planned > logs.committed:
            continue  # the batch in flight begins where its own plan says, and writes its own shard files
        if batch not in by_batch:
            message = (
                f"{place}/{batch} is missing. Source {key} keeps there how far batch {batch} has read its shards. "
                f"The restart fails when it plans batch {batch + 1}. Put it back from a backup"
                f"{_or_go_back(logs, by_batch)}."
            )
            yield Fact(file_finding("missing-source-log", "error", f"{place}/{batch}", message), stops=True)
        elif shards - by_batch[batch]:
            message = (
                f"{place}/{batch} has no file for {first_few(sorted(shards - by_batch[batch]), _EXAMPLES)}. cklog "
                f"cannot tell how far batch {batch} has read these shards, or what a restart does. {_BACK}."
            )
            yield Fact(file_finding("unjudged-source", "error", f"{place}/{batch}", message))


def _or_go_back(logs: MetadataLogs, by_batch: Container[int]) -> str:
    """Name the newest batch before the line that has its entry, "" if there is none."""
    older = (n for n in logs.commits if n < logs.committed and n in by_batch and way_back(logs, n) is not None)
    back = max(older, default=None)
    return "" if back is None else f", or go back (--at query/0={back})"


def _ends_early(logs: MetadataLogs, place: str, by_batch: Mapping[int, set[str]]) -> Iterable[Fact]:
    """Report a folder of an unknown source that goes with the batches, and ends before the newest one."""
    newest = max(by_batch)
    in_a_row = len(by_batch) > 1 and newest - min(by_batch) + 1 == len(by_batch)
    if in_a_row and newest < logs.committed and min(by_batch) <= min(logs.offsets, default=0) + 1:
        message = (
            f"{place} has an entry for each batch up to {newest}, but none for batch {logs.committed}, the last "
            "committed one. cklog does not know this connector: if the source reads that entry, a restart fails. "
            "Compare the folder with a backup."
        )
        yield Fact(file_finding("unjudged-source", "error", f"{place}/{newest + 1}", message))


def _folders_by_batch(paths: Iterable[str], folder: str) -> dict[str, dict[int, set[str]]]:
    """The folders of a source whose entries are called by numbers, each with what lies in an entry; {} if none does."""
    found: dict[str, dict[int, set[str]]] = {}
    for path in paths:
        parts = path.removeprefix(f"{folder}/").split("/")
        at = next((i for i, part in enumerate(parts[:2]) if _BATCH.fullmatch(part)), None)
        if at is not None and not parts[0].startswith("_"):
            place = "/".join([folder, *parts[:at]])
            found.setdefault(place, {}).setdefault(int(parts[at]), set()).update(parts[at + 1 : at + 2])
    return found


def shards_of(end: Any) -> tuple[int, set[str]] | None:
    """Return of which batch an offset of Kinesis is, and the shards that it names and that go on; None: another's.

    >>> shards_of({"metadata": {"streamName": "s", "batchId": "7"}, "shardId-0": {"isLast": "false"}})
    (7, {'shardId-0'})
    >>> shards_of({"metadata": 7}), shards_of({"orders": {"0": 3}})
    (None, None)
    """
    told = end.get("metadata") if isinstance(end, dict) else None
    if not isinstance(told, dict) or "streamName" not in told or not _BATCH.fullmatch(str(told.get("batchId"))):
        return None
    shards = {name: at for name, at in end.items() if name != "metadata" and isinstance(at, dict)}
    return int(told["batchId"]), {name for name, at in shards.items() if at.get("isLast") != "true"}
