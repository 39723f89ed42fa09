"""What a progress bar costs: `cklog inspect` of JSON lines, its stderr on a terminal, with a bar and without (`-q`).

The last row is the same command beside itself: what the machine's noise makes of no difference at all. As that may be
more than a bar costs, the CPU time of the thread that draws is told too, with all that it imports.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.data import size_of
from benchmarks.registry import Room, Row, Table
from benchmarks.timing import Command

PROGRAM = """
import sys, time
sys.path.insert(0, ".")
from cklog.commands import main, keep_memory
keep_memory()
from benchmarks.timing import tell
from cklog.commands.terminal.stages import _Shown
draw = _Shown._draw
def drawn(self):
    draw(self)
    tell(drawing=time.thread_time())
_Shown._draw = drawn
main()
"""


def _inspect(name: str, folder: Path, *more: str) -> Command:
    words = (sys.executable, "-c", PROGRAM, "inspect", str(folder), "--json", "--engine", "local", *more)
    return Command(name, words, terminal=True)


def progress(room: Room, sizes: Sequence[int]) -> Iterator[Row]:
    """Two rows for each number of messages."""
    for rows in sizes:
        folder = room.data.messages(rows, "jsonl")
        bar, quiet, again = _inspect("bar", folder), _inspect("quiet", folder, "-q"), _inspect("again", folder, "-q")
        runs = room.pairs_of(bar, quiet, again)
        share = max(cost.told.get("drawing", 0.0) / cost.cpu for cost in runs.costs["bar"])
        size = f"{size_of(folder) / 1e6:.0f} MB"
        for name, drawing, other in (("with a bar", f"{share:.2%}", "bar"), ("`-q` again", "", "again")):
            ratio = runs.ratio(other, "quiet") - 1
            cells = (f"{runs.median(other):.2f}", f"{runs.median('quiet'):.2f}", f"{ratio:+.1%}")
            yield (name, size, drawing, *cells)


TABLES = (
    Table(
        name="progress",
        columns=("`inspect --json`", "JSON lines", "the thread that draws", "CPU s", "`-q`, CPU s", "difference"),
        rows=progress,
        quick=(300_000,),
        full=(12_000_000, 40_000_000),
    ),
)
