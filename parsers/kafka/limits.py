"""How much of Kafka's bytes is held and decompressed, in one place: what real brokers write stays far below all of it.

A length field is believed only within these limits, and compressed bytes say nothing of how much they hold: 100 of
them may hold 250 MB.
"""

from __future__ import annotations

BATCH_LIMIT = 256 << 20
"""Bytes of a batch at the most; Kafka's own default is 1 MiB."""

PAYLOAD_LIMIT = 128 << 20
"""Bytes of one decompressed payload at the most."""

RECORDS_LIMIT = 1 << 20
"""Records of one batch at the most."""

MARKER_LIMIT = 64 << 10
"""Bytes of the decompressed payload of a control batch at the most; brokers write some 20, and do not compress them."""

PART_BATCHES, PART_BYTES, PART_RECORDS = 1000, 16 << 20, 1 << 18
"""Batches, bytes before and after decompression, and records that are decoded at once; one batch may be more."""

INFLATED_FIRST, INFLATED_PER_BYTE = 256 << 20, 200
"""Bytes that are decompressed of one split: so many in any case, and so many for each of its bytes."""

RECORDS_FIRST, RECORDS_PER_BYTE = 1 << 22, 4
"""Records that are decoded of one split, in the same way."""

SEARCHED_BYTES = 1 << 30
"""Bytes whose CRC is computed in search of one batch: false candidates must not cost hours."""

KEYS_KEPT = 1 << 18
"""Keys of committed offsets that are kept understood at a time."""
