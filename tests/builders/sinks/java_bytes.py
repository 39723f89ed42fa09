"""Numbers and texts as Java writes them, and what Flink's serializers say of themselves with these."""

from __future__ import annotations

import struct
from collections.abc import Sequence


def i32(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}i", *numbers)


def i64(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}q", *numbers)


def utf(text: str) -> bytes:
    units = struct.unpack(f">{len(text.encode('utf-16-be')) // 2}H", text.encode("utf-16-be"))
    raw = b"".join(b"\xc0\x80" if u == 0 else chr(u).encode("utf-8", "surrogatepass") for u in units)
    return struct.pack(">H", len(raw)) + raw


def blob(data: bytes) -> bytes:
    return i32(len(data)) + data


def offsets(numbers: Sequence[int]) -> bytes:
    return i32(len(numbers)) + i64(*numbers)


def described_list(name: str, mode: str = "SPLIT_DISTRIBUTE") -> bytes:
    """What operator state of versions 5 and 6 says of a list of bytes."""
    option = utf("OPERATOR_STATE_DISTRIBUTION_MODE") + utf(mode)
    return utf(name) + i32(1, 1) + option + i32(1) + utf("VALUE_SERIALIZER") + i32(2) + simple_serializer()


def simple_serializer(name: str = "array.BytePrimitiveArray") -> bytes:
    """What one of Flink's simple serializers says of itself."""
    last = name.rpartition(".")[2]
    return utf(f"org.apache.flink.api.common.typeutils.base.{name}Serializer${last}SerializerSnapshot") + i32(3)
