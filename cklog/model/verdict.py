"""From what an analysis found to the verdict and the exit code (docs/json.md), in one place and once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cklog.errors import CorruptInput
from cklog.model.findings import Finding, InputUsed

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

_ORDER = {"error": 0, "warning": 1, "info": 2}


Verdict = Literal["ok", "findings", "unrecoverable", "indeterminate"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command answers: the parts of the envelope, before any rendering."""

    command: str
    verdict: Verdict
    exit_code: int
    inputs: tuple[InputUsed, ...]
    findings: tuple[Finding, ...]
    result: Any


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


def _verdict(findings: Sequence[Finding], unrecoverable: bool, indeterminate: bool) -> tuple[Verdict, int]:
    if indeterminate:
        return "indeterminate", 5
    if unrecoverable:
        return "unrecoverable", 4
    if any(f.severity == "error" for f in findings):
        return "findings", 3
    return ("findings" if any(f.severity == "warning" for f in findings) else "ok"), 0
