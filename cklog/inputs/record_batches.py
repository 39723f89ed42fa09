"""Batches of a partitioned log (Kafka) as a table: one row per batch, from its header alone."""

from __future__ import annotations

import pyarrow as pa

BATCHES = pa.schema(
    [
        pa.field("at", pa.int64(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("base", pa.int64(), nullable=False),
        pa.field("last", pa.int64(), nullable=False),
        pa.field("records", pa.int64(), nullable=False),
        pa.field("format", pa.int64(), nullable=False),
        pa.field("codec", pa.int64(), nullable=False),
        pa.field("leader_epoch", pa.int64()),
        pa.field("base_time", pa.int64()),
        pa.field("max_time", pa.int64()),
        pa.field("append_time", pa.bool_()),
        pa.field("producer", pa.int64()),
        pa.field("producer_epoch", pa.int64()),
        pa.field("sequence", pa.int64()),
        pa.field("transactional", pa.bool_()),
        pa.field("control", pa.bool_()),
        pa.field("marker", pa.string()),
    ]
)
"""`at` and `bytes`: where the batch lies in its segment (`_path`). It takes the offsets base to last, inclusive, and
holds `records` (compaction keeps the offsets and takes records). `format` 0, 1 or 2; `codec` 0 none, 1 gzip, 2 snappy,
3 lz4, 4 zstd. Times in ms; null in format 0. `producer` and its kin are null in formats 0 and 1; -1 is no producer.
`marker` of a control batch: commit / abort / other."""
