"""What is made of a dump of the CheckMate testbed: the line, and what is replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cklog.model.question import Question
from cklog.model.verdict import Answer
from cklog.run import Options, Run, open_run

QUESTION = Question()


def opened(folder: Path, strict: bool = False, split_bytes: int = 1 << 20) -> Run:
    return open_run(str(folder), Options(engine="local", source="checkmate", strict=strict, split_bytes=split_bytes))


def line_of(answer: Answer[Any]) -> dict[str, int]:
    return {f"{e.operator}/{e.subtask}": e.checkpoint for e in answer.result.line}


def replayed(answer: Answer[Any]) -> dict[str, tuple[int, int]]:
    return {c.channel: (c.replay_from, c.replay_to) for c in answer.result.channels if c.replay_from < c.replay_to}
