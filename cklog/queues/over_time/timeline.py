"""How the extent and the replay of an output queue went along its whole log, by one pass forward.

Records are numbered from 0 in the order read, intact ones only: what is missing has no number, and a result that is
missing leaves its window open for good, which N shows (`window-count-mismatch`).

Time O(records), memory O(open windows): the log is taken in pieces (`cklog.queues.over_time.pieces`), of which the
current footprints are all that one hands to the next, and `cklog.queues.over_time.folds` keeps a bounded part of each.
No answer depends on where the pieces end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import pyarrow as pa

from cklog.engine.damage import DamageTally
from cklog.engine.scan import DAMAGE_LISTED, Damage, reader_of
from cklog.inputs.queues import Queue
from cklog.model.findings import Where
from cklog.queues.log import COLUMNS, CONTROL, log_of, reading_through
from cklog.queues.over_time.folds import Breaches, Counts, Mean, Samples, Slow, WindowCountMismatch
from cklog.queues.over_time.pieces import NOTHING, RecordStretch, evaluated

PIECE_RECORDS = 1 << 18
"""Records evaluated at a time, or twice the open windows if those are more: what keeps the pass linear."""


@dataclass(frozen=True, slots=True)
class ExtentOverTime:
    """The extent (records) and the replay (tuples, and ms between timestamps) of an output queue at every record.

    Means and largest values are exact.

    Attributes
    ----------
    from_ts, to_ts : timestamps of the first and the last record
    max_extent, max_replay : the targets; None: no such target
    extent, replay_ms : "mean", "max" and "last" over all records
    replay : the same in tuples; None, as are the replays below, if records lack input numbers
    breached : of all stretches of records over a target: "stretches", "records", "ms"
    breaches : the first such stretches: both ends inclusive, the largest values, and in `oldest` the window that held
        T back at the largest extent
    slow : the footprints that held T back through the most records; `held_ms` lasts until the record that freed T,
        `extent` is the largest meanwhile
    stride, samples : the record with the largest extent of each `stride` consecutive ones, the first such
    """

    operator: str
    subtask: int
    records: int
    from_ts: int | None
    to_ts: int | None
    max_extent: int | None
    max_replay: int | None
    extent: dict[str, Any]
    replay: dict[str, Any] | None
    replay_ms: dict[str, Any]
    breached: dict[str, int]
    breaches: tuple[dict[str, Any], ...]
    slow: tuple[dict[str, Any], ...]
    stride: int
    samples: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """The result for a whole log, with its damage and what findings need.

    `mismatch` is about records whose N is wrong; `first_breach` is the place of the first record over a target.
    """

    result: ExtentOverTime
    damage: tuple[Damage, ...]
    mismatch: WindowCountMismatch | None
    first_breach: Where | None

    @property
    def replay_unknown(self) -> bool:
        """Whether there is a target for the replay, and no input numbers to count it by."""
        return self.result.max_replay is not None and self.result.replay is None


def over_time(queue: Queue, step: int, max_extent: int | None = None, max_replay: int | None = None) -> Timeline:
    """Evaluate a whole queue, reading it in splits of about `step` bytes.

    Targets `max_extent` (records) and `max_replay` (tuples) are for breaches; None: no such target.
    """
    tally = DamageTally(DAMAGE_LISTED)
    folds = _Folds(Breaches(max_extent, max_replay), Breaches(max_extent, None))
    with reading_through(queue):
        for piece in _evaluated_pieces(queue, step, tally):
            folds.add(piece)
    return folds.timeline(queue, tally.damage(), max_extent, max_replay)


def _evaluated_pieces(queue: Queue, step: int, tally: DamageTally) -> Iterator[RecordStretch]:
    """Yield the intact records of a queue in log order, evaluated piece by piece."""
    current, first = NOTHING, 0
    waiting: list[pa.RecordBatch | Damage] = []
    rows = 0
    for batch in chain(_intact_batches(queue, step, tally), (None,)):
        if batch is not None:
            waiting.append(batch)
            rows += batch.num_rows
        if rows and (batch is None or rows >= max(PIECE_RECORDS, 2 * len(current.record))):
            piece, current = evaluated(log_of(waiting, queue.paths), first, current)
            yield piece
            first, waiting, rows = first + rows, [], 0


def _intact_batches(queue: Queue, step: int, tally: DamageTally) -> Iterator[pa.RecordBatch]:
    """Yield the intact records in log order as they are read; damage goes to `tally`."""
    for split in queue.splits(step):
        for item in reader_of(split)(split, "outputs", COLUMNS):
            if isinstance(item, Damage):
                tally.add(item)
            else:
                yield item


@dataclass(slots=True)
class _Folds:
    """The folds over a log, and what they need to know of it.

    Whether all records have input numbers is known at the end only, so breaches are kept with the replay's target
    (`either`) and without it (`by_extent`).
    """

    either: Breaches
    by_extent: Breaches
    extent: Mean = field(default_factory=Mean)
    replay: Mean = field(default_factory=Mean)
    replay_ms: Mean = field(default_factory=Mean)
    samples: Samples = field(default_factory=Samples)
    slow: Slow = field(default_factory=Slow)
    counts: Counts = field(default_factory=Counts)
    numbered: bool = True
    first_ts: int | None = None
    last_ts: int | None = None
    _kinds: set[bool] = field(default_factory=set)

    def add(self, piece: RecordStretch) -> None:
        """Take in the next piece."""
        log = piece.log
        if self.first_ts is None:
            self.first_ts = int(log.ts[0])
        self.last_ts = int(log.ts[-1])
        for fold, values in zip(
            (self.extent, self.replay, self.replay_ms), (piece.extent, piece.replay, piece.replay_ms), strict=True
        ):
            fold.add(values)
        for each in (self.samples, self.slow, self.either, self.by_extent, self.counts):
            each.add(piece)
        if log.channels:
            self._kinds.add(log.channels == ("",))  # numbers of one input and of several cannot be compared
        elif (log.type != CONTROL).any():
            self.numbered = False

    def timeline(
        self, queue: Queue, damage: tuple[Damage, ...], max_extent: int | None, max_replay: int | None
    ) -> Timeline:
        """Return the result over all pieces."""
        numbered = self.numbered and len(self._kinds) < 2
        breaches = self.either if numbered else self.by_extent
        result = ExtentOverTime(
            operator=queue.subtask.operator,
            subtask=queue.subtask.subtask,
            records=self.extent.count,
            from_ts=self.first_ts,
            to_ts=self.last_ts,
            max_extent=max_extent,
            max_replay=max_replay,
            extent=self.extent.summary(),
            replay=self.replay.summary() if numbered else None,
            replay_ms=self.replay_ms.summary(),
            breached=breaches.totals(),
            breaches=breaches.rows(numbered),
            slow=self.slow.rows(),
            stride=self.samples.stride,
            samples=self.samples.rows(numbered),
        )
        return Timeline(result=result, damage=damage, mismatch=self.counts.mismatch, first_breach=breaches.place)
