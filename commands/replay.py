"""cklog replay [PATH]"""

from __future__ import annotations

from typing import Annotated

import typer

from cklog.commands.common import Common, command
from cklog.commands.options import (
    AsOf,
    At,
    ChannelOption,
    CheckContents,
    Earliest,
    Failed,
    GroupOption,
    InputRate,
    KafkaOption,
    MaxRecoveryTime,
    NoCheckFiles,
    ReadRate,
    ReplayRate,
    kafka_logs,
    question,
)
from cklog.commands.terminal import completion
from cklog.lines.exports import export_steps, replay_formats
from cklog.model.recovery_time import RecoveryRates


@command
def replay(
    common: Common,
    failed: Failed = None,
    as_of: AsOf = "",
    at: At = None,
    earliest: Earliest = False,
    against: Annotated[
        str,
        typer.Option("--against", metavar="SNAPSHOT", help="Of Flink: records read again up to another checkpoint."),
    ] = "",
    no_check_files: NoCheckFiles = False,
    check_contents: CheckContents = False,
    operator: Annotated[
        str,
        typer.Option(
            "--operator", autocompletion=completion.readers, metavar="OP", help="Sources of this operator only."
        ),
    ] = "",
    topic: Annotated[str, typer.Option("--topic", metavar="TOPIC", help="Partitions of this topic only.")] = "",
    kafka: KafkaOption = "",
    channel: ChannelOption = None,
    group: GroupOption = "",
    read_rate: ReadRate = None,
    replay_rate: ReplayRate = None,
    input_rate: InputRate = None,
    max_recovery_time: MaxRecoveryTime = None,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Export what is committed now instead, so that the plan can be undone.")
    ] = False,
) -> None:
    """Offsets and ranges to replay from the line.

    --format also takes what tools accept: kafka-csv, kafka-to-offset, kafka-get-offsets, kafka-delete-records,
    streams-csv, kcat, spark-offsets, spark-ending-offsets, flink-offsets, flink-sql.
    """
    rates = RecoveryRates(read_rate, replay_rate, input_rate, max_recovery_time)
    asked = question(
        failed,
        as_of,
        at,
        earliest=earliest,
        against=against,
        check_files=not no_check_files,
        check_contents=check_contents,
        rates=rates,
    )
    logs = kafka_logs(kafka, channel, group)
    common.answer(lambda run: run.replay(asked, logs), replay_formats(operator, topic, rollback), export_steps)
