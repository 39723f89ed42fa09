"""cklog scan ROOT…"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from cklog.commands.common import Common, command, path_argument
from cklog.commands.options import moment
from cklog.sweep.model import TIME_LIMIT

if TYPE_CHECKING:
    from cklog.model.verdict import Answer
    from cklog.run import Run
    from cklog.sweep.model import ScanAnswer


Others = Annotated[list[str] | None, typer.Argument(metavar="ROOT", help="More folders.")]
Since = Annotated[
    str,
    typer.Option(
        "--since",
        metavar="TIME",
        help="Without runs whose own logs tell of nothing since then (ms or ISO 8601); those without times stay.",
    ),
]
Sort = Annotated[
    str,
    typer.Option(
        "--sort",
        metavar="COLUMN",
        help="What most needs a look first, by path, format, action, newest, age, size or findings.",
    ),
]


TimeLimit = Annotated[
    float,
    typer.Option("--time-limit", metavar="SECONDS", min=0, help="A run that takes longer is given up; 0: none is."),
]


@partial(command, path=path_argument("ROOT", "Folder or URI, with runs in it or below it."))
def scan(
    common: Common,
    others: Others = None,
    since: Since = "",
    sort: Sort = "path",
    time_limit: TimeLimit = TIME_LIMIT,
) -> None:
    """Every run below some folders: what to do, how old its line is, what is wrong.

    --format prometheus is a textfile for the node exporter. The exit code is the worst that recovery-line has for any
    run: 5, then 4, 3 and 0; 5 also for a run without an answer. --fail-on asks for more, or less.
    """
    from cklog.sweep.model import ScanQuestion
    from cklog.sweep.prometheus import prometheus_text

    def ask(run: Run) -> Answer[ScanAnswer]:
        with ExitStack() as opened:
            more = [opened.enter_context(replace(common, path=path).run()) for path in others or []]
            return run.scan(ScanQuestion(moment(since), sort, time_limit), more)

    common.answer(ask, {"prometheus": prometheus_text})
