"""What a record says of where it comes from: Debezium's `source` block, in the JSON that Connect's converter writes.

    value = {"schema": …, "payload": change} | change       change = {"before", "after", "source", "op", …}

Of values in Avro or Protobuf, and of those that a transformation has unwrapped, nothing is known: there is no block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cklog.budgets import budgets, over, reading
from cklog.inputs.connectors import TakenRecord
from cklog.parsers.connect.entries import NotAnEntry, json_value
from cklog.storage import open_file

_FIELDS = frozenset({"file", "pos", "lsn", "commit_lsn", "scn", "ord"})
"""One of these a block has that says where a record comes from."""


def source_of(value: bytes) -> Mapping[str, Any] | None:
    """Return the `source` block of a record's value; None: it has none that can be read.

    >>> source_of(b'{"payload": {"source": {"file": "b.000001", "pos": 4}, "op": "c"}, "schema": {}}')["pos"]
    4
    """
    try:
        return _block(json_value(value))
    except NotAnEntry:
        return None


def _block(found: Any) -> Mapping[str, Any] | None:
    for _ in range(3):  # a line of kcat, then a schema, then the change itself
        if not isinstance(found, dict):
            return None
        if isinstance(found.get("source"), dict):
            return dict(found["source"])
        if "payload" not in found:
            break
        found = found["payload"]
        if isinstance(found, str):
            found = json_value(found.encode("utf-8", "surrogatepass"))
    return dict(found) if isinstance(found, dict) and _FIELDS & found.keys() else None


def taken_in(path: str) -> Iterator[TakenRecord]:
    """Yield the records in a file of JSON lines, from the last to the first: values, lines of kcat -J, or bare blocks.

    Raises
    ------
    OSError : there is no such file
    OverBudget : it is larger than what is held whole
    """
    with reading(path), open_file(path) as file:
        most = budgets().file
        data: bytes = file.read(most + 1)
        if len(data) > most:
            raise over("its size", most)
    lines = data.split(b"\n")
    for number in range(len(lines) - 1, -1, -1):
        if lines[number].strip():
            yield TakenRecord(path, number, source_of(lines[number]))
