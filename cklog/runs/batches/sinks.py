"""How far a micro-batch query has come with its sink, in the words by which a table knows a writer.

A sink that remembers what it has taken knows a query by its id and a batch by its number: Delta as `appId` and
`version`, Iceberg as the query's id and an epoch. A batch that runs again under a number that the sink has is
skipped, whatever is in it: that is right where the plan stays, so that it reads the same range, and loses rows where it
does not. No file of a checkpoint names the table; of a file sink the folder is found, for its log lies in it.
"""

from __future__ import annotations

from dataclasses import dataclass

from cklog.inputs.batches import Batch
from cklog.inputs.sink_tables import Writer
from cklog.runs.batches.plan import BatchPlan


@dataclass(frozen=True, slots=True)
class SinkProgress:
    """What a restart of a query presents to its sink.

    Attributes
    ----------
    writer : the query, as a table tells it from others; None: its id cannot be read, and a restart has a new one
    sink : the folder of its file sink; None: no file names the sink
    committed : the batch of the line, -1 for none
    planned : the newest batch that was ever planned, by what is left; -1 for none
    again : batches that run again with the range that they had: their plans stay
    afresh : numbers that were given to batches before, and that a restart gives to other ranges: the plans are gone
    sparse : whether only some batches left a plan and a commit, as with asynchronous progress tracking: a restart then
        reads under one number what it read under several, beginning behind the batch of the line
    """

    writer: Writer | None
    sink: str | None
    committed: int
    planned: int
    again: tuple[int, ...]
    afresh: tuple[int, ...]
    sparse: bool = False


def sink_progress(plan: BatchPlan) -> SinkProgress:
    """Return what a restart by a plan presents to the query's sink."""
    again = () if plan.planned is None else (plan.planned,)
    newest = max((plan.committed, *again, *plan.rolled_back, *plan.lost_plans, *(b.batch for b in plan.batches)))
    newest = max(newest, -1 if plan.removed_to is None else plan.removed_to)
    return SinkProgress(
        writer=None if plan.query_id is None else Writer(plan.query_id, "batch"),
        sink=plan.sink,
        committed=plan.committed,
        planned=newest,
        again=again,
        afresh=tuple(range(max((plan.committed, *again)) + 1, newest + 1)),
        sparse=_is_sparse(plan.batches, plan.committed),
    )


def _is_sparse(batches: tuple[Batch, ...], committed: int) -> bool:
    """Whether batches up to the line are missing between others from both logs at once.

    >>> def left(*numbers):
    ...     return tuple(Batch(n, True, True, offsets=None, time=None, watermark=None) for n in numbers)
    >>> _is_sparse(left(0, 2, 5), 5), _is_sparse(left(3, 4, 5), 5)
    (True, False)
    """
    there = [one.batch for one in batches if one.batch <= committed]
    return bool(there) and len(there) < there[-1] - there[0] + 1
