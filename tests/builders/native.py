"""Native run folders: lines with their checksums, records of checkpoints, and channel logs in Parquet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import crc32c
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st


def line(record: dict[str, Any]) -> bytes:
    body = json.dumps(record, separators=(",", ":"))[:-1].encode()
    return body + b',"crc32c":"%08x"}\n' % crc32c.crc32c(body)


def zstd(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, codec="zstd", asbytes=True)
    return packed


def checkpoint(name: str, number: int, **more: Any) -> dict[str, Any]:
    operator, _, subtask = name.partition("/")
    return {"operator": operator, "subtask": int(subtask or 0), "checkpoint": number, "time": number * 1000, **more}


def write(folder: Path, place: str, records: list[dict[str, Any]], name: str = "part.jsonl") -> Path:
    path = folder / place / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(map(line, records)))
    return path


log_channels = st.sampled_from(["a", "b/0->c/1", "", "é", "x" * 40])
sequence_numbers = st.integers(0, 9) | st.integers(0, 2**62)
any_numbers = sequence_numbers | st.sampled_from([-1, -(2**63), 2**63 - 1, 2**63 - 2])


@st.composite
def parquet_logs(draw: st.DrawFn, numbers: st.SearchStrategy[int] = sequence_numbers) -> bytes:
    """A channel log as one of the ways of writing it has it."""
    nulls = draw(st.booleans())
    rows = draw(st.lists(st.tuples(log_channels, numbers, st.none() | numbers if nulls else numbers), max_size=60))
    rows = rows * draw(st.sampled_from([1, 1, 40]))
    required = draw(st.booleans()) and not nulls
    schema = pa.schema(
        [pa.field(name, kind, nullable=not required) for name, kind in (("channel", pa.string()), ("seq", pa.int64()))]
        + [pa.field("bytes", pa.int64(), nullable=not required)]
    )
    table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        row_group_size=draw(st.sampled_from([7, 50, 1000])),
        compression=draw(st.sampled_from(["none", "snappy", "zstd", "gzip", "lz4"])),
        use_dictionary=draw(st.sampled_from([True, True, False, ["channel"], ["seq"]])),
        data_page_version=draw(st.sampled_from(["1.0", "1.0", "2.0"])),
        data_page_size=draw(st.sampled_from([1, 64, 1 << 20])),
        write_batch_size=draw(st.sampled_from([1, 8, 1024])),
        dictionary_pagesize_limit=draw(st.sampled_from([16, 1 << 20])),
        write_page_checksum=draw(st.booleans()),
        write_statistics=draw(st.booleans()),
    )
    found: bytes = sink.getvalue().to_pybytes()
    return found
