"""Offsets of connectors as Kafka Connect writes them: topics, exports, and the file of a standalone worker.

The file is written by Java itself (`java_file`), in the few lines that `FileOffsetBackingStore` has for it; `java_map`
writes such bytes without Java, by the specification of the serialisation stream.
"""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.builders.kafka import TRANSACTIONAL, Row, batch, marker

Pairs = Sequence[tuple[bytes | None, bytes | None]]

JAVA = """
import java.io.FileOutputStream;
import java.io.ObjectOutputStream;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;

public class WriteOffsets {
    static byte[] bytes(String word) {
        return word.equals("null") ? null : Base64.getDecoder().decode(word.substring(1));
    }

    public static void main(String[] args) throws Exception {
        Map<byte[], byte[]> raw = new HashMap<>();
        for (int i = 1; i + 1 < args.length; i += 2) {
            raw.put(bytes(args[i]), bytes(args[i + 1]));
        }
        try (ObjectOutputStream out = new ObjectOutputStream(new FileOutputStream(args[0]))) {
            out.writeObject(raw);
        }
    }
}
"""


def why_no_javac() -> str:
    """Return why nothing can be compiled here; "" if it can."""
    return "" if shutil.which("javac") and shutil.which("java") else "no javac on the PATH"


def java_file(folder: Path, path: Path, pairs: Pairs) -> bytes:
    """Write a map by a Java program that is compiled in `folder`."""
    import base64

    source = folder / "WriteOffsets.java"
    if not source.with_suffix(".class").exists():
        source.write_text(JAVA)
        subprocess.run(["javac", "-d", str(folder), str(source)], check=True, capture_output=True)
    words = ["null" if part is None else "=" + base64.b64encode(part).decode() for pair in pairs for part in pair]
    subprocess.run(["java", "-cp", str(folder), "WriteOffsets", str(path), *words], check=True, capture_output=True)
    return path.read_bytes()


def java_map(pairs: Pairs, capacity: int = 16) -> bytes:
    """Write the same by the specification, in the order given."""
    hashmap = struct.pack(">H", 17) + b"java.util.HashMap" + bytes.fromhex("0507dac1c31660d1") + b"\x03\x00\x02"
    hashmap += b"F\x00\x0aloadFactorI\x00\x09threshold\x78\x70"
    out = b"\xac\xed\x00\x05\x73\x72" + hashmap + struct.pack(">fi", 0.75, 12)
    out += b"\x77\x08" + struct.pack(">ii", capacity, len(pairs))
    described = False
    for part in (part for pair in pairs for part in pair):
        if part is None:
            out += b"\x70"
            continue
        out += b"\x75"
        out += (
            b"\x71\x00\x7e\x00\x02"
            if described
            else b"\x72\x00\x02[B" + bytes.fromhex("acf317f8060854e002000078") + b"p"
        )
        described = True
        out += struct.pack(">i", len(part)) + part
    return out + b"\x78"


def key(connector: str, partition: Mapping[str, Any]) -> bytes:
    return compact([connector, partition])


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def entry(connector: str, partition: Mapping[str, Any], offset: Mapping[str, Any] | None, time: int = 0) -> Row:
    """A record of the topic; without an offset it deletes one."""
    return Row(None if offset is None else compact(offset), key(connector, partition), time)


def change(source: Mapping[str, Any], number: int, time: int = 0, schema: bool = False) -> Row:
    """A record as Debezium writes it."""
    value: Any = {"before": None, "after": {"id": number}, "source": dict(source), "op": "c", "ts_ms": time}
    value = {"schema": {"type": "struct"}, "payload": value} if schema else value
    return Row(compact(value), compact({"id": number}), time)


class Topic:
    """A partition of a topic in the making; `end` is its next offset."""

    def __init__(self) -> None:
        self.end = 0
        self.data = b""

    def add(self, *rows: Row, producer: int = -1) -> Topic:
        flags = TRANSACTIONAL if producer >= 0 else 0
        self.data += batch(self.end, rows, flags=flags, producer=producer)
        self.end += len(rows)
        return self

    def ended(self, producer: int, kind: int) -> Topic:
        self.data += marker(self.end, kind, producer)
        self.end += 1
        return self

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{0:020}.log").write_bytes(self.data)
        return folder
