"""The line of a micro-batch query as its sinks see it: which batches are offered again, and which of them as before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from cklog.inputs.offers import OffersBatches
from cklog.model.findings import Finding, Where
from cklog.runs.batches.file_sink import NO_STATE_IDS, no_state
from cklog.runs.batches.line import QUERY
from cklog.runs.batches.plan import BatchPlan
from cklog.runs.batches.state_line import first_lacking
from cklog.runs.batches.targets import has_state_ids, names_states
from cklog.sink_tables.beside import AskedLine
from cklog.sink_tables.fitting import NamedTable, fits
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


def skipped_findings(
    parser: OffersBatches, plan: BatchPlan, tables: Sequence[NamedTable], check_contents: bool
) -> list[Finding]:
    """Judge a batch in flight that a Delta table has already: a restart skips it, and nobody writes its state.

    Read in Delta's source: its sink asks for the newest batch of the query's id first, and returns without running the
    batch, as the file sink does.
    """
    batch, logs = plan.planned, parser.logs()
    if batch is None or plan.asynchronous or not plan.query_id:
        return []
    of_query = (
        fit for fit in fits(tables, batch_restart(plan)) if fit.format == "delta" and fit.writer == plan.query_id
    )
    agreeing = (fit for fit in of_query if fit.agrees is not False)
    has_it = [fit.name for fit in agreeing if fit.remembers is not None and fit.remembers >= batch]
    if not has_it:
        return []
    with_ids = has_state_ids(logs) and (parser.has_state or names_states(logs))
    lacks = "" if with_ids else first_lacking(parser.state(logs, check_contents, needed=batch + 1), logs)
    then = f"The sink has the batch and skips it. All that batch {batch + 1} needs of the state is there."
    if with_ids:
        then = f"{NO_STATE_IDS} Every restart fails (CheckpointInfo length: 0). {_FOR_GOOD}"
    elif lacks:
        then = f"{no_state(batch, lacks)} Put the file back from a backup. {_FOR_GOOD}"
    elif lacks is None:
        then = "The sink has the batch and skips it."
    stops = with_ids or bool(lacks)
    message = f"{has_it[0]} has batch {batch}, but {logs.commit_log.folder}/{batch} is missing. {then}"
    where = f"{logs.commit_log.folder}/{batch}"
    finding = Finding("sink-log-ahead", "error" if stops else "info", has_it[0], message, where=(Where(where),))
    return [replace(finding, effect="restart-fails") if stops else finding]


_FOR_GOOD = (
    "A Delta table never forgets a batch, not by RESTORE either. Without a backup of the commit or of the state, start "
    "with an empty checkpoint folder whose sources begin where this batch ends; the state is lost with the old folder."
)


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
