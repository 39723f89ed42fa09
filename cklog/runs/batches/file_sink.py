"""What is wrong with the log of a Spark query's file sink, and folders whose log is lost.

Read off Spark 4.3 by damaging copies: a file sink skips every batch up to the newest in its log, whatever the batch
holds now; a log that lost files it does not notice until it compacts the log, but readers miss what they listed.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable
from typing import NamedTuple

from cklog.inputs.batches import FileLog, LogListing, MetadataLogs
from cklog.inputs.offers import OffersBatches
from cklog.inputs.sink_files import LostResult, SinkFiles
from cklog.model.findings import Finding
from cklog.model.wording import agreeing, first_few, many
from cklog.runs.batches.connectors import log_facts
from cklog.runs.batches.facts import Fact, file_finding
from cklog.runs.batches.offsets import SourceRange
from cklog.runs.batches.targets import can_plan_afresh, has_state_ids, names_states

_SINK_LOG = "_spark_metadata"
_EXAMPLES = 3
NO_STATE_IDS = (
    "With state checkpoint format 2 a commit needs the state ids that its tasks wrote. A sink that skips a batch runs "
    "no task, so the commit has no ids."
)
"""Why no restart can commit a batch that its sink skips."""


Lacking = Callable[[int], str | None]
"""Returns the first file that keeps a version of the state from being loaded; "" for none, None: that is not known."""


class JudgedSink(NamedTuple):
    """What is known of the query's file sink.

    Attributes
    ----------
    folder : None if no single one is known
    files : what lies in it, None without a folder
    newest : the newest batch in its log, once `remove` is gone; -1 for none
    facts : what is wrong with the log
    remove : files of the log that a restart, on a copy, must not find
    stuck : batches would have to leave the log and cannot, so that the sink would skip them
    """

    folder: str | None
    files: SinkFiles | None
    newest: int
    facts: list[Fact]
    remove: tuple[str, ...] = ()
    stuck: bool = False


def judge_sink(
    parser: OffersBatches,
    logs: MetadataLogs,
    sources: Iterable[SourceRange],
    lacking: Lacking,
    *,
    goes_back: bool,
    is_today: bool,
) -> JudgedSink:
    """Find the folder of the file sink and judge its log against plans and commits.

    Parameters
    ----------
    sources : read by the query, so that their folders are no sinks
    lacking : what keeps a version of the state from being loaded
    goes_back : later batches than those in `logs` are removed, of the sink's log too
    is_today : nothing later was left out of the question
    """
    sinks = parser.sinks()
    with_ids = has_state_ids(logs) and (parser.has_state or names_states(logs))
    if len(sinks) == 1:
        log = parser.sink_log(sinks[0], everything=goes_back)
        files = parser.sink_files(sinks[0], log)
        if goes_back:
            gone = _lost_results(sinks[0], files, logs, logs.committed) if is_today else ()
            gone = [*gone, *_judge_older_entries(log, logs)]
            return _sink_that_goes_back(sinks[0], files, log.listing, logs.committed, gone)
        removed = _entries_after(log.listing, max(logs.planned - 1, logs.committed))
        afresh = can_plan_afresh(logs)  # then the sink would skip what the batch reads now
        skips = log.listing.newest == logs.planned > logs.committed and not afresh
        lacks = lacking(logs.planned + 1) if skips and not with_ids else None
        lost = _lost_without(parser, sinks[0], removed) if (with_ids or afresh or lacks) and removed else None
        facts = [*_judge_sink_log(log, logs, with_ids, lacks, removed, lost)]
        if afresh and removed:
            facts = [fact for fact in facts if fact.finding.id != "sink-log-ahead"]
            facts.append(Fact(_skips_plan(log.listing.folder, logs.planned, removed, lost), skips=True))
        if not is_today:  # of an older line the sink is ahead, and that is no damage
            facts = [fact for fact in facts if fact.finding.id != "sink-log-ahead"]
        facts += _judge_older_entries(log, logs)
        ahead = any(fact.stops and fact.finding.id == "sink-log-ahead" for fact in facts)
        goes = removed if lost is None and (afresh or ahead) else ()
        if is_today:
            facts += _lost_results(sinks[0], files, logs, max(logs.planned - 1, logs.committed) if goes else None)
        return JudgedSink(sinks[0], files, log.listing.newest, facts, goes, stuck=afresh and lost is not None)
    unseen = [Fact(_unseen_sink(logs, sinks))] if with_ids and logs.planned > logs.committed and not goes_back else []
    if sinks or logs.committed < 0:
        return JudgedSink(None, None, -1, unseen)
    bare = parser.bare_sinks()
    if bare:
        read_from = _folders_read(parser, sources)
        bare = tuple(folder for folder in bare if folder not in read_from)
    return JudgedSink(None, None, -1, [*unseen, *(Fact(_lost_log(folder)) for folder in bare)])


def _folders_read(parser: OffersBatches, sources: Iterable[SourceRange]) -> set[str]:
    """Name the folders of the files that the logs of file sources list."""
    logs = (parser.source_log(s.source.removeprefix("source/")) for s in sources if s.kind == "file")
    lines = (line for log in logs for read in log.reads.values() for line in read.value or ())
    return {posixpath.basename(posixpath.dirname(line.path)) for line in lines}


def _entries_after(listing: LogListing, batch: int) -> tuple[str, ...]:
    """Return the files of a log for later batches."""
    files = (entry.path for number, entry in sorted(listing.files.items()) if number > batch)
    return (*files, *listing.left_checksums(batch))


def _lost_without(parser: OffersBatches, folder: str, removed: tuple[str, ...]) -> int | None:
    """Return the first batch that a sink's log lists no more once files are removed; None: it loses none of them.

    A compact file holds all batches before, which their own files then must list: readers need them, and so does the
    sink when it writes that compact file again.
    """
    log = parser.sink_log(folder, everything=True)
    left = {n: read for n, read in log.reads.items() if read.path not in removed}
    if all(n in left for n in log.listing.compacts):
        return None
    whole = {n for n, read in left.items() if read.flaw is None}
    base = max(whole & log.listing.compacts, default=0)
    first = min(n for n, read in log.reads.items() if read.path in removed)
    return next((n for n in range(base, first) if n not in whole), None)


def _sink_that_goes_back(
    folder: str, files: SinkFiles, listing: LogListing, batch: int, facts: list[Fact]
) -> JudgedSink:
    """Say which files a sink's log loses when the query goes back to `batch`, if it can do without them.

    A compact file holds all batches before: what is left must be whole without it. `facts` are about its results.
    """
    kept = [number for number in listing.files if number <= batch]
    base = max((number for number in listing.compacts if number <= batch), default=0)
    gone = sorted(set(range(base, batch + 1)) - set(kept))
    remove = _entries_after(listing, batch)
    if not remove or not gone:
        return JudgedSink(folder, files, max(kept, default=-1), facts, remove)
    message = (
        f"The batches after {batch} cannot be removed from {listing.folder}: {listing.folder}/{gone[0]} is missing, "
        f"and only a later file lists its results. The sink would skip every batch up to {listing.newest} and lose "
        f"their input. Let the query write to a new folder, with one file in its {_SINK_LOG}: {batch}.compact with the "
        f"line v1. Without that file the query fails when it compacts the log. The results of batches up to {batch} "
        "stay in the old folder."
    )
    fact = Fact(file_finding("sink-log-ahead", "error", f"{listing.folder}/{listing.newest}", message))
    return JudgedSink(folder, files, listing.newest, [fact, *facts], stuck=True)


def _lost_results(folder: str, files: SinkFiles, logs: MetadataLogs, kept: int | None) -> Iterable[Fact]:
    """Report result files that the sink's log lists and the folder lacks.

    `kept` : the newest batch that the repair leaves in the log, None: all stay.
    """
    if files.unseen:
        message = f"{files.unseen} could not be listed: cklog did not check that all results of {folder} are there."
        yield Fact(file_finding("unchecked-results", "warning", folder, message))
        return
    lost = [file for file in files.lost if kept is None or file.entry <= kept]
    if not lost:
        return
    if files.is_bare:
        message = (
            f"None of the {len(files.lost)} result files that the log of {folder} lists lies there: this is a copy "
            "without results, or all of them are gone."
        )
        yield Fact(file_finding("unchecked-results", "warning", folder, message))
        return
    count, first, again = len(lost), min(file.entry for file in lost), ""
    if first > 0 and not any(file.compacted for file in lost):  # else an earlier batch may have written one
        to = min(first - 1, logs.committed)
        drop = f" --at plan/0={to}" if to == logs.committed else ""  # else the plan after it would run again
        again = f", or see whether the query can go back: cklog recovery-line --at query/0={to}{drop}"
    message = (
        f"{many(count, 'result file')} of {folder} {agreeing(count, 'are')} gone or {agreeing(count, 'have')} another "
        "size than in the sink's log: "
        f"{first_few([_with_sizes(file) for file in lost], _EXAMPLES)}. Readers of the sink's log fail or miss their "
        f"rows, and a restart does not write them again. Put them back from a backup{again}. If they were removed on "
        "purpose, restart without them."
    )
    yield Fact(file_finding("missing-result-file", "error", folder, message))


def _with_sizes(file: LostResult) -> str:
    return file.path if file.size is None else f"{file.path} ({file.size} of {file.logged} bytes)"


def _unseen_sink(logs: MetadataLogs, sinks: Iterable[str]) -> Finding:
    """Report that a restart may fail for good because of a sink that was not looked at, or is one of several."""
    hidden = next((path for path in logs.unseen if not path.startswith(logs.prefix)), "")
    none = f"{hidden} could not be read" if hidden else "PATH has no sink"
    which = f"cklog cannot tell which of {', '.join(sinks)} is the query's" if sinks else none
    message = (
        f"cklog did not check whether a file sink already has batch {logs.planned}: {which}. {NO_STATE_IDS} If it "
        f"has, every restart fails until {_SINK_LOG}/{logs.planned} and its .crc are removed, on a copy. Give as PATH "
        "the folder that holds both the checkpoint and the sink's output. Other kinds of sinks are not affected."
    )
    return file_finding("unchecked-sink", "warning", f"{logs.prefix}offsets/{logs.planned}", message)


def _lost_log(folder: str) -> Finding:
    """Report a folder that looks written to by a file sink, but has no log."""
    message = (
        f"{folder} has part files but no {_SINK_LOG}. If the query's file sink wrote them, its log is lost: readers "
        "lose the earlier results, and a restart works only until the sink compacts its new log. After that every "
        "start fails. Put the log back from a backup."
    )
    return file_finding("sink-log-behind", "error", f"{folder}/{_SINK_LOG}", message)


def _judge_sink_log(
    log: FileLog, logs: MetadataLogs, with_ids: bool, lacks: str | None, removed: tuple[str, ...], lost: int | None
) -> Iterable[Fact]:
    """Judge the files of a sink's log, and where it ends against the newest commit.

    Parameters
    ----------
    with_ids : commits name the states that batches leave
    lacks : the first file that is missing of the state after the batch in flight, which the sink has; "" for none,
        None: that is not known
    removed : the files for the batch that a restart runs and later ones
    lost : the batch that would be listed no more without them, None for none
    """
    newest, path, committed = log.listing.newest, log.listing.folder, logs.committed
    following = max(newest, committed) + 1  # the batch that the sink writes next
    compacts = _next_compaction(log.listing, following)
    until = f"until batch {compacts}" if compacts is not None else "until the sink compacts this log"
    fails = f"A restart works {until}, then every start fails: the sink reads the whole log to compact it"
    if compacts == following:
        fails = f"The restart fails in batch {compacts}, in which the sink reads the whole log to compact it"
    then = (
        f"{fails}. Until the log is repaired, readers that use it fail or miss results. Put the log back from a "
        "backup, or write that batch's list of part files again."
    )
    yield from log_facts(log, "sink-log-behind", then, stops=compacts == following)
    if logs.hidden_log:
        return
    for left in log.listing.left_checksums(max(newest, committed)):
        if not _is_never_written(log.listing, left):
            message = (
                f"{left} is left, and its file is gone. On a local file system the restart fails when the sink writes "
                "that file (concurrent queries). On a copy remove the checksum file."
            )
            yield Fact(file_finding("sink-log-behind", "error", left, message), stops=True, remove=(left,))
    if newest < committed:
        message = f"{path} ends at batch {newest}, but batch {committed} is committed. {then}"
        yield Fact(file_finding("sink-log-behind", "error", path, message), stops=compacts == following)
    elif newest > committed:
        place = f"{path}/{newest}"
        if (with_ids or lacks) and newest == logs.planned:
            why = (
                f"{NO_STATE_IDS} Every restart fails (CheckpointInfo length: 0)."
                if with_ids
                else no_state(newest, lacks or "")
            )
            mends = removed if lost is None else ()
            yield Fact(_never_committed(path, logs, why, removed, lost), stops=True, remove=mends)
        else:
            ahead = _log_ahead(place, newest, logs.planned, committed, whole=lacks == "")
            stops = with_ids and newest > logs.planned
            yield Fact(ahead, stops, skips=ahead.severity == "error" and not stops)


_CLOCKS_MS = 60_000
"""How far apart the clocks of the driver and of the file system may be."""


def older_entries(log: FileLog, logs: MetadataLogs) -> list[int]:
    """Return batches of which the sink's log lists files that were written before this checkpoint planned them.

    A compact file does not say which batch a file is of.
    """
    found = []
    for n, read in sorted(log.reads.items()):
        plan = logs.offsets[n].value if n in logs.offsets and n not in log.listing.compacts else None
        written = [line.written for line in read.value or () if line.written is not None and not line.deleted]
        if plan is not None and plan.time is not None and written and max(written) + _CLOCKS_MS < plan.time:
            found.append(n)
    return found


def _judge_older_entries(log: FileLog, logs: MetadataLogs) -> Iterable[Fact]:
    """Judge batches that the log had before they were planned: the sink skipped what this query made of them."""
    found = older_entries(log, logs)
    if found:
        names = first_few([str(n) for n in found], _EXAMPLES)
        one = len(found) == 1
        message = (
            f"The sink's log listed {'batch' if one else 'batches'} {names} before this checkpoint planned "
            f"{'it' if one else 'them'}: the files are older than the plan. Another query wrote here, or offsets were "
            f"removed. The sink skips a batch that its log has, so this query's results of "
            f"{'that batch' if one else 'those batches'} are not in it. Use the checkpoint that belongs to this "
            "folder, or start this query with a sink folder of its own."
        )
        yield Fact(file_finding("sink-log-ahead", "error", f"{log.listing.folder}/{found[0]}", message), skips=True)


def _next_compaction(listing: LogListing, batch: int) -> int | None:
    """Return the first batch from `batch` on in which a sink's log is compacted; None: its interval is not known.

    With two compact files it is their distance, with less the default, as long as that goes with what is there.
    """
    newest = sorted(listing.compacts)[-2:]
    interval = newest[1] - newest[0] if len(newest) == 2 else _INTERVAL
    sure = len(newest) == 2 or (newest[0] + 1 == _INTERVAL if newest else batch <= _INTERVAL)
    return (batch // interval + 1) * interval - 1 if sure else None


def _is_never_written(listing: LogListing, checksum: str) -> bool:
    """Return whether the entry of a checksum file is not what the sink writes: that is compacted, or it is not."""
    number, _, kind = posixpath.basename(checksum).removeprefix(".").removesuffix(".crc").partition(".")
    compacts = _next_compaction(listing, int(number))
    return compacts is not None and (compacts == int(number)) != (kind == "compact")


_INTERVAL = 10
"""Of a log of files one in so many is compacted, if no setting says otherwise."""


def no_state(batch: int, lacks: str) -> str:
    """Say why a restart fails after a batch that the sink skips, for nobody writes its state; read off Spark 4.3."""
    return (
        f"The sink skips batch {batch}, so a restart does not write the state after it, and {lacks} is missing or "
        f"damaged: batch {batch + 1} fails."
    )


def _never_committed(folder: str, logs: MetadataLogs, why: str, entries: tuple[str, ...], lost: int | None) -> Finding:
    """Report the batch in flight, which the sink has in `entries`, and `why` no restart can go on after it.

    Read off Spark 4.3: `assertion failed: CheckpointInfo length: 0`; with the sink's entry removed it restarts.
    """
    newest, entry = logs.planned, " and ".join(entries)
    repair = (
        f"On a copy, remove {entry} with its checksum: batch {newest} then runs again and writes new part files. Its "
        "old part files are no longer listed."
    )
    if lost is not None:
        repair = (
            f"Do not remove {entry}: the results of batch {lost} are listed nowhere else, because {folder}/{lost} is "
            "missing or damaged. Put the earlier files of the log back from a backup first."
        )
    message = f"{entries[-1]} exists, but {logs.commit_log.folder}/{newest} is missing. {why} {repair}"
    return file_finding("sink-log-ahead", "error", entries[-1], message)


def _skips_plan(folder: str, batch: int, entries: tuple[str, ...], lost: int | None) -> Finding:
    """Report that the sink has the batch in flight, whose plan is damaged: it would skip the one planned instead."""
    what = f"On a copy remove {' and '.join(entries)} with their .crc, too: then batch {batch} is written again."
    if lost is not None:
        what = (
            f"{entries[0]} cannot be removed: the results of batch {lost} are listed nowhere else. Put the plan of "
            f"batch {batch} back from a backup."
        )
    message = (
        f"{folder} has batch {batch}, whose plan is damaged. The sink skips batch {batch} when it is planned afresh, "
        f"and what it then reads in addition is lost. {what}"
    )
    return file_finding("sink-log-ahead", "error", entries[-1], message)


def _log_ahead(path: str, newest: int, planned: int, committed: int, whole: bool) -> Finding:
    """Report a sink's log that has a batch without a commit: the one in flight, or one that nobody planned.

    `whole`: the state after that batch is there, as far as there is any.
    """
    if newest <= planned:
        then = "skips it" if newest == planned else f"a restart runs batch {planned} instead"
        proof = f" All that batch {newest + 1} needs of the state is there." if whole else ""
        message = f"{path} exists, but commits/{newest} is missing: the sink has batch {newest} and {then}.{proof}"
        return file_finding("sink-log-ahead", "info", path, message)
    afresh = "" if planned > committed else f"batch {committed + 1} is planned afresh and "
    message = (
        f"The sink's log reaches batch {newest}, the checkpoint only batch {max(planned, committed)}: {afresh}the sink "
        f"skips every batch up to {newest}, so their input is lost. Another query wrote here, or offsets were removed. "
        "Use the checkpoint that belongs to this folder. Or, on a copy, remove the sink's log files after the line and "
        "their .crc."
    )
    return file_finding("sink-log-ahead", "error", path, message)
