"""Splits of Flink's CDC connectors that read a database's log, with where they resume in it.

    split     2:i32  utf id  utf ""  POSITION start  POSITION end  finished  schemas  [total:i32 [suspended:bool]]
    POSITION  bool (length:i32 JSON)                  JSON: an object of texts, as Debezium writes offsets
    finished  n:i32 (utf table  utf id  utf start  utf end  POSITION)*n
    schemas   n:i32 (utf table  length:i32 JSON)*n

Versions 2 to 5 of the MySQL connector's serializer; `total` from 3 on, `suspended` from 4 on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from cklog.budgets import check_json
from cklog.errors import OverBudget
from cklog.inputs.snapshots import CDC
from cklog.parsers.flink.java import Cursor, Malformed, Unknown
from cklog.parsers.flink.layouts import FoundElement, expect_version

_LOG_SPLIT = 2


def cdc_split(version: int, cursor: Cursor) -> Iterator[FoundElement]:
    """Read the split that reads the log of a database."""
    expect_version(version, 2, 3, 4, 5)
    at = cursor.at
    if cursor.i32("a kind of split") != _LOG_SPLIT:
        raise Unknown("no split of a log")
    name, _ = cursor.utf("a split"), cursor.utf("a type")
    start = _read_position(cursor)
    _read_position(cursor)
    for _ in range(cursor.count(9, "finished splits")):
        for what in ("a table", "a split", "a start", "an end"):
            cursor.utf(what)
        _read_position(cursor)
    for _ in range(cursor.count(6, "schemas")):
        cursor.utf("a table")
        cursor.blob("a schema")
    if version > 2:
        cursor.i32("the number of finished splits")
    if version > 3:
        cursor.flag("whether it is suspended")
    cursor.done("a split")
    if not name or start is None:
        raise Malformed(at, "a split without a position")
    yield FoundElement(at, "source", {"name": name, "kind": CDC, "detail": start})


def _read_position(cursor: Cursor) -> str | None:
    """Read a position as its JSON; None: there is none."""
    if not cursor.flag("whether there is a position"):
        return None
    at = cursor.blob("a position")
    text = bytes(cursor.data[at : cursor.at])
    try:
        check_json(text)
        found = json.loads(text)
    except (ValueError, RecursionError, OverBudget):
        raise Malformed(at, "a position that is no JSON") from None
    if not isinstance(found, dict) or any(isinstance(value, dict | list) for value in found.values()):
        raise Malformed(at, "a position that is no object of texts")
    return json.dumps(found, sort_keys=True)
