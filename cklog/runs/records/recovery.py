"""What each subtask of a run of records has to do in a recovery: its state, its messages, and how fast it has been.

A subtask can process at least as many messages a second as it has between two of its checkpoints; how many more, no log
tells. One without senders reads its source again: its messages are those that it sends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cklog.arrays.types import Floats, Ints
from cklog.chains.build import piece_microseconds, piece_sizes
from cklog.chains.restorable import chains_of
from cklog.history.history import History
from cklog.history.pieces import has_chains, record_pieces
from cklog.history.records import CheckpointRecords
from cklog.history.watermarks import UNBOUNDED
from cklog.lines.recovery.work import NOTHING, Work, Works, exactly
from cklog.model.lines import ReplayRange
from cklog.model.names import Channel, Subtask, parse_channel
from cklog.model.recovery_time import Span
from cklog.model.verdict import FLAWS
from cklog.policies.delta_number import RESTORE

if TYPE_CHECKING:
    from cklog.runs.records.evidence import Planned

_BY = {
    "read": "as long as storing state took, up to 1.2 times that (US patent 9,471,438)",
    "replay": "at least the most that was processed between two checkpoints",
    "input": "the mean from the first checkpoint to the last",
}
_WHY = {
    "bytes": "no record tells it",
    "read": "no record tells bytes and duration_ms; --read-rate says it",
    "messages": "nothing tells of messages to it, or from it",
    "replay": "no two checkpoints with times tell it; --replay-rate says it",
    "input": "no two checkpoints with times tell it; --input-rate says it",
}


def records_works(planned: Planned) -> Works:
    """Return the work of every subtask that restarts from a checkpoint of the line."""
    history, line = planned.evidence.history, planned.line
    if not len(line):
        return Works(())
    gone = np.flatnonzero(~(history.survivor & (line == history.newest))).tolist()
    stored = _restores(planned)
    ranges = _RangesByEnd.of(planned.result.channels)
    paces = _paces(history)
    parts = []
    for i in gone:
        subtask = history.subtasks[i]
        size, took = (0, NOTHING) if line[i] == 0 else stored.of(i, int(history.label[history.first[i] + line[i]]))
        rate, arrives = paces[i]
        reads, sends = bool((history.dst == i).any()), bool((history.src == i).any())
        logged = ranges.in_flight(subtask) if reads else ranges.sent_again(subtask)
        parts.append(
            Work(
                name=str(subtask),
                bytes=size,
                logged=exactly(logged) if reads or sends else None,
                resent=ranges.resent_to(subtask),
                restore_ms=took,
                read_rate=stored.rate,
                replay_rate=rate,
                input_rate=arrives,
            )
        )
    return Works(parts, _BY, _WHY)


class _Restores(NamedTuple):
    """Bytes and microseconds of each record's state with all that it stands on, -1 unknown; `rate` in bytes a ms."""

    row: Mapping[tuple[int, int], int]
    size: Ints
    took: Ints
    rate: Span | None

    def of(self, subtask: int, checkpoint: int) -> tuple[int | None, Span | None]:
        """Return the bytes of a checkpoint, and how long they take to be read."""
        row = self.row.get((subtask, checkpoint))
        if row is None:
            return None, None
        size, ms = int(self.size[row]), int(self.took[row]) / 1000
        return size if size >= 0 else None, Span(ms, RESTORE * ms) if ms >= 0 else None


def _restores(planned: Planned) -> _Restores:
    records, history = planned.evidence.records, planned.evidence.history
    own = piece_sizes(records.table), piece_microseconds(records.table)
    size, took = own
    if has_chains(records):
        damaged = any(f.id in FLAWS for f in planned.evidence.findings)
        size, took = _whole_chains(records, damaged)
    known = (own[0] > 0) & (own[1] > 0)
    each = own[0][known] / own[1][known] * 1000
    rate = Span(float(each.min()) / RESTORE, float(each.max())) if len(each) else None
    index = {subtask: i for i, subtask in enumerate(history.subtasks)}
    owner = [index.get(subtask, -1) for subtask in records.subtasks]
    wanted = {(i, int(n)) for i, n in enumerate(history.label_of(planned.line).tolist())}
    rows = zip(records.subtask.tolist(), records.number.tolist(), strict=True)
    found = {(owner[s], n): row for row, (s, n) in enumerate(rows) if (owner[s], n) in wanted}
    return _Restores(found, size, took, rate)


def _whole_chains(records: CheckpointRecords, damaged: bool) -> tuple[Ints, Ints]:
    """Sum bytes and microseconds of each record over its variables and what these stand on, -1 unknown; (records,)."""
    pieces = record_pieces(records, damaged)
    chains = chains_of(pieces.table)
    found = []
    for values in (piece_sizes(chains.table), piece_microseconds(chains.table)):
        sums = chains.ways.sums(values[chains.row])[chains.node_of]  # shape (pieces,)
        total = np.zeros(len(records.number), np.int64)
        np.add.at(total, pieces.record, np.maximum(sums, 0))
        unknown = np.zeros(len(total), np.bool_)
        unknown[pieces.record[sums < 0]] = True
        found.append(np.where(unknown | (total < 0), -1, total))
    return found[0], found[1]


class _RangesByEnd(NamedTuple):
    """Replay ranges by the subtasks at their ends."""

    into: Mapping[Subtask, Sequence[tuple[Channel, ReplayRange]]]
    out_of: Mapping[Subtask, Sequence[tuple[Channel, ReplayRange]]]

    @classmethod
    def of(cls, rows: Iterable[ReplayRange]) -> _RangesByEnd:
        """Sort the rows."""
        into: dict[Subtask, list[tuple[Channel, ReplayRange]]] = {}
        out_of: dict[Subtask, list[tuple[Channel, ReplayRange]]] = {}
        for row in rows:
            channel = parse_channel(row.channel)
            if channel is not None:
                into.setdefault(channel.receiver, []).append((channel, row))
                out_of.setdefault(channel.sender, []).append((channel, row))
        return cls(into, out_of)

    def in_flight(self, subtask: Subtask) -> int:
        """Count the messages that logs hold for a subtask; where no log is here to count, all of them."""
        rows = [row for _, row in self.into.get(subtask, ())]
        return sum(max(r.replay_to - r.replay_from, 0) if r.messages is None else r.messages for r in rows)

    def resent_to(self, subtask: Subtask) -> dict[str, int]:
        """Count the messages that a subtask gets again, by sender."""
        found: dict[str, int] = {}
        for channel, row in self.into.get(subtask, ()):
            if _again(row):
                found[str(channel.sender)] = found.get(str(channel.sender), 0) + _again(row)
        return found

    def sent_again(self, subtask: Subtask) -> int:
        """Count the messages that a subtask sends again."""
        return sum(_again(row) for _, row in self.out_of.get(subtask, ()))


def _again(row: ReplayRange) -> int:
    return 0 if row.resent_from is None or row.resent_to is None else max(row.resent_to - row.resent_from, 0)


def _paces(history: History) -> list[tuple[Span | None, float | None]]:
    """Return the replay rate and the input rate of each subtask, in messages a second, by its watermarks."""
    rows = int(history.first[-1])
    counts = np.zeros(rows)  # sums of watermarks, which need not fit 63 bits where one of them is wrong
    known = history.time >= 0
    reads = np.zeros(len(history.subtasks), np.bool_)
    reads[history.dst] = True
    for k, (sender, receiver) in enumerate(zip(history.src.tolist(), history.dst.tolist(), strict=True)):
        for owner, at, marks, wanted in (
            (receiver, history.received_at, history.received, True),
            (sender, history.sent_at, history.sent, not reads[sender]),
        ):
            if wanted:
                values = marks[at[k] : at[k + 1]]
                here = slice(int(history.first[owner]), int(history.first[owner]) + len(values))
                known[here] &= values < UNBOUNDED
                counts[here] += np.where(values < UNBOUNDED, values, 0)
    found = []
    for i in range(len(history.subtasks)):
        mine = np.flatnonzero(known[history.first[i] : history.first[i + 1]]) + history.first[i]
        linked = bool(reads[i] or (history.src == i).any())
        found.append(pace_of(history.time[mine], counts[mine]) if linked else (None, None))
    return found


def pace_of(times: Ints, counts: Ints | Floats) -> tuple[Span | None, float | None]:
    """Return rates in messages a second: at least the fastest between two moments, and the mean; times in ms.

    >>> pace_of(np.array([0, 1000, 3000]), np.array([0, 10, 15]))
    (Span(low=10.0, high=None), 5.0)
    """
    passed, done = np.diff(times.astype(np.float64)), np.diff(counts)
    forward = (passed > 0) & (done >= 0)
    if not forward.any():
        return None, None
    fastest = float((done[forward] / passed[forward]).max()) * 1000
    mean = 1000 * float(done[forward].sum()) / float(passed[forward].sum())
    return Span(fastest, None) if fastest > 0 else None, mean
