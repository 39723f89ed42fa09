"""What an answer of any command says."""

from __future__ import annotations

from typing import Any

from cklog.model.verdict import Answer


def ids(answer: Answer[Any]) -> set[str]:
    return {finding.id for finding in answer.findings}
