"""Everything that is asked about checkpoint graphs, and how each of it may end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cklog.errors import CklogError
from cklog.graphs.exports import graph_formats
from cklog.graphs.selection import GraphQuestion
from cklog.graphs.z_cycles import ZCycleQuestion
from cklog.model.question import InspectQuestion, Question
from cklog.model.verdict import Answer
from cklog.render.formats import render
from cklog.run import Run, open_run
from tests.oracles.folder_damage import DOCUMENTED

AB, BA = "a/0->b/0", "b/0->a/0"
Ask = Callable[[Run], Answer[Any]]


def asked(name: str = "b/0", number: int = 1) -> Iterator[tuple[str, Ask]]:
    """Everything that is asked about graphs of checkpoints, some of it about one checkpoint."""
    at = Question(at=((name, number),))
    yield "recovery-line", lambda run: run.recovery_line(Question(explain=True))
    yield "at", lambda run: run.recovery_line(at)
    yield "earliest", lambda run: run.recovery_line(Question(at=at.at, earliest=True))
    yield "z-cycles", lambda run: run.z_cycles(Question(), ZCycleQuestion(limit=0))
    yield "witness", lambda run: run.z_cycles(Question(), ZCycleQuestion(only=(name, number)))
    yield "audit-cic", lambda run: run.audit_cic(Question(), 10)
    yield "failed-at", lambda run: run.failures_over_time(Question(), None)
    yield "metrics", lambda run: run.inspect(InspectQuestion(metrics=True))
    yield "graph", lambda run: run.graph(Question(), GraphQuestion("checkpoint"))
    yield "graph --kind rollback", lambda run: run.graph(Question(), GraphQuestion("rollback"))
    yield "graph --around", lambda run: run.graph(Question(), GraphQuestion("checkpoint", around=(name, number)))
    yield "graph --last", lambda run: run.graph(Question(), GraphQuestion("checkpoint", last=1))


EVERY_FORM = ("table", "md", "csv", "json", *graph_formats())


def ended(folder: Path, ask: Ask, forms: tuple[str, ...] = ("json",)) -> tuple[int, Answer[Any] | None]:
    """The exit code, and the answer if there is one, after it was shown in all these ways."""
    try:
        with open_run(str(folder)) as run:
            found = ask(run)
    except CklogError as error:
        return error.exit_code, None
    for form in forms:
        if form not in graph_formats():
            render(found, form).encode()
        elif found.command == "graph" and (form != "svg" or found.result.kind == "checkpoint"):
            graph_formats()[form](found).encode()
    return found.exit_code, found


def hold_up(folder: Path, what: object = "", **about: Any) -> dict[str, int]:
    """Every answer, or the refusal, ends with a documented exit code; returns the codes by question."""
    codes = {name: ended(folder, ask, EVERY_FORM)[0] for name, ask in asked(**about)}
    assert set(codes.values()) <= DOCUMENTED, (what, codes)
    return codes
