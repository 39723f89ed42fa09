"""A plan of deletion, row by row: what may be deleted, and what must stay. Nothing is deleted.

Every kind of run makes its rows in a module of its own: `cklog.runs.snapshots.retention` (Flink),
`cklog.runs.records.retention` (native records), `cklog.runs.records.queue_retention` (output queues),
`cklog.runs.batches.retention` (Spark), `cklog.runs.pieces.analyses` (chains without a line).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

RetentionFate = Literal["VALID", "KEEP", "OBSOLETE"]
RetentionDoubt = Literal["", "damaged", "unproven", "no-line"]


@dataclass(frozen=True, slots=True)
class RetentionRow:
    """The fate of one file or checkpoint.

    `bytes` : None: not known
    `fate` : VALID: recovery needs it as things are. KEEP: it stays for another reason. OBSOLETE: it may go
    `rule` : why, a key of `RetentionPlan.rules`
    `needed_by` : what it is needed by, if that is something else
    `checkpoint` : what it holds (OP/SUB=CKPT), if that is known
    `file` : whether `path` is a file below PATH
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
    """How far back the message log of a channel, or the output queue of a subtask, is needed.

    `channel` : a channel, a source, or of a queue its subtask
    `below` : messages, or records, with lower numbers are needed by nothing that stays; None: not known
    `checkpoint` : the oldest one of the receiver that a restart may still go back to; where checkpoints lie in output
        queues, the subtask that needs what stays
    `log` : whether it is about what was sent on a channel, or about all of an output queue
    `bytes` : of a queue: stored bytes below, as far as they can be cut off as bytes; None: not known
    `place` : of a queue: PATH:OFFSET of the first record that stays
    """

    channel: str
    below: int | None
    checkpoint: str
    log: Literal["channel", "queue"] = "channel"
    bytes: int | None = None
    place: str | None = None


@dataclass(frozen=True, slots=True)
class RetentionPlan:
    """A plan of deletion: every row, sorted, and what they add up to.

    `unit` : what a row is
    `totals` : by fate, how many rows and bytes
    `folders` : of each job, or savepoint, how many files and bytes stay and may go, and which others need it
    `rules` : those in use, with their meanings
    `trimming` : how far back message logs are needed
    `doubt` : why more stays than has to, if evidence is missing
    """

    kind: Literal["snapshots", "checkpoints", "batches", "versions", "queues"]
    unit: Literal["files", "checkpoints"]
    rows: tuple[RetentionRow, ...]
    totals: dict[str, dict[str, int]]
    folders: tuple[dict[str, Any], ...]
    rules: dict[str, str]
    jobs_stopped: bool
    trimming: tuple[LogTrim, ...] = ()
    doubt: RetentionDoubt = ""


def totals_of(rows: Iterable[RetentionRow], unit: str) -> dict[str, dict[str, int]]:
    """Count the rows and bytes of each fate; bytes that are not known count as none."""
    totals: dict[str, dict[str, int]] = {}
    for row in rows:
        total = totals.setdefault(row.fate, {unit: 0, "bytes": 0})
        total[unit] += 1
        total["bytes"] += row.bytes or 0
    return dict(sorted(totals.items()))


def rules_of(rows: Sequence[RetentionRow], meanings: Mapping[str, str]) -> dict[str, str]:
    """Return the rules that rows use, with their meanings."""
    return {rule: meanings[rule] for rule in sorted({row.rule for row in rows})}


def with_rows(plan: RetentionPlan, rows: tuple[RetentionRow, ...], rules: Mapping[str, str]) -> RetentionPlan:
    """Replace the rows of a plan by as many in which less may go; `rules` have the meanings of rules that are new."""
    kept = [row for row, before in zip(rows, plan.rows, strict=True) if row.fate != before.fate]
    used = {row.rule for row in rows}
    return replace(
        plan,
        rows=rows,
        totals=totals_of(rows, plan.unit),
        folders=_folders_with(plan.folders, kept),
        rules={rule: meaning for rule, meaning in sorted({**plan.rules, **rules}.items()) if rule in used},
    )


def _folders_with(folders: Sequence[dict[str, Any]], kept: Sequence[RetentionRow]) -> tuple[dict[str, Any], ...]:
    """The sums of folders, where rows stay that were to go."""
    names = sorted((folder["folder"] for folder in folders), key=lambda name: "" if name == "." else name, reverse=True)
    files: Counter[str] = Counter()
    size: Counter[str] = Counter()
    for row in kept:
        mine = next((name for name in names if name == "." or row.path.startswith(f"{name}/")), None)
        if mine is not None:
            files[mine] += 1
            size[mine] += row.bytes or 0
    return tuple(
        {
            **folder,
            "obsolete_files": folder["obsolete_files"] - files[folder["folder"]],
            "obsolete_bytes": folder["obsolete_bytes"] - size[folder["folder"]],
        }
        for folder in folders
    )
