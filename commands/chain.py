"""cklog chain [PATH]"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from cklog.commands.common import Common, command
from cklog.commands.terminal import completion

ChainsOfOperator = Annotated[
    str,
    typer.Option(
        "--operator", autocompletion=completion.subtasks, metavar="OP[/SUB]", help="Only the chains of this one."
    ),
]
StateOption = Annotated[
    str | None, typer.Option("--state", metavar="NAME", help="Only the chains of this variable or state store.")
]
NewestOption = Annotated[
    int | None, typer.Option("--checkpoint", metavar="K", help="What must be read for this one (the newest).")
]
Rate = Annotated[
    float | None, typer.Option("--read-rate", metavar="MB/S", help="For times, where no durations are recorded.")
]


@command
def chain(
    common: Common,
    operator: ChainsOfOperator = "",
    state: StateOption = None,
    checkpoint: NewestOption = None,
    read_rate: Rate = None,
) -> None:
    """Base and delta checkpoints: which chains are whole, and what must be read to restore one, in order."""
    from cklog.chains.answer import ChainQuestion

    # before there were options of object stores --store NAME said what --state does, and still may
    named = [text for text in common.store or [] if "=" not in text]
    common = replace(common, store=[text for text in common.store or [] if "=" in text])
    asked = ChainQuestion(operator, state or next(iter(named), None), checkpoint, read_rate)
    common.answer(lambda run: run.chain(asked))
