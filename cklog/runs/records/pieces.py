"""The pieces of chains that checkpoint records tell of."""

from __future__ import annotations

from cklog.history.pieces import record_pieces
from cklog.history.records import records_of
from cklog.history.state_files import state_flaws
from cklog.inputs.pieces import PiecesRead
from cklog.model.verdict import DAMAGE
from cklog.runs.records.reading import RecordReader


def pieces_of_records(reader: RecordReader) -> PiecesRead:
    """Make pieces of the checkpoint records of a run, and of the state files that they name."""
    table, findings, inputs, _ = reader.checkpoints()
    records = records_of(table, *reader.named())
    del table  # as large as the records themselves, which are another table
    lost = any(f.id in DAMAGE for f in findings) or bool(records.findings)
    flaws, more = state_flaws(records, reader.tables)
    told = (*findings, *records.findings, *more)
    return PiecesRead(record_pieces(records, lost, flaws).table, told, tuple(inputs))
