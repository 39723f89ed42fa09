"""Checks of a given line: what holds, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was proved (True), refuted (False), or cannot be told (None), and the evidence."""

    check: str
    holds: bool | None
    because: str


def summary(checks: Sequence[Check]) -> str:
    """Say in one sentence whether all is proved, something refuted, or neither."""
    failed = [check.check for check in checks if check.holds is False]
    if failed:
        return f"Refuted: the line is not {', not '.join(failed)}."
    unknown = [check.check for check in checks if check.holds is None]
    if unknown:
        return f"Neither proved nor refuted: {', '.join(unknown)} cannot be told."
    return f"Proved: the line is {', '.join(check.check for check in checks)}."


@dataclass(frozen=True, slots=True)
class Verification:
    """What `verify` answers: the checks of a given line, and all of them in one sentence."""

    summary: str
    checks: tuple[Check, ...]

    @property
    def undecided(self) -> bool:
        """Whether something cannot be told, and nothing is refuted."""
        holds = {check.holds for check in self.checks}
        return None in holds and False not in holds


def verification(checks: Sequence[Check]) -> Verification:
    """Put checks together."""
    return Verification(summary(checks), tuple(checks))
