"""Spark's state files: streams of blocks and zips, as Spark writes them."""

from __future__ import annotations

import io
import json
import zipfile

import pyarrow as pa

from cklog.parsers.codecs.xxhash32 import xxh32
from cklog.parsers.spark.state.lz4_blocks import HEADER, MAGIC, SEED

CODEC = pa.Codec("lz4_raw")


def block(plain: bytes, stored: bool = False) -> bytes:
    """A block as lz4-java writes it, of 32 KiB at most."""
    packed = CODEC.compress(plain, asbytes=True)
    stored = stored or len(packed) >= len(plain)
    checksum = xxh32([plain], SEED)[0] & 0x0FFFFFFF
    payload = plain if stored else packed
    return HEADER.pack(MAGIC, (0x10 if stored else 0x20) | 5, len(payload), len(plain), checksum) + payload


END = HEADER.pack(MAGIC, 0x15, 0, 0, 0)


def stream(plain: bytes, size: int = 1 << 15) -> bytes:
    return b"".join(block(plain[at : at + size]) for at in range(0, len(plain), size)) + END


def zipped(metadata: bytes | None, extra: bytes = b"manifest") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("MANIFEST-000005", extra)
        if metadata is not None:
            archive.writestr("metadata", metadata)
    return file.getvalue()


def snapshot(*ssts: tuple[str, int], name: str = "dfsSstFileName") -> bytes:
    rows = [{"localFileName": n, name: n, "sizeBytes": size} for n, size in ssts]
    return zipped(b"v1\n" + json.dumps({"sstFiles": rows, "numKeys": 1}).encode())
