"""Lists of an answer as tables for programs: each cell typed, times as ISO 8601."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from datetime import UTC, datetime, timedelta
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from cklog.errors import UsageError
from cklog.model.values import is_integer
from cklog.render.view import Section

_VALUE = "value"
"""The column of a list whose items are no rows."""


def table_of(told: Mapping[str, Any], kind: type, name: str) -> Section:
    """Return the list of an answer that has this name, as rows with a column for each member.

    `told` is the answer in its envelope, `kind` the type of its result.

    Members of members are columns of their own, `because.channel`. A list that is empty has its columns, where the
    type of the answer tells them.

    Raises
    ------
    UsageError : the answer has no such list; the hint names those that it has
    """
    found = _lists(told, kind)
    if name not in found:
        raise UsageError(f"--table {name}: the answer has no such list", f"it has: {', '.join(found)}")
    values, row_type = found[name]
    columns = _columns_of(row_type)
    if columns:
        rows = [{column: _cell(value, column) for column in columns} for value in values]
    else:
        rows = [dict(flattened(value)) if isinstance(value, dict) else {_VALUE: value} for value in values]
        columns = tuple(dict.fromkeys(column for row in rows for column in row))
    return Section(name, columns, tuple(tuple(typed(c, row.get(c)) for c in columns) for row in rows))


def _cell(value: Any, column: str) -> Any:
    """The member of a row that a column of its type is of, None below a member that is none."""
    if not isinstance(value, dict):
        return value
    for name in column.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def as_text(section: Section) -> Section:
    """Return a table with cells as CSV and people have them: nothing where a value is missing, lists as JSON."""
    return Section(section.title, section.columns, tuple(tuple(map(_cell_text, row)) for row in section.rows))


def typed(name: str, value: Any) -> Any:
    """Return a member as programs take it: a time, in milliseconds, as ISO 8601.

    >>> typed("newest_time", 1795226310693), typed("age_ms", 7), typed("time", None)
    ('2026-11-21T01:58:30.693Z', 7, None)
    """
    leaf = name.rpartition(".")[2]
    is_time = leaf in _TIMES or leaf.endswith("_time") or name.endswith(_SPANS)
    return _iso(value) if is_time and is_integer(value) else value


_TIMES = frozenset({"time", "failed_at", "back_at", "worst_at"})
_SPANS = ("time_span.from", "time_span.to", "crash.least", "crash.most")
"""Members that are times, beside those whose names end in `_time`; all in milliseconds since the epoch."""


def flattened(row: Mapping[str, Any], above: str = "") -> Iterable[tuple[str, Any]]:
    """Yield the members of a row with their names, those of members as `because.channel`.

    >>> dict(flattened({"a": 1, "b": {"c": [2], "d": None}}))
    {'a': 1, 'b.c': [2], 'b.d': None}
    """
    for name, value in row.items():
        if isinstance(value, dict) and value:
            yield from flattened(value, f"{above}{name}.")
        else:
            yield above + name, value


def _lists(told: Mapping[str, Any], kind: type) -> dict[str, tuple[list[Any], Any]]:
    """Every list of an answer by its name, and the type of its rows where that is known: of members, then details."""
    result = told["result"] if isinstance(told["result"], dict) else {}
    hints = {name.rstrip("_"): hint for name, hint in get_type_hints(kind).items()} if is_dataclass(kind) else {}
    left_out: dict[str, Any] = {
        name: [] for name, hint in hints.items() if name not in result and get_origin(hint) is tuple
    }
    members = {name: value for name, value in {**result, **left_out}.items() if isinstance(value, list)}
    details = result.get("details")
    more = details if isinstance(details, dict) else {}
    found = {name: (value, _row_type(hints.get(name))) for name, value in members.items()}
    found |= {name: (value, None) for name, value in more.items() if isinstance(value, list) and name not in found}
    found.setdefault("findings", ([_finding_row(finding) for finding in told["findings"]], _FINDING))
    found.setdefault("inputs", (told["inputs"], _INPUT))
    return found


_FINDING = ("id", "severity", "subject", "message", "path", "offset", "places", "effect")
_INPUT = ("path", "format", "bytes", "records")


def _finding_row(finding: dict[str, Any]) -> dict[str, Any]:
    """A finding with the first of its places, and how many it has."""
    where = finding["where"]
    return {**finding, **(where[0] if where else {}), "places": len(where)}


def _row_type(hint: Any) -> Any:
    """The type of a list's rows: X of tuple[X, ...] or list[X]."""
    parts = [part for part in get_args(hint) if part is not ...]
    return parts[0] if len(parts) == 1 else None


def _columns_of(kind: Any, above: str = "") -> tuple[str, ...]:
    """The columns of a type of rows, () if it does not tell; those of a member that is a row itself in its place."""
    if isinstance(kind, tuple):
        return kind
    if kind in (str, int, float):
        return (_VALUE,)
    if not isinstance(kind, type) or not is_dataclass(kind):
        return ()
    found: list[str] = []
    for name, hint in get_type_hints(kind).items():
        inner = next((one for one in _options(hint) if isinstance(one, type) and is_dataclass(one)), None)
        column = f"{above}{name.rstrip('_')}"
        found += _columns_of(inner, f"{column}.") if inner else [column]
    return tuple(found)


def _options(hint: Any) -> tuple[Any, ...]:
    """The types that a member may have: X and None of X | None."""
    return get_args(hint) if isinstance(hint, UnionType) else (hint,)


def _iso(milliseconds: int) -> str | int:
    """A time in UTC with milliseconds; the number itself where no calendar has it."""
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return milliseconds
    return f"{moment.strftime('%Y-%m-%dT%H:%M:%S').zfill(19)}.{milliseconds % 1000:03d}Z"


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _cell_text(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, int | float | str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
