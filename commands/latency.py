"""cklog latency [PATH]"""

from __future__ import annotations

from typing import Annotated

import typer

from cklog.commands.common import Common, command
from cklog.commands.options import moment
from cklog.commands.terminal import completion
from cklog.errors import UsageError

ResultsOption = Annotated[
    str, typer.Option("--results", metavar="PATH", help="A sink's results: Parquet or JSON lines, a file or a folder.")
]
EventTime = Annotated[
    str, typer.Option("--event-time", metavar="FIELD", help="With --results: when a record came into being.")
]
SinkTime = Annotated[
    str, typer.Option("--time", metavar="FIELD", help="With --results: when it was at the sink (time or ts).")
]
OneOperator = Annotated[
    str,
    typer.Option(
        "--operator", autocompletion=completion.operators, metavar="OP", help="Messages into this one (all sinks)."
    ),
]
StepOption = Annotated[float, typer.Option("--step", metavar="S", help="Look at so many seconds together.")]
FailedAtOption = Annotated[
    str,
    typer.Option(
        "--at",
        metavar="TIME",
        help="When it failed (as job.json says, or the longest silence).",
        rich_help_panel="Options",
    ),
]
FactorOption = Annotated[
    float, typer.Option("--factor", metavar="X", help="Normal is a p99 of at most X times that before the failure.")
]
StepsOption = Annotated[int, typer.Option("--steps", metavar="N", help="Back to normal: for N steps in a row.")]

_LONGEST_S = 1e9


@command
def latency(
    common: Common,
    results: ResultsOption = "",
    event_time: EventTime = "",
    time: SinkTime = "",
    operator: OneOperator = "",
    step: StepOption = 1.0,
    at: FailedAtOption = "",
    factor: FactorOption = 1.5,
    steps: StepsOption = 3,
) -> None:
    """How long records took to the sink, second by second: around a failure until it is normal again, and checkpoints.

    Of messages into sinks, by raw events; or of a sink's results, which need no run at PATH.
    """
    from cklog.latency.model import LatencyQuestion

    if not 0.001 <= step <= _LONGEST_S:
        raise UsageError(f"--step {step:g}: seconds, from 0.001 to {_LONGEST_S:g}")
    asked = LatencyQuestion(
        results=results,
        event_time=event_time,
        time=time,
        operator=operator,
        step_ms=round(1000 * step),
        failed_at=moment(at),
        factor=factor,
        steps=steps,
    )
    common.answer(lambda run: run.latency(asked))
