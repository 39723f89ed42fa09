"""Cold start: `cklog recovery-line` on samples beside importing its libraries."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from benchmarks.registry import Room, Row, Table
from benchmarks.timing import Command, cklog

ORIGIN = "file:///srv/cklog-sample/wordcount=sample_logs/spark-wordcount"
IMPORTS = Command('`python -c "import pyarrow, numpy, typer"`', (sys.executable, "-c", "import pyarrow, numpy, typer"))
PROGRAM = "import pyarrow, numpy, typer\ndef main(path: str) -> None: ...\ntyper.run(main)"
TYPER = Command("the same, and `typer.run` of a function with one argument", (sys.executable, "-c", PROGRAM, "a"))
"""What newer versions of Typer take for themselves: these convert every argument with Pydantic."""

COMMANDS = (
    IMPORTS,
    TYPER,
    cklog("`cklog recovery-line` (JSONL sample)", "recovery-line", "sample_logs/uncoordinated-join"),
    cklog("`cklog recovery-line` (Parquet sample)", "recovery-line", "sample_logs/uncoordinated-join-parquet"),
    cklog("`cklog recovery-line` (Spark checkpoint)", "recovery-line", "sample_logs/spark-wordcount", "--map", ORIGIN),
)


def cold(room: Room, sizes: Sequence[Command]) -> Iterator[Row]:
    """A row for each command."""
    runs = room.pairs_of(*sizes)
    for command in sizes:
        wall, cpu, peak = (runs.median(command.name, what) for what in ("wall", "cpu", "peak"))
        ratios = (f"{runs.ratio(command.name, IMPORTS.name, what):.1f}" for what in ("wall", "cpu"))
        yield (command.name, f"{wall:.2f}", f"{cpu:.2f}", f"{peak:.0f}", *ratios)


TABLES = (
    Table(
        name="cold",
        columns=("command", "wall s", "CPU s", "peak MiB", "wall to imports", "CPU to imports"),
        rows=cold,
        quick=COMMANDS,
        full=COMMANDS,
    ),
)
