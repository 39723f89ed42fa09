"""Samples of operator state sizes as a table (design section 3, `state/`)."""

from __future__ import annotations

import pyarrow as pa

STATE = pa.schema(
    [
        pa.field("operator", pa.string(), nullable=False),
        pa.field("subtask", pa.int64()),
        pa.field("time", pa.int64(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
    ]
)
"""How large a subtask's state was at a moment, in ms; `subtask` is 0 where null."""
