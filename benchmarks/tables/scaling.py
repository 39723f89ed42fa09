"""How the cost grows with the work: whole commands on inputs each ten times the one before, and fitted exponents.

An exponent is the slope of a straight line through the logarithms, by least squares: 1 is in proportion, 0 is flat. The
start of the program, the same for all, bends it at the small end; the slope of the last step shows how it goes on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from benchmarks.data import size_of
from benchmarks.registry import Room, Row, Table
from benchmarks.tables.flink_root import line_of, root_of
from benchmarks.tables.queues import OPERATOR
from benchmarks.timing import Command, cklog

BYTES_A_TUPLE = 60
HANDLES = 40


Work = tuple[int, Command]
"""How much there is to do, and what does it."""


def _messages(room: Room, rows: int) -> Work:
    return rows, cklog("inspect", "inspect", room.data.messages(rows), "--json", "--engine", "local")


def _events(room: Room, rows: int) -> Work:
    return rows, cklog("line", "recovery-line", room.data.events(rows), "--json", "--engine", "local", codes=(0, 3, 4))


def _queue(words: str, room: Room, size: int) -> Work:
    folder = room.data.queue(size // BYTES_A_TUPLE)
    more = ("--operator", OPERATOR, folder, "--json", "-q", "--engine", "local")
    return size_of(folder / "outputs" / OPERATOR), cklog(words, *words.split(), *more)


def _flink(room: Room, checkpoints: int) -> Work:
    return checkpoints, line_of(root_of(room, checkpoints, HANDLES))


WORK: dict[str, tuple[str, Callable[[Room, int], Work]]] = {
    "messages": ("`inspect`, messages in Parquet", _messages),
    "events": ("`recovery-line`, raw events in Parquet", _events),
    "extent": ("`extent`, bytes of the queue, JSON lines", partial(_queue, "extent")),
    "forward": ("`eventual-checkpoint --forward`, bytes of it", partial(_queue, "eventual-checkpoint --forward")),
    "flink": ("`recovery-line`, Flink's checkpoints", _flink),
}

Size = tuple[str, int]


def slope(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """Return the exponent of a power law through the points, by least squares of the logarithms.

    >>> slope([10, 100, 1000], [3.0, 30.0, 300.0])
    1.0
    >>> slope([10, 1000], [5.0, 50.0])
    0.5
    """
    points = [(math.log(size), math.log(max(cost, 1e-9))) for size, cost in zip(sizes, costs, strict=True)]
    x, y = (sum(point[k] for point in points) / len(points) for k in (0, 1))
    across = sum((a - x) ** 2 for a, _ in points)
    return round(sum((a - x) * (b - y) for a, b in points) / across, 6)


def scaling(room: Room, sizes: Sequence[Size]) -> Iterator[Row]:
    """A row for each kind of work, its sizes from small to large."""
    for kind, (name, command_of) in WORK.items():
        chosen, costs = [], []
        for asked in sorted(size for what, size in sizes if what == kind):
            size, command = command_of(room, asked)
            chosen.append(size)
            runs = room.pairs_of(command, pairs=3)
            costs.append([runs.median(command.name, what) for what in ("wall", "cpu", "peak")])
        wall, cpu, peak = ([cost[k] for cost in costs] for k in range(3))
        each = (
            ", ".join(f"{size:.1e}".replace("e+0", "e").replace("e+", "e") for size in chosen),
            *(", ".join(f"{cost:.2f}" for cost in part) for part in (wall, cpu)),
            ", ".join(f"{cost:.0f}" for cost in peak),
        )
        last = slope(chosen[-2:], cpu[-2:])
        yield (name, *each, f"{slope(chosen, cpu):.2f}", f"{last:.2f}", f"{slope(chosen, peak):.2f}")


def _powers(kind: str, first: int, last: int) -> tuple[Size, ...]:
    return tuple((kind, 10**power) for power in range(first, last + 1))


TABLES = (
    Table(
        name="scaling",
        columns=("work", "sizes", "wall s", "CPU s", "peak MiB", "exponent of CPU", "last step", "of the peak"),
        rows=scaling,
        quick=(
            *(_powers("messages", 4, 6) + _powers("events", 3, 5) + _powers("extent", 6, 7)),
            *(_powers("forward", 6, 7) + _powers("flink", 0, 2)),
        ),
        full=(
            *(_powers("messages", 6, 8) + _powers("events", 5, 7) + _powers("extent", 7, 9)),
            *(_powers("forward", 7, 9) + _powers("flink", 2, 4)),
        ),
        largest=(("messages", 10**9), ("events", 10**8), ("extent", 10**10), ("forward", 10**10)),
    ),
)
