"""cklog verify [PATH] --line FILE"""

from __future__ import annotations

from typing import Annotated

import typer

from cklog.commands.common import Common, command
from cklog.commands.options import AsOf, CheckContents, Failed, question
from cklog.lines.verify import read_line


@command
def verify(
    common: Common,
    line: Annotated[
        str, typer.Option("--line", metavar="FILE", help='JSON of recovery-line, or {"op/sub": checkpoint}.')
    ],
    maximal: Annotated[bool, typer.Option("--maximal", help="Prove too that no newer line exists.")] = False,
    failed: Failed = None,
    as_of: AsOf = "",
    check_contents: CheckContents = False,
) -> None:
    """Prove or refute from the input that a line is consistent and can be restored."""
    asked = question(failed, as_of, check_contents=check_contents)
    given = read_line(line)
    common.answer(lambda run: run.verify(given, maximal, asked))
