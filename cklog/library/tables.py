"""The rows of a result as Arrow tables, typed by the types that the result declares, so that empty ones are typed too.

Times are timestamps (ms, UTC). What has no type of its own (offsets of any source, details) is JSON text.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import pyarrow as pa

from cklog.arrow_errors import ARROW_ERRORS
from cklog.local_files import shown_name
from cklog.render.formats import plain

_SIMPLE = {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_()}
_JSON = pa.string()
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999  # the years 1 to 9999, which Python's times can say


def tables_of(result: object) -> dict[str, tuple[list[Any], type | None]]:
    """Return each table of a result by name: its rows as dicts, and the type of a row where that is declared."""
    found: dict[str, tuple[list[Any], type | None]] = {}
    hints = _hints(type(result)) if is_dataclass(result) else {}
    members = plain(result)
    if not isinstance(members, Mapping):
        return found
    for name, value in members.items():
        if not isinstance(value, list):
            continue
        row = _row_type(hints.get(name) or hints.get(f"{name}_"))
        if row is not None or (value and all(isinstance(one, dict) for one in value)):
            found[name] = (value, row)
    return found


def arrow_table(rows: list[dict[str, Any]], row: type | None) -> pa.Table:
    """Return rows as an Arrow table; without a declared type the columns have those of their values."""
    if row is None:
        names = dict.fromkeys(name for one in rows for name in one)
        columns = {name: _guessed(name, [one.get(name) for one in rows]) for name in names}
        return pa.table(columns)
    declared = _members(row)
    return pa.table({name: _column([one.get(name) for one in rows], kind) for name, kind in declared.items()})


def _members(row: type) -> dict[str, pa.DataType]:
    """Return the columns of a row's type, by the names that JSON has for them."""
    hints = _hints(row)
    return {name.rstrip("_"): _timed(name, _arrow_type(hints.get(name, Any))) for name in (f.name for f in fields(row))}


def _hints(kind: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind)
    except NameError:  # a type that is known to checkers alone
        return {}


def _row_type(hint: Any) -> type | None:
    """Return R of tuple[R, ...], where R is a dataclass."""
    if typing.get_origin(hint) not in (tuple, list):
        return None
    row = typing.get_args(hint)[0]
    return row if isinstance(row, type) and is_dataclass(row) else None


def _arrow_type(hint: Any) -> pa.DataType:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        kinds = {_arrow_type(one) for one in arguments if one is not types.NoneType}
        return kinds.pop() if len(kinds) == 1 else _JSON
    if origin is typing.Literal:
        kinds = {_SIMPLE.get(type(one), _JSON) for one in arguments}
        return kinds.pop() if len(kinds) == 1 else _JSON
    if origin in (tuple, list) and (len(arguments) == 1 or arguments[1:] == (Ellipsis,)):
        return pa.list_(_arrow_type(arguments[0]))
    if isinstance(hint, type) and is_dataclass(hint):
        return pa.struct(_members(hint))
    return _SIMPLE.get(hint, _JSON)


def _timed(name: str, kind: pa.DataType) -> pa.DataType:
    return pa.timestamp("ms", "UTC") if kind == pa.int64() and (name == "time" or name.endswith("_time")) else kind


def _guessed(name: str, values: list[Any]) -> pa.Array:
    kinds = {type(value) for value in values if value is not None}
    kind = _SIMPLE.get(kinds.pop(), _JSON) if len(kinds) == 1 else _JSON
    return _column(values, _timed(name, kind))


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Return a column; values that its type cannot hold, as of a log that means harm, make it numbers or text."""
    if pa.types.is_timestamp(kind) and any(v is not None and not _FIRST_MS <= v <= _LAST_MS for v in values):
        kind = pa.int64()
    try:
        return pa.array(_texts(values) if kind == _JSON else values, kind)
    except (*ARROW_ERRORS, OverflowError, UnicodeError):
        return pa.array(_texts(values), _JSON)


def _texts(values: Iterable[Any]) -> list[str | None]:
    """Return texts as they are, other values as JSON; half a character, which Arrow cannot hold, is written out."""
    written = (v if v is None or isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in values)
    return [None if text is None else shown_name(text).encode("utf-8", "backslashreplace").decode() for text in written]
