"""Graphs and useless checkpoints at scale: `graph.py [SUBTASKS CHECKPOINTS CHANNELS_PER_SUBTASK]`.

A line per step: seconds, and the peak of the process so far. The history is the one of `make_history.py`, built as
arrays: uncoordinated, 5 messages per channel and checkpoint interval.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from cklog.history import History
from cklog.intervals import interval_graph, staircases, useless
from cklog.model import Subtask
from cklog.recovery_line import recovery_line
from cklog.zigzag import Zigzags

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
    sent, received = np.empty((2, len(src), checkpoints + 1), np.int64)
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


def main() -> None:
    """A table for the acyclic and the cyclic history of one size."""
    subtasks, checkpoints, channels = (int(text) for text in sys.argv[1:4] or ["1000", "1000", "10"])
    shapes = [sys.argv[4] == "acyclic"] if len(sys.argv) > 4 else [True, False]
    for acyclic in shapes:
        print(f"\n{subtasks} subtasks, {checkpoints} checkpoints, {channels} channels, acyclic: {acyclic}\n")
        print("| step | s | peak MiB |\n|---|---|---|")
        history = timed("history made", lambda: random_history(subtasks, checkpoints, channels, acyclic))
        mask = timed("all useless checkpoints", lambda: useless(history))
        line = timed("recovery line", lambda: recovery_line(history))
        points = timed("staircases", lambda: staircases(history))
        print(f"| {len(points.send)} pairs, {int(mask.sum())} useless, line sum {int(line.sum())} | | |")
        timed("interval graph", lambda: interval_graph(history, points, history.first[:-1]))
        search = timed("index for witnesses", lambda: Zigzags(history, points))
        rows = np.flatnonzero(mask)
        chosen = rows[:: max(1, len(rows) // 100)]
        owner = np.searchsorted(history.first, chosen, "right") - 1
        pairs = list(zip(owner.tolist(), (chosen - history.first[owner]).tolist(), strict=True))
        if pairs:
            timed(f"{len(pairs)} shortest witnesses", lambda: [search.cycle(i, x) for i, x in pairs])


if __name__ == "__main__":
    main()
