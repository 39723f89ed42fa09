"""Whether the format of a file of a run is known: by the footer of Parquet, or by how a compressed stream begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from cklog.arrow_errors import ARROW_ERRORS
from cklog.parsers.codecs.hadoop_crc import undo_flipped_bit
from cklog.parsers.codecs.stream_heads import HEAD_BYTES, require_known_head
from cklog.parsers.jsonl.stream import COMPRESSION
from cklog.parsers.native.output_queues import suffix_of
from cklog.unknown_formats import UnknownFormat


def format_fault(path: str, open_: Callable[[], Any], mismatched: bool) -> Exception | None:
    """Return why the format of a file that is not empty is not known or cannot be read.

    How a stream begins is looked at where its checksum is wrong (`mismatched`); else reading it says so.
    """
    codec = COMPRESSION.get(suffix_of(path))
    try:
        if path.endswith(".parquet"):
            from cklog.parsers.tables.parquet_batches import read_metadata

            with open_() as file:
                read_metadata(file)
        elif mismatched and codec is not None:
            with open_() as file:
                require_known_head(codec, file.read(HEAD_BYTES))
    except (OSError, *ARROW_ERRORS, UnicodeDecodeError) as error:
        return error
    return None


def is_bit_damaged(path: str, data: bytes, sums: bytes) -> bool:
    """Return whether Hadoop's checksums show that one bit of a file is damaged, and its format without that known."""
    undamaged = undo_flipped_bit(data, sums)
    if undamaged is None:
        return False
    return not isinstance(format_fault(path, lambda: pa.BufferReader(undamaged), True), UnknownFormat)
