"""What every question needs: the run that answers, and its answers made into results."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self, TypeVar

from cklog.library.results import Result
from cklog.model.verdict import Answer
from cklog.run import Run

R = TypeVar("R")


class Asking(AbstractContextManager["Asking"]):
    """Hold a run, to be asked and closed."""

    def __init__(self, run: Run, path: str) -> None:
        self._run = run
        self.path = path

    def __repr__(self) -> str:
        return f"<cklog run at {self.path}>"

    def close(self) -> None:
        """Stop what was started to read the run: a Spark session."""
        self._run.__exit__(None, None, None)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run.__exit__(kind, error, trace)

    def __enter__(self) -> Self:
        return self

    def _told(self, answer: Answer[R]) -> Result[R]:
        """Return an answer with what was said on the way to it."""
        parts = (answer.command, answer.verdict, answer.exit_code, answer.inputs, answer.findings, answer.result)
        return Result(*parts, self._spoken())

    def _spoken(self) -> tuple[str, ...]:
        spoken = tuple(self._run.notes())
        self._run.spoken.clear()
        return spoken
