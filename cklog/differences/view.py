"""What two answers have different, as sentences and rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from cklog.differences.answer import Differences, FindingChange, Side
from cklog.differences.rows import NAMING, MemberChange, Row, RowChange
from cklog.model.verdict import Answer
from cklog.model.wording import many
from cklog.render.svg import shortened
from cklog.render.tables import typed
from cklog.render.view import Section, View, cut_section

_LONGEST = 60
"""Characters of a value that are shown: all of it is in the JSON."""


def differences_view(answer: Answer[Differences]) -> View:
    """Show what differs, and say first what became of the verdict and the exit code."""
    found = answer.result
    differ = [one for one in found.findings if one.change != "same"]
    sections = [
        _findings(differ),
        _entries("The line", "subtask", found.line),
        _entries("Ranges to replay", "channel", found.ranges),
        _entries("Sources resume", "source", found.sources),
        _entries("What may go", "path", found.files),
        _others(found.others),
    ]
    data = _data(found)
    return View(_headline(found), tuple(s for s in sections if s.rows), _notes(found), data=data)


def _headline(found: Differences) -> str:
    if found.same:
        return f"The same: {_concluded(found.after)}."
    before, after = _concluded(found.before), _concluded(found.after)
    verdict = f"both {after}" if before == after else f"{before} before, {after} after"
    acted = next((one for one in found.others if one.path == _ACTION), None)
    action = [] if acted is None else [f"Action: {_shown(acted.before)} before, {_shown(acted.after)} after"]
    moved = [
        *(_counted([one.change for one in found.line], "entry", "of the line")),
        *(
            f"{n} {word}"
            for word in _FATES.values()
            if (n := sum(_FATES.get(one.change) == word for one in found.files))
        ),
        *(_counted([one.change for one in found.findings if one.change != "same"], "finding", "")),
    ]
    return f"{'. '.join([f'Different: {verdict}', *action, *(['; '.join(moved)] if moved else [])])}."


_ACTION = "action"
"""The member that is told first: what to do is another thing now."""


_FATES = {"deletable": "may go now", "kept": "must stay now"}


def _concluded(side: Side) -> str:
    told = f"error {side.error}" if side.error is not None else str(side.verdict)
    return f"{told} (exit {side.exit})"


def _counted(changes: list[str], noun: str, rest: str) -> list[str]:
    return [
        " ".join(filter(None, (many(changes.count(change), noun), rest, change))) for change in dict.fromkeys(changes)
    ]


def _notes(found: Differences) -> tuple[str, ...]:
    same = sum(one.change == "same" for one in found.findings)
    notes = [f"{many(same, 'finding', 'are')} the same"] if same else []
    versions = [side.version for side in (found.before, found.after)]
    if all(versions) and versions[0] != versions[1]:
        notes.append(f"cklog {versions[0]} answered before, cklog {versions[1]} after.")
    return tuple(notes)


def _findings(changes: Sequence[FindingChange]) -> Section:
    rows: list[tuple[Any, ...]] = [(one.change, _severity(one), one.id, one.subject) for one in changes]
    return cut_section("Findings", ("change", "severity", "id", "subject"), rows)


def _severity(one: FindingChange) -> str:
    changed = one.change == "changed" and one.severity_before != one.severity
    return f"{one.severity_before} → {one.severity}" if changed else one.severity


def _entries(title: str, what: str, changes: Sequence[RowChange]) -> Section:
    rows: list[tuple[Any, ...]] = [
        (one.subject, one.change, _shown_row(one.before), _shown_row(one.after)) for one in changes
    ]
    return cut_section(title, (what, "change", "before", "after"), rows)


def _others(changes: Sequence[MemberChange]) -> Section:
    rows: list[tuple[Any, ...]] = [(one.path, _shown(one.before), _shown(one.after)) for one in changes]
    return cut_section("Other members", ("member", "before", "after"), rows)


def _shown_row(row: Row | None) -> str:
    if row is None:
        return "-"
    told = [f"{name} {_shown(typed(name, value))}" for name, value in row.items() if name not in NAMING]
    return _first_that_fit(told)


def _first_that_fit(members: Sequence[str]) -> str:
    """So many members as a cell has room for, each whole, but one that is longer than the cell.

    >>> _first_that_fit(["a 1", "b 2"]), _first_that_fit(["a 1", f"b {'2' * 60}", "c 3"])
    ('a 1, b 2', 'a 1, …')
    """
    shown = ", ".join(members[:1])
    for count in range(2, len(members) + 1):
        more = ", ".join(members[:count])
        if len(more) > _LONGEST:
            return f"{shown}, …"
        shown = more
    return shown


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return shortened(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), _LONGEST)


def _data(found: Differences) -> Section:
    """Every change in a row, for CSV and JSON lines; members as JSON."""
    rows: list[tuple[Any, ...]] = [("verdict", None, None, found.before.verdict, found.after.verdict)]
    rows.append(("exit", None, None, found.before.exit, found.after.exit))
    for one in found.findings:
        rows.append(("finding", f"{one.id} {one.subject}", one.change, one.severity_before, one.severity))
    lists = {"line": found.line, "range": found.ranges, "source": found.sources, "file": found.files}
    for kind, changes in lists.items():
        rows += [(kind, row.subject, row.change, _as_json(row.before), _as_json(row.after)) for row in changes]
    rows += [
        ("member", member.path, "changed", _as_json(member.before), _as_json(member.after)) for member in found.others
    ]
    return Section("Differences", ("kind", "subject", "change", "before", "after"), tuple(rows))


def _as_json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True)
