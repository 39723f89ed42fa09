"""Brokers' data folders for tests: written by the specification, with what each record is kept beside them.

Built on `tests.builders.kafka`; shares nothing with the reader.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import crc32c

from tests.builders.kafka import ABORT, COMMIT, TRANSACTIONAL, Row, batch, marker


@dataclass
class Record:
    """A record as it was written: its batch's place, and the fate of its transaction once that is known."""

    offset: int
    segment: int
    at: int
    kind: str
    producer: int = -1


@dataclass
class TopicLog:
    """A log in the making: the bytes of its segments by base offset, and every record in it.

    `sizes` and `ends` (the next offset) of each batch, by segment and byte. `running`: the offset at which each
    producer's transaction began, be it that compaction took the record there.
    """

    end: int = 0
    segments: dict[int, bytearray] = field(default_factory=lambda: {0: bytearray()})
    records: list[Record] = field(default_factory=list)
    sizes: dict[tuple[int, int], int] = field(default_factory=dict)
    ends: dict[tuple[int, int], int] = field(default_factory=dict)
    running: dict[int, int] = field(default_factory=dict)

    def roll(self) -> None:
        self.segments[self.end] = bytearray()

    def add(self, written: bytes, offsets: Sequence[int], next_offset: int, kind: str, producer: int = -1) -> None:
        base = max(self.segments)
        at = len(self.segments[base])
        self.segments[base] += written
        self.sizes[base, at], self.ends[base, at] = len(written), next_offset
        self.records += [Record(offset, base, at, kind, producer) for offset in offsets]
        self.end = next_offset

    def data(self, count: int = 1, producer: int = -1, holes: Sequence[int] = (), time: int = 1000) -> None:
        """A batch of `count` offsets without those in `holes`, in a transaction if it has a producer."""
        rows = [Row(b"v%d" % i, time=time + i, delta=i) for i in range(count) if i not in holes]
        flags = TRANSACTIONAL if producer >= 0 else 0
        epoch = 0 if producer >= 0 else -1
        made = batch(
            self.end, rows, flags=flags, producer=producer, last_delta=count - 1, max_time=time + count, epoch=epoch
        )
        if producer >= 0:
            self.running.setdefault(producer, self.end)
        offsets = [self.end + (row.delta or 0) for row in rows]
        self.add(made, offsets, self.end + count, "open" if producer >= 0 else "data", producer)

    def end_transaction(self, producer: int, kind: int) -> None:
        """A marker; it decides what the producer wrote since its last one."""
        self.running.pop(producer, None)
        for record in self.records:
            if record.producer == producer and record.kind == "open":
                record.kind = "data" if kind == COMMIT else "aborted"
        self.add(marker(self.end, kind, producer, 2000), [self.end], self.end + 1, "control")

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for base, data in self.segments.items():
            (folder / f"{base:020}.log").write_bytes(data)
        return folder

    def expected(self, start: int, end: int) -> dict[str, int]:
        """Records of [start, end) by kind, and the bytes of the batches that reach into it, one by one."""
        found = {"data": 0, "control": 0, "aborted": 0, "open": 0}
        for record in self.records:
            if start <= record.offset < end:
                found[record.kind] += 1
        return found


def random_log(chance: random.Random, steps: int = 60) -> TopicLog:
    """Plain and compacted batches, transactions of three producers that overlap, several segments."""
    log = TopicLog()
    for _ in range(steps):
        what = chance.random()
        producer = chance.randrange(3)
        if what < 0.15:
            log.roll()
        elif what < 0.4:
            log.end_transaction(producer, chance.choice([ABORT, COMMIT]))
        else:
            count = chance.randrange(1, 6)
            holes = [i for i in range(count) if chance.random() < 0.3] if chance.random() < 0.4 else []
            log.data(count, producer if chance.random() < 0.6 else -1, holes)
    return log


def commit_batch(
    base: int, commits: Sequence[tuple[str, str, int, int | None]], producer: int = -1, version: int = 3
) -> bytes:
    """A batch of __consumer_offsets: (group, topic, partition, offset; None: deleted) each."""
    rows = [
        Row(None if offset is None else commit_value(offset, version), commit_key(group, topic, partition), 1000 + i)
        for i, (group, topic, partition, offset) in enumerate(commits)
    ]
    return batch(base, rows, flags=TRANSACTIONAL if producer >= 0 else 0, producer=producer)


def commit_key(group: str, topic: str, partition: int, version: int = 1) -> bytes:
    return struct.pack(">h", version) + text(group) + text(topic) + struct.pack(">i", partition)


def commit_value(offset: int, version: int = 3, time: int = 1700000000000) -> bytes:
    start = struct.pack(">hq", version, offset)
    if version == 3:
        return start + struct.pack(">i", 5) + text("") + struct.pack(">q", time)
    if version == 4:
        return start + struct.pack(">i", 5) + b"\x03ab" + struct.pack(">q", time) + b"\0"
    return start + text("m") + struct.pack(">q", time) + (struct.pack(">q", time + 1) if version == 1 else b"")


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack(">h", len(raw)) + raw


def checkpoint(entries: Mapping[str, int]) -> str:
    """An offset checkpoint of "topic-partition" -> offset."""
    lines = [f"{name.rpartition('-')[0]} {name.rpartition('-')[2]} {offset}" for name, offset in entries.items()]
    return "\n".join(["0", str(len(lines)), *lines, ""])


def broker_files(folder: Path, clean: bool = False, **checkpoints: Mapping[str, int]) -> None:
    """meta.properties and offset checkpoints, `log_start={"t-0": 5}` for log-start-offset-checkpoint."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "meta.properties").write_text("version=1\nnode.id=1\n")
    for name, entries in checkpoints.items():
        (folder / f"{name.replace('_', '-')}-offset-checkpoint").write_text(checkpoint(entries))
    if clean:
        (folder / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":7}')


def snapshot(*producers: tuple[int, int, int, int, int, int]) -> bytes:
    """(producer, epoch, last sequence, last offset, time, first offset of its open transaction or -1) each."""
    body = struct.pack(">i", len(producers))
    for producer, epoch, sequence, last, time, first in producers:
        body += struct.pack(">qhiqiqiq", producer, epoch, sequence, last, 0, time, 0, first)
    return struct.pack(">hI", 1, crc32c.crc32c(body)) + body


def job_logs(folder: Path) -> Path:
    """The topic that the job reads, the one it writes with a transaction still open, and what its group committed."""
    read, wrote, commits = TopicLog(), TopicLog(), TopicLog()
    read.data(300)
    wrote.data(5)
    wrote.data(4, producer=77)
    commits.add(commit_batch(0, [("job", "in", 0, 180)]), [0], 1, "data")
    for name, log in (("in-0", read), ("out-0", wrote), ("__consumer_offsets-0", commits)):
        log.write(folder / name)
    return folder
