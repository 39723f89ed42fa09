"""cklog graph [PATH]"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from cklog.commands.common import Common, command
from cklog.commands.options import AsOf, At, Failed, checkpoint_named, question
from cklog.graphs.exports import graph_formats
from cklog.graphs.selection import GraphQuestion


class GraphName(StrEnum):
    """`--kind`."""

    checkpoint = "checkpoint"
    rollback = "rollback"


@command
def graph(
    common: Common,
    kind: Annotated[
        GraphName, typer.Option("--kind", help="The checkpoint graph, or the rollback-dependency graph of intervals.")
    ] = GraphName.checkpoint,
    last: Annotated[
        int | None, typer.Option("--last", metavar="N", help="Only the last N checkpoints of every subtask.")
    ] = None,
    around: Annotated[
        str, typer.Option("--around", metavar="OP/SUB=CKPT", help="Only what is next to this checkpoint.")
    ] = "",
    steps: Annotated[int, typer.Option("--steps", metavar="N", help="How many edges away is next to it.")] = 1,
    failed: Failed = None,
    as_of: AsOf = "",
    at: At = None,
) -> None:
    """The checkpoint graph or the rollback-dependency graph, with the recovery line through it.

    --format also takes svg (a space-time diagram), dot, graphml, mermaid, and node-link (JSON for networkx).
    """
    form = "json" if common.as_json else common.form
    asked = GraphQuestion(
        kind=kind.value,
        last=last,
        around=checkpoint_named("--around", around) if around else None,
        steps=steps,
        form=form,
    )
    line = question(failed, as_of, at)
    common.answer(lambda run: run.graph(line, asked), graph_formats())
