"""What proves the bytes of a state file: Hadoop's checksum file, and the engine's own.

    .NAME.crc   Hadoop's, of local and HDFS-like file systems: `cklog.parsers.codecs.hadoop_crc`
    NAME.crc    Spark's own, from state checkpoint format 2 on, of a changelog or a zip; on object stores the only one
                {"algorithm": "CRC32C", "value": int32, "mainFileSize": n}

Spark checks both where they are, and passes over a file without any.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import crc32c

from cklog.model.values import is_integer
from cklog.parsers.codecs import hadoop_crc
from cklog.parsers.spark.metadata_log import Damaged
from cklog.storage import READ_LIMIT, FileEntry, Root, open_file

CHUNK_BYTES = 4 << 20
_SUM_BYTES = 4
_WORD = 1 << 32


class EngineSum(NamedTuple):
    """What Spark's own checksum file says of a file: its CRC-32C (unsigned), and its size in bytes."""

    value: int
    size: int


def engine_sum_of(path: str) -> str:
    """Return where Spark's own checksum file of a file lies."""
    return f"{path}.crc"


def sidecars_of(path: str) -> tuple[str, ...]:
    """Return every checksum file that a file may have, those of checksum files too.

    >>> sidecars_of("0/1_a.zip")
    ('0/.1_a.zip.crc', '0/1_a.zip.crc', '0/.1_a.zip.crc.crc')
    """
    own = engine_sum_of(path)
    return hadoop_crc.sidecar_of(path), own, hadoop_crc.sidecar_of(own)


def decode_engine_sum(data: bytes) -> EngineSum | None:
    """Decode Spark's own checksum file; None if it is none, or of an algorithm that is not known."""
    try:
        found = json.loads(data)
        value, size = found["value"], found["mainFileSize"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if found.get("algorithm") != "CRC32C" or not is_integer(value) or not is_integer(size):
        return None
    return EngineSum(value % _WORD, size)


def verify(root: Root, by_path: Mapping[str, FileEntry], entry: FileEntry) -> bool:
    """Return whether a checksum file proves a file; raise `Damaged` if one refutes it.

    `by_path` are the files that are there.
    """
    proved = False
    own = by_path.get(engine_sum_of(entry.path))
    if own is not None:
        proved = _verify_engine_sum(root, entry, own)
    side = by_path.get(hadoop_crc.sidecar_of(entry.path))
    return (side is not None and _verify_hadoop_sums(root, entry, side)) or proved


def read_chunks(root: Root, entry: FileEntry) -> Iterator[bytes]:
    """Read a file at once, or piece by piece if it is large."""
    if entry.size <= READ_LIMIT:
        yield root.read(entry.path)
        return
    with open_file(root.uri(entry.path)) as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


def _verify_engine_sum(root: Root, entry: FileEntry, own: FileEntry) -> bool:
    """Hold a file against Spark's own checksum of it."""
    stored = decode_engine_sum(root.read(own.path))
    if stored is None:
        raise Damaged("checksum-mismatch", None, f"{own.path} is no checksum that can be read, and Spark reads it")
    if stored.size != entry.size:
        raise Damaged("checksum-mismatch", None, f"it has {entry.size} bytes, {own.path} says {stored.size}")
    computed = _crc32c(read_chunks(root, entry))
    if computed != stored.value:
        raise Damaged("checksum-mismatch", 0, f"its CRC-32C is {computed:08x}, {own.path} says {stored.value:08x}")
    return True


def _crc32c(chunks: Iterable[bytes]) -> int:
    value = 0
    for chunk in chunks:
        value = crc32c.crc32c(chunk, value)
    return value


def _verify_hadoop_sums(root: Root, entry: FileEntry, side: FileEntry) -> bool:
    """Hold a file against Hadoop's checksums of it; False if those cannot be read, which Hadoop passes over."""
    sums = root.read(side.path)
    if not hadoop_crc.is_readable(sums):
        return False
    step = hadoop_crc.HEADER.unpack_from(sums)[1]
    if entry.size > READ_LIMIT and (step <= 0 or CHUNK_BYTES % step):
        return False
    at = 0
    for chunk in read_chunks(root, entry):
        mismatch = hadoop_crc.check(chunk, _sums_of_chunk(sums, step, at, len(chunk), entry.size))
        if mismatch is not None:
            raise Damaged("checksum-mismatch", at + mismatch.offset, mismatch.why)
        at += len(chunk)
    if at != entry.size:
        raise Damaged("corrupt-file", at, f"{entry.size} bytes were listed, {at} could be read")
    return True


def _sums_of_chunk(sums: bytes, step: int, at: int, count: int, size: int) -> bytes:
    """Cut the checksum file of `count` bytes from `at` on out of `sums`, that of the whole file of `size` bytes.

    `step` is the number of bytes that one sum is of.
    """
    if count == size or step <= 0:
        return sums
    first = hadoop_crc.HEADER.size + at // step * _SUM_BYTES
    last = len(sums) if at + count == size else first + count // step * _SUM_BYTES
    return sums[: hadoop_crc.HEADER.size] + sums[first:last]
