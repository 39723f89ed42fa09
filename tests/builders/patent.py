"""Stores in the patent's layout for tests: written as the text of the patent has them, byte by byte."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import crc32c

Pairs = dict[str, bytes]


def number(value: int) -> bytes:
    return value.to_bytes(8, "big")


def base(start: int) -> bytes:
    """An index entry of 9 bytes: fields i and ii."""
    return b"\x00" + number(start)


def delta(start: int, checkpoint: int, at: int) -> bytes:
    """An index entry of 25 bytes: fields i to iv."""
    return b"\x01" + number(start) + number(checkpoint) + number(at)


def header(chunk: int, last: int, last_size: int) -> bytes:
    return number(chunk) + number(last) + number(last_size)


def chunked(key: str, value: bytes, size: int) -> Pairs:
    """A value in ceil(M/C) chunks, and a header."""
    chunks = [value[at : at + size] for at in range(0, len(value), size)]
    head = header(size, max(len(chunks) - 1, 0), len(chunks[-1]) if chunks else 0)
    return {f"{key} {i}": chunk for i, chunk in enumerate(chunks)} | {f"{key} H": head}


@dataclass
class Operator:
    """Writes checkpoints one after the other; `last` is where the entry of each variable's last version is."""

    pairs: Pairs = field(default_factory=dict)
    last: dict[str, tuple[int, int]] = field(default_factory=dict)
    entries: dict[int, list[tuple[str, str, int | None, bytes]]] = field(default_factory=dict)

    def checkpoint(self, k: int, variables: Mapping[str, tuple[str, bytes]], non: bytes = b"plain") -> None:
        """Store {variable: (form, bytes)} as checkpoint `k`."""
        data = index = b""
        listed: list[tuple[str, str, int | None, bytes]] = []
        for name, (form, value) in variables.items():
            at, parent = len(index), self.last[name] if form == "delta" else None
            index += delta(len(data), *parent) if parent else base(len(data))
            data += value
            listed.append((name, form, parent[0] if parent else None, value))
            self.last[name] = (k, at)
        self.pairs |= {f"{k} NON": non, f"{k} INCR": data, f"{k} INDEX": index}
        self.entries[k] = listed

    def in_chunks(self, size: int) -> Pairs:
        """All pairs, every value in chunks."""
        found: Pairs = {}
        for key, value in self.pairs.items():
            found |= chunked(key, value, size)
        return found


def lines_of(pairs: Mapping[str, bytes], summed: bool = False) -> list[bytes]:
    """The lines of an export, each with its newline; `summed`: and with a crc32c."""
    lines = [json.dumps({"key": k, "value_hex": v.hex()}).encode() for k, v in pairs.items()]
    if summed:
        lines = [line[:-1] + b',"crc32c":"%08x"}' % crc32c.crc32c(line[:-1]) for line in lines]
    return [line + b"\n" for line in lines]


def export(folder: Path, operator: str, pairs: Mapping[str, bytes]) -> Path:
    """Write an export, and return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{operator}.jsonl").write_bytes(b"".join(lines_of(pairs)))
    return folder


def usual() -> Operator:
    """Five checkpoints of two variables: `a` has its base in 1, `b` in 1 and 4."""
    made = Operator()
    for k in range(1, 6):
        forms = "base" if k == 1 else "delta", "base" if k in (1, 4) else "delta"
        made.checkpoint(k, {"a": (forms[0], b"a" * (20 + k)), "b": (forms[1], b"b" * (10 + k))})
    return made


FIGURE: Pairs = {
    # the patent's text on its figures: data4 is the first variable of checkpoint 1, in base form; checkpoint 2 has
    # data3 in base form and data4 in delta form, which stands on byte 0 of 1 INDEX; checkpoint 3 has deltas of both.
    # The text says that the base of data3 is "in the 2 INCR key value pair in Checkpoint 1": it is in 2
    "1 NON": b"data1data2",
    "1 INCR": b"data4: all",
    "1 INDEX": base(0),
    "2 NON": b"data1data2",
    "2 INCR": b"data3: alldata4: +2",
    "2 INDEX": base(0) + delta(10, 1, 0),
    "3 NON": b"data1data2",
    "3 INCR": b"data3: +3data4: +3",
    "3 INDEX": delta(0, 2, 0) + delta(9, 2, 9),
}
