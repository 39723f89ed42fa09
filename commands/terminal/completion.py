"""What a shell offers behind the tabulator: formats, runs and operators. Paths are left to the shell, which knows them.

Names of runs and operators are other people's, and shells evaluate what they are offered: only names that no shell
reads as anything else are.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import typer

from cklog.render.formats import FORMATS

if TYPE_CHECKING:
    from cklog.run import Run

_HARMLESS = re.compile(r"[\w./+@-]+")
_PATIENCE_SECONDS = 3.0
"""Somebody waits at the keyboard: then nothing is offered."""


def formats(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer the formats that every command has, and those of this one."""
    own = _OWN_FORMATS.get(ctx.info_name or "", tuple)
    return _offered([*FORMATS, *own()], incomplete)


def sources(incomplete: str) -> list[str]:
    """Offer the formats of input: the parsers that there are."""
    from cklog.kinds.opening import known_parsers

    return _offered(known_parsers(), incomplete)


def runs(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer the runs that lie below PATH."""
    from cklog.kinds.opening import runs_of
    from cklog.storage import Root

    return _found(lambda: (run.name for run in runs_of(Root(_path(ctx)), ctx.params.get("source") or "")), incomplete)


def operators(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer the operators of the run."""
    return _found(lambda: (operator for operator, _ in _subtasks(ctx)), incomplete)


def readers(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer the operators that read a source."""
    return _found(lambda: (operator for operator, _ in _subtasks(ctx, sources_only=True)), incomplete)


def failed(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer operators and subtasks that can fail alone: of runs that do not restart as a whole."""
    return _offered_subtasks(ctx, incomplete, _RESTARTED_IN_PARTS)


def subtasks(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer the operators of the run and their subtasks."""
    return _offered_subtasks(ctx, incomplete)


def _offered_subtasks(ctx: typer.Context, incomplete: str, kinds: tuple[str, ...] = ()) -> list[str]:
    """Operators and subtasks of a run of these kinds, or of any; in a list, those behind its last comma."""
    before, comma, last = incomplete.rpartition(",")
    taken = set(before.split(","))

    def names() -> Iterator[str]:
        for operator, subtask in _subtasks(ctx, kinds):
            yield operator
            if subtask is not None:
                yield f"{operator}/{subtask}"

    return [f"{before}{comma}{name}" for name in _found(names, last) if name not in taken]


def _replay_formats() -> Iterable[str]:
    from cklog.lines.exports import replay_formats

    return replay_formats("", "", False)


def _graph_formats() -> Iterable[str]:
    from cklog.graphs.exports import graph_formats
    from cklog.render.pictures import CONVERTED

    return (*graph_formats(), *CONVERTED)


_OWN_FORMATS: dict[str, Callable[[], Iterable[str]]] = {
    "replay": _replay_formats,
    "graph": _graph_formats,
    "retention": lambda: ("paths", "script"),
    "scan": lambda: ("prometheus",),
    "runbook": lambda: ("script",),
}
"""Formats that one command has."""

_RESTARTED_IN_PARTS = ("records", "queues")
"""Kinds of run of which one subtask can fail and the others go on."""


def _offered(names: Iterable[str], incomplete: str) -> list[str]:
    """Those that begin as what was typed, each once and in order, if no shell reads them as anything else."""
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete) and _HARMLESS.fullmatch(name)]


def _found(names: Callable[[], Iterable[str]], incomplete: str) -> list[str]:
    """Those that reading the run shows; nothing where that fails or takes too long, for nobody could be told."""
    watch = threading.Timer(_PATIENCE_SECONDS, os._exit, (0,))
    watch.daemon = True
    watch.start()
    try:
        return _offered(names(), incomplete)
    except Exception:  # whatever is wrong with PATH, the command itself will say
        return []
    finally:
        watch.cancel()


def _path(ctx: typer.Context) -> str:
    return ctx.params.get("path") or os.environ.get("CKLOG_PATH") or "."


def _subtasks(
    ctx: typer.Context, kinds: tuple[str, ...] = (), sources_only: bool = False
) -> list[tuple[str, int | None]]:
    """The operators and subtasks of the run, sorted: from its line and its sources, else from what `inspect` lists.

    `kinds` of run: none of any other.
    """
    from cklog.model.question import Question
    from cklog.run import Options, open_run

    given = ctx.params
    options = Options(engine="local", source=given.get("source") or "", run=given.get("chosen") or "")
    with open_run(_path(ctx), options) as run:
        if kinds and run.parser.kind not in kinds:
            return []
        try:
            found: list[tuple[str, int | None]] = []
            line = run.recovery_line(Question(check_files=False)).result
            found += [] if sources_only else [(e.operator, e.subtask) for e in line.line]
            found += [(s.operator, s.subtask) for s in line.sources]
        except Exception:  # a kind of run that restarts from no line
            found = list(_inspected(run))
    return sorted(set(found), key=lambda one: (one[0], one[1] is None, one[1]))


def _inspected(run: Run) -> Iterator[tuple[str, Any]]:
    """Whatever is called an operator in the rows of `inspect`."""
    result: dict[str, Any] = dict(run.inspect().result)
    for rows in result.values():
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, dict) and isinstance(row.get("operator"), str):
                yield row["operator"], row.get("subtask")
