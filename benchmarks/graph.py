"""Checkpoint graphs at scale: `graph.py`, or `graph.py SUBTASKS CHECKPOINTS CHANNELS [cyclic|acyclic]` for one size.

A line per step: seconds, and the peak of the process so far. The history is built as arrays: uncoordinated, 5 messages
per channel and checkpoint interval. The peer, networkx, gets the same non-dominated pairs, at a tenth of the size.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from cklog.history.history import History
from cklog.lines.fixpoint import recovery_line
from cklog.model.names import Subtask
from cklog.zigzag.intervals import Staircases, staircases, useless
from cklog.zigzag.paths import Zigzags

RATE = 5.0


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


def timed(name: str, step: Callable[[], Any]) -> Any:
    """Run a step and print its row."""
    start = time.perf_counter()
    found = step()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"| {name} | {time.perf_counter() - start:.2f} | {peak:.0f} |", flush=True)
    return found


def measure(subtasks: int, checkpoints: int, channels: int, acyclic: bool) -> None:
    """The steps of one size."""
    kind = "acyclic" if acyclic else "cyclic"
    print(f"\n{subtasks} subtasks, {checkpoints} checkpoints each, {channels} channels each, {kind}\n", flush=True)
    print("| step | s | peak MiB |\n|---|---|---|", flush=True)
    history = timed("the history itself", lambda: random_history(subtasks, checkpoints, channels, acyclic))
    mask = timed("graph and all useless checkpoints", lambda: useless(history))
    timed("recovery line", lambda: recovery_line(history))
    one = history.newest - (np.arange(subtasks) == 0)
    timed("a line that begins one checkpoint earlier", lambda: recovery_line(history, one))
    points = staircases(history)
    search = Zigzags(history, points)
    rows = np.flatnonzero(mask)
    chosen = rows[:: max(1, len(rows) // 100)][:100]
    owner = np.searchsorted(history.first, chosen, "right") - 1
    pairs = list(zip(owner.tolist(), (chosen - history.first[owner]).tolist(), strict=True))
    if pairs:
        timed(f"{len(pairs)} shortest witnesses", lambda: [search.cycle(i, x) for i, x in pairs])
    if len(points.send) < 2_000_000:
        timed("networkx: graph and strong components", lambda: peer(history, points))
    print(f"\n{len(points.send):,} pairs, {int(mask.sum()):,} of {len(mask):,} checkpoints useless", flush=True)


def peer(history: History, points: Staircases) -> int:
    """The same by networkx; how many checkpoints it finds useless."""
    import networkx as nx

    graph = nx.DiGraph()
    inner = np.setdiff1d(np.arange(len(history.label)), history.first[1:] - 1)
    graph.add_edges_from(zip(inner.tolist(), (inner + 1).tolist(), strict=True))
    tail = history.first[history.src[points.channel]] + points.send
    head = history.first[history.dst[points.channel]] + points.receive
    graph.add_edges_from(zip(tail.tolist(), head.tolist(), strict=True))
    component = np.zeros(len(history.label), np.int64)
    for number, members in enumerate(nx.strongly_connected_components(graph)):
        component[list(members)] = number
    return int(np.count_nonzero(component[inner] == component[inner + 1]))


SIZES = (
    ("100", "1000", "10", "cyclic"),
    ("1000", "1000", "10", "acyclic"),
    ("1000", "1000", "10", "cyclic"),
    ("1000", "2000", "100", "cyclic"),
)


def main() -> None:
    """One size, or each of `SIZES` in a process of its own."""
    if len(sys.argv) > 1:
        subtasks, checkpoints, channels = map(int, sys.argv[1:4])
        measure(subtasks, checkpoints, channels, sys.argv[4:] == ["acyclic"])
        return
    for size in SIZES:
        subprocess.run([sys.executable, __file__, *size], check=True)


if __name__ == "__main__":
    main()
