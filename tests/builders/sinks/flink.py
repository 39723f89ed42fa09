"""What sinks keep in Flink's operator state, written by the layouts and independent of the reader.

Those of Iceberg and Paimon are made by hand from their formats: no jar of either is in a Python package.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from tests.builders.flink import COLLECTOR, i32, i64, listed, utf, versioned
from tests.builders.sinks.java_bytes import blob, described_list

JOB, OPERATOR = "0123456789abcdef" * 2, "fedcba9876543210" * 2
SCHEMA = (
    '{"type":"record","name":"GenericManifestFile","namespace":"org.apache.iceberg","fields":['
    '{"name":"manifest_path","type":"string","doc":"Location URI with FS scheme","field-id":500},'
    '{"name":"manifest_length","type":"long","doc":"Total file size in bytes","field-id":501}]}'
)


def collected(
    checkpoint: int, committables: Sequence[tuple[int, bytes]], fate: int = 0, versions: tuple[int, int] = (0, 0)
) -> bytes:
    """A committer's state, version 2: committables with the version of their serializer."""
    requests = [versioned(version, one) + i32(0, fate) for version, one in committables]
    subtask = (i32(0) if versions[1] else b"") + listed(0, requests) + i32(len(requests))
    subtask += i32(0) if versions[1] == 2 else i32(0, 0)
    whole = i64(checkpoint) + (i32(1) if versions[0] else b"") + listed(versions[1], [subtask])
    return COLLECTOR + listed(versions[0], [whole])


# Iceberg


def manifest(path: str, schema: str = SCHEMA) -> bytes:
    """A manifest's description in Avro: the path, then its length."""
    raw = path.encode()
    return b"\xc2\x01" + utf(schema) + _zigzag(len(raw)) + raw + _zigzag(6000)


def _zigzag(number: int) -> bytes:
    return sevens(number << 1 ^ number >> 63)


def sevens(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def manifests(data: str | None, deletes: str | None = None, version: int = 2, files: Sequence[str] = ()) -> bytes:
    if version == 1:
        return versioned(1, manifest(data or ""))
    both = (b"" if path is None else manifest(path) for path in (data, deletes))
    return versioned(version, b"".join(blob(one) for one in both) + i32(len(files)) + b"".join(map(utf, files)))


def iceberg(checkpoint: int, held: bytes, job: str = JOB, operator: str = OPERATOR) -> bytes:
    return utf(job) + utf(operator) + i64(checkpoint) + blob(held)


def dynamic(version: int, table: str, checkpoint: int, held: Sequence[bytes], branch: str = "main") -> bytes:
    head = utf(table) + utf(branch)
    if version == 1:
        head += i32(0, 0) + b"\0" + i32(2, 1, 2)
        return head + iceberg(checkpoint, held[0])
    return head + utf(JOB) + utf(OPERATOR) + i64(checkpoint) + i32(len(held)) + b"".join(blob(one) for one in held)


def by_checkpoint(held: Sequence[tuple[int, bytes | None]]) -> bytes:
    """The older sink's map."""
    return i32(len(held)) + b"".join(i64(n) + (b"\1" if one is None else b"\0" + blob(one)) for n, one in held)


def text(value: str) -> bytes:
    """A string as Flink's own serializer writes it."""
    return sevens(len(value) + 1) + b"".join(sevens(ord(one)) for one in value)


def bare_state(lists: dict[str, Sequence[bytes]]) -> tuple[bytes, dict[str, tuple[int, list[int]]]]:
    """Operator state whose elements have no length before them."""
    head = struct.pack(">H", len(lists)) + b"".join(map(described_list, lists)) + struct.pack(">H", 0)
    data, places = i32(6) + b"\0" + head, {}
    for name, elements in lists.items():
        found = []
        for element in elements:
            found.append(len(data))
            data += element
        places[name] = (0, found)
    return data, places


# Files


def place(target: str, held: str, length: int, magic: str = "574b741e") -> bytes:
    first, second = target.encode(), held.encode()
    return bytes.fromhex(magic) + struct.pack("<qii", length, len(first), len(second)) + first + second


def pending_file(held: bytes, target: str | None = None, size: int = 0, version: int = 2, of: int = 1) -> bytes:
    named = b"" if version == 1 else (b"\0" if target is None else b"\1" + utf(target)) + i64(size)
    return versioned(version, bytes.fromhex("2c853c89") + named + versioned(of, held))


def file_in_progress(held: bytes, target: str | None = None, version: int = 2) -> bytes:
    named = b"" if version == 1 else b"\0" if target is None else b"\1" + utf(target)
    return versioned(version, bytes.fromhex("b3a4073d") + named + versioned(1, held))


def file_committable(
    pending: bytes | None, version: int = 2, removed: bytes | None = None, compacted: str | None = None
) -> bytes:
    made = bytes.fromhex("1e765c80") + (utf("day=1") if version == 2 else b"")
    made += b"".join(b"\0" if one is None else b"\1" + one for one in (pending, removed))
    return made + ((b"\0" if compacted is None else b"\1" + utf(compacted)) if version == 2 else b"")


def file_bucket(in_progress: bytes | None, path: str = "file:/out", pending: bytes | None = None) -> bytes:
    """A writer's state: version 3, or 2 with what it keeps as pending (of checkpoint 4) itself."""
    made = bytes.fromhex("1e764b79") + versioned(1, i32(0)) + utf(path) + i64(2**63 - 1)
    made += b"\0" if in_progress is None else b"\1" + in_progress
    if pending is None:
        return made
    version, data = struct.unpack(">i", pending[:4])[0], pending[8:]
    return made + i32(version, 1) + i64(4) + i32(1) + blob(data)


# Paimon


def paimon(version: int, identifier: int, messages: int = 1, watermark: int | None = None, of: int = 11) -> bytes:
    made = i64(identifier) + (b"\1" if watermark is None else b"\0" + i64(watermark))
    made += i32(1, 3) + i64(9) if version <= 4 else b""
    made += i32(1) + utf("k") + utf("v") if version >= 4 else b""
    made += i32(1) + i64(0) + i32(1) + utf("c") if version >= 6 else b""
    return made + i32(of, messages) + b"\0\0\0\4none of it is decoded"[: 24 * messages] * messages
