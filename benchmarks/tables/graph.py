"""Checkpoint graphs in memory: the history is there as arrays; each step alone, beside networkx where it ends.

A step is a process of its own, which makes the history and then counts the step alone; its peak of memory is all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from benchmarks.registry import Room, Row, Table
from benchmarks.timing import counted, work
from cklog.history.history import History
from cklog.lines.fixpoint import recovery_line
from cklog.model.names import Subtask
from cklog.zigzag.intervals import Staircases, staircases, useless
from cklog.zigzag.paths import Zigzags

RATE = 5.0
WITNESSES = 100


def random_history(subtasks: int, checkpoints: int, channels: int, acyclic: bool) -> History:
    """`channels` out of every subtask to random others; watermarks as `make_history.py` writes them."""
    rng = np.random.default_rng(1)
    time_of = np.cumsum(rng.uniform(0.8, 1.2, (subtasks, checkpoints + 1)), axis=1) - 1
    time_of[:, 0] = 0
    src = np.repeat(np.arange(subtasks), channels)
    step = np.concatenate([rng.choice(subtasks - 1, channels, replace=False) + 1 for _ in range(subtasks)])
    dst = (src + step) % subtasks
    if acyclic:
        src, dst = np.minimum(src, dst), np.maximum(src, dst)
    rate, delay = RATE * rng.uniform(0.5, 1.5, len(src)), rng.uniform(0.0001, 0.2, len(src))
    sent, received = np.empty((2, len(src), checkpoints + 1), np.int32)  # as `narrowed` leaves them
    for k in range(len(src)):
        sent[k] = time_of[src[k]] * rate[k]
        received[k] = np.maximum(time_of[dst[k]] - delay[k], 0) * rate[k]
    rows = checkpoints + 1
    at = np.arange(len(src) + 1) * rows
    names = tuple(Subtask(f"op{i:05}", 0) for i in range(subtasks))
    return History(
        subtasks=names,
        channels=tuple(f"{names[a]}->{names[b]}" for a, b in zip(src.tolist(), dst.tolist(), strict=True)),
        src=src,
        dst=dst,
        first=np.arange(subtasks + 1) * rows,
        label=np.tile(np.arange(rows), subtasks),
        time=(time_of.ravel() * 1000).astype(np.int64),
        sent_at=at,
        received_at=at,
        sent=sent.ravel(),
        received=received.ravel(),
        survivor=np.zeros(subtasks, np.bool_),
    )


def peer(history: History, points: Staircases) -> int:
    """The same by networkx; how many checkpoints it finds useless."""
    import networkx as nx

    graph: nx.DiGraph[int] = nx.DiGraph()
    inner = np.setdiff1d(np.arange(len(history.label)), history.first[1:] - 1)
    graph.add_edges_from(zip(inner.tolist(), (inner + 1).tolist(), strict=True))
    tail = history.first[history.src[points.channel]] + points.send
    head = history.first[history.dst[points.channel]] + points.receive
    graph.add_edges_from(zip(tail.tolist(), head.tolist(), strict=True))
    component = np.zeros(len(history.label), np.int64)
    for number, members in enumerate(nx.strongly_connected_components(graph)):
        component[list(members)] = number
    return int(np.count_nonzero(component[inner] == component[inner + 1]))


def witnesses(history: History) -> int:
    """A shortest cycle for each of some useless checkpoints."""
    rows = np.flatnonzero(useless(history))
    chosen = rows[:: max(1, len(rows) // WITNESSES)][:WITNESSES]
    owner = np.searchsorted(history.first, chosen, "right") - 1
    search = Zigzags(history, staircases(history))
    pairs = list(zip(owner.tolist(), (chosen - history.first[owner]).tolist(), strict=True))
    return len([search.cycle(i, x) for i, x in pairs])


STEPS: dict[str, Callable[[History], int]] = {
    "graph and all useless checkpoints": lambda history: int(useless(history).sum()),
    "the same by networkx": lambda history: peer(history, staircases(history)),
    "recovery line": lambda history: int(recovery_line(history).sum()),
    f"{WITNESSES} shortest witnesses, with the search for them": witnesses,
}


SAME = tuple(STEPS)[:2]
"""Those that have to find as many."""


def step(name: str, subtasks: str, checkpoints: str, channels: str, kind: str) -> None:
    """One step on one history."""
    history = random_history(int(subtasks), int(checkpoints), int(channels), kind == "acyclic")
    counted(lambda: STEPS[name](history))


Size = tuple[int, int, int, str]


def graph(room: Room, sizes: Sequence[Size]) -> Iterator[Row]:
    """A row for each step: subtasks, checkpoints and channels of each, and whether there are cycles."""
    for size in sizes:
        subtasks, checkpoints, channels, kind = size
        steps = [name for name in STEPS if "networkx" not in name or subtasks * checkpoints <= 100_000]
        runs = room.pairs_of(*(work(name, step, name, *size) for name in steps), pairs=3)
        own, *others = [name for name in steps if name in SAME]
        if any(runs.told(other, "count") != runs.told(own, "count") for other in others):
            raise ValueError(f"networkx finds other checkpoints useless: {size}")
        for name in steps:
            cells = (f"{runs.median(name, what):,.2f}" for what in ("wall", "cpu"))
            peak, ratio = f"{runs.median(name, 'peak'):,.0f}", runs.ratio(own, name) if "networkx" in name else None
            said = f"{subtasks:,} × {checkpoints:,}, {channels} channels each, {kind}"
            yield (said, name, *cells, peak, "" if ratio is None else f"{ratio:.2f}")


TABLES = (
    Table(
        name="graph",
        columns=("subtasks × checkpoints", "step", "wall s", "CPU s", "peak MiB", "cklog's CPU to it"),
        rows=graph,
        quick=((30, 100, 5, "cyclic"),),
        full=(
            (100, 1000, 10, "cyclic"),
            (1000, 1000, 10, "acyclic"),
            (1000, 1000, 10, "cyclic"),
            (1000, 2000, 100, "cyclic"),
        ),
    ),
)
