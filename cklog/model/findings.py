"""Findings: facts about the input that the reader of an answer must know, and the places they speak of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Where:
    """A place in the input. `offset` in bytes of the (decompressed) file, or the row of a Parquet file."""

    path: str
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A fact about the input that the reader of the answer must know; `id` is stable."""

    id: str
    severity: Severity
    subject: str
    message: str
    where: tuple[Where, ...] = ()


@dataclass(frozen=True, slots=True)
class InputUsed:
    """One place of the input that the answer rests on. `records` are those read and intact."""

    path: str
    format: str
    bytes: int
    records: int | None
