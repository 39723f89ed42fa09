"""Cold start: `cklog recovery-line` on a sample beside importing its libraries; whole processes, in turn."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

COMMANDS = {
    "import pyarrow, numpy, typer": [sys.executable, "-c", "import pyarrow, numpy, typer"],
    "cklog recovery-line (JSONL)": [sys.executable, "-m", "cklog", "recovery-line", "sample_logs/uncoordinated-join"],
    "cklog recovery-line (Parquet)": [
        *[sys.executable, "-m", "cklog", "recovery-line"],
        "sample_logs/uncoordinated-join-parquet",
    ],
    "cklog recovery-line (Spark checkpoint)": [
        *[sys.executable, "-m", "cklog", "recovery-line"],
        *["sample_logs/spark-wordcount", "--map", "file:///srv/cklog-sample/wordcount=sample_logs/spark-wordcount"],
    ],
}
ROUNDS = 11


def main() -> None:
    """Medians of wall seconds, and of the ratio to the first command round by round."""
    walls: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for i in range(ROUNDS + 1):
        for name, command in COMMANDS.items():
            start = time.perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            if i:
                walls[name].append(time.perf_counter() - start)
    base = next(iter(walls.values()))
    print("| command | wall s | ratio |")
    print("|---|---|---|")
    for name, times in walls.items():
        ratio = statistics.median(b / a for a, b in zip(base, times, strict=True))
        print(f"| `{name}` | {statistics.median(times):.2f} | {ratio:.1f} |")


if __name__ == "__main__":
    main()
