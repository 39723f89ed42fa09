"""Write channel logs: `make_messages.py FOLDER --rows N --format parquet|jsonl`. Deterministic.

200 channels of 10 senders, or `--channels` of them, a file per sender, its channels interleaved at random, numbers in
order: what an uncoordinated run logs. `--long-runs` writes each channel's messages one after the other instead.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SENDERS, CHANNELS, GROUP = 10, 200, 1 << 20


def main() -> None:
    """Write FOLDER/channels/src-N.parquet or .jsonl."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--format", choices=["parquet", "jsonl"], default="parquet")
    parser.add_argument("--long-runs", action="store_true")
    parser.add_argument("--channels", type=int, default=CHANNELS)
    options = parser.parse_args()
    target = options.folder / "channels"
    target.mkdir(parents=True, exist_ok=True)
    for sender in range(SENDERS):
        path = target / f"src-{sender}.{options.format}"
        write(path, sender, options.rows // SENDERS, options.channels // SENDERS, options.long_runs)


def write(path: Path, sender: int, rows: int, receivers: int, long_runs: bool) -> None:
    """One sender's file, a million rows at a time."""
    rng = np.random.default_rng(sender)
    names = pa.array([f"src/{sender}->join/{j}" for j in range(receivers)])
    after = np.zeros(receivers, np.int64)
    with open(path, "wb") as file:
        writer = None
        for start in range(0, rows, GROUP):
            n = min(GROUP, rows - start)
            code = rng.integers(0, receivers, n)
            code = np.sort(code) if long_runs else code
            order = np.argsort(code, kind="stable")
            count = np.bincount(code, minlength=receivers)
            seq = np.empty(n, np.int64)
            seq[order] = np.arange(n) - np.repeat(np.cumsum(count) - count, count) + np.repeat(after, count)
            after += count
            table = pa.table(
                {
                    "channel": names.take(pa.array(code)),
                    "seq": seq,
                    "time": 1_767_225_600_000 + start + np.arange(n),
                    "bytes": rng.integers(50, 500, n),
                }
            )
            if path.suffix == ".parquet":
                writer = writer or pq.ParquetWriter(file, table.schema)
                writer.write_table(table, row_group_size=GROUP)
            else:
                file.write(lines(table))
        if writer is not None:
            writer.close()


def lines(table: pa.Table) -> bytes:
    """The rows as JSON lines."""
    columns = [table[name].to_pylist() for name in ("channel", "seq", "time", "bytes")]
    row = '{"channel":"%s","seq":%d,"time":%d,"bytes":%d}\n'
    return "".join([row % values for values in zip(*columns, strict=True)]).encode()


if __name__ == "__main__":
    main()
