"""What is wrong with the log of a Spark query's file sink, and folders whose log is lost.

Read off Spark 4.3 by damaging copies: a file sink skips every batch up to the newest in its log, whatever the batch
holds now; a log that lost files it does not notice, but readers miss what they listed.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from typing import NamedTuple

from cklog.inputs.batches import FileLog, MetadataLogs
from cklog.inputs.offers import OffersBatches
from cklog.model.findings import Finding
from cklog.runs.batches.judge import Fact, file_finding
from cklog.runs.batches.offsets import SourceRange
from cklog.runs.batches.sources import log_facts

_SINK_LOG = "_spark_metadata"


class JudgedSink(NamedTuple):
    """The folder of the query's file sink, None if none is known; the newest batch in its log; and what is wrong."""

    folder: str | None
    newest: int
    facts: list[Fact]


def judge_sink(parser: OffersBatches, logs: MetadataLogs, sources: Iterable[SourceRange], is_today: bool) -> JudgedSink:
    """Find the folder of the file sink and judge its log against plans and commits.

    `sources` are read by the query, so that their folders are no sinks; `is_today`: nothing after `logs` was left out.
    """
    sinks = parser.sinks()
    if len(sinks) == 1:
        log = parser.sink_log(sinks[0])
        facts = [*_judge_sink_log(log, logs)]
        if not is_today:  # of an older line the sink is ahead, and that is no damage
            facts = [fact for fact in facts if fact.finding.id != "sink-log-ahead"]
        return JudgedSink(sinks[0], log.listing.newest, facts)
    if sinks or logs.committed < 0:
        return JudgedSink(None, -1, [])
    read_from: set[str] = set()
    for source in sources:
        read_from |= {posixpath.basename(posixpath.dirname(file.path)) for file in source.files}
    bare = [folder for folder in parser.bare_sinks() if folder not in read_from]
    return JudgedSink(None, -1, [Fact(_lost_log(folder)) for folder in bare])


def _lost_log(folder: str) -> Finding:
    """Report a folder that looks written to by a file sink, but has no log."""
    message = (
        f"{folder} holds part files and no {_SINK_LOG}. If the query's file sink wrote them, its log is lost: a "
        "restart goes on, and the earlier results are no longer listed, so readers lose them. Put the log back from a "
        "backup."
    )
    return file_finding("sink-log-behind", "error", f"{folder}/{_SINK_LOG}", message)


def _judge_sink_log(log: FileLog, logs: MetadataLogs) -> Iterable[Fact]:
    """Judge the files of a sink's log, and where it ends against the newest commit."""
    then = (
        "A restart goes on, but whoever reads the results by this log fails or misses what it listed. "
        "Put it back from a backup, or list the part files of that batch again by hand."
    )
    yield from log_facts(log, "sink-log-behind", then, stops=False)
    newest, path, committed = log.listing.newest, log.listing.folder, logs.committed
    if newest < committed:
        message = f"{path} ends at batch {newest}, but batch {committed} is committed. {then}"
        yield Fact(file_finding("sink-log-behind", "error", path, message))
    elif newest > committed:
        yield Fact(_log_ahead(f"{path}/{newest}", newest, logs.planned, committed))


def _log_ahead(path: str, newest: int, planned: int, committed: int) -> Finding:
    """Report a sink's log that has a batch without a commit: the one in flight, or one that nobody planned."""
    if newest <= planned:
        message = f"{path} is there, though commits/{newest} is not: the sink has batch {newest} and skips it."
        return file_finding("sink-log-ahead", "info", path, message)
    afresh = "" if planned > committed else f"batch {committed + 1} is planned afresh and "
    message = (
        f"The sink's log reaches batch {newest}, the checkpoint only batch {max(planned, committed)}: {afresh}the sink "
        f"skips every batch up to {newest}, so what they read now is lost. Another query wrote here, or offsets were "
        "removed: use the checkpoint that belongs to this folder, or on a copy remove the sink's log files above the "
        "line."
    )
    return file_finding("sink-log-ahead", "error", path, message)
