"""Every benchmark, inputs included: `python benchmarks/run.py`.

Needs the extra `bench`, Java 17, 8 GB of disk and 8 GB of memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent


def script(name: str, *args: str | Path) -> None:
    """Run one of the scripts beside this one."""
    subprocess.run([sys.executable, HERE / name, *map(str, args)], check=True)


def main() -> None:
    """Make the inputs, then print one table after the other."""
    print(f"{os.cpu_count()} cores\n", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script("make_history.py", folder / "history")
        script("make_history.py", folder / "cyclic", "--cyclic")
        script("make_messages.py", folder / "small", "--rows", "100000")
        script("make_messages.py", folder / "interleaved-16M", "--rows", "16000000")
        script("make_messages.py", folder / "interleaved-160M", "--rows", "160000000")
        script("make_messages.py", folder / "long-runs-40M", "--rows", "40000000", "--long-runs")
        script("make_messages.py", folder / "jsonl-8M", "--rows", "8000000", "--format", "jsonl")
        for path in folder.glob("*-*M"):  # inspect wants a run, not logs alone
            (path / "job.json").write_text('{"operators": [{"name": "src", "parallelism": 10}]}\n')
        paper = ("--keys", "100000", "--tuples", "40000000", "--q-windows", "1.6")  # an extent of 1% of 2.4 GB
        for name, more in (
            ("queue", paper),
            ("queue-parquet", (*paper, "--encoding", "parquet")),
            ("queue-small", ("--keys", "1000", "--tuples", "100000", "--encoding", "parquet")),
        ):
            command = [sys.executable, "-m", "cklog", "simulate", "cec", str(folder / name), *more]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        script("tail.py", folder / "queue")
        script("forward.py", *(folder / n for n in ("queue-small", "queue", "queue-parquet")))
        script("progress.py", folder / "jsonl-8M")
        script("cold.py")
        script("graph.py")
        script("events.py")
        script("kafka_segments.py")
        script("advise.py")
        script("flink_root.py")
        script("scale.py", *(folder / n for n in ("history", "cyclic", "interleaved-16M", "interleaved-160M")))
        script("scan.py", *(folder / n for n in ("interleaved-16M", "interleaved-160M", "long-runs-40M", "jsonl-8M")))
        script("scan_spark.py", *(folder / n for n in ("small", "interleaved-160M", "jsonl-8M")))


if __name__ == "__main__":
    main()
