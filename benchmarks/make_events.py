"""Write raw events: `make_events.py FOLDER --rows N`. Deterministic; Parquet, a file per worker.

Five operators of ten subtasks in a row, all-to-all, the last one feeding back into the second: 50 subtasks, 500
channels. A worker holds one subtask of each operator and logs their events as they happen; every subtask
checkpoints about each 100,000 of its events (of smaller logs: ten times).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cklog.arrays.types import Ints

OPERATORS, WORKERS = 5, 10
SUBTASKS, CHANNELS = OPERATORS * WORKERS, OPERATORS * WORKERS * WORKERS
GROUP = 1 << 20
START = 1_767_225_600_000
SEND, RECEIVE, CHECKPOINT = range(3)
KINDS = pa.array(["send", "receive", "checkpoint"])
NAMES = pa.array([f"op{k}" for k in range(OPERATORS)])


def receiver_of(channel: Ints) -> Ints:
    """Channel c leads from subtask c // 10 to a subtask of the next operator; subtasks are operator * 10 + worker."""
    operator = channel // WORKERS // WORKERS
    return np.where(operator < OPERATORS - 1, operator + 1, 1) * WORKERS + channel % WORKERS


def name_of(channel: int) -> str:
    """The channel as records write it."""
    sender, receiver = channel // WORKERS, int(receiver_of(np.array(channel)))
    return f"op{sender // WORKERS}/{sender % WORKERS}->op{receiver // WORKERS}/{receiver % WORKERS}"


def counted(code: Ints, after: Ints) -> Ints:
    """Each row's place among the rows of its code, from `after[code]` on; `after` is moved behind them."""
    order = np.argsort(code.astype(np.uint16), kind="stable")
    count = np.bincount(code, minlength=len(after))
    place = np.empty(len(code), np.int64)
    place[order] = np.arange(len(code)) - np.repeat(np.cumsum(count) - count, count) + np.repeat(after, count)
    after += count
    return place


class Workers:
    """What has happened so far: messages sent and received by channel, events and checkpoints by subtask."""

    def __init__(self, every: int) -> None:
        self.rng = np.random.default_rng(7)
        self.every = every
        self.number = {SEND: np.zeros(CHANNELS, np.int64), RECEIVE: np.zeros(CHANNELS, np.int64)}
        self.events, self.checkpoints = np.zeros(SUBTASKS, np.int64), np.zeros(SUBTASKS, np.int64)
        self.waiting = np.zeros(CHANNELS, np.int64)
        self.names = pa.array([name_of(c) for c in range(CHANNELS)])
        self.into = receiver_of(np.arange(CHANNELS))

    def block(self, sends: int) -> list[pa.Table]:
        """Every subtask sends `sends` messages, and receives those of the block before; a table per worker."""
        arriving, tables = self.waiting, []
        self.waiting = np.zeros(CHANNELS, np.int64)
        for worker in range(WORKERS):
            own = np.arange(OPERATORS) * WORKERS + worker
            sent = (own[:, None] * WORKERS + self.rng.integers(0, WORKERS, (OPERATORS, sends))).ravel()
            mine = np.flatnonzero(self.into % WORKERS == worker)
            received = np.repeat(mine, arriving[mine])
            tables.append(self.table(own, sent, received))
            self.waiting += np.bincount(sent, minlength=CHANNELS)
        return tables

    def table(self, own: Ints, sent: Ints, received: Ints) -> pa.Table:
        """The events of one worker, shuffled; then numbered in that order."""
        subtask = np.concatenate([sent // WORKERS, self.into[received]])
        due = (self.events + np.bincount(subtask, minlength=SUBTASKS)) // self.every > self.checkpoints
        due &= np.isin(np.arange(SUBTASKS), own)
        taken = np.flatnonzero(due)
        subtask = np.concatenate([subtask, taken])
        channel = np.concatenate([sent, received, np.zeros(len(taken), np.int64)])
        kind = np.repeat([SEND, RECEIVE, CHECKPOINT], [len(sent), len(received), len(taken)])
        order = self.rng.permutation(len(kind))
        subtask, channel, kind = subtask[order], channel[order], kind[order]
        seq, checkpoint = np.zeros(len(kind), np.int64), np.zeros(len(kind), np.int64)
        for side, after in self.number.items():
            rows = np.flatnonzero(kind == side)
            seq[rows] = counted(channel[rows], after)
        marks = np.flatnonzero(kind == CHECKPOINT)
        self.checkpoints[subtask[marks]] += 1
        checkpoint[marks] = self.checkpoints[subtask[marks]]
        lsn = counted(subtask, self.events)
        none = kind == CHECKPOINT
        columns = {
            "event": KINDS.take(pa.array(kind)),
            "operator": NAMES.take(pa.array(subtask // WORKERS)),
            "subtask": subtask % WORKERS,
            "lsn": lsn,
            "channel": self.names.take(pa.array(channel, mask=none)),
            "seq": pa.array(seq, mask=none),
            "checkpoint": pa.array(checkpoint, mask=~none),
            "time": START + lsn // 10,
            "bytes": pa.array(self.rng.integers(50, 500, len(kind)), mask=kind != SEND),
        }
        return pa.table(columns)


def main() -> None:
    """Write FOLDER/events/worker-N.parquet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, required=True)
    options = parser.parse_args()
    target = options.folder / "events"
    target.mkdir(parents=True, exist_ok=True)
    sends = max(1, min(options.rows // (20 * SUBTASKS), 50_000))  # ten blocks at least
    workers = Workers(min(100_000, max(1, options.rows // SUBTASKS // 10)))
    writers: list[pq.ParquetWriter] = []
    held: list[list[pa.Table]] = [[] for _ in range(WORKERS)]
    for left in range(options.rows, 0, -2 * sends * SUBTASKS):
        for worker, table in enumerate(workers.block(sends)):
            held[worker].append(table)
            if len(writers) <= worker:
                writers.append(pq.ParquetWriter(target / f"worker-{worker}.parquet", table.schema))
            if sum(map(len, held[worker])) >= GROUP or left <= 2 * sends * SUBTASKS:
                writers[worker].write_table(pa.concat_tables(held[worker]).combine_chunks(), row_group_size=GROUP)
                held[worker].clear()
    for writer in writers:
        writer.close()


if __name__ == "__main__":
    main()
