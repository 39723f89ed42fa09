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

from cklog.budgets import check_json
from cklog.model.values import is_integer
from cklog.model.verdict import UNKNOWN_VERSION
from cklog.parsers.codecs import hadoop_crc
from cklog.parsers.spark.metadata_log import Damaged
from cklog.storage import FileEntry, Root
from cklog.unknown_formats import is_one_bit_off

CHUNK_BYTES = 4 << 20
_WORD = 1 << 32
_ALGORITHM = "CRC32C"


class EngineSum(NamedTuple):
    """What Spark's own checksum file says of a file: its checksum (unsigned) by an algorithm, and its size in bytes."""

    algorithm: str
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
    """Decode Spark's own checksum file; None if it is none."""
    try:
        check_json(data)
        found = json.loads(data)
        algorithm, value, size = found["algorithm"], found["value"], found["mainFileSize"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if not isinstance(algorithm, str) or not is_integer(value) or not is_integer(size):
        return None
    return EngineSum(algorithm, value % _WORD, size)


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
    """Read a file at once, or piece by piece if it is large; what was listed must be there."""
    if entry.size <= CHUNK_BYTES:
        data = root.read(entry.path, CHUNK_BYTES)
        _require_all(entry, len(data))
        yield data
        return
    at = 0
    with root.open(entry.path) as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk
            at += len(chunk)
    _require_all(entry, at)


def _require_all(entry: FileEntry, count: int) -> None:
    """Raise `Damaged` if fewer or more bytes could be read than were listed."""
    if count != entry.size:
        raise Damaged("corrupt-file", min(count, entry.size), f"{entry.size} bytes were listed, {count} could be read")


def _verify_engine_sum(root: Root, entry: FileEntry, own: FileEntry) -> bool:
    """Hold a file against Spark's own checksum of it."""
    stored = decode_engine_sum(root.read(own.path))
    if stored is None:
        raise Damaged("checksum-mismatch", None, f"{own.path} is no checksum that can be read, and Spark reads it")
    if stored.size != entry.size:
        raise Damaged("checksum-mismatch", None, f"it has {entry.size} bytes, {own.path} says {stored.size}")
    if stored.algorithm != _ALGORITHM:
        why = f"{own.path} holds a checksum by {stored.algorithm[:40]!r}, and only {_ALGORITHM} is known"
        damaged = is_one_bit_off(stored.algorithm, [_ALGORITHM])
        raise Damaged("checksum-mismatch" if damaged else UNKNOWN_VERSION, None, why)
    computed = _crc32c(read_chunks(root, entry))
    if computed != stored.value:
        raise Damaged("checksum-mismatch", 0, f"its CRC-32C is {computed:08x}, {own.path} says {stored.value:08x}")
    return True


def _crc32c(chunks: Iterable[bytes]) -> int:
    import crc32c  # slow to import, and most checkpoints have no checksum of this kind

    value = 0
    for chunk in chunks:
        value = crc32c.crc32c(chunk, value)
    return value


def _verify_hadoop_sums(root: Root, entry: FileEntry, side: FileEntry) -> bool:
    """Hold a file against Hadoop's checksums of it; False if those cannot be read, which Hadoop passes over."""
    sums = root.read(side.path)
    if not hadoop_crc.is_readable(sums):
        return False
    mismatch = hadoop_crc.check_pieces(read_chunks(root, entry), sums)
    if mismatch is not None:
        raise Damaged("checksum-mismatch", mismatch.offset, mismatch.why)
    return True
