"""cklog compare PATH PATH…"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from cklog.commands.common import Common, command
from cklog.errors import UsageError
from cklog.model.verdict import Answer
from cklog.run import Run

if TYPE_CHECKING:
    from cklog.protocols.metrics import RunComparison

Others = Annotated[list[str] | None, typer.Argument(metavar="PATH", help="The runs to compare it with.")]


@command
def compare(common: Common, others: Others = None) -> None:
    """Several histories side by side, by the metrics of their checkpointing protocols."""
    if not others:
        raise UsageError("compare what with what? Give two run folders or more")
    paths = [common.path, *others]
    if len(set(paths)) < len(paths):
        raise UsageError("a run folder is named twice")

    def ask(run: Run) -> Answer[RunComparison]:
        with ExitStack() as opened:
            runs = {path: opened.enter_context(replace(common, path=path).run()) for path in others}
            answer = run.compare(common.path, runs)
            run.spoken += [line for other in runs.values() for line in other.spoken]
            return answer

    common.answer(ask)
