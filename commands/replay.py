"""cklog replay [PATH]"""

from __future__ import annotations

from typing import Annotated

import typer

from cklog.commands.common import Common, command
from cklog.commands.options import Earliest, LineOptions, RateOptions
from cklog.commands.terminal import completion
from cklog.lines.exports import export_steps, replay_formats


@command
def replay(
    common: Common,
    line: LineOptions,
    rate: RateOptions,
    earliest: Earliest = False,
    against: Annotated[
        str,
        typer.Option("--against", metavar="SNAPSHOT", help="Of Flink: records read again up to another checkpoint."),
    ] = "",
    operator: Annotated[
        str,
        typer.Option(
            "--operator", autocompletion=completion.readers, metavar="OP", help="Sources of this operator only."
        ),
    ] = "",
    topic: Annotated[str, typer.Option("--topic", metavar="TOPIC", help="Partitions of this topic only.")] = "",
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Export what is committed now instead, so that the plan can be undone.")
    ] = False,
) -> None:
    """Offsets and ranges to replay from the line.

    --format also takes what tools accept: kafka-csv, kafka-to-offset, kafka-get-offsets, kafka-delete-records,
    streams-csv, kcat, spark-offsets, spark-ending-offsets, flink-offsets, flink-sql, connect-json.
    """
    asked = line.question(earliest=earliest, against=against, rates=rate.rates)
    common.answer(lambda run: run.replay(asked, line.logs), replay_formats(operator, topic, rollback), export_steps)
