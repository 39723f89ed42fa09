"""cklog recovery-line [PATH]"""

from __future__ import annotations

from cklog.commands.common import Common, command
from cklog.commands.options import (
    Algorithm,
    AlgorithmName,
    AsOf,
    At,
    ChannelOption,
    CheckContents,
    Earliest,
    Explain,
    Failed,
    FailedAt,
    GroupOption,
    InputRate,
    KafkaOption,
    MaxRecoveryTime,
    NoCheckFiles,
    ReadRate,
    ReplayRate,
    kafka_logs,
    moment,
    question,
)
from cklog.errors import UsageError
from cklog.model.recovery_time import RecoveryRates


@command
def recovery_line(
    common: Common,
    failed: Failed = None,
    as_of: AsOf = "",
    at: At = None,
    earliest: Earliest = False,
    explain: Explain = False,
    algorithm: AlgorithmName = Algorithm.fixpoint,
    failed_at: FailedAt = "",
    no_check_files: NoCheckFiles = False,
    check_contents: CheckContents = False,
    kafka: KafkaOption = "",
    channel: ChannelOption = None,
    group: GroupOption = "",
    read_rate: ReadRate = None,
    replay_rate: ReplayRate = None,
    input_rate: InputRate = None,
    max_recovery_time: MaxRecoveryTime = None,
) -> None:
    """The latest consistent recovery line: where every subtask can restart, and what to replay."""
    rates = RecoveryRates(read_rate, replay_rate, input_rate, max_recovery_time)
    if not failed_at:
        asked = question(
            failed,
            as_of,
            at,
            explain,
            earliest,
            algorithm,
            check_files=not no_check_files,
            check_contents=check_contents,
            rates=rates,
        )
        logs = kafka_logs(kafka, channel, group)
        common.answer(lambda run: run.recovery_line(asked, logs))
    if failed or at or earliest or explain:
        raise UsageError("--failed-at is about a failure of everything: without --failed, --at, --earliest, --explain")
    if rates != RecoveryRates():
        raise UsageError("--failed-at tells no times: without rates and --max-recovery-time")
    times = None if failed_at == "all" else tuple(t for t in map(moment, failed_at.split(",")) if t is not None)
    common.answer(lambda run: run.failures_over_time(question(as_of=as_of), times))
