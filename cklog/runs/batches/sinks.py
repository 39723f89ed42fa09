"""The line of a micro-batch query as its sinks see it: which batches are offered again, and which of them as before."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from cklog.runs.batches.line import QUERY
from cklog.runs.batches.plan import BatchPlan
from cklog.sink_tables.beside import AskedLine
from cklog.sink_tables.model import Restart


def batch_restart(plan: BatchPlan) -> Restart:
    """Return what a restart offers to tables: the batch in flight with its stored range, and new ones after it.

    Batches between the newest commit and the newest plan do not run again: they lie before the line. A query that
    tracks its progress now and then reads under the number in flight what it had read under several.
    """
    query = plan.query_id or ""
    planned = plan.planned
    again = plan.committed if planned is None or plan.asynchronous else planned
    times = {batch.batch: batch.time for batch in plan.batches}
    return Restart(
        line=plan.committed if planned is None else planned - 1,
        counts="batch",
        writers=frozenset({query}) if query else frozenset(),
        asks=query,
        same_to=again,
        since=times.get(plan.committed + 1 if planned is None else planned),
        began=_began(plan),
    )


def _began(plan: BatchPlan) -> tuple[int, int] | None:
    """The first batch whose plan is here, and when that was made."""
    return next(((batch.batch, batch.time) for batch in plan.batches if batch.time is not None), None)


def batch_line(plan: BatchPlan, plan_at: Callable[[int], BatchPlan], chosen: bool) -> AskedLine:
    """Return the line of a query for its tables.

    Parameters
    ----------
    plan_at : what a restart does that goes back to a batch
    """

    def older() -> Iterable[Restart]:
        planned = {batch.batch: batch.time for batch in plan.batches if batch.planned}
        now = batch_restart(plan)
        for batch in sorted((b.batch for b in plan.batches if b.committed and b.batch < plan.committed), reverse=True):
            if batch + 1 in planned:  # its plan stays, as a rule, and runs again
                yield replace(now, line=batch, same_to=batch + 1, since=planned[batch + 1])
            yield replace(now, line=batch, same_to=batch, since=planned.get(batch + 1))

    def usable(asked: Restart) -> bool:
        found = plan_at(asked.line)
        same = replace(batch_restart(found), since=asked.since) == asked
        return same and found.committed >= 0 and not found.unjudged

    return AskedLine(
        run=plan.query_id or "",
        subtask=f"{QUERY}/0",
        unit="batch",
        restart=batch_restart(plan),
        older=older,
        usable=usable,
        name=lambda line: f"batch {line}" if line >= 0 else "the initial state",
        chosen=chosen,
    )
