"""cklog inspect [PATH]"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from cklog.commands.common import Common, FailOn, command
from cklog.commands.options import CheckContents
from cklog.model.question import InspectQuestion

MetricsOption = Annotated[
    bool,
    typer.Option("--metrics", help="Of the checkpointing protocol too: invalid checkpoints, overhead, restart work."),
]


Uid = Annotated[str, typer.Option("--uid", metavar="NAME", help="Of Flink: the operator that has this uid.")]
JobLogOption = Annotated[
    str, typer.Option("--job-log", metavar="FILE", help="Of Flink: a job manager's log, joined by checkpoint.")
]
ValidateOption = Annotated[
    bool,
    typer.Option("--validate", help="Check what the writer of a run folder got wrong: exit 3 for any warning."),
]


@command
def inspect(
    common: Common,
    metrics: MetricsOption = False,
    uid: Uid = "",
    job_log: JobLogOption = "",
    check_contents: CheckContents = False,
    validate: ValidateOption = False,
) -> None:
    """What is here: formats, operators, channels, checkpoints, damage, and what is missing."""
    asked = InspectQuestion(metrics, uid, job_log, check_contents, validate)
    if validate and common.fail_on == FailOn.error:
        common = replace(common, fail_on=FailOn.warning)
    common.answer(lambda run: run.inspect(asked))
