"""The members of `job.json`, and of which JSON type each is (docs/run-folder.md)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from cklog.budgets import budgets, over
from cklog.inputs.member_names import damaged_name, find_misspelling
from cklog.model.values import is_integer
from cklog.parsers.tables import records
from cklog.unknown_formats import require_known


def checked_manifest(found: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest, if it is of a version that is known.

    Raises
    ------
    NotARecord : a known member is not of the type that docs/run-folder.md gives
    UnknownFormat : it is of a later version
    """
    if is_integer(version := found.get("version")):
        require_known("version", version, _NEWEST_VERSION)
    _check(found, _MANIFEST, "")
    for member, known in (("operators", _OPERATOR), ("channels", _CHANNEL), ("sources", _SOURCE)):
        for i, row in enumerate(found.get(member, [])):
            if not isinstance(row, dict):
                raise records.NotARecord(f"{member}[{i}], {json.dumps(row)[:40]}, is not an object")
            _check(row, known, f"{member}[{i}]")
    if sum(row.get("parallelism", 1) for row in found.get("operators", [])) > budgets().files:
        raise over("the number of subtasks", budgets().files)
    if not all(isinstance(name, str) for name in found.get("failed", [])):
        raise records.NotARecord("failed is not a list of OP or OP/SUB")
    return found


def slips_in(manifest: Mapping[str, Any]) -> list[str]:
    """Return what is perhaps misspelt in a manifest that was checked: one member of the whole, and of each row."""
    parts = [("", manifest, {*_MANIFEST, *OF_ANY_RUN})]
    for member, known in (("operators", _OPERATOR), ("channels", _CHANNEL), ("sources", _SOURCE)):
        parts += [(f"{member}[{i}]: ", row, {*known}) for i, row in enumerate(manifest.get(member, []))]
    return [f"{place}{why}" for place, row, known in parts if (why := find_misspelling(row, known))]


OF_ANY_RUN = frozenset({"outputs", "sinks"})
"""Members that the `job.json` of a run of any format may have: what it writes."""


def tells_of_outputs_alone(data: bytes) -> bool:
    """Return whether a manifest says what a run of another format writes, and nothing of a native run.

    Raises
    ------
    NotARecord : it is no JSON object, or the name of one of these members is damaged
    """
    found = records.strict_json(data.rstrip(b"\n"), known=OF_ANY_RUN)
    return bool(found) and found.keys() <= OF_ANY_RUN


def _check(row: Mapping[str, Any], known: Mapping[str, _Type], place: str) -> None:
    why = damaged_name(row, tuple(known))
    for member, (fits, what) in known.items():
        if member in row and not fits(row[member]):
            why = why or f"{member} {what}"
        elif member in _REQUIRED and member not in row:
            why = why or f"{member} is missing"
    if why:
        raise records.NotARecord(f"{place}: {why}" if place else why)


def _is_text(value: Any) -> bool:
    """Whether it is text that can be written as UTF-8: JSON can spell halves of surrogate pairs."""
    return isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value)


def _is_count(value: Any, limit: int = 1 << 63) -> bool:
    return is_integer(value) and 0 <= value < limit


_Type = tuple[Callable[[Any], bool], str]

_TEXT: _Type = _is_text, "is no text, or holds half a surrogate pair"
_LIST: _Type = lambda value: isinstance(value, list), "is not a list"
_TIME: _Type = is_integer, "is no integer"
_COUNT: _Type = _is_count, "is not a count"
_OFFSET: _Type = lambda value: value is None or _is_count(value), "is not a count"
_SUBTASKS: _Type = lambda value: _is_count(value, 100_000), "is not a count of subtasks"
_ITS_READERS: _Type = lambda _: True, "is checked where it is read, with a finding of its own"

_NEWEST_VERSION = 1
_MANIFEST: dict[str, _Type] = {
    "version": _ITS_READERS,
    "job": _TEXT,
    "operators": _LIST,
    "channels": _LIST,
    "sources": _LIST,
    "failed": _LIST,
    "failure_time": _TIME,
    "checkpoint_interval_ms": _TIME,
    "nodes": _ITS_READERS,
    "racks": _ITS_READERS,
}
_OPERATOR: dict[str, _Type] = {
    "name": _TEXT,
    "parallelism": _SUBTASKS,
    "kind": _TEXT,
    "delivery": _TEXT,
    "query": _TEXT,
    "recovery": _TEXT,
    "placement": _ITS_READERS,
    "window": _ITS_READERS,
    "windows": _ITS_READERS,
    "period_ms": _ITS_READERS,
    "start_ms": _ITS_READERS,
}
_CHANNEL: dict[str, _Type] = {"channel": _TEXT, "log": _TEXT, "first_retained": _COUNT}
_SOURCE: dict[str, _Type] = {"source": _TEXT, "operator": _TEXT, "subtask": _SUBTASKS, "offset": _OFFSET}
_REQUIRED = frozenset(("name", "channel", "source", "operator"))
"""The members of `job.json`, of an operator, a channel and a source in it, that any reader asks for."""
