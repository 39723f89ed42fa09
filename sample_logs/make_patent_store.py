"""Make the sample of a checkpoint store by key: `python sample_logs/make_patent_store.py`. The same bytes every time.

patent-store    figure: the three checkpoints of the figures in US patent 9,471,438, by what its text says of them
                totals: two runs of a base and three deltas, its larger values in chunks; a chunk is missing, and of
                a checkpoint marked for deletion NON is gone
"""

from __future__ import annotations

import json
import struct
from pathlib import Path

HERE = Path(__file__).parent / "patent-store"
CHUNK = 64
LOST = ("5 INCR 1", "2 NON")

Versions = dict[str, tuple[int, int]]
"""Variable → the checkpoint that has it last, and where its entry is in that checkpoint's index."""


def checkpoint(
    number: int, plain: bytes, variables: dict[str, tuple[str, bytes]], before: Versions
) -> dict[str, bytes]:
    """The three values of a checkpoint; `variables` as (form, bytes), in the order of serialization."""
    data = index = b""
    for name, (form, value) in variables.items():
        at = len(index)
        index += struct.pack(">BQ", int(form == "delta"), len(data))
        if form == "delta":
            index += struct.pack(">QQ", *before[name])
        data += value
        before[name] = (number, at)
    return {f"{number} NON": plain, f"{number} INCR": data, f"{number} INDEX": index}


def chunked(values: dict[str, bytes], size: int) -> dict[str, bytes]:
    """Values larger than `size` in chunks of it, each with its header."""
    found: dict[str, bytes] = {}
    for key, value in values.items():
        if len(value) <= size:
            found[key] = value
            continue
        chunks = [value[at : at + size] for at in range(0, len(value), size)]
        found |= {f"{key} {i}": chunk for i, chunk in enumerate(chunks)}
        found[f"{key} H"] = struct.pack(">QQQ", size, len(chunks) - 1, len(chunks[-1]))
    return found


def figure() -> dict[str, bytes]:
    """data3 begins in checkpoint 2, data4 in checkpoint 1; data1 and data2 are stored in full each time."""
    before: Versions = {}
    plain = [f"data1 at {k}, data2 at {k}".encode() for k in (1, 2, 3)]
    first = checkpoint(1, plain[0], {"data4": ("base", b"all of data4")}, before)
    changed = ("delta", b"data4 since 1")
    second = checkpoint(2, plain[1], {"data3": ("base", b"all of data3"), "data4": changed}, before)
    changes = {"data3": ("delta", b"data3 since 2"), "data4": ("delta", b"data4 since 2")}
    return first | second | checkpoint(3, plain[2], changes, before)


def totals() -> dict[str, bytes]:
    """`counts` is large, `sums` small; each fifth checkpoint would be a base again."""
    before: Versions = {}
    values: dict[str, bytes] = {}
    for number in range(1, 9):
        form = "base" if number % 4 == 1 else "delta"
        counts = b"".join(b"word-%02d=%d;" % (n, n * number) for n in range(16 if form == "base" else 3))
        sums = b"sum=%d;" % (100 * number)
        values |= checkpoint(number, b"seen=%d" % number, {"counts": (form, counts), "sums": (form, sums)}, before)
    stored = chunked(values, CHUNK)
    return {key: value for key, value in stored.items() if key not in LOST}


def main() -> None:
    """Write the stores as exports, and the names of their variables."""
    HERE.mkdir(exist_ok=True)
    for name, values in (("figure", figure()), ("totals", totals())):
        lines = [
            json.dumps({"key": key, "value_hex": value.hex()}, separators=(",", ":")) for key, value in values.items()
        ]
        (HERE / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))
    names = {"figure": ["data3", "data4"], "totals": ["counts", "sums"]}
    (HERE / "variables.json").write_text(json.dumps(names) + "\n")


if __name__ == "__main__":
    main()
