"""Rows of the table of snapshots in the making: tuples, since a large job has hundreds of thousands of handles.

A row is a tuple in the order of `FIELDS`. Only this module builds rows, and only by names; `handle_row`, which builds
most of them, spells the order out because that takes a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cklog.inputs.snapshots import COLUMNS, SNAPSHOTS, StateForm
from cklog.parsers.flink.contents import ByteStretch

Row = tuple[Any, ...]
FIELDS = (*COLUMNS, "_offset")
_EMPTY = dict.fromkeys(FIELDS)
_FILES: Mapping[str, StateForm] = {"CURRENT": "current", "MANIFEST": "manifest", "OPTIONS": "options"}
_PARTS: Mapping[str, StateForm] = {"managed-operator": "operator-state", "managed-keyed": "keyed-state"}


def form_of_file(name: str) -> StateForm | None:
    """Say what a file of an LSM tree is, by the name that the tree has for it.

    >>> form_of_file("000012.sst"), form_of_file("MANIFEST-000005"), form_of_file("000007.blob")
    ('sst', 'manifest', None)
    """
    return "sst" if name.endswith(".sst") else _FILES.get(name.partition("-")[0])


def form_of_part(part: str) -> StateForm | None:
    """Say what a part of a subtask's state is; what an operator writes by itself (raw) has a layout of its own."""
    return _PARTS.get(part)


class Owner(NamedTuple):
    """Whose state it is: operator, subtask, and what part of it (`kind` of a row)."""

    operator: str | None
    subtask: int | None
    kind: str


def row(at: int, entry: str, **cells: Any) -> Row:
    """Build the row of what is at byte `at` of the metadata.

    >>> dict(zip(FIELDS, row(7, "channel", gate=1)))["gate"]
    1
    """
    return tuple((_EMPTY | cells | {"entry": entry, "_offset": at}).values())


def handle_row(
    at: int,
    owner: Owner,
    piece: ByteStretch,
    detail: str | None = None,
    uid: str | None = None,
    at_least: bool = False,
    form: StateForm | None = None,
    offsets: Sequence[int] | None = None,
) -> Row:
    """Build the row of a piece of state, whose handle is at byte `at` of the metadata.

    >>> made = handle_row(7, Owner("0a", 1, "raw-keyed"), ByteStretch("relative", "x", 0, 9), "shared", "u", True)
    >>> cells = {"operator": "0a", "subtask": 1, "kind": "raw-keyed", "name": "relative", "uid": "u"}
    >>> made == row(7, "handle", **cells, file="x", start=0, bytes=9, at_least=True, detail="shared")
    True
    """
    name, file, start, size, scope, _ = piece
    if file is None:
        held = None
    else:
        held = at_least or name == "segment"
        if detail != "changelog":
            detail = "task-owned" if "/taskowned/" in file else detail or scope
    operator, subtask, kind = owner
    none = None
    # entry, checkpoint, operator, subtask, name, uid, kind, file, start, bytes, at_least,
    cells = ("handle", none, operator, subtask, name, uid, kind, file, start, size, held)
    # offset, stop, parallelism, max_parallelism, gate, channel, version, detail, form, offsets, _offset
    return (*cells, none, none, none, none, none, none, none, detail, form, offsets, at)


def batch(rows: Sequence[Row], columns: tuple[str, ...], files: Mapping[str, int]) -> pa.RecordBatch:
    """Turn rows of metadata files, which have so many each, one file behind the other, into a record batch."""
    cells = dict(zip(FIELDS, zip(*rows, strict=True), strict=True))
    arrays = []
    for name in columns:
        if name == "_path":
            index = np.repeat(np.arange(len(files), dtype=np.int32), [*files.values()])
            arrays.append(pa.DictionaryArray.from_arrays(pa.array(index), pa.array([*files], pa.string())))
        else:
            kind = pa.int64() if name == "_offset" else SNAPSHOTS.field(name).type
            empty = cells[name].count(None) == len(rows)  # most columns of most files
            arrays.append(pa.nulls(len(rows), kind) if empty else pa.array(cells[name], kind))
    return pa.RecordBatch.from_arrays(arrays, list(columns))
