"""The extent of a large output queue read from its end: `tail.py FOLDER`; whole processes, wall seconds, medians.

FOLDER is a run with `outputs/agg1` as JSON lines. The peer, DuckDB, finds the open windows in the same files by its
only way: reading all of them.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 5
COLUMNS = "{'type': 'VARCHAR', 'window': 'VARCHAR', 'pos': 'BIGINT'}"
LAST = "max(pos * 4 + case type when 'open' then 0 when 'check' then 1 else 2 end)"
PEER = "import duckdb, sys; print(len(duckdb.sql(sys.argv[1]).fetchall()))"


def query_of(folder: str) -> str:
    """The windows whose last record is no result."""
    files = f"'{folder}/outputs/agg1/*.jsonl'"
    source = f"read_json({files}, format='newline_delimited', columns={COLUMNS})"
    return f'select "window", {LAST} from {source} group by "window" having {LAST} % 4 <> 2'


def measured(command: list[str], rounds: int) -> tuple[float, str]:
    """Median wall seconds of a process, and what it said on stderr."""
    walls = []
    told = ""
    for _ in range(rounds):
        start = time.perf_counter()
        told = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        walls.append(time.perf_counter() - start)
    return statistics.median(walls), told


def main() -> None:
    """One line per question, and the peer's."""
    folder = sys.argv[1]
    size = sum(path.stat().st_size for path in Path(folder, "outputs", "agg1").iterdir())
    print(f"queue of {size / 1e9:.2f} GB\n")
    print("| command | wall s | bytes read | of the queue |")
    print("|---|---|---|---|")
    for command in ("extent", "eventual-checkpoint --json"):
        words = [sys.executable, "-m", "cklog", *command.split(), "--operator", "agg1", folder]
        wall, told = measured(words, ROUNDS)
        found = re.search(r"read ([0-9,]+) of", told)
        read = int(found[1].replace(",", "")) if found else size
        print(f"| `cklog {command}` | {wall:.2f} | {read / 1e6:.1f} MB | {read / size:.2%} |", flush=True)
    wall, _ = measured([sys.executable, "-c", PEER, query_of(folder)], 2)
    print(f"| DuckDB, open windows by a group-by | {wall:.2f} | {size / 1e6:.1f} MB | 100.00% |")


if __name__ == "__main__":
    main()
