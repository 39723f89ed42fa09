"""`cklog advise delta` and `cklog advise timing` on large histories: `advise.py`; whole processes, median of rounds.

Checkpoint metadata of 1,000 operators, 10,000 checkpoints each, and 10 million samples of state sizes of 100 operators,
as Parquet; records by operator, then by time, and the other way round. Deterministic.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

OPERATORS, CHECKPOINTS = 1_000, 10_000
WATCHED, SAMPLES = 100, 100_000
ROW_GROUP = 1 << 20
ROUNDS = 3
START = 1_767_225_600_000


def history(interleaved: bool) -> pa.Table:
    """Bases and deltas of every operator, D from 1 to 20; what changes between two checkpoints comes and goes."""
    rng = np.random.default_rng(1)
    operator, n = cells(OPERATORS, CHECKPOINTS, interleaved)
    base = n % (operator % 20 + 2) == 0
    share = 0.02 + 0.5 * (1 + np.sin(n / 300 + operator)) * rng.uniform(0.8, 1.2, len(n))
    size = (1_000_000 + 1_000 * operator) * np.where(base, 1.0, np.minimum(share, 1.2))
    return pa.table(
        {
            "operator": named(operator, OPERATORS),
            "checkpoint": n + 1,
            "time": START + 10_000 * n,
            "form": pa.DictionaryArray.from_arrays(pa.array(np.where(base, 0, 1).astype(np.int8)), ["base", "delta"]),
            "parent": pa.array(n, mask=base),
            "bytes": size.astype(np.int64),
            "duration_ms": np.round(size / 20_000, 2),
        }
    )


def samples(interleaved: bool) -> pa.Table:
    """State that grows in batches of another length in each operator, and is dropped; a third of it stays level."""
    rng = np.random.default_rng(2)
    operator, n = cells(WATCHED, SAMPLES, interleaved)
    batch = np.where(operator % 3 == 0, 10**9, 20 + operator)
    size = 1_000_000 * (n % batch % 10**6 * (operator % 3 > 0) + 10) + rng.integers(0, 100_000, len(n))
    time = START + 1_000 * n + 7 * operator
    return pa.table({"operator": named(operator, WATCHED), "time": time, "bytes": size})


def cells(operators: int, each: int, interleaved: bool) -> tuple[np.ndarray, np.ndarray]:
    """The operator of each record, and its number there."""
    every = np.arange(operators * each)
    return (every % operators, every // operators) if interleaved else (every // each, every % each)


def named(operator: np.ndarray, count: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(operator.astype(np.int32)), [f"op{i:04}" for i in range(count)])


def write(path: Path, table: pa.Table) -> None:
    path.parent.mkdir(parents=True)
    pq.write_table(table, path, row_group_size=ROW_GROUP)


def measured(*command: str | Path) -> tuple[float, float, int]:
    """Wall and CPU seconds and the peak of memory in MiB."""
    before = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "cklog", *map(str, command)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0, command
    return time.perf_counter() - before, used.ru_utime + used.ru_stime, used.ru_maxrss >> 10


def main() -> None:
    """Make the inputs in a folder that goes away, ask, print."""
    work: dict[str, tuple[str, Callable[[bool], pa.Table]]] = {
        "delta": ("checkpoints", history),
        "timing": ("state", samples),
    }
    print("| command | records | order | wall s | CPU s | peak MiB |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        for command, (place, table_of) in work.items():
            for order in ("by operator", "by time"):
                folder = Path(name) / f"{command} {order}"
                table = table_of(order == "by time")
                write(folder / place / "part.parquet", table)
                found = [measured("advise", command, folder, "--json") for _ in range(ROUNDS)]
                wall, cpu, peak = (statistics.median(column) for column in zip(*found, strict=True))
                print(
                    f"| advise {command} | {len(table):,} | {order} | {wall:.1f} | {cpu:.1f} | {peak:,} |", flush=True
                )


if __name__ == "__main__":
    main()
