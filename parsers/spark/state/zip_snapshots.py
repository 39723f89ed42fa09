"""Snapshots of the RocksDB provider: `V.zip` and what it names in the folders beside it.

    V.zip/metadata   "v1"  {"sstFiles": [{"localFileName", "dfsSstFileName", "sizeBytes"}],
                            "logFiles": [{"localFileName", "dfsLogFileName", "sizeBytes"}], "numKeys", …}
    SSTs/            immutable files that several snapshots share; logs/ likewise

RocksDB is not needed to see whether every file is there with its size.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from typing import Any, NamedTuple

from cklog.parsers.spark.metadata_log import Damaged
from cklog.storage import READ_LIMIT

_KINDS = (("sstFiles", "dfsSstFileName", "SSTs"), ("logFiles", "dfsLogFileName", "logs"))
_UNZIPPED_BYTES = 4 * READ_LIMIT  # members are RocksDB's manifest, options and logs: kilobytes
_CHUNK_BYTES = 1 << 20
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError, struct.error, OverflowError)
"""What `zipfile` raises for a damaged archive, an encrypted one, and a method that it does not know."""


class SnapshotFile(NamedTuple):
    """A file that a snapshot needs: its path beside the zip, and its size."""

    path: str
    size: int


def parts_of(data: bytes) -> tuple[SnapshotFile, ...]:
    """Read which files a snapshot names, sorted by path; its own members are proved by their checksums.

    Raises
    ------
    Damaged : no whole archive, no metadata in it, or metadata that cannot be understood
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _prove_members(archive)
            metadata = _read_member(archive, "metadata")
    except KeyError:
        raise Damaged("corrupt-file", None, "the archive has no metadata in it") from None
    except _BROKEN:
        raise Damaged("corrupt-file", None, "it is no whole zip archive") from None
    return _decode_metadata(metadata)


def _prove_members(archive: zipfile.ZipFile) -> None:
    """Read every member, which checks its CRC-32; never more than `_UNZIPPED_BYTES` in all."""
    left = _UNZIPPED_BYTES
    for member in archive.infolist():
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # others can ask for much memory
            raise Damaged("corrupt-file", None, f"compression method {member.compress_type} of zip is not Spark's")
        with archive.open(member) as file:
            while chunk := file.read(_CHUNK_BYTES):
                left -= len(chunk)
                if left < 0:
                    raise Damaged("oversized-file", None, f"it unpacks to more than {_UNZIPPED_BYTES} bytes")


def _read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    with archive.open(name) as file:
        return file.read(READ_LIMIT)


def _decode_metadata(metadata: bytes) -> tuple[SnapshotFile, ...]:
    """Decode the metadata of a snapshot."""
    head, _, body = metadata.partition(b"\n")
    if head.strip() != b"v1":
        raise Damaged("unknown-version", None, "its metadata is not of version v1")
    found: list[SnapshotFile] = []
    try:
        value = json.loads(body)
        for kind, name, folder in _KINDS:
            found += [_decode_file(row, name, folder) for row in value.get(kind) or ()]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise Damaged("corrupt-file", None, "its metadata does not say which files it needs") from None
    return tuple(sorted(found))


def _decode_file(row: dict[str, Any], name: str, folder: str) -> SnapshotFile:
    """Decode one file; `name` is the key of its name beside the archive, if that is not its own."""
    stored, size = row.get(name) or row["localFileName"], row["sizeBytes"]
    if not isinstance(stored, str) or "/" in stored or type(size) is not int or size < 0:
        raise ValueError(stored)
    return SnapshotFile(f"{folder}/{stored}", size)
