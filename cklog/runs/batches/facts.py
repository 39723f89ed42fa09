"""Facts about the files of a query's checkpoint: findings, and what follows from each for a restart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from cklog.inputs.batches import FileRead, MetadataLogs
from cklog.model.findings import Effect, Finding, Severity, Where
from cklog.model.verdict import NOT_JUDGED, UNREAD

COPY = "on a copy of the checkpoint"
"""Where to remove files, in advice."""


class Fact(NamedTuple):
    """A finding; whether a restart fails, or skips batches that are not done; files whose removal mends that."""

    finding: Finding
    stops: bool = False
    skips: bool = False
    remove: tuple[str, ...] = ()


def seen(logs: MetadataLogs, facts: Iterable[Fact]) -> list[Fact]:
    """Leave out facts about what could not be listed: what nobody looked at is neither missing nor damaged."""
    return [fact for fact in facts if fact.finding.id in NOT_JUDGED or not logs.hides(fact.finding.subject)]


def sorted_findings(facts: Iterable[Fact]) -> tuple[Finding, ...]:
    """Return each finding once, sorted by where it is; what a fact does to a restart is its finding's effect."""
    return tuple(sorted({_with_effect(fact) for fact in facts}, key=lambda f: (f.subject, f.id, f.message)))


def _with_effect(fact: Fact) -> Finding:
    if fact.stops:
        return replace(fact.finding, effect="restart-fails")
    if fact.skips:
        return replace(fact.finding, effect="data-lost")
    known = fact.finding.severity == "error" and fact.finding.id in _EFFECTS
    return replace(fact.finding, effect=_EFFECTS[fact.finding.id]) if known else fact.finding


_EFFECTS: Mapping[str, Effect] = {
    "missing-batch-file": "data-duplicated",
    "missing-input-file": "data-lost",
    "missing-metadata": "data-duplicated",
    "missing-result-file": "data-lost",
    "offset-went-back": "data-lost",
    "repeated-plan": "data-duplicated",
    "sink-log-ahead": "data-lost",
    "sink-log-behind": "data-lost",
    "unknown-time": "older-line",
    "unreachable-batch": "older-line",
}
"""What errors do to a restart that goes on with them."""


def file_finding(id: str, severity: Severity, path: str, message: str, offset: int | None = None) -> Finding:
    """Return a finding whose subject is a file or folder; `offset` is the byte where it shows."""
    return Finding(id, severity, path, message, where=(Where(path, offset),))


def flaw_facts(
    read: FileRead[Any], severity: Severity, then: str, stops: bool, remove: tuple[str, ...] = ()
) -> Iterable[Fact]:
    """Yield a fact if a file cannot be used; `then` says what a restart does, and what to do now.

    `stops`: it fails, unless Spark uses the file all the same; `remove` are files whose removal mends that.
    """
    if read.flaw is None:
        return
    if read.flaw.passed and read.flaw.id == "checksum-mismatch":
        then = (
            "Spark does not verify this checksum, and a restart uses the file as it is. The file or "
            f"{read.sidecar} is damaged, so cklog does not use its contents. Compare it with a backup."
        )
    elif read.flaw.passed:
        then = (
            "Spark uses 0 instead, and the rest of the file as it is. The file is damaged, so cklog does not use its "
            "contents. Compare it with a backup."
        )
    unsure = read.flaw.id in NOT_JUDGED
    if unsure and severity == "error":
        doubt = "what a restart does with it" if stops else "what it says"
        then = f"cklog cannot tell {doubt}. {how_to_judge(read.flaw.id)}"
    why = f"{read.path}: {read.flaw.why}. {then}"
    finding = file_finding(read.flaw.id, severity, read.path, why, read.flaw.offset)
    fails = stops and not read.flaw.passed and not unsure
    yield Fact(finding, fails, remove=remove if fails else ())


def how_to_judge(id: str) -> str:
    """Say what to do about a file that was not judged; `id` is one of `NOT_JUDGED`."""
    return "Run again as a user with read permission." if id == UNREAD else "Use a newer cklog."


def checksum_findings(reads: Iterable[FileRead[Any]]) -> Iterable[Finding]:
    """Yield the checksum files that cannot be read, which Hadoop passes over with a warning."""
    for read in reads:
        if read.unchecked:
            message = f"{read.sidecar}: no checksum header; {read.path} is unchecked."
            yield file_finding("unreadable-checksum", "info", read.sidecar, message, 0)
