"""cklog graph [PATH]"""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from cklog.commands.common import Common, command
from cklog.commands.options import AsOf, At, Failed, checkpoint_named, pixels, question
from cklog.errors import UsageError
from cklog.graphs.exports import graph_formats, picture_of
from cklog.graphs.graph import CheckpointGraph
from cklog.graphs.selection import PICTURES, GraphQuestion
from cklog.model.verdict import Answer
from cklog.render.pictures import CONVERTED, require_converter
from cklog.run import Run


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
    everything: Annotated[
        bool, typer.Option("--all", help="The whole run in a picture, not what fits a page around the line.")
    ] = False,
    fold: Annotated[bool, typer.Option("--fold", help="One lane of a picture for each operator.")] = False,
    width: Annotated[
        str, typer.Option("--width", metavar="SIZE", help="Of a picture, in pixels, or as 180mm, 18cm, 7in.")
    ] = "",
    failed: Failed = None,
    as_of: AsOf = "",
    at: At = None,
) -> None:
    """The checkpoint graph or the rollback-dependency graph, with the recovery line through it.

    --format also takes svg, pdf and png (a space-time diagram), dot, graphml, mermaid, and node-link (JSON for
    networkx).
    """
    form = "json" if common.as_json else common.form
    asked = GraphQuestion(
        kind=kind.value,
        last=last,
        around=checkpoint_named("--around", around) if around else None,
        steps=steps,
        form=form,
        everything=everything,
        fold=fold,
        width=pixels("--width", width) if width else None,
    )
    require_converter(form)
    if form in CONVERTED and not common.output and sys.stdout.isatty():
        raise UsageError(f"--format {form} writes bytes that no terminal shows", "-o FILE")
    line = question(failed, as_of, at)
    drawn: list[str | bytes] = []

    def ask(run: Run) -> Answer[CheckpointGraph]:
        found = run.graph(line, asked)
        if form in PICTURES:
            picture, notes = picture_of(found, asked)
            drawn.append(picture)
            run.spoken += [f"picture: {note}" for note in notes]
        return found

    common.answer(ask, {**graph_formats(), **{form: lambda _: drawn[0] for form in PICTURES}})
