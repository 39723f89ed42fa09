"""What a micro-batch query has to do in a recovery: load its state, run the batch in flight again, and catch up.

A batch ends before the next one is planned, so that the time between both plans is the most that it can have taken.
"""

from __future__ import annotations

import itertools

from cklog.inputs.batches import Batch
from cklog.lines.recovery.work import NOTHING, Work, Works
from cklog.model.recovery_time import Span
from cklog.runs.batches.offsets import records_between
from cklog.runs.batches.plan import BatchPlan

_MOST = 1 << 63
"""More records, or ms, are of damaged numbers."""

_BY = {
    "replay": "at least the most of any batch, by the time until the next one was planned",
    "input": "the mean of all batches whose records the offsets count",
}
_WHY = {
    "bytes": "the sizes of what its state stands on",
    "read": "Spark's logs hold no times of state; --read-rate says it",
    "messages": "the offsets of its sources count no records",
    "replay": "no two batches tell it; --replay-rate says it",
    "input": "no two batches tell it; --input-rate says it",
}


def batch_works(plan: BatchPlan) -> Works:
    """Return what the query restores and how fast its batches were; what it reads again stands in its run."""
    took, rates = [], []
    for one, following in itertools.pairwise(_in_a_row(plan)):
        if one.time is None or following.time is None or not 0 < following.time - one.time < _MOST:
            continue
        took.append(float(following.time - one.time))
        before = next((b for b in plan.batches if b.batch == one.batch - 1), None)
        count = None if before is None else _records(before, one)
        if count is not None:
            rates.append((count, following.time - one.time))
    fastest = max((1000 * count / ms for count, ms in rates), default=0.0)
    part = Work(
        name=plan.query_id or "",
        bytes=plan.state_bytes,
        logged=None,
        replay_ms=NOTHING if plan.planned is None else Span(0.0, max(took)) if took else None,
        replay_rate=Span(fastest, None) if fastest > 0 else None,
        input_rate=1000 * sum(n for n, _ in rates) / sum(ms for _, ms in rates) if rates else None,
    )
    return Works([part], _BY, _WHY)


def _in_a_row(plan: BatchPlan) -> list[Batch]:
    """The batches of the newest stretch without a gap."""
    found: list[Batch] = []
    for batch in reversed(plan.batches):
        if found and batch.batch != found[-1].batch - 1:
            break
        found.append(batch)
    return found[::-1]


def _records(before: Batch, batch: Batch) -> int | None:
    """Count the records of a batch by where its sources and those of the one before it end; None: not countable."""
    if not batch.offsets or before.offsets is None:
        return None
    known = [records_between(before.offsets.get(source), end) for source, end in batch.offsets.items()]
    total = sum(count for count in known if count is not None)
    return None if None in known or total >= _MOST else total
