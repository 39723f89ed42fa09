"""What is made of a dump of the CheckMate testbed: the line, and what is replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cklog.engine.local import LocalEngine
from cklog.model.question import Question
from cklog.model.verdict import Answer
from cklog.parsers.checkmate.parser import CheckMate
from cklog.runs.records.reading import EventLog
from cklog.storage import Root

QUESTION = Question()


def opened(folder: Path, strict: bool = False, split_bytes: int = 1 << 20) -> EventLog:
    return EventLog(CheckMate(Root(str(folder))), lambda _size: LocalEngine(), split_bytes, strict)


def line_of(answer: Answer[Any]) -> dict[str, int]:
    return {f"{e.operator}/{e.subtask}": e.checkpoint for e in answer.result.line}


def replayed(answer: Answer[Any]) -> dict[str, tuple[int, int]]:
    return {c.channel: (c.replay_from, c.replay_to) for c in answer.result.channels if c.replay_from < c.replay_to}
