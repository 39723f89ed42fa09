"""What may be deleted, and what must stay, row by row: a plan. Nothing is deleted.

Every kind of run makes its rows in a module of its own: `retention_snapshots` (Flink), `retention_checkpoints` (native
records), `retention_batches` (Spark), `retention_versions` (chains without a line).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

RetentionFate = Literal["VALID", "KEEP", "OBSOLETE"]
RetentionDoubt = Literal["", "damaged", "unproven", "no-line"]


@dataclass(frozen=True, slots=True)
class RetentionRow:
    """The fate of one file or checkpoint: `rule` says why, `needed_by` for what, where it is for something else.

    VALID: recovery needs it as things are. KEEP: it stays for another reason. OBSOLETE: it may go. `bytes` None: not
    known. `checkpoint` (OP/SUB=CKPT) is what it holds, if that is known; `file`: whether `path` is a file below PATH.
    """

    path: str
    bytes: int | None
    fate: RetentionFate
    rule: str
    needed_by: str | None
    checkpoint: str | None = None
    file: bool = True


@dataclass(frozen=True, slots=True)
class LogTrim:
    """Messages of a channel below `below` are needed by nothing that stays; None: that cannot be told.

    `checkpoint` is the oldest one of the receiver that a restart may still go back to.
    """

    channel: str
    below: int | None
    checkpoint: str


@dataclass(frozen=True, slots=True)
class RetentionPlan:
    """Every row, sorted, and what they add up to; `unit` is what a row is.

    `folders`: of each job, or savepoint, how many files and bytes stay and how many may go, and which others need it.
    `rules` are those in use, with their meanings; `trimming` says how far back message logs are needed. `doubt` is why
    more stays than has to, if evidence is missing.
    """

    kind: Literal["snapshots", "checkpoints", "batches", "versions"]
    unit: Literal["files", "checkpoints"]
    rows: tuple[RetentionRow, ...]
    totals: dict[str, dict[str, int]]
    folders: tuple[dict[str, Any], ...]
    rules: dict[str, str]
    jobs_stopped: bool
    trimming: tuple[LogTrim, ...] = ()
    doubt: RetentionDoubt = ""


def totals_of(rows: Iterable[RetentionRow], unit: str) -> dict[str, dict[str, int]]:
    """How many rows and bytes share each fate; what is not known counts as no bytes."""
    totals: dict[str, dict[str, int]] = {}
    for row in rows:
        total = totals.setdefault(row.fate, {unit: 0, "bytes": 0})
        total[unit] += 1
        total["bytes"] += row.bytes or 0
    return dict(sorted(totals.items()))


def rules_of(rows: Sequence[RetentionRow], meanings: Mapping[str, str]) -> dict[str, str]:
    """The rules in use, with their meanings."""
    return {rule: meanings[rule] for rule in sorted({row.rule for row in rows})}
