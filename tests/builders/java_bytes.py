"""Numbers and texts as Java writes them."""

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
