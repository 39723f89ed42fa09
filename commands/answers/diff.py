"""cklog diff BEFORE AFTER"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from cklog.commands.common import Common, command, path_argument
from cklog.errors import UsageError
from cklog.model.question import Question

if TYPE_CHECKING:
    from cklog.differences.answer import Differences
    from cklog.differences.told import Told
    from cklog.model.verdict import Answer
    from cklog.run import Run

AfterArgument = Annotated[
    str, typer.Argument(metavar="AFTER", help="The later answer: JSON of the same command, -, or a run folder.")
]
ExitCode = Annotated[bool, typer.Option("--exit-code", help="Exit 1 if anything differs, as git's option.")]


@partial(command, path=path_argument("BEFORE", "The earlier answer: JSON of a command, - for stdin, or a run folder."))
def diff(common: Common, after: AfterArgument, exit_code: ExitCode = False) -> None:
    """What two answers have different, after a repair, say.

    A run folder is asked for its recovery line; of other commands give what --json printed.
    """
    from cklog.differences.answer import differences

    if common.path == after == "-":
        raise UsageError("stdin can be one of the two only")
    with replace(common, path=after).run() as second:
        sides: list[Told] = []

        def compare(run: Run) -> Answer[Differences]:
            run.reads_with(second)
            sides.extend((_told(common.path, run), _told(after, second)))
            return differences(sides[0], sides[1], exit_code)

        common.answer(compare, unchecked=lambda _: sides[1].unchecked())


def _told(path: str, run: Run) -> Told:
    """What is told by a file, or is answered of a folder."""
    from cklog.differences.told import just_told, read_told

    if "://" in path or os.path.isdir(path):
        return just_told(path, lambda: run.recovery_line(Question()))
    return read_told(path)
