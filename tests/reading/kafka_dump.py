"""What Kafka's own tool printed of segments: a second opinion."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

BATCH_LINE = re.compile(
    rb"baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .* producerId: (-?\d+) .* isTransactional: (\w+)"
    rb" isControl: (\w+) .* position: (\d+) (?:CreateTime|LogAppendTime): (-?\d+) size: (\d+) magic: 2"
    rb" compresscodec: (\w+) crc: (\d+) isvalid: true"
)
RECORD_LINE = re.compile(
    rb"\| offset: (\d+) (?:CreateTime|LogAppendTime): (-?\d+) keySize: (-?\d+) valueSize: (-?\d+) sequence: -?\d+"
    rb" headerKeys: \[(.*?)\](?: endTxnMarker: \w+ coordinatorEpoch: -?\d+)?(?: key: (.*?))?(?: payload: (.*))?$"
)
CODECS = [b"none", b"gzip", b"snappy", b"lz4", b"zstd"]


def dumped(path: Path) -> list[tuple[Any, ...]]:
    """Batches and records of Kafka's own dump, in the shape of `read_back`."""
    found: list[tuple[Any, ...]] = []
    for line in gzip.decompress(path.read_bytes()).splitlines():
        if line.startswith(b"Dumping"):
            found.append(("file", line.rpartition(b"/")[2].decode()))
        elif line.startswith(b"baseOffset"):
            match = BATCH_LINE.fullmatch(line)
            assert match, line
            *numbers, codec, crc = match.groups()
            n = [int(x) if x.strip(b"-").isdigit() else x == b"true" for x in numbers]
            found.append(("batch", *n, CODECS.index(codec), int(crc)))
        elif line.startswith(b"|"):
            match = RECORD_LINE.fullmatch(line)
            assert match, line
            offset, time, key_size, value_size, names, key, value = match.groups()
            marker = b"endTxnMarker" in line
            n = [int(x) for x in (offset, time, key_size, value_size)]
            found.append(("record", *n, names.decode(), marker or key or b"", marker or value or b""))
    return [x for x in found if x[0] != "file" or x[1].endswith(".log")]
