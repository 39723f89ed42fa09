"""Checks of a given line: what holds, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cklog.model.findings import Effect, Finding
from cklog.model.verdict import LOSSES


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was proved (True), refuted (False), or cannot be told (None), and the evidence."""

    check: str
    holds: bool | None
    because: str


_HIDING = LOSSES | {"unreadable-file"}
"""Findings after which something newer may be there than what was read shows."""


def hides_newer(findings: Iterable[Finding]) -> bool:
    """Say whether any finding speaks of something that could not be read, and may be newer than all that was."""
    return any(finding.id in _HIDING for finding in findings)


def unless_hidden(checks: Iterable[Check], hidden: bool) -> list[Check]:
    """Return checks as they are; but nobody can tell that a line is maximal where something newer may be `hidden`."""
    return [_weakened(check) if hidden and check.check == "maximal" else check for check in checks]


def _weakened(check: Check) -> Check:
    if check.holds is not True:
        return check
    return replace(check, holds=None, because=f"{check.because}, as far as what can be read tells")


def refutations(checks: Iterable[Check], subject: str | None = None) -> list[Finding]:
    """Return an error for each check that refutes that a line can be restored, or is the newest.

    `subject` : what the findings are about; None: each is about its own check
    """
    found = []
    for check in checks:
        if check.holds is False and check.check in _REFUTED:
            id, effect = _REFUTED[check.check]
            found.append(Finding(id, "error", subject or check.check, check.because, effect=effect))
    return found


_REFUTED: dict[str, tuple[str, Effect]] = {
    "restorable": ("not-restorable", "restart-fails"),
    "consistent": ("not-restorable", "restart-fails"),
    "committed": ("not-restorable", "restart-fails"),
    "loadable": ("not-restorable", "restart-fails"),
    "maximal": ("not-maximal", "older-line"),
}


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
