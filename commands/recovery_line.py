"""cklog recovery-line [PATH]"""

from __future__ import annotations

from cklog.commands.common import Common, command
from cklog.commands.jointly import With, answer_jointly
from cklog.commands.options import (
    Algorithm,
    AlgorithmName,
    Earliest,
    Explain,
    FailedAt,
    LineOptions,
    RateOptions,
    moment,
    question,
)
from cklog.errors import UsageError


@command
def recovery_line(
    common: Common,
    line: LineOptions,
    rate: RateOptions,
    earliest: Earliest = False,
    explain: Explain = False,
    algorithm: AlgorithmName = Algorithm.fixpoint,
    failed_at: FailedAt = "",
    beside: With = None,
) -> None:
    """The latest consistent recovery line: where every subtask can restart, and what to replay."""
    if beside:
        if failed_at or earliest or explain:
            raise UsageError("--with plans several jobs as one: without --failed-at, --earliest and --explain")
        answer_jointly(common, line.question(rates=rate.rates), line.logs, beside)
    if not failed_at:
        asked = line.question(explain, earliest, algorithm, rates=rate.rates)
        common.answer(lambda run: run.recovery_line(asked, line.logs))
    if line.failed or line.at or earliest or explain:
        raise UsageError("--failed-at is about a failure of everything: without --failed, --at, --earliest, --explain")
    if rate != RateOptions():
        raise UsageError("--failed-at tells no times: without rates and --max-recovery-time")
    times = None if failed_at == "all" else tuple(t for t in map(moment, failed_at.split(",")) if t is not None)
    common.answer(lambda run: run.failures_over_time(question(as_of=line.as_of), times))
