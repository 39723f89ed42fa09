"""cklog advise WHAT [PATH]"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar

import typer

from cklog.commands.common import Common, command
from cklog.commands.lazy import LazyCommands
from cklog.commands.options import AsOf, OperatorOption, WordList, moment, numbers, words
from cklog.commands.terminal import completion


class BenefitName(StrEnum):
    """`--by`."""

    time = "time"
    size = "size"


class Advice(LazyCommands):
    """One for each thing that can be set."""

    places: ClassVar[Mapping[str, str]] = {
        "extent": "cklog.commands.advise:extent",
        "delta": "cklog.commands.advise:delta",
        "timing": "cklog.commands.advise:timing",
        "protocol": "cklog.commands.advise:protocol",
    }


advise = typer.Typer(name="advise", cls=Advice, no_args_is_help=True, rich_markup_mode=None)

Q = Annotated[
    WordList,
    typer.Option("--q", metavar="N|Nx|none", help="Targets Q: records, or times the mean open windows (1x,2x,4x,8x)."),
]
U = Annotated[WordList, typer.Option("--u", metavar="N|none", help="Targets U: tuples (four, by the log's own scale).")]
Ci = Annotated[WordList, typer.Option("--ci", metavar="MS", help="Most time for checks in a period (5).")]
Cp = Annotated[WordList, typer.Option("--cp", metavar="MS", help="Checkpoint period (100).")]
Cost = Annotated[
    float, typer.Option("--check-cost", metavar="US", help="Time that a check takes (inferred from the paper).")
]
Mtbf = Annotated[
    WordList, typer.Option("--mtbf", metavar="H", help="Cost-benefit: mean hours between failures (1,24,168).")
]
Load = Annotated[
    float | None,
    typer.Option("--load-rate", metavar="N", help="Records loaded per second (by the paper's six points)."),
]
ReplayOption = Annotated[
    float | None,
    typer.Option("--replay-rate", metavar="N", help="Tuples replayed per second (the log's fastest second)."),
]
Size = Annotated[float | None, typer.Option("--tuple-bytes", metavar="N", help="Of an input tuple (measured).")]
Longest = Annotated[
    float | None,
    typer.Option("--max-recovery-time", metavar="S", help="Choose the cheapest setting that always recovers in that."),
]
Ratio = Annotated[
    float, typer.Option("--ratio", metavar="R", help="The deltas after a base: at most R times its size.")
]
MaxDelta = Annotated[int | None, typer.Option("--max-delta", metavar="N", help="At most N deltas after a base.")]
MaxRestore = Annotated[
    float | None, typer.Option("--max-restore-time", metavar="S", help="Restore a base and its deltas within S.")
]
ProbeAfter = Annotated[
    int, typer.Option("--probe-after", metavar="N", help="Full checkpoints in a row before a delta is tried again.")
]
ByOption = Annotated[
    BenefitName | None, typer.Option("--by", help="What the benefit test compares (time, where all have durations).")
]
Period = Annotated[float, typer.Option("--period", metavar="S", help="One checkpoint in each S seconds.")]
Profiled = Annotated[
    int | None, typer.Option("--profile-periods", metavar="N", help="Learn s_max from the first N periods (half).")
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Of the random and the periodic moments.")]
OnlyOperator = Annotated[
    str, typer.Option("--operator", autocompletion=completion.subtasks, help="Only this one.", metavar="OP[/SUB]")
]

Intervals = Annotated[
    WordList, typer.Option("--interval", metavar="S", help="Between a timer's checkpoints: 5,10,30 (as in the run).")
]
BetweenFailures = Annotated[float, typer.Option("--mtbf", metavar="H", help="Mean hours between failures.")]
LogRate = Annotated[float, typer.Option("--log-rate", metavar="MB", help="What a subtask can log in a second.")]
Takes = Annotated[
    float | None, typer.Option("--checkpoint-ms", metavar="MS", help="What a checkpoint takes (as recorded).")
]


@advise.callback()
def _advise() -> None:
    """Settings, from what this history shows."""


@command
def extent(
    common: Common,
    operator: OperatorOption = "",
    q: Q = None,
    u: U = None,
    ci: Ci = None,
    cp: Cp = None,
    check_cost: Cost = 2.5,
    mtbf: Mtbf = None,
    load_rate: Load = None,
    replay_rate: ReplayOption = None,
    tuple_bytes: Size = None,
    max_recovery_time: Longest = None,
) -> None:
    """What Q, U, CI and CP would have given on an operator's output queue. Options --q to --mtbf take lists: 1,2,3.

    Without --q and --u each is tried alone, as in the paper's Figures 6 and 7; with both, every pair.
    """
    from cklog.advise.extent.grid import ExtentQuestion

    asked = ExtentQuestion(
        q=words(q),
        u=words(u),
        ci_ms=numbers("--ci", ci or ["5"]),
        cp_ms=numbers("--cp", cp or ["100"]),
        cost_us=check_cost,
        mtbf_h=numbers("--mtbf", mtbf or ["1,24,168"]),
        load_rate=load_rate,
        replay_rate=replay_rate,
        tuple_bytes=tuple_bytes,
        max_recovery_s=max_recovery_time,
    )
    common.answer(lambda run: run.advise_extent(operator, asked))


@command
def delta(
    common: Common,
    operator: OnlyOperator = "",
    by: ByOption = None,
    ratio: Ratio = 1.5,
    max_delta: MaxDelta = None,
    max_restore_time: MaxRestore = None,
    probe_after: ProbeAfter = 10,
) -> None:
    """How many delta checkpoints to take after a base (D), and what that would have saved on this history."""
    from cklog.advise.delta.answer import DeltaQuestion
    from cklog.policies.delta_number import DeltaLimits

    longest = None if max_restore_time is None else 1000 * max_restore_time
    limits = DeltaLimits(ratio, max_delta, longest, probe_after)
    asked = DeltaQuestion(limits, None if by is None else by.value, operator)
    common.answer(lambda run: run.advise_delta(asked))


@command
def timing(common: Common, period: Period = 200.0, profile_periods: Profiled = None, seed: Seed = 0) -> None:
    """When to checkpoint, by state-size samples, so that little is written: beside the best, random and periodic."""
    from cklog.advise.timing.answer import TimingQuestion

    asked = TimingQuestion(period, profile_periods, seed)
    common.answer(lambda run: run.advise_timing(asked))


@command
def protocol(
    common: Common,
    interval: Intervals = None,
    mtbf: BetweenFailures = 24.0,
    log_rate: LogRate = 100.0,
    checkpoint_ms: Takes = None,
    as_of: AsOf = "",
) -> None:
    """Which checkpointing protocol to use: the run's messages replayed under each, and what failures would cost."""
    from cklog.protocols.choice.model import ProtocolQuestion

    seconds = tuple(numbers("--interval", interval)) if interval else ()
    asked = ProtocolQuestion(seconds, mtbf, log_rate, checkpoint_ms, moment(as_of))
    common.answer(lambda run: run.advise_protocol(asked))
