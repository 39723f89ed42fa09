"""cklog rounds [PATH]"""

from __future__ import annotations

from typing import Annotated

import typer

from cklog.commands.common import Common, command
from cklog.commands.options import AsOf, moment, words

Number = Annotated[int | None, typer.Option("--round", metavar="N", help="The individual checkpoints of this round.")]
FailedNodes = Annotated[
    list[str] | None,
    typer.Option("--failed-nodes", metavar="NODE,…", help="These nodes are gone, and what lay on their disks."),
]


@command
def rounds(common: Common, number: Number = None, failed_nodes: FailedNodes = None, as_of: AsOf = "") -> None:
    """Coordinated rounds: the most recent complete one, where the newest hangs, and what must be restarted where."""
    from cklog.rounds.answer import RoundsQuestion

    asked = RoundsQuestion(number, words(failed_nodes), moment(as_of))
    common.answer(lambda run: run.rounds(asked))
