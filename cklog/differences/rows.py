"""Lists of rows compared by what names a row, and all other members by their paths."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

Row = dict[str, Any]

NAMING = (
    *("path", "channel", "source", "store", "operator", "subtask", "job", "run", "snapshot", "group", "topic"),
    *("partition", "subject", "check", "id", "name", "round", "folder"),
)
"""Members that name what a row is about; rows with the same are the same row before and after."""

_DEPTH = 20
"""Members deeper than this are compared as a whole."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row of a list that is not the same before and after.

    `subject` : what the row is about
    `change` : gone, new, changed; of what has an order also older or newer, of files deletable or kept
    `before`, `after` : the members that differ, of a row that is gone or new all of them; None: there is no such row
    """

    subject: str
    change: str
    before: Row | None
    after: Row | None


@dataclass(frozen=True, slots=True)
class MemberChange:
    """Another member that is not the same before and after, by its path; None: it is not there, or null."""

    path: str
    before: Any
    after: Any


class Pair(NamedTuple):
    """A row before and after that are not the same; None: there is no such row."""

    subject: str
    before: Row | None
    after: Row | None


def row_pairs(before: Any, after: Any, naming: tuple[str, ...] = NAMING) -> list[Pair]:
    """Return the rows that differ, sorted by their subjects; what is no list of rows counts as an empty one."""
    old, new = _by_subject(before, naming), _by_subject(after, naming)
    found: list[Pair] = []
    for subject in sorted({*old, *new}):
        gone, come = _without_equal(old.get(subject, []), new.get(subject, []))
        pairs = min(len(gone), len(come)) if _may_change([*gone, *come], naming) else 0
        found += [Pair(subject, *both) for both in zip(gone[:pairs], come[:pairs], strict=True)]
        found += [Pair(subject, one, None) for one in gone[pairs:]]
        found += [Pair(subject, None, one) for one in come[pairs:]]
    return found


def row_change(pair: Pair, changed: str = "changed") -> RowChange:
    """Return what differs in a row; `changed`: the word for one that is there before and after.

    >>> row_change(Pair("a", {"channel": "a", "to": 1}, {"channel": "a", "to": 2}))
    RowChange(subject='a', change='changed', before={'to': 1}, after={'to': 2})
    """
    before, after = pair.before, pair.after
    if before is None or after is None:
        return RowChange(pair.subject, "new" if before is None else "gone", before, after)
    both = {**before, **after}
    differ = [name for name in both if canonical(before.get(name, ...)) != canonical(after.get(name, ...))]
    return RowChange(
        pair.subject,
        changed,
        {name: before.get(name) for name in differ},
        {name: after.get(name) for name in differ},
    )


def member_changes(before: Any, after: Any, path: str = "", depth: int = 0) -> Iterator[MemberChange]:
    """Yield every member of two JSON values that differs, by its path.

    >>> list(member_changes({"a": {"b": 1}, "c": [1, 2]}, {"a": {"b": 2}, "c": [2]}))
    [MemberChange(path='a.b', before=1, after=2), MemberChange(path='c[]', before=1, after=None)]
    """
    if canonical(before) == canonical(after):
        return
    if depth < _DEPTH and isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys([*before, *after]):
            inner = f"{path}.{name}" if path else name
            yield from member_changes(before.get(name), after.get(name), inner, depth + 1)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _list_changes(before, after, path)
    else:
        yield MemberChange(path, before, after)


def _list_changes(before: list[Any], after: list[Any], path: str) -> Iterator[MemberChange]:
    """Rows by what names them, other values by which are gone and new; else only their order differs."""
    if all(isinstance(one, dict) for one in (*before, *after)):
        changes = [row_change(pair) for pair in row_pairs(before, after)]
        for one in changes:
            yield MemberChange(f"{path}[{one.subject}]", one.before, one.after)
        if changes:
            return
    gone, come = _without_equal(before, after)
    for value in gone:
        yield MemberChange(f"{path}[]", value, None)
    for value in come:
        yield MemberChange(f"{path}[]", None, value)
    if not gone and not come:
        yield MemberChange(f"{path}[]", "the same in another order", "the same in another order")


def canonical(value: Any) -> str:
    """Return a JSON value as a text that is the same for the same value only; `...`, what is not there, as none."""
    return "" if value is ... else json.dumps(value, sort_keys=True)


def _by_subject(rows: Any, naming: tuple[str, ...]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, dict):
            found.setdefault(_subject(row, naming), []).append(row)
    return found


def _subject(row: Row, naming: tuple[str, ...]) -> str:
    """What a row is about, as people write it: a subtask as op/0."""
    words = [str(row[name]) for name in naming if isinstance(row.get(name), int | str) and name != "subtask"]
    if "subtask" in naming and "subtask" in row and isinstance(row.get("operator"), str):
        at = words.index(row["operator"])
        words[at] = f"{row['operator']}/{row['subtask']}"
    return " ".join(words)


def _may_change(rows: list[Row], naming: tuple[str, ...]) -> bool:
    """Whether rows say more than what they name: of mere names, checkpoints among them, each is there or not."""
    return any(set(row) - {*naming, "checkpoint"} for row in rows)


def _without_equal(before: list[Any], after: list[Any]) -> tuple[list[Any], list[Any]]:
    """Leave out what is on both sides, as often as it is."""
    old, new = Counter(map(canonical, before)), Counter(map(canonical, after))
    return _left(before, old - new), _left(after, new - old)


def _left(values: list[Any], counts: Counter[str]) -> list[Any]:
    """So many of each, the last ones."""
    left: list[Any] = []
    for value in reversed(values):
        if counts[canonical(value)] > 0:
            counts[canonical(value)] -= 1
            left.append(value)
    return left[::-1]
