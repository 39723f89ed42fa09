"""cklog recovery-line [PATH]"""

from __future__ import annotations

from cklog.commands.common import Common, command
from cklog.commands.options import Algorithm, AlgorithmName, AsOf, At, Explain, Failed, question


@command
def recovery_line(
    common: Common,
    failed: Failed = None,
    as_of: AsOf = "",
    at: At = None,
    explain: Explain = False,
    algorithm: AlgorithmName = Algorithm.fixpoint,
) -> None:
    """The latest consistent recovery line: where every subtask can restart, and what to replay."""
    asked = question(failed, as_of, at, explain, algorithm)
    common.answer(lambda run: run.recovery_line(asked))
