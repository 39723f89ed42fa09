"""The latencies of a sink's result files: when a result was at the sink, less when its record came into being."""

from __future__ import annotations

import functools
from typing import Protocol

from cklog.engine.reading import Reading
from cklog.engine.scan import Scan
from cklog.errors import UsageError
from cklog.inputs.annotate import OffersResults
from cklog.inputs.damage import damage_findings
from cklog.latency.answer import Measured, latency_answer
from cklog.latency.histogram import COUNTS, COUNTS_REDUCE, count_latencies, untimed_in
from cklog.latency.model import Latency, LatencyQuestion, Marks
from cklog.model.findings import Finding
from cklog.model.verdict import Draft
from cklog.model.wording import many


class SinkResults(OffersResults, Protocol):
    """A parser of results: what it offers to be annotated, and which files they are."""

    def time_column(self) -> str:
        """Return the name of the column that holds times."""


def results_latency(results: SinkResults, reading: Reading, asked: LatencyQuestion, marks: Marks) -> Draft[Latency]:
    """Say how the latency of results went.

    Raises
    ------
    UsageError : no column of times, or the same one twice
    NotFound : no result has both times
    """
    column = asked.time or results.time_column()
    if column == asked.event_time:
        raise UsageError(
            f"--event-time {asked.event_time}: that is the time at the sink, too",
            "name two fields: when a record came into being, and with --time when it was at the sink",
        )
    scan = Scan(
        splits=tuple(results.splits(reading.split_bytes)),
        table="results",
        columns=(asked.event_time, column),
        kernel=functools.partial(count_latencies, asked.step_ms),
        partial=COUNTS,
        reduce=COUNTS_REDUCE,
    )
    scanned = reading.engine_for(results.bytes).run(scan)
    lacking = _untimed(untimed_in(scanned.table), asked.event_time, column)
    findings = [*damage_findings(scanned.damage), *lacking]
    measured = Measured(scanned.table, "results", (), True, findings, results.inputs(scanned.records))
    return latency_answer(measured, marks, asked)


def _untimed(count: int, event_time: str, column: str) -> list[Finding]:
    if not count:
        return []
    message = f"{many(count, 'result', 'have', grouped=True)} no time in {event_time} or {column}, and no latency"
    return [Finding("untimed-results", "warning", column, message)]
