"""What is asked about a run's line: options as typed, before anything is read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Question:
    """What `recovery-line` and its kin are asked.

    `failed` as OP or OP/SUB, empty: the manifest's, or all; `as_of` in ms; `at` as ("op/sub", checkpoint).
    """

    failed: tuple[str, ...] = ()
    as_of: int | None = None
    at: tuple[tuple[str, int], ...] = ()
    explain: bool = False
    algorithm: str = "watermark-fixpoint"
