"""`cklog chain` and `cklog recovery-line` on chain metadata of 1,000 operators, 10,000 checkpoints each: `chains.py`.

Whole processes, median of rounds; Parquet, records by operator and by time. Bases and short chains of deltas; one base
and nothing but deltas; no base left at all. Deterministic.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

OPERATORS, CHECKPOINTS = 1_000, 10_000
ROW_GROUP = 1 << 20
ROUNDS = 3
START = 1_767_225_600_000
COMMANDS = ("chain", "recovery-line")


def history(kind: str, interleaved: bool) -> pa.Table:
    """Checkpoint records, all of which name the one before as their parent, if they are deltas."""
    every = np.arange(OPERATORS * CHECKPOINTS)
    by_time, by_operator = (every % OPERATORS, every // OPERATORS), (every // CHECKPOINTS, every % CHECKPOINTS)
    operator, n = by_time if interleaved else by_operator
    base = {"short": n % (operator % 20 + 2) == 0, "long": n == 0, "orphaned": n < 0}[kind]
    size = np.where(base, 1_000_000, 50_000) + operator
    names = [f"op{i:04}" for i in range(OPERATORS)]
    return pa.table(
        {
            "operator": pa.DictionaryArray.from_arrays(pa.array(operator.astype(np.int32)), names),
            "checkpoint": n + 1,
            "time": START + 10_000 * n,
            "form": pa.DictionaryArray.from_arrays(pa.array(np.where(base, 0, 1).astype(np.int8)), ["base", "delta"]),
            "parent": pa.array(n, mask=base),
            "bytes": size,
            "duration_ms": np.round(size / 20_000, 2),
        }
    )


def measured(*command: str) -> tuple[float, float, int]:
    """Wall and CPU seconds and the peak of memory in MiB."""
    before = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "cklog", *command, "-q"], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    assert os.waitstatus_to_exitcode(status) in (0, 3, 4), command
    return time.perf_counter() - before, used.ru_utime + used.ru_stime, used.ru_maxrss >> 10


def main() -> None:
    with tempfile.TemporaryDirectory() as made:
        for kind in ("short", "long", "orphaned"):
            for interleaved in (False, True):
                folder = Path(made, f"{kind}-{interleaved}", "checkpoints")
                folder.mkdir(parents=True)
                pq.write_table(history(kind, interleaved), folder / "all.parquet", row_group_size=ROW_GROUP)
                for command in COMMANDS if kind == "short" else COMMANDS[:1]:
                    rounds = [measured(command, str(folder.parent)) for _ in range(ROUNDS)]
                    wall, cpu, memory = (statistics.median(part) for part in zip(*rounds, strict=True))
                    order = "by time" if interleaved else "by operator"
                    print(f"{command:14} {kind:9} {order:12} {wall:6.2f} s  {cpu:6.2f} CPU s  {memory:6.0f} MiB")


if __name__ == "__main__":
    main()
