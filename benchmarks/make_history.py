"""Write the checkpoints of a large uncoordinated run as Parquet: `make_history.py FOLDER [--cyclic] …`.

Every subtask checkpoints when it likes; a channel of rate r has sent floor(r t) messages by time t and delivered
them a delay later. Deterministic.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def edges(rng: np.random.Generator, subtasks: int, channels: int, cyclic: bool) -> np.ndarray:
    """Distinct (sender, receiver) pairs, shape (channels, 2); forward only unless cyclic."""
    pairs = rng.integers(0, subtasks, (3 * channels, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    if not cyclic:
        pairs = np.sort(pairs, axis=1)
    return np.unique(pairs, axis=0)[:: max(1, len(np.unique(pairs, axis=0)) // channels)][:channels]


def main() -> None:
    """Write FOLDER/checkpoints/part-N.parquet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--subtasks", type=int, default=500)
    parser.add_argument("--channels", type=int, default=10_000)
    parser.add_argument("--checkpoints", type=int, default=1_000)
    parser.add_argument("--rate", type=float, default=5.0, help="messages per channel and checkpoint interval")
    parser.add_argument("--cyclic", action="store_true")
    parser.add_argument("--parts", type=int, default=10)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    pairs = edges(rng, options.subtasks, options.channels, options.cyclic)
    rate = options.rate * rng.uniform(0.5, 1.5, len(pairs)) / 10_000
    delay = rng.uniform(1, 2_000, len(pairs))
    names = pa.array([f"op{a}/0->op{b}/0" for a, b in pairs.tolist()])
    folder = options.folder / "checkpoints"
    folder.mkdir(parents=True, exist_ok=True)
    for part, group in enumerate(np.array_split(np.arange(options.subtasks), options.parts)):
        tables = [subtask_table(int(i), pairs, rate, delay, names, options.checkpoints, rng) for i in group]
        pq.write_table(pa.concat_tables(tables), folder / f"part-{part}.parquet", row_group_size=20_000)


def subtask_table(
    i: int, pairs: np.ndarray, rate: np.ndarray, delay: np.ndarray, names: pa.Array, n: int, rng: np.random.Generator
) -> pa.Table:
    """All checkpoints of one subtask."""
    time = np.cumsum(rng.uniform(8_000, 12_000, n))
    out, into = np.flatnonzero(pairs[:, 0] == i), np.flatnonzero(pairs[:, 1] == i)
    sent = np.floor(time[:, None] * rate[out]).astype(np.int64)
    received = np.floor(np.maximum(time[:, None] - delay[into], 0) * rate[into]).astype(np.int64)
    return pa.table(
        {
            "operator": pa.array([f"op{i}"] * n),
            "subtask": np.zeros(n, np.int64),
            "checkpoint": np.arange(1, n + 1),
            "time": 1_767_225_600_000 + time.astype(np.int64),
            "sent": watermarks(names, out, sent),
            "received": watermarks(names, into, received),
            "bytes": rng.integers(1_000, 100_000, n),
            "duration_ms": rng.uniform(5, 50, n),
        }
    )


def watermarks(names: pa.Array, channels: np.ndarray, values: np.ndarray) -> pa.Array:
    """One map per row: channel name to watermark."""
    n, width = values.shape
    keys = names.take(pa.array(np.tile(channels, n)))
    offsets = pa.array(np.arange(0, n * width + 1, width, dtype=np.int32) if width else np.zeros(n + 1, np.int32))
    return pa.MapArray.from_arrays(offsets, keys, pa.array(values.ravel()))


if __name__ == "__main__":
    main()
