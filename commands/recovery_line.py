"""cklog recovery-line [PATH]"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Annotated

import typer

from cklog.commands.common import Common, command
from cklog.commands.options import (
    Algorithm,
    AlgorithmName,
    Earliest,
    Explain,
    FailedAt,
    LineOptions,
    RateOptions,
    moment,
    question,
)
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


@command
def recovery_line(
    common: Common,
    line: LineOptions,
    rate: RateOptions,
    earliest: Earliest = False,
    explain: Explain = False,
    algorithm: AlgorithmName = Algorithm.fixpoint,
    failed_at: FailedAt = "",
    beside: With = None,
) -> None:
    """The latest consistent recovery line: where every subtask can restart, and what to replay."""
    if beside:
        if failed_at or earliest or explain or rate != RateOptions():
            raise UsageError("--with plans several jobs as one: without --failed-at, --earliest, --explain and rates")
        _answer_jointly(common, line.question(), line.logs, beside)
    if not failed_at:
        asked = line.question(explain, earliest, algorithm, rates=rate.rates)
        common.answer(lambda run: run.recovery_line(asked, line.logs))
    if line.failed or line.at or line.sink or earliest or explain:
        raise UsageError("--failed-at is about a failure of everything: without --failed, --at, --earliest, --explain")
    if rate != RateOptions():
        raise UsageError("--failed-at tells no times: without rates and --max-recovery-time")
    times = None if failed_at == "all" else tuple(t for t in map(moment, failed_at.split(",")) if t is not None)
    common.answer(lambda run: run.failures_over_time(question(as_of=line.as_of), times))


def _answer_jointly(common: Common, asked: Question, logs: KafkaLogs, beside: Sequence[str]) -> None:
    """Ask the run at PATH and the others for one line, print it, and leave with its exit code."""
    paths: dict[str, str] = {}
    for text in (common.path, *beside):
        name, path = _named_path(text) if paths else (_base(text), text)
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


def _named_path(text: str) -> tuple[str, str]:
    """Return name and PATH of `NAME=PATH` or `PATH`, which is named after its last folder.

    >>> _named_path("billing=runs/b"), _named_path("runs/b/"), _named_path("s3://bucket/a=1")
    (('billing', 'runs/b'), ('b', 'runs/b/'), ('a=1', 's3://bucket/a=1'))
    """
    name, equals, path = text.partition("=")
    return (name, path) if equals and name and path and "/" not in name else (_base(text), text)


def _base(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2] or path
