"""Damage that a scan met, as findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cklog.engine.scan import Damage
from cklog.model.findings import Effect, Finding, Where, effect_of_error
from cklog.model.verdict import NOT_JUDGED, UNKNOWN_VERSION
from cklog.model.wording import agreeing, many

_SEVERITY: Mapping[str, Any] = {
    "torn-tail": "warning",
    "empty-file": "warning",
    "open-transaction": "warning",
    "offset-jump": "warning",
    "unchecked-file": "warning",
    "unknown-member": "warning",
}


_THEN: Mapping[str, str] = {
    UNKNOWN_VERSION: ". Use a newer cklog",
    "unknown-member": " If so, the answer is wrong: correct the name where it is written",
}
"""What a person does about some damage."""

_OF_A_FILE = frozenset({"empty-file", "checksum-mismatch"})
"""Damage whose detail says all: in the words of the finding of a parser that looked at the file itself."""


def damage_findings(damage: Iterable[Damage], effect: Effect = "older-line") -> list[Finding]:
    """Return one finding per file and kind of damage: how many, where, and what the first one is.

    `effect` : what errors do to a restart, other than files that were not read or not understood
    """
    groups: dict[tuple[str, str], list[Damage]] = {}
    for item in damage:
        groups.setdefault((item.path, item.id), []).append(item)
    return [_finding(path, id, rows, effect) for (path, id), rows in sorted(groups.items())]


def _finding(path: str, id: str, rows: list[Damage], effect: Effect) -> Finding:
    count = sum(row.count for row in rows)
    placed = [row for row in rows if row.offset is not None]
    first = placed[0] if placed else rows[0]
    where = f" at {'row' if path.endswith('.parquet') else 'byte'} {first.offset}" if placed else ""
    what = {
        "bad-record": f"{many(count, 'record')} cannot be read and {agreeing(count, 'are')} skipped",
        "torn-tail": "the end is torn and is left out",
        "corrupt-file": "part of the file cannot be read",
        "over-budget": f"{many(count, 'record', 'were')} not read, because batches hold too much",
        "unreadable-file": "cannot be read to its end",
        "unchecked-file": "nothing proves what was read of it",
        "corrupt-metadata": "the snapshot cannot be read",
        "corrupt-batch": f"{many(count, 'record', 'are')} in batches that fail their checksum",
        "open-transaction": f"{many(count, 'record')} of an open transaction {agreeing(count, 'are')} left out",
        "offset-jump": "offsets do not go on as they should",
        "offset-backwards": "offsets fall",
        UNKNOWN_VERSION: "not read",
        "damaged-value": "a value is damaged",
        "unknown-member": f"{many(count, 'record')} {agreeing(count, 'have')} a member that is ignored",
    }.get(id, id)
    then = _THEN.get(id, "")
    lead = f"{path}: {what}{'; the first' if count > 1 else ''}{where}: {first.detail}{then}"
    if id in _OF_A_FILE:
        lead = f"{path} {first.detail}"
    places = tuple(Where(path, row.offset) for row in placed) or (Where(path),)
    severity = _SEVERITY.get(id, "error")
    does = effect_of_error(severity, "unknown" if id in NOT_JUDGED else effect)
    return Finding(id=id, severity=severity, subject=path, message=lead, where=places, effect=does)
