"""The line that cklog finds, as the oracle writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cklog.model.question import Question
from cklog.model.verdict import Answer
from cklog.run import Options, open_run
from tests.oracles.lines import Execution


def ask(folder: Path, question: Question, split: int = 1 << 20) -> Answer[Any]:
    with open_run(str(folder), Options(split_bytes=split)) as run:
        return run.recovery_line(question)


def labels(answer: Answer[Any], execution: Execution) -> dict[str, int]:
    """The line as the oracle writes it; subtasks that the oracle does not know are left out."""
    return {
        f"{e.operator}/{e.subtask}": execution.checkpoints(f"{e.operator}/{e.subtask}") + 1
        if e.checkpoint is None
        else e.checkpoint
        for e in answer.result.line
        if f"{e.operator}/{e.subtask}" in execution.subtasks
    }
