"""Output queues, from rows that can be worked out by hand."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

from tests.builders.native import line
from tests.builders.native import write as write_records

Row = tuple[str, str, int, int]
GOLDEN: list[Row] = [
    ("open", "w1", 1, 1),
    ("open", "w2", 2, 2),
    ("result", "w1", 3, 1),
    ("open", "w3", 4, 2),
    ("check", "w2", 5, 2),
    ("open", "w4", 6, 3),
]
"""Type, window, timestamp, N: three windows are open, the oldest footprint is of w3, so the extent is 3."""


def records(rows: list[Row], **more: Any) -> list[dict[str, Any]]:
    """Rows as records of an output queue, numbered from 1."""
    names = ("type", "window", "ts", "open_windows")
    return [dict(zip(names, row, strict=True)) | {"state": {"n": i}, "pos": i} | more for i, row in enumerate(rows, 1)]


def queue(folder: Path, found: list[dict[str, Any]], name: str = "part-0.jsonl", checked: bool = True) -> Path:
    path = folder / "outputs" / "agg1" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    write = line if checked else lambda record: json.dumps(record).encode() + b"\n"
    path.write_bytes(b"".join(map(write, found)))
    return path


def emits(folder: Path, operator: str, count: int, first: int = 0) -> None:
    """The queue of an operator that emits a record for each tuple, from number `first` to before `count`."""
    rows = [{"type": "emit", "ts": n, "open_windows": 0, "input": n, "pos": n, "bytes": 5} for n in range(first, count)]
    write_records(folder, f"outputs/{operator}", rows)


def chain(folder: Path, *names: str, **more: object) -> None:
    """A manifest in which each operator feeds the next."""
    channels = [{"channel": f"{a}/0->{b}/0"} for a, b in itertools.pairwise(names)]
    (folder / "job.json").write_text(json.dumps({"channels": channels, **more}))
