"""A parser of somebody else's that tells one part of a checkpoint twice, with two sizes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from cklog.inputs.pieces import PiecesRead
from cklog.parsers.patent.parser import PatentStore


class Twice(PatentStore):
    """The stores by key, the first piece of which is there once more."""

    name = "twice"

    def pieces(self) -> PiecesRead:
        """Return all pieces, and the first of them with a byte more."""
        read = super().pieces()
        first = read.table.slice(0, 1)
        more = pc.add(first["bytes"], 1)
        again = first.set_column(first.column_names.index("bytes"), read.table.schema.field("bytes"), more)
        return read._replace(table=pa.concat_tables([read.table, again]))
