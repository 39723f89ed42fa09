"""Findings about a broker's partitions and groups: what somebody in an incident must know.

The sentences say what the broker or a consumer will do, and what to do before it does.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping

from cklog.inputs.partitions import Folder, Gap, GroupCommit, Partition, RangeCount, SegmentFile
from cklog.kafka_logs.identity import recreated_findings, resume_offset
from cklog.kafka_logs.open_transactions import COORDINATOR, transaction_findings
from cklog.kafka_logs.partition import CUTTING, cut_alone, trusted
from cklog.model.findings import Effect, Finding, Where
from cklog.model.wording import agreeing, first_few, many


def partition_findings(partitions: Iterable[Partition], folders: Iterable[Folder]) -> list[Finding]:
    """Find what is wrong with partitions, except damaged bytes (`cklog.inputs.damage.damage_findings`).

    `folders` : of all partitions that are there, whether they were read or not
    """
    found: list[Finding] = []
    partitions = list(partitions)
    newest = max((p.last_time for p in partitions if p.last_time is not None), default=None)
    coordinated = any(folder.topic == COORDINATOR for folder in folders)
    for p in partitions:
        for check in _PARTITION_CHECKS:
            found += check(p)
        found += transaction_findings(p, newest, coordinated)
    return found


def _restart_cut(p: Partition) -> Iterator[Finding]:
    """A restart will delete what can still be read."""
    cut = p.cut
    if cut is None or not cut.batches:
        return
    held = f"{many(cut.batches, 'whole batch')} with {many(cut.records, 'record')}, up to offset {cut.end}"
    message = (
        f"{p.name}: copy its folder BEFORE the broker is restarted: it will cut everything from offset {p.restart_end} "
        f"on ({cut.path} at byte {cut.at}: {cut.why}). After that lie {held}, which can be salvaged from the copy only"
    )
    if cut.end < p.log_start:
        message = (
            f"{p.name}: copy its folder BEFORE the broker is restarted: it will delete every segment and begin anew at "
            f"{p.log_start}, since {cut.why}. The segments hold {held}; is its log-start-offset-checkpoint right?"
        )
    if p.folder.internal:
        message += "; they are the broker's own state, and groups or transactions fall back without them"
    yield Finding("restart-cuts-log", "error", p.name, message, where=(Where(cut.path, cut.at),), effect="data-lost")


def _unchecked_damage(p: Partition) -> Iterator[Finding]:
    """Damage where a starting broker does not look."""
    names = {segment.path for segment in p.folder.segments[: trusted(p.folder)] if segment.indexed}
    places = [Where(item.path, item.offset) for item in p.damage if item.id in CUTTING and item.path in names]
    if places:
        why = "it was stopped cleanly" if p.folder.clean else f"its recovery point is {p.folder.recovery_point}"
        message = (
            f"{p.name}: a restarting broker does not check {places[0].path}, which is damaged ({why}). A consumer that "
            "reaches the damage fails. Let it seek past the damage, or restore the partition from another replica"
        )
        yield Finding("unchecked-damage", "error", p.name, message, where=tuple(places), effect="data-lost")


def _cut_segments(p: Partition) -> Iterator[Finding]:
    """A restart will cut segments at which it would not look if their indexes were here."""
    for item in cut_alone(p):
        message = (
            f"{p.name}: {item.path} has no index here, so a restarting broker scans this segment and truncates it at "
            f"byte {item.offset or 0} ({item.detail}). Later segments stay. Copy the partition's folder BEFORE the "
            "broker is restarted: the rest of the segment can then be salvaged only from the copy"
        )
        yield Finding(
            "restart-cuts-log", "error", p.name, message, where=(Where(item.path, item.offset),), effect="data-lost"
        )


def _early_end(p: Partition) -> Iterator[Finding]:
    """The broker had told consumers, or noted as flushed, more than the log will hold."""
    known = {"high watermark": p.folder.high_watermark, "recovery point": p.folder.recovery_point}
    over = {name: offset for name, offset in known.items() if offset is not None and offset > p.restart_end}
    if not over or p.unread:
        return
    said = " and ".join(f"its {name} was {offset}" for name, offset in over.items())
    message = (
        f"{p.name}: the log will end at offset {p.restart_end}, but {said}: acknowledged records are gone here. If "
        "there is another replica, let it lead; else expect consumers beyond the end"
    )
    yield Finding(
        "log-ends-early", "error", p.name, message, where=(Where(p.folder.segments[-1].path),), effect="data-lost"
    )


def _late_begin(p: Partition) -> Iterator[Finding]:
    """Segments are missing at the log's start, by what the broker had noted of it."""
    first = p.folder.segments[0]
    known = _noted_begin(p)
    if known is not None and first.base > known[0]:
        start, noted = known
        message = (
            f"{p.name}: the log should begin at offset {start} by {noted}, its first segment begins at {first.base}: "
            "retention deleted the rest within a minute before the crash, it lies in tiered storage, or segments are "
            "missing: look for them"
        )
        yield Finding("missing-segment", "warning", p.name, message, where=(Where(first.path),))


def _noted_begin(p: Partition) -> tuple[int, str] | None:
    """Return an offset that the log had, and which of the broker's files says so; the surest one alone.

    A log start is noted only where it lies inside a segment. Leader epochs are cut whenever the log's start moves. A
    recovery point lies in a segment that was there, but a copy that began anew at its leader's start keeps an old one,
    and its epochs then begin at that start.
    """
    if p.folder.log_start is not None:
        return p.folder.log_start, "its log-start-offset-checkpoint"
    if p.folder.epochs:
        return min(start for _, start in p.folder.epochs), "its leader-epoch-checkpoint"
    if p.folder.recovery_point is not None:
        return p.folder.recovery_point, "its recovery-point-offset-checkpoint"
    return None


OFFSETS_DELETED = "Connectors whose offsets were all deleted start over with a new snapshot"
"""What follows where a topic of connectors' offsets begins late."""


def late_start_findings(partitions: Iterable[Partition], hidden: str, effect: Effect = "none") -> Iterator[Finding]:
    """Find logs that should be compacted and do not begin at offset 0; `hidden`: what follows, `effect`: on the run."""
    for p in partitions:
        if p.log_start > 0:
            message = (
                f"{p.name}: the log begins at offset {p.log_start}, although compaction alone never moves the start "
                "from 0. Retention (cleanup.policy) or kafka-delete-records.sh deleted the records before it. "
                f"{hidden}"
            )
            where = (Where(p.folder.path or "."),)
            yield Finding("compacted-log-cut", "warning", p.name, message, where=where, effect=effect)


def _indexes_without_segments(p: Partition) -> Iterator[Finding]:
    """Indexes whose segments are not here: a broker makes and deletes an index after its segment."""
    if p.folder.unpaired:
        first = p.folder.unpaired[0]
        message = (
            f"{p.name}: the index of the segment that begins at offset {first.base} is here and the segment is not"
            f"{f', and {len(p.folder.unpaired) - 1} more' if len(p.folder.unpaired) > 1 else ''}: look for it. The "
            f"log is read without it, from {p.log_start} to {p.restart_end}"
        )
        places = tuple(Where(index.path) for index in p.folder.unpaired)
        yield Finding("missing-segment", "warning", p.name, message, where=places)


def _gaps_between_segments(p: Partition) -> Iterator[Finding]:
    """Offsets between segments that no segment holds."""
    bases = [one.base for one in _emptied(p)]  # segments are sorted
    gaps = tuple(gap for gap in p.gaps if bisect_left(bases, gap.start) == bisect_left(bases, gap.end))
    if not gaps:
        return
    first, gone = gaps[0], _gap_words(gaps)
    places = tuple(Where(gap.path) for gap in gaps)
    if p.folder.compacted is False:
        message = f"{p.name}: {gone} in no segment, and the broker does not compact this log: look for them"
        yield Finding("missing-segment", "warning", p.name, message, where=places)
        return
    message = (
        f"{p.name}: {gone} in no segment (the first before {first.path}), which is normal where compaction "
        "took everything"
    )
    yield Finding("offset-gap", "info", p.name, message, where=places)


def _emptied(p: Partition) -> list[SegmentFile]:
    """The segments without a byte that others follow: only the last one waits for records."""
    return [segment for segment in p.folder.segments[:-1] if not (segment.size or segment.unread)]


def _emptied_segments(p: Partition) -> Iterator[Finding]:
    """Segments that were emptied, for all that is known: a broker begins the next one when a segment is full."""
    found = _emptied(p)
    if not found:
        return
    held = f"{first_few([one.path for one in found], 3)} {agreeing(len(found), 'hold')} nothing"
    lead = f"{p.name}: {held}, although the log continues at offset {p.folder.segments[-1].base}"
    places = tuple(Where(one.path) for one in found)
    if p.folder.compacted:
        yield Finding("offset-gap", "info", p.name, f"{lead}, as compaction leaves it", where=places)
    elif p.folder.compacted is None:
        why = "Compaction may leave such a segment; if it did not, records are lost: compare with another replica"
        yield Finding("empty-file", "warning", p.name, f"{lead}. {why}", where=places)
    else:
        why = "The broker does not compact this log: the records are lost. Take the partition from another replica"
        yield Finding("empty-file", "error", p.name, f"{lead}. {why}", where=places, effect="data-lost")


def _holes_inside_segments(p: Partition) -> Iterator[Finding]:
    """Offsets inside segments that no record has: compaction leaves such, and so does a wrong base offset."""
    if p.damage or p.folder.compacted or not p.records:
        return
    missing = p.log_end - p.folder.segments[0].base - sum(gap.end - gap.start for gap in p.gaps) - p.records
    if missing <= 0:
        return
    known = p.folder.compacted is False
    have = "has" if missing == 1 else "have"
    why = "the broker does not compact this log, so" if known else "compaction does that, or"
    message = (
        f"{p.name}: {many(missing, 'offset')} inside segments {have} no record: {why} a base offset is "
        f"wrong, which no checksum covers; the log's end, {p.restart_end}, may be wrong with it"
    )
    yield Finding("offset-gap", "warning" if known else "info", p.name, message, where=(Where(p.folder.path or "."),))


def _gap_words(gaps: tuple[Gap, ...]) -> str:
    offsets = sum(gap.end - gap.start for gap in gaps)
    return f"{many(offsets, 'offset')} from {gaps[0].start} to {gaps[-1].end} {'is' if offsets == 1 else 'are'}"


_PARTITION_CHECKS: tuple[Callable[[Partition], Iterable[Finding]], ...] = (
    _restart_cut,
    _unchecked_damage,
    _cut_segments,
    _early_end,
    _late_begin,
    _indexes_without_segments,
    _gaps_between_segments,
    _emptied_segments,
    _holes_inside_segments,
)


def commit_findings(commits: Iterable[GroupCommit], partitions: Mapping[str, Partition]) -> list[Finding]:
    """Find committed offsets at which a group cannot resume, or that may not be what they seem."""
    found: list[Finding] = []
    elsewhere: dict[str, list[str]] = {}
    for commit in commits:
        found += _doubtful_commit(commit)
        p, log = partitions.get(commit.name), partitions.get(commit.log)
        if p is None:
            elsewhere.setdefault(commit.group, []).append(commit.name)
        elif log is None or not log.unread:  # else what was not read may hold a newer commit
            found += _commit_out_of_range(commit, p)
            whose = f"group {commit.group}"
            found += recreated_findings(whose, p, commit.offset, commit.time, commit.leader_epoch)
    for group, names in sorted(elsewhere.items()):
        message = (
            f"group {group} has committed offsets of partitions that are not here, {first_few(names, 5)}: look on the "
            "other brokers"
        )
        found.append(Finding("partition-elsewhere", "info", f"group {group}", message))
    return found


def _commit_out_of_range(commit: GroupCommit, p: Partition) -> Iterator[Finding]:
    """A committed offset that the log will not have when the group resumes."""
    subject = f"group {commit.group}"
    if p.transactions.open and p.last_stable <= commit.offset < p.restart_end:
        message = (
            f"{subject} resumes {p.name} at offset {commit.offset}, at or after the start of an open transaction. "
            "Until the transaction ends, read_committed consumers of the group get none of the "
            f"{many(p.restart_end - commit.offset, 'offset')} from there to the log's end"
        )
        yield Finding("open-transaction", "warning", subject, message, where=(Where(p.folder.path or "."),))
    if commit.offset > p.restart_end and not p.unread:
        message = (
            f"{subject} has committed offset {commit.offset} of {p.name}, whose log will end at {p.restart_end}: it "
            "would fall back to auto.offset.reset, and read everything again or skip what is written next. Reset it to "
            f"{resume_offset(p, commit)} before it starts"
        )
        yield Finding(
            "committed-beyond-log-end",
            "error",
            subject,
            message,
            where=(Where(p.folder.path or "."),),
            effect="data-lost",
        )
    elif commit.offset < p.log_start:
        gone = p.log_start - commit.offset
        message = (
            f"{subject} would resume {p.name} at offset {commit.offset}, but the log begins at {p.log_start}: "
            f"{gone} {'offset is' if gone == 1 else 'offsets are'} gone, and auto.offset.reset decides where it goes on"
        )
        yield Finding(
            "retention-hole", "error", subject, message, where=(Where(p.folder.path or "."),), effect="data-lost"
        )


def _doubtful_commit(commit: GroupCommit) -> Iterator[Finding]:
    """A commit that another one may overrule, or that no broker will find."""
    subject = f"group {commit.group}"
    if commit.pending is not None:
        message = (
            f"{subject}: offset {commit.pending} of {commit.name} waits in an open transaction. Until that ends, "
            "Kafka's consumers from 2.5 on get no position and wait; older ones go on at "
            f"{commit.offset}, and read the records between again"
        )
        yield Finding("pending-commit", "warning", subject, message)
    if commit.misplaced:
        message = (
            f"{subject}: its commits are in {commit.log}, where a broker does not look for them: the number of "
            "partitions of that topic was changed, or the folder was renamed"
        )
        yield Finding("misplaced-commit", "warning", subject, message)


def range_findings(subject: str, count: RangeCount) -> list[Finding]:
    """Find what stands against reading a range of offsets; `subject` (a channel, source or group) is whose it is."""
    return list(_unreadable_in_range(subject, count))


def _unreadable_in_range(subject: str, c: RangeCount) -> Iterator[Finding]:
    name = f"{c.topic}-{c.partition}"
    where = (Where(name),)
    if c.missing:
        gone = f"{many(c.missing, 'offset')} from {c.start} on {agreeing(c.missing, 'are')} gone"
        message = f"{subject}: {gone}, because the log of {name} begins after them"
        yield Finding("retention-hole", "error", subject, message, where=where, effect="data-lost")
    if c.beyond and not c.unread:
        salvage = f"; {many(c.cut, 'record')} of it can be salvaged before a restart" if c.cut else ""
        beyond = many(c.beyond, "offset", "lie")
        message = f"{subject}: {beyond} beyond where the log of {name} ends after a restart{salvage}"
        yield Finding("beyond-log-end", "error", subject, message, where=where, effect="data-lost")
    if c.open:
        message = (
            f"{subject}: {many(c.open, 'record')} of {name} {agreeing(c.open, 'are')} in open transactions: readers of "
            f"committed data stop {many(c.unstable, 'offset')} before the end"
        )
        yield Finding("open-transaction", "warning", subject, message, where=where)
    if c.starts_in:
        word = {"abort": "an aborted", "open": "an open"}.get(c.starts_in, "a")
        message = f"{subject}: offset {c.start} of {name} is in the middle of {word} transaction"
        yield Finding("starts-in-transaction", "info", subject, message, where=where)
