"""`--with`: several jobs that feed each other, in one question."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Annotated, NoReturn

import typer

from cklog.commands.common import Common
from cklog.errors import UsageError
from cklog.model.lines import RecoveryLine
from cklog.model.question import KafkaLogs, Question
from cklog.model.verdict import Answer
from cklog.run import Run

With = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        metavar="[NAME=]PATH",
        help="Another job that feeds this one, or is fed by it: one line for all; repeatable.",
    ),
]


def answer_jointly(common: Common, asked: Question, logs: KafkaLogs, beside: Sequence[str]) -> NoReturn:
    """Ask the run at PATH and the others for one line, print it, and leave with its exit code."""
    paths: dict[str, str] = {}
    for text in (common.path, *beside):
        name, path = named_path(text) if paths else (_base(text), text)
        if name in paths or path.rstrip("/") in {one.rstrip("/") for one in paths.values()}:
            raise UsageError(f"--with {text}: there is another of that name, or folder", "give it a name: NAME=PATH")
        paths[name] = path
    first, *others = paths

    def ask(run: Run) -> Answer[RecoveryLine]:
        with ExitStack() as opened:
            runs = {
                name: opened.enter_context(replace(common, path=paths[name], chosen="", source="").run())
                for name in others
            }
            return run.joint_line(first, runs, asked, logs)

    common.answer(ask)
    raise typer.Exit


def named_path(text: str) -> tuple[str, str]:
    """Return name and PATH of `NAME=PATH` or `PATH`, which is named after its last folder.

    >>> named_path("billing=runs/b"), named_path("runs/b/"), named_path("s3://bucket/a=1")
    (('billing', 'runs/b'), ('b', 'runs/b/'), ('a=1', 's3://bucket/a=1'))
    """
    name, equals, path = text.partition("=")
    return (name, path) if equals and name and path and "/" not in name else (_base(text), text)


def _base(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2] or path
