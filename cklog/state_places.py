"""Whether the state files that checkpoint records name are there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cklog.model import Finding, Where
from cklog.tables import Records

_TOLD = 40
"""Missing files that are told one by one."""

_GONE = "its state file is not there"

Looked = Callable[[str], bool | None]
"""Whether a file is there; None: its place is not below PATH, so nobody looked."""


def state_flaws(records: Records, parser: Any) -> tuple[pa.Array | None, list[Finding]]:
    """A flaw for each record whose state file is gone, null for the others; None if no record names any.

    A parser that can look has a method `is_stored`, of a URI; it is asked once for each.
    """
    uris = records.table["uri"]
    told = pc.is_valid(uris)
    if uris.null_count == len(uris) or not hasattr(parser, "is_stored"):
        return None, []
    plain = uris.cast(pa.string()).combine_chunks().dictionary_encode()
    looked: Looked = parser.is_stored
    there = [looked(uri) for uri in plain.dictionary.to_pylist()]
    found = pa.array(there, pa.bool_()).take(plain.indices)
    gone = pc.fill_null(pc.invert(found), False)
    unseen = pc.and_(told, pc.is_null(found))
    findings = _missing(records, gone)
    if pc.any(unseen).as_py():
        count = pc.sum(unseen).as_py()
        first = uris.filter(unseen)[0].as_py()
        message = f"{count} state files lie outside PATH and were not looked at, {first} among them"
        findings.append(Finding("unchecked-input", "warning", "state files", message))
    return pc.if_else(gone, _GONE, pa.nulls(len(gone), pa.string())), findings


def _missing(records: Records, gone: pa.Array) -> list[Finding]:
    rows = pc.indices_nonzero(gone).to_pylist()
    found = []
    for row in rows[:_TOLD]:
        subject = f"{records.subtasks[records.subtask[row]]}={records.number[row]}"
        uri = records.table["uri"][row].as_py()
        message = f"checkpoint {subject}: its state file {uri} is not there"
        found.append(Finding("missing-state-file", "error", subject, message, (Where(uri),)))
    if len(rows) > _TOLD:
        message = f"{len(rows) - _TOLD} more state files are not there"
        found.append(Finding("missing-state-file", "error", "state files", message))
    return found
