"""What two answers have different: verdicts, findings, the line and what follows from it, and any other member."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from cklog.differences.rows import MemberChange, Pair, Row, RowChange, canonical, member_changes, row_change, row_pairs
from cklog.differences.told import Told
from cklog.errors import UsageError
from cklog.model.values import is_integer
from cklog.model.verdict import Answer, Draft, conclude

DIFFERENT = 1
"""The exit code of `--exit-code` where something differs, as git's."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two answers: the file or folder, and what it concluded; `error` where there was none."""

    name: str
    command: str
    version: str
    verdict: str | None
    exit: int
    error: str | None


@dataclass(frozen=True, slots=True)
class FindingChange:
    """A finding that is gone, new, changed (the same id and subject, other words or severity), or the same.

    `severity`, `message` : as after, of one that is gone as before
    """

    change: Literal["gone", "new", "changed", "same"]
    severity: str
    id: str
    subject: str
    message: str
    severity_before: str | None


@dataclass(frozen=True, slots=True)
class Differences:
    """What differs between two answers of one command.

    `line` : entries of recovery lines; older or newer, where that can be told
    `ranges` : what is replayed on channels
    `sources` : where sources resume; older or newer by their offsets
    `files` : rows of a retention plan; deletable or kept now
    `others` : all other members, by path
    """

    same: bool
    before: Side
    after: Side
    findings: tuple[FindingChange, ...]
    line: tuple[RowChange, ...]
    ranges: tuple[RowChange, ...]
    sources: tuple[RowChange, ...]
    files: tuple[RowChange, ...]
    others: tuple[MemberChange, ...]


def differences(before: Told, after: Told, exit_code: bool = False) -> Answer[Differences]:
    """Hold an answer against an earlier one; `exit_code`: the exit code tells whether anything differs.

    Raises
    ------
    UsageError : they are answers of different commands
    """
    if before.command != after.command and before.error is None and after.error is None:
        raise UsageError(
            f"{before.name} is an answer of {before.command}, and {after.name} of {after.command}",
            "two answers of one command can be told apart",
        )
    old, new = _members(before), _members(after)
    pairs = {name: row_pairs(_taken(old, name), _taken(new, name), naming) for name, naming in _LISTS.items()}
    plans = before.command == after.command == "retention"
    files = row_pairs(_taken(old, "rows"), _taken(new, "rows"), ("path",)) if plans else []
    both = before.error is None and after.error is None
    others = member_changes({"inputs": before.inputs, **old}, {"inputs": after.inputs, **new}) if both else ()
    found = Differences(
        same=False,
        before=_side(before),
        after=_side(after),
        findings=tuple(_finding_changes(before.findings, after.findings)),
        line=tuple(_moved(pair, _age_of_entry) for pair in pairs["line"]),
        ranges=tuple(map(row_change, pairs["channels"])),
        sources=tuple(_moved(pair, _age_of_offset) for pair in pairs["sources"]),
        files=tuple(map(_fate_change, files)),
        others=tuple(others),
    )
    answer = conclude(Draft("diff", replace(found, same=_is_same(found)), (), ()))
    return replace(answer, exit_code=DIFFERENT) if exit_code and not answer.result.same else answer


_LISTS: Mapping[str, tuple[str, ...]] = {
    "line": ("operator", "subtask"),
    "channels": ("channel",),
    "sources": ("source", "operator"),
}
"""Lists that are told by themselves, and what names their rows."""


def _members(told: Told) -> dict[str, Any]:
    return dict(told.result) if isinstance(told.result, dict) else {"result": told.result}


def _side(told: Told) -> Side:
    return Side(told.name, told.command, told.version, told.verdict, told.exit, told.error)


def _is_same(found: Differences) -> bool:
    concluded = [(side.verdict, side.exit, side.error) for side in (found.before, found.after)]
    changed = any(one.change != "same" for one in found.findings)
    lists = found.line or found.ranges or found.sources or found.files or found.others
    return concluded[0] == concluded[1] and not changed and not lists


def _taken(members: dict[str, Any], name: str) -> list[Row]:
    """Take a list of rows out of members, so that it is not told twice; what is none stays there."""
    found = members.get(name)
    if not (isinstance(found, list) and all(isinstance(row, dict) for row in found)):
        return []
    del members[name]
    return found


_ORDER = {"gone": 0, "new": 1, "changed": 2, "same": 3}
_WEIGHT = {"error": 0, "warning": 1, "info": 2}


def _finding_changes(before: list[Row], after: list[Row]) -> list[FindingChange]:
    """Findings by id and subject: gone, new, changed, and those that are the same."""
    pairs = row_pairs(before, after, ("id", "subject"))
    found = [_finding_change(pair) for pair in pairs]
    come = Counter(canonical(pair.after) for pair in pairs if pair.after is not None)
    for row in after:
        if come[canonical(row)] > 0:
            come[canonical(row)] -= 1
        else:
            found.append(_finding_change(Pair("", row, row)))
    return sorted(found, key=lambda f: (_ORDER[f.change], _WEIGHT[f.severity], f.id, f.subject, f.message))


def _finding_change(pair: Pair) -> FindingChange:
    row = pair.after or pair.before or {}
    before = None if pair.before is None else str(pair.before["severity"])
    change = _finding_word(pair)
    return FindingChange(change, row["severity"], row["id"], row["subject"], row["message"], before)


def _finding_word(pair: Pair) -> Literal["gone", "new", "changed", "same"]:
    if pair.before is None:
        return "new"
    if pair.after is None:
        return "gone"
    return "same" if pair.before is pair.after else "changed"


Age = tuple[str, int, int]
"""What is counted, and how far it is: only what is counted alike can be older or newer."""


def _moved(pair: Pair, age: Callable[[Row], Age | None]) -> RowChange:
    """Say whether a row is older or newer than it was, where both have an age."""
    before = None if pair.before is None else age(pair.before)
    after = None if pair.after is None else age(pair.after)
    if before is None or after is None or before == after or before[0] != after[0]:
        return row_change(pair)
    return row_change(pair, "newer" if after > before else "older")


def _age_of_entry(row: Row) -> Age | None:
    """An initial state is older than all that is stored, and the current one newer; eventual ones have a time."""
    state, checkpoint, time = row.get("state"), row.get("checkpoint"), row.get("time")
    if state == "eventual":
        return ("time", 0, time) if is_integer(time) else None
    if state in ("initial", "current"):
        return "checkpoint", 0 if state == "initial" else 2, 0
    return ("checkpoint", 1, checkpoint) if is_integer(checkpoint) else None


def _age_of_offset(row: Row) -> Age | None:
    """No offset is the start of the source."""
    offset = row.get("offset")
    if offset is None:
        return "offset", 0, 0
    return ("offset", 1, offset) if is_integer(offset) else None


def _fate_change(pair: Pair) -> RowChange:
    """Say whether a file may go now, or stays now."""
    fates = [row.get("fate") for row in (pair.before, pair.after) if row is not None]
    if len(fates) < 2 or (fates[0] == _MAY_GO) == (fates[1] == _MAY_GO):
        return row_change(pair)
    return row_change(pair, "deletable" if fates[1] == _MAY_GO else "kept")


_MAY_GO = "OBSOLETE"
