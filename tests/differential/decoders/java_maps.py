"""The serialised `java.util.HashMap` of a standalone Connect worker, against a reader by Java's grammar."""

from __future__ import annotations

import struct
from typing import Any

from cklog.parsers.connect.java_map import NotThisMap, read_map
from cklog.unknown_formats import UnknownFormat
from tests.builders.connect import java_map
from tests.differential.mutations import Damage
from tests.differential.references.java_stream import JavaStream, NotJava
from tests.differential.verdicts import Decoder, Outcome


def _made(damage: Damage) -> bytes:
    chance = damage.chance
    pairs: list[tuple[bytes | None, bytes | None]] = []
    for number in range(chance.choice((0, 1, 2, 3, 9))):
        key = None if chance.random() < 0.1 else f'["c{number}",{{"file":"f"}}]'.encode()
        pairs.append((key, None if chance.random() < 0.2 else chance.randbytes(chance.choice((0, 1, 40)))))
    data = java_map(pairs)
    if pairs and chance.random() < 0.2:  # a value that stands there twice is named by its handle
        data = data[:-1] + b"\x71" + struct.pack(">I", 0x7E0000 + chance.randrange(6)) + b"\x70" + data[-1:]
        at = data.index(b"\x77\x08") + 6
        data = data[:at] + struct.pack(">i", len(pairs) + 1) + data[at + 4 :]
    return data + (b"more" if chance.random() < 0.05 else b"")


def _read(data: bytes) -> Outcome:
    try:
        return Outcome("value", [(pair.key, pair.value) for pair in read_map(data).pairs])
    except (NotThisMap, UnknownFormat) as reason:
        return Outcome("refused", why=str(reason))


def _held(value: Any) -> bytes | None:
    """Return what a worker takes of a key or a value: `byte[]`, or null."""
    if value is None:
        return None
    if value[0] != "bytes":
        raise NotJava("a key or value that is no byte[]")
    return bytes(value[1])


def _refer(data: bytes) -> Outcome:
    try:
        found = JavaStream(data).read_object()
        if found is None or found[0] != "map":
            raise NotJava("no map")
        return Outcome("value", [(_held(key), _held(value)) for key, value in found[1]])
    except (NotJava, RecursionError) as reason:
        return Outcome("refused", why=str(reason))


DECODERS = (
    Decoder(
        name="connect-maps", reference="a reader by the grammar of Java's streams", make=_made, read=_read, refer=_refer
    ),
)
