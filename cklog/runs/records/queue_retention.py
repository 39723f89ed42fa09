"""How far output queues, and the logs that feed their operators, may be cut: the acknowledgements of CEC.

Sebepou and Magoutis let upstream queues keep tuples "until receiving an acknowledgment from all downstream nodes" and
leave open what an operator may acknowledge. It follows from the definition of its eventual checkpoint. A crash at a
later time loads the newest footprint of each window that is open then, and replays from T, the oldest of them.
Footprints are only ever replaced by newer ones, and new windows open at newer tuples: T never goes back. So what a
crash *now* would need bounds what any crash from now on can need:

    own queue      from the first record at or after T on, and the one before it. With that one, the queue itself shows
                   that no record of T's own tuple is missing (a tuple may write several); without it, that is lost.
    upstream       from the tuple T on, inclusive: one that has written some of its records comes again. Where only its
                   time leads to it, and not its number, the record before it stays too, for the same reason.
    several        a queue stays from the oldest record on that its own operator or any of its readers needs

Beside operators that checkpoint on their own, a crash may send a queue's operator back to before its tail. The line
after a failure of everything is the oldest of all lines, now and later: T is taken where it has each operator. If then
anything of the run is damaged, nothing may go.

What is not proven by the queue itself lets nothing go: neither of the queue, nor of what its operator reads. Nor may a
queue be cut that somebody reads whose progress nothing here tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from cklog.errors import UsageError
from cklog.inputs.queues import Queue
from cklog.model.eventual import UpstreamOffset
from cklog.model.findings import Finding
from cklog.model.lines import RecoveryLine
from cklog.model.names import Channel, Subtask, parse_channel
from cklog.model.verdict import Draft
from cklog.queues.log import UNKNOWN, QueueLog, TailReader, reading_back
from cklog.queues.upstream import read_back
from cklog.retention.plan import LogTrim, RetentionFate, RetentionPlan, RetentionRow, rules_of, totals_of
from cklog.retention.policy import RetentionPolicy
from cklog.runs.records.cascade import Cascade, QueueRestart
from cklog.runs.records.retention import SUSPECT
from cklog.storage import FileEntry

RULES: Mapping[str, str] = {
    "extent": "an eventual checkpoint is made of it: it holds records from the one before T on",
    "replay": "an operator downstream would ask for its tuples again",
    "unproven": "its operator's eventual checkpoint, or that of a reader, is not proven, or the run is damaged",
    "reader": "somebody reads it, or may, whose progress nothing here tells",
    "broker": "all of it is before every record that is needed, but its broker lets it go, by record number",
    "obsolete": "all of it is before every record that a crash from now on can need",
}


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """A record of a queue: its file, as a number in log order, its number (`UNKNOWN` without) and its offset there.

    Of a Kafka queue, in which only the numbers order records, all files count as number 0.
    """

    file: int
    pos: int
    offset: int


@dataclass(frozen=True, slots=True)
class QueueNeed:
    """From which record on somebody needs a queue; `position` None: that cannot be told, so all of it stays."""

    position: QueuePosition | None
    by: str
    rule: str


def queue_retention(
    cascade: Cascade, entries: Iterable[FileEntry], policy: RetentionPolicy, hidden: bool, doubtful: bool
) -> Draft[RetentionPlan]:
    """Plan how far queues may be cut.

    Parameters
    ----------
    entries : the files of the queues, with their sizes
    hidden : there are files that were not looked at
    doubtful : the manifest, which names the readers of a queue, is known to be damaged

    Raises
    ------
    UsageError : the policy asks for stored checkpoints to be kept
    """
    if policy.limits or policy.pins or policy.marked or policy.drop_broken:
        raise UsageError(
            "--keep, --window, --pin, --marked and --drop-broken: this run's checkpoints lie in output queues",
            "a queue holds one checkpoint, the newest; older ones cannot be kept by name",
        )
    restarts, draft = cascade.after_total_failure()
    in_doubt = hidden or doubtful or not cascade.names_every_reader() or bool(cascade.storing and _is_suspect(draft))
    needs = _QueueNeeds(cascade, restarts, draft.result, in_doubt)
    sizes = {entry.path: entry.size for entry in entries}
    rows, trims = [], list(needs.of_channels())
    for subtask, queue in sorted(cascade.queues.items()):
        need = needs.of_queue(subtask, queue)
        rows += _rows(queue, need, sizes)
        trims.append(_trim(queue, need, sizes))
    plan = RetentionPlan(
        kind="queues",
        unit="files",
        rows=tuple(rows),
        totals=totals_of(rows, "files"),
        folders=(),
        rules=rules_of(rows, RULES),
        jobs_stopped=False,
        trimming=tuple(trims),
        doubt="unproven" if in_doubt else "",
    )
    return Draft("retention", plan, draft.findings, draft.inputs, indeterminate=draft.indeterminate)


def _is_suspect(draft: Draft[RecoveryLine]) -> bool:
    """Whether the true line may be another than this one."""
    return draft.indeterminate or draft.unrecoverable or any(finding.id in SUSPECT for finding in draft.findings)


def _lower(starts: dict[tuple[str, str], int | None], key: tuple[str, str], offset: int | None) -> None:
    """Note that all from an offset on is needed; None, that nobody can say from where on."""
    before = starts.get(key, offset)
    starts[key] = None if before is None or offset is None else min(before, offset)


@dataclass(frozen=True, slots=True)
class _QueueNeeds:
    """Who needs which part of a queue or a channel, after a failure of everything."""

    cascade: Cascade
    restarts: Mapping[Subtask, QueueRestart]
    line: RecoveryLine
    in_doubt: bool

    def of_channels(self) -> Iterator[LogTrim]:
        """Yield how far the log of each channel, or source, may be cut for its receiver."""
        starts: dict[tuple[str, str], int | None] = {}  # None: from its start, or no number
        for row in self.line.channels:
            channel = parse_channel(row.channel)
            receiver = "" if channel is None else str(channel.receiver)
            _lower(starts, (row.channel, receiver), row.replay_from)
        for source in self.line.sources:
            offset = source.offset if isinstance(source.offset, int) else None
            _lower(starts, (source.source, f"{source.operator}/{source.subtask}"), offset)
        for (name, receiver), below in sorted(starts.items()):
            known = self._is_sound(receiver) and not self._by_time(name)
            yield LogTrim(name, below if known else None, receiver)

    def _is_sound(self, receiver: str) -> bool:
        """Whether what a receiver would ask for is proven."""
        if self.in_doubt:
            return False
        found = {str(subtask): restart for subtask, restart in self.restarts.items()}.get(receiver)
        return found is None or is_proven(found)

    def _by_time(self, name: str) -> bool:
        """Whether the numbers of a channel's receiver are not those of its sender's queue, so that only time leads."""
        offsets = [offset for restart in self.restarts.values() for offset in restart.replay.upstream]
        return any(offset.channel == name and offset.by == "time" for offset in offsets)

    def of_queue(self, subtask: Subtask, queue: Queue) -> QueueNeed:
        """Return from where on a queue is needed, by whom, and why."""
        if self.in_doubt:
            return QueueNeed(None, "", "unproven")
        needs = [
            *self._own_need(subtask, queue),
            *(self._need_of(queue, channel) for channel in self._read_by(subtask)),
        ]
        if not needs:
            return QueueNeed(None, "", "reader")  # a source's queue, or what an operator with checkpoints has put out
        unknown = [need for need in needs if need.position is None]
        return unknown[0] if unknown else min(needs, key=lambda need: _order(queue, need))

    def _own_need(self, subtask: Subtask, queue: Queue) -> list[QueueNeed]:
        """What the operator itself needs of its queue; nothing if it comes back by something else."""
        restart = self.restarts.get(subtask)
        if restart is None:
            return []
        if not is_proven(restart):
            return [QueueNeed(None, str(subtask), "unproven")]
        judged = restart.found.judged
        row = max(judged.start - 1, 0)
        return [QueueNeed(_position(queue, judged.log, row), str(subtask), "extent")]

    def _read_by(self, subtask: Subtask) -> list[Channel]:
        """Return the channels that a queue feeds, by the manifest and by what the receivers have noted."""
        noted = (parse_channel(n) for restart in self.restarts.values() for n in restart.found.judged.log.channels)
        every = {*self.cascade.channels(), *(channel for channel in noted if channel is not None)}
        return sorted(channel for channel in every if channel.sender == subtask)

    def _need_of(self, queue: Queue, channel: Channel) -> QueueNeed:
        """What the receiver of a channel needs of its sender's queue."""
        reader = str(channel.receiver)
        restart = self.restarts.get(channel.receiver)
        if restart is None:
            starts = [row.replay_from for row in self.line.channels if row.channel == str(channel)]
            position = _numbered(queue, min(starts)) if starts and channel.receiver in self.cascade.storing else None
            return QueueNeed(position, reader, "replay" if position is not None else "reader")
        if not is_proven(restart):
            return QueueNeed(None, reader, "unproven")
        offset = next((o for o in restart.replay.upstream if o.channel == str(channel)), None)
        if offset is None:
            return QueueNeed(None, reader, "reader")
        return QueueNeed(_replayed(queue, offset, restart.replay.from_ts), reader, "replay")


def is_proven(restart: QueueRestart) -> bool:
    """Return whether an eventual checkpoint and its replay rest on nothing that is damaged, missing or contradicted."""
    judged = restart.found.judged
    if not len(judged.log) or restart.found.proof != "proven" or judged.contradicts:
        return False
    return not any(_spoils(finding) for finding in restart.found.findings)


def _spoils(finding: Finding) -> bool:
    """Whether a finding about a queue forbids to cut it: all but a torn end, which never was durable, and notes."""
    return finding.severity == "error" or (finding.severity == "warning" and finding.id not in _HARMLESS)


_HARMLESS = frozenset({"torn-tail", "upstream-behind", "ambiguous-tie"})
"""Of ties all records count as T's; tuples that the upstream has torn off come again with the same numbers."""


def _order(queue: Queue, need: QueueNeed) -> tuple[int, int]:
    """Return what orders the records of a queue: their numbers, or their places."""
    assert need.position is not None
    return (0, need.position.pos) if queue.by_pos else (need.position.file, need.position.offset)


def _position(queue: Queue, log: QueueLog, row: int) -> QueuePosition:
    """Return the place of a row of a log, which was read from `queue`."""
    file = queue.paths.index(log.paths[int(log.file[row])])
    return QueuePosition(0 if queue.by_pos else file, int(log.pos[row]), int(log.offset[row]))


def _replayed(queue: Queue, offset: UpstreamOffset, ts: int | None) -> QueuePosition | None:
    """Return from which record on a replay needs a queue: the one it starts with, or the one before (by time)."""
    if offset.by == "input":
        file = 0 if queue.by_pos else queue.paths.index(offset.path)
        return QueuePosition(file, UNKNOWN if offset.pos is None else offset.pos, offset.offset)
    if ts is None:
        return None
    log = read_back(queue, None, ts)
    before = np.flatnonzero(log.ts < ts)
    if not len(log) or log.damage:
        return None
    later = np.flatnonzero(log.ts >= ts)
    first = int(later[0]) if len(later) else len(log)
    return _position(queue, log, max(first - 1, 0)) if len(before) else _position(queue, log, 0)


def _numbered(queue: Queue, number: int) -> QueuePosition | None:
    """Return the record of a number in a queue, or the last one before it; None if the queue has no numbers."""
    reader = TailReader(queue)
    with reading_back(queue):
        while reader.more():
            if reader.first_pos is not None and reader.first_pos <= number:
                break
    log = reader.log()
    if not len(log) or (log.pos == UNKNOWN).any():
        return None
    before = np.flatnonzero(log.pos <= number)
    return _position(queue, log, int(before[-1]) if len(before) else 0)


def _trim(queue: Queue, need: QueueNeed, sizes: Mapping[str, int]) -> LogTrim:
    """Return how far a queue may be cut, as a row."""
    position = need.position
    if position is None:
        return LogTrim(str(queue.subtask), None, need.by, log="queue")
    path = _path(queue, position)
    at = queue.paths.index(path)
    inside = position.offset if path.endswith((".jsonl", ".log")) else 0  # elsewhere an offset counts no stored bytes
    return LogTrim(
        channel=str(queue.subtask),
        below=None if position.pos == UNKNOWN else position.pos,
        checkpoint=need.by,
        log="queue",
        bytes=sum(sizes.get(p, 0) for p in queue.paths[:at]) + inside,
        place=f"{path}:{position.offset}",
    )


def _path(queue: Queue, position: QueuePosition) -> str:
    """Return the file that a position lies in: of a Kafka queue the last segment that begins at or before it."""
    if not queue.by_pos:
        return queue.paths[position.file]
    begins = [(int(path.rpartition("/")[2].partition(".")[0]), path) for path in queue.paths if path.endswith(".log")]
    return max(((base, path) for base, path in begins if base <= position.pos), default=begins[0])[1]


def _rows(queue: Queue, need: QueueNeed, sizes: Mapping[str, int]) -> list[RetentionRow]:
    """Return the fate of each file of a queue."""
    first = 0 if need.position is None else queue.paths.index(_path(queue, need.position))
    rows = []
    for number, path in enumerate(queue.paths):
        fate: RetentionFate = "KEEP" if need.position is None else "VALID"
        rule = need.rule
        if number < first:
            fate, rule = ("KEEP", "broker") if queue.by_pos else ("OBSOLETE", "obsolete")
        rows.append(RetentionRow(path, sizes.get(path), fate, rule, need.by or None if number >= first else None))
    return rows
