"""cklog impact [PATH]"""

from __future__ import annotations

from typing import Annotated

import typer

from cklog.commands.common import Common, command
from cklog.commands.options import LineOptions, RecoveryName, moment
from cklog.commands.terminal import completion
from cklog.destinations import keep_input_from
from cklog.errors import UsageError
from cklog.local_files import is_local, without_file_scheme

CrashOption = Annotated[
    str, typer.Option("--crash", metavar="TIME", help="When it crashed (as logged): ms or ISO 8601.")
]
RestartOption = Annotated[str, typer.Option("--restart", metavar="TIME", help="When it was back (the next boot).")]
RecoveryOption = Annotated[
    RecoveryName | None, typer.Option("--recovery", help="How it recovers (the strongest that the evidence supports).")
]
CheckpointOption = Annotated[
    str, typer.Option("--checkpoint", metavar="TIME|unknown", help="When the last checkpoint was (as logged).")
]


OnlyGuarantee = Annotated[
    bool, typer.Option("--guarantee", help="Only which guarantee can be kept, and what the next one needs.")
]
Annotate = Annotated[
    str, typer.Option("--annotate", metavar="NEW", help="Write the results with their trust to a new folder.")
]
ResultsOption = Annotated[
    str, typer.Option("--results", metavar="PATH", help="With --annotate: the results, if not in outputs/.")
]
TimeColumn = Annotated[
    str, typer.Option("--time", metavar="COLUMN", help="With --annotate: the column of times (time or ts).")
]
Output = Annotated[
    str,
    typer.Option(
        "--operator",
        autocompletion=completion.operators,
        metavar="OP",
        help="With --annotate: the output whose results.",
    ),
]
Against = Annotated[
    str, typer.Option("--against", metavar="SNAPSHOT", help="Of Flink: the job had come this far, at least.")
]


@command
def impact(
    common: Common,
    line: LineOptions,
    crash: CrashOption = "",
    restart: RestartOption = "",
    recovery: RecoveryOption = None,
    checkpoint: CheckpointOption = "",
    guarantee: OnlyGuarantee = False,
    annotate: Annotate = "",
    results: ResultsOption = "",
    time: TimeColumn = "",
    operator: Output = "",
    against: Against = "",
) -> None:
    """Which results a crash and its recovery leave missing, wrong, doubled or in doubt; what can be guaranteed.

    With a system log (system/) or --crash, by time; else by the line that the run restarts from, sink by sink.
    """
    from cklog.impact.annotate import AnnotateQuestion
    from cklog.impact.answer import UNKNOWN_CHECKPOINT, ImpactQuestion

    asked = ImpactQuestion(
        moment(crash),
        moment(restart),
        "" if recovery is None else recovery.value,
        checkpoint if checkpoint == UNKNOWN_CHECKPOINT else moment(checkpoint),
    )
    if annotate:
        to_write = AnnotateQuestion(annotate, results, time, operator)
        kept = annotate if is_local(annotate) and not common.overwrite else ""
        with keep_input_from("--annotate", without_file_scheme(kept)):
            common.answer(lambda run: run.annotate(asked, to_write))
    if results or time or operator:
        raise UsageError("--results, --time and --operator: what to annotate", "say where to with --annotate NEW")
    chosen = line.question(against=against)
    if guarantee:
        common.answer(lambda run: run.guarantees(asked, chosen, line.logs))
    common.answer(lambda run: run.impact(asked, chosen, line.logs))
