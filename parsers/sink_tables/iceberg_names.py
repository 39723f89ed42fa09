"""Versions and names of Iceberg's metadata (its specification, versions 1 to 3) that pyiceberg reads.

pyiceberg has one error for metadata that are damaged and for those of a later version. So before it is asked, the
version is looked at, and the names that stand in each snapshot, reference and type.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cklog.parsers.sink_tables.files import NoJson, members, whole
from cklog.unknown_formats import require_known, require_known_name

_NEWEST_VERSION = 3
_OPERATIONS = ("append", "replace", "overwrite", "delete")
_REFERENCES = ("branch", "tag")
_TYPES = (
    *("binary", "boolean", "date", "decimal", "double", "fixed", "float", "geography", "geometry", "int", "long"),
    *("string", "time", "timestamp", "timestamp_ns", "timestamptz", "timestamptz_ns", "unknown", "uuid"),
    *("list", "map", "struct"),
)


def check_known(value: Any) -> None:
    """Look at the version and the names of metadata.

    Raises
    ------
    UnknownFormat : one of them is not known
    NoJson : the version is none
    """
    found = members(value)
    version = whole(found.get("format-version", 1))
    if version is None or version < 1:
        raise NoJson(f"its format-version is {str(found['format-version'])[:40]}")
    require_known("Iceberg: format-version", version, _NEWEST_VERSION)
    for snapshot in _rows(found.get("snapshots")):
        _check_name("operation", members(snapshot.get("summary")).get("operation"), _OPERATIONS)
    for reference in members(found.get("refs")).values():
        _check_name("type of a reference", members(reference).get("type"), _REFERENCES)
    for schema in _rows(found.get("schemas")):
        for field in _rows(schema.get("fields")):
            for name in _types_in(field.get("type")):
                _check_name("type", name, _TYPES)


def _check_name(what: str, name: Any, known: Sequence[str]) -> None:
    """Raise `UnknownFormat` for a name that is not known; of one that is damaged pyiceberg says so."""
    if isinstance(name, str):
        require_known_name(f"Iceberg: {what}", name, known)


def _types_in(value: Any) -> Iterator[str]:
    """Yield the names of the types in a type, without what stands in parentheses or brackets."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one.partition("(")[0].partition("[")[0].strip()
        elif isinstance(one, dict):
            waiting += [one.get(part) for part in ("type", "element", "key", "value")]
            waiting += [field.get("type") for field in _rows(one.get("fields"))]


def _rows(value: Any) -> list[dict[str, Any]]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
