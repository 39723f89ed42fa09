"""Whether the state files that checkpoint records name are there."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.types import Ints, Mask
from cklog.history.records import CheckpointRecords
from cklog.inputs.offers import OffersRecords
from cklog.model.findings import Finding, Where
from cklog.model.wording import agreeing, among, many

_LISTED = 40
"""Missing files that are listed one by one."""

_GONE = "its state file is not there"


def is_gone(parser: OffersRecords, uri: str | None) -> bool:
    """Say whether the state file that a record names is known not to be there."""
    return uri is not None and parser.is_stored(uri) is False


def gone_states(records: CheckpointRecords, parser: OffersRecords) -> tuple[Mask, Mask]:
    """Find the records whose state file is gone, and those whose file lies where nobody looked; shape (rows,) each.

    The parser is asked once for each URI.
    """
    uris = records.table["uri"]
    none = np.zeros(len(uris), np.bool_)
    if uris.null_count == len(uris):
        return none, none
    plain = uris.cast(pa.string()).combine_chunks().dictionary_encode()
    there = pa.array([parser.is_stored(uri) for uri in plain.dictionary.to_pylist()], pa.bool_()).take(plain.indices)
    gone = pc.fill_null(pc.invert(there), False)
    unseen = pc.and_(pc.is_valid(uris), pc.is_null(there))
    return np.asarray(gone), np.asarray(unseen)


def as_flaws(gone: Mask) -> pa.Array | None:
    """Return a flaw for each record whose state file is gone, null for the others; None if there is no such record."""
    return pc.if_else(pa.array(gone), _GONE, pa.nulls(len(gone), pa.string())) if gone.any() else None


def state_flaws(records: CheckpointRecords, parser: OffersRecords) -> tuple[pa.Array | None, list[Finding]]:
    """Return the flaws of records whose state file is gone (`as_flaws`), and findings on them and on files not seen."""
    gone, unseen = gone_states(records, parser)
    findings = _missing_files(records, np.flatnonzero(gone))
    if unseen.any():
        count, first = int(unseen.sum()), records.table["uri"][int(unseen.argmax())].as_py()
        outside = f"{many(count, 'state file', 'lie')} outside PATH and {agreeing(count, 'were')} not looked at"
        message = f"{outside}, {among(count, first)}"
        findings.append(Finding("unchecked-input", "warning", "state files", message))
    return as_flaws(gone), findings


def newer_without_state(records: CheckpointRecords, gone: Mask, label: Ints) -> list[Finding]:
    """Report records whose state file is gone and that are newer than their subtask's checkpoint in a line.

    Older ones may have been deleted on purpose. `label` (n,) are the checkpoint numbers of the line.
    """
    return _missing_files(records, np.flatnonzero(gone & (records.number > label[records.subtask])))


def _missing_files(records: CheckpointRecords, rows: Ints) -> list[Finding]:
    """Report records whose state file is missing, the first ones one by one."""
    found = []
    for row in rows[:_LISTED].tolist():
        subject = f"{records.subtasks[records.subtask[row]]}={records.number[row]}"
        uri = records.table["uri"][row].as_py()
        message = f"checkpoint {subject}: its state file {uri} is not there"
        found.append(Finding("missing-state-file", "error", subject, message, where=(Where(uri),), effect="older-line"))
    if len(rows) > _LISTED:
        message = f"{len(rows) - _LISTED} more state files are not there"
        found.append(Finding("missing-state-file", "error", "state files", message, effect="older-line"))
    return found
