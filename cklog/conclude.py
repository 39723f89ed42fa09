"""From findings to verdict and exit code (design section 5), in one place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cklog.engine import Damage
from cklog.errors import CorruptInput
from cklog.model import Answer, Finding, InputUsed, Verdict, Where

DAMAGE = frozenset(
    {
        "bad-record",
        "torn-tail",
        "corrupt-file",
        "empty-file",
        "checksum-mismatch",
        "missing-file",
        "missing-events",
        "bad-manifest",
        "torn-batch-file",
        "empty-batch-file",
        "missing-batch-file",
        "unknown-version",
        "corrupt-batch",
        "corrupt-metadata",
        "damaged-value",
        "missing-part",
        "bad-index-entry",
    }
)
"""Findings that speak of damaged bytes: what `--strict` refuses, and what may hide records."""

LOSSES = DAMAGE | {"conflicting-checkpoint", "foreign-channel"}
"""Findings after which checkpoint records may be missing: a graph of what is left has fewer and coarser edges."""

_SEVERITY: Mapping[str, Any] = {
    "torn-tail": "warning",
    "empty-file": "warning",
    "open-transaction": "warning",
    "offset-jump": "warning",
}
_ORDER = {"error": 0, "warning": 1, "info": 2}


def answer(
    command: str,
    result: Any,
    findings: Iterable[Finding],
    inputs: Iterable[InputUsed],
    *,
    strict: bool = False,
    unrecoverable: bool = False,
    indeterminate: bool = False,
) -> Answer:
    """Put an answer together; the exit code follows from what it holds.

    Raises
    ------
    CorruptInput : under `strict`, if any byte of the input is damaged
    """
    ordered = tuple(sorted(set(findings), key=lambda f: (_ORDER[f.severity], f.id, f.subject, f.message)))
    damaged = [f for f in ordered if f.id in DAMAGE]
    if strict and damaged:
        raise CorruptInput(damaged[0].message, "--strict refuses any damage; without it the intact part is read")
    verdict, code = _verdict(ordered, unrecoverable, indeterminate)
    return Answer(command, verdict, code, tuple(inputs), ordered, result)


def _verdict(findings: tuple[Finding, ...], unrecoverable: bool, indeterminate: bool) -> tuple[Verdict, int]:
    if indeterminate:
        return "indeterminate", 5
    if unrecoverable:
        return "unrecoverable", 4
    if any(f.severity == "error" for f in findings):
        return "findings", 3
    return ("findings" if any(f.severity == "warning" for f in findings) else "ok"), 0


def damage_findings(damage: Iterable[Damage]) -> list[Finding]:
    """One finding per file and kind of damage: how many, where, and what the first one is."""
    groups: dict[tuple[str, str], list[Damage]] = {}
    for item in damage:
        groups.setdefault((item.path, item.id), []).append(item)
    return [_finding(path, id, rows) for (path, id), rows in sorted(groups.items())]


def _finding(path: str, id: str, rows: list[Damage]) -> Finding:
    count = sum(row.count for row in rows)
    placed = [row for row in rows if row.offset is not None]
    first = placed[0] if placed else rows[0]
    where = f" at {'row' if path.endswith('.parquet') else 'byte'} {first.offset}" if placed else ""
    what = {
        "bad-record": f"{count} {'record' if count == 1 else 'records'} cannot be read and {_are(count)} skipped",
        "torn-tail": "the end is torn and is left out",
        "corrupt-file": "part of the file cannot be read",
        "corrupt-metadata": "the snapshot cannot be read",
        "corrupt-batch": f"{count} {'record is' if count == 1 else 'records are'} in batches that fail their checksum",
        "open-transaction": f"{count} {'record' if count == 1 else 'records'} of a transaction that never ended",
    }.get(id, id)
    lead = f"{path}: {what}{'; the first' if count > 1 else ''}{where}: {first.detail}"
    places = tuple(Where(path, row.offset) for row in placed) or (Where(path),)
    return Finding(id, _SEVERITY.get(id, "error"), path, lead, places)


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
