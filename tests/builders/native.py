"""Native run folders: lines with their checksums, and records of checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import crc32c
import pyarrow as pa


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
