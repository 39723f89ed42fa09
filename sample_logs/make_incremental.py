"""Make the sample of incremental checkpoints: `python sample_logs/make_incremental.py`. The same bytes every time.

incremental   four operators that take base and delta checkpoints, each with a D of its own that somebody once chose
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from make_native import START, Record, write_jsonl

HERE = Path(__file__).parent
CHECKPOINTS = 48
EVERY_MS = 30_000
MB_PER_S = 20

State = Callable[[int], list[tuple[str, int, int]]]
"""The variables at a checkpoint: name, bytes in full, bytes that changed since the checkpoint before."""


def counts(n: int) -> list[tuple[str, int, int]]:
    """Many keys, few of them touched; a small variable that is always stored whole."""
    return [("counts", 4_000_000 + 20_000 * n, 90_000 + 1_000 * n), ("schema", 2_000, 2_000)]


def window(n: int) -> list[tuple[str, int, int]]:
    """A sliding window that is replaced between two checkpoints."""
    return [("window", 1_500_000, 1_450_000 + 1_000 * (n % 5))]


def join(n: int) -> list[tuple[str, int, int]]:
    """Two sides; for a third of the time almost everything changes."""
    busy = CHECKPOINTS // 3 <= n < 2 * CHECKPOINTS // 3
    return [("left", 1_200_000, 1_150_000 if busy else 60_000), ("right", 800_000, 790_000 if busy else 40_000)]


def total(n: int) -> list[tuple[str, int, int]]:
    """One number."""
    return [("total", 16, 16)]


OPERATORS: dict[str, tuple[int, int, State]] = {"count": (2, 4, counts), "window": (1, 2, window)}
OPERATORS |= {"join": (1, 3, join), "total": (1, 0, total)}
"""Subtasks, D, state."""


def history(operator: str, subtask: int) -> list[Record]:
    """The checkpoints of a subtask: a base, D deltas, a base, …"""
    _, number, state = OPERATORS[operator]
    random.seed(f"{operator}/{subtask}")
    return [
        checkpoint(operator, subtask, n, "base" if (n - 1) % (number + 1) == 0 else "delta", state(n))
        for n in range(1, CHECKPOINTS + 1)
    ]


def checkpoint(operator: str, subtask: int, n: int, form: str, state: list[tuple[str, int, int]]) -> Record:
    """A record whose size is that of its variables; those that change as a whole are bases in a delta, too."""
    variables = [variable(name, n, form, whole, changed) for name, whole, changed in state]
    size = sum(entry["bytes"] for entry in variables)
    record: Record = {"operator": operator, "subtask": subtask, "checkpoint": n, "time": START + n * EVERY_MS}
    record |= {"kind": "local", "form": form} | ({"parent": n - 1} if form == "delta" else {})
    duration = 2.0 + size / (MB_PER_S * 1000) * random.uniform(0.9, 1.1)
    return record | {"bytes": size, "duration_ms": round(duration, 1), "variables": variables}


def variable(name: str, n: int, form: str, whole: int, changed: int) -> Record:
    if form == "base" or changed == whole:
        return {"name": name, "form": "base", "bytes": whole}
    return {"name": name, "form": "delta", "parent": n - 1, "bytes": int(changed * random.uniform(0.95, 1.05))}


def main() -> None:
    for operator, (subtasks, _, _) in OPERATORS.items():
        records = [record for subtask in range(subtasks) for record in history(operator, subtask)]
        write_jsonl(HERE / "incremental" / "checkpoints" / f"{operator}.jsonl", records)


if __name__ == "__main__":
    main()
