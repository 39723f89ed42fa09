"""Findings: facts about the input that the reader of an answer must know, and the places they speak of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, cast

Severity = Literal["info", "warning", "error"]

Effect = Literal["none", "data-duplicated", "older-line", "data-lost", "restart-fails", "unknown"]
"""What a finding does to the restart that an answer offers.

none : nothing
data-duplicated : results or records reach a sink twice
older-line : the restart is from an older line than was stored
data-lost : records or results are missing, or wrong, after the restart
restart-fails : the restart stops, as the files are
unknown : nobody can say without more evidence
"""


_BY_SEVERITY = cast("Effect", "")


@dataclass(frozen=True, slots=True)
class Where:
    """A place in the input. `offset` in bytes of the (decompressed) file, or the row of a Parquet file."""

    path: str
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A fact about the input that the reader of the answer must know; `id` is stable.

    `effect` : of an error without one it is not known what it does; of any other finding, it does nothing
    """

    id: str
    severity: Severity
    subject: str
    message: str
    where: tuple[Where, ...] = ()
    effect: Effect = _BY_SEVERITY

    def __post_init__(self) -> None:
        if not self.effect:
            object.__setattr__(self, "effect", "unknown" if self.severity == "error" else "none")

    @property
    def blocks(self) -> bool:
        """Whether a restart should wait for what the finding says."""
        return self.severity == "error" and self.effect != "none"

    def as_warning(self) -> Finding:
        """Return the finding as one that does nothing to the restart of this answer."""
        return replace(self, severity="warning", effect="none")


def effect_of_error(severity: Severity, effect: Effect) -> Effect:
    """Return the effect of a finding that has one only as an error.

    >>> effect_of_error("error", "older-line"), effect_of_error("warning", "older-line")
    ('older-line', 'none')
    """
    return effect if severity == "error" else "none"


@dataclass(frozen=True, slots=True)
class InputUsed:
    """One place of the input that the answer rests on. `records` are those read and intact."""

    path: str
    format: str
    bytes: int
    records: int | None
