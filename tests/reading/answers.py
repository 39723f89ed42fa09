"""What an answer of any command says."""

from __future__ import annotations

from cklog.model import Answer


def ids(answer: Answer) -> set[str]:
    return {finding.id for finding in answer.findings}
