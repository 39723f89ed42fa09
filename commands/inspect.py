"""cklog inspect [PATH]"""

from __future__ import annotations

from typing import Annotated

import typer

from cklog.commands.common import Common, command

Metrics = Annotated[
    bool,
    typer.Option("--metrics", help="Of the checkpointing protocol too: invalid checkpoints, overhead, restart work."),
]


@command
def inspect(common: Common, metrics: Metrics = False) -> None:
    """What is here: formats, operators, channels, checkpoints, damage, and what is missing."""
    common.answer(lambda run: run.inspect(metrics))
