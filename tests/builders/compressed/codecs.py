"""A compressor for each codec that blocks have."""

from __future__ import annotations

import bz2
import zlib
from collections.abc import Callable

import pyarrow as pa

CODECS: dict[str, Callable[[bytes], bytes]] = {
    "snappy": lambda plain: pa.compress(plain, "snappy", asbytes=True),
    "zstd": lambda plain: pa.compress(plain, "zstd", asbytes=True),
    "lz4_raw": lambda plain: pa.compress(plain, "lz4_raw", asbytes=True),
    "gzip": lambda plain: zlib.compress(plain, wbits=31),
    "deflate": lambda plain: zlib.compress(plain, wbits=-15),
    "bz2": bz2.compress,
}
