"""cklog verify [PATH] --line FILE, or --restored FILE, or --from-log FILE"""

from __future__ import annotations

from typing import Annotated

import typer

from cklog.commands.common import Common, command
from cklog.commands.options import AsOf, CheckContents, Failed, SinkOption, SourceFromOption, question
from cklog.errors import UsageError
from cklog.lines.verify import read_line
from cklog.model.audits import Restored

_LINES = 'JSON of recovery-line, or {"op/sub": checkpoint}'


@command
def verify(
    common: Common,
    line: Annotated[str, typer.Option("--line", metavar="FILE", help=f"{_LINES}.")] = "",
    restored: Annotated[
        str, typer.Option("--restored", metavar="FILE", help="The same, of what an engine restored: was it right?")
    ] = "",
    from_log: Annotated[
        str, typer.Option("--from-log", metavar="FILE", help="What an engine restored, by its log (Flink).")
    ] = "",
    maximal: Annotated[bool, typer.Option("--maximal", help="Prove too that no newer line exists.")] = False,
    failed: Failed = None,
    as_of: AsOf = "",
    check_contents: CheckContents = False,
    source_from: SourceFromOption = None,
    sink: SinkOption = None,
) -> None:
    """Prove or refute from the input that a line is consistent and can be restored.

    Of a line that was restored: what it lost or doubled, and which one was right.
    """
    if sum(map(bool, (line, restored, from_log))) != 1:
        raise UsageError("which line? Give one of --line, --restored and --from-log", f"FILE: {_LINES}")
    asked = question(failed, as_of, check_contents=check_contents, source_from=source_from, sinks=sink)
    if line:
        given = read_line(line)
        common.answer(lambda run: run.verify(given, maximal, asked))
        return
    if sink:
        raise UsageError("--sink is about --line", "cklog verify --line FILE --sink NAME=URI")
    if maximal:
        raise UsageError("--maximal is about --line", "what was restored is held against the right line anyway")
    told = Restored(read_line(restored, "--restored")) if restored else None
    common.answer(lambda run: run.audit(told or run.restored_in(from_log), asked))
