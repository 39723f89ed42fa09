"""cklog rounds [PATH]"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from cklog.commands.common import Common, command
from cklog.commands.options import AsOf, moment, words
from cklog.errors import UsageError


class DomainName(StrEnum):
    """`--sweep`."""

    node = "node"
    rack = "rack"
    pair = "pair"


Number = Annotated[int | None, typer.Option("--round", metavar="N", help="The individual checkpoints of this round.")]
FailedNodes = Annotated[
    list[str] | None,
    typer.Option("--failed-nodes", metavar="NODE,…", help="These nodes are gone, and what lay on their disks."),
]
Sweep = Annotated[
    DomainName | None,
    typer.Option("--sweep", help="Every node, rack or pair of nodes fails: what is left, worst first."),
]


@command
def rounds(
    common: Common,
    number: Number = None,
    failed_nodes: FailedNodes = None,
    sweep: Sweep = None,
    as_of: AsOf = "",
) -> None:
    """Coordinated rounds: the most recent complete one, where the newest hangs, and what must be restarted where."""
    from cklog.rounds.answer import RoundsQuestion

    if sweep is not None:
        from cklog.rounds.sweep import SweepQuestion

        if number is not None or failed_nodes:
            raise UsageError("--sweep lets one domain after the other fail: it takes no --round and no --failed-nodes")
        swept = SweepQuestion(sweep.value, moment(as_of))
        common.answer(lambda run: run.sweep_rounds(swept))
        return
    asked = RoundsQuestion(number, words(failed_nodes), moment(as_of))
    common.answer(lambda run: run.rounds(asked))
