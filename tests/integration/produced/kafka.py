"""Kafka: what a starting broker does to logs, what groups have committed, what lines ask of logs."""

from __future__ import annotations

import struct
from pathlib import Path

from tests.builders.kafka import ABORT, COMMIT, Row, batch
from tests.builders.kafka_broker import TopicLog, broker_files, commit_batch
from tests.builders.native import checkpoint
from tests.integration.produced.cases import AB, Asked, checkpoints, produces


def broken(folder: Path, segments: int = 1, **noted: dict[str, int]) -> Asked:
    """Ask about five batches of 10 in each segment of t-0, of which the third batch is damaged."""
    log = TopicLog()
    for number in range(segments):
        if number:
            log.roll()
        for _ in range(5):
            log.data(10)
    at = sorted(place for place in log.sizes if place[0] == 0)[2][1]
    log.segments[0][at + 70] ^= 1
    log.write(folder / "t-0")
    broker_files(folder, False, **noted)
    return "recovery-line", folder


@produces("restart-cuts-log", "corrupt-batch", exit=3)
def _(folder: Path) -> Asked:
    return broken(folder)


@produces("unchecked-damage", exit=3)
def _(folder: Path) -> Asked:
    return broken(folder, segments=3, recovery_point={"t-0": 70})


@produces("log-ends-early", exit=3)
def _(folder: Path) -> Asked:
    return broken(folder, replication={"t-0": 50}, log_start={"t-0": 0})


def plain(folder: Path, count: int = 3) -> Path:
    log = TopicLog()
    log.data(count)
    return log.write(folder)


@produces("deleted-commit", exit=0)
def _(folder: Path) -> Asked:
    plain(folder / "t-0")
    log = TopicLog()
    log.add(commit_batch(0, [("g", "t", 0, 2), ("g", "t", 0, None)]), [0, 1], 2, "data")
    log.write(folder / "__consumer_offsets-0")
    return "recovery-line", folder


@produces("over-budget", exit=5)
def _(folder: Path) -> Asked:
    plain(folder / "t-0")
    log = TopicLog()
    log.add(commit_batch(0, [("g", "t", 0, 2)]), [0], 1, "data")
    for n in range(1, 4):
        log.add(batch(n, [Row(bytes(40 << 20), b"k")], "zstd"), [n], n + 1, "data")
    log.write(folder / "__consumer_offsets-0")
    return "recovery-line", folder, "--max-memory", "64MiB"


@produces("duplicate-partition", exit=5)
def _(folder: Path) -> Asked:
    for disk in ("disk1", "disk2"):
        plain(folder / disk / "t-0")
    return "recovery-line", folder


@produces("offset-backwards", exit=3)
def _(folder: Path) -> Asked:
    plain(folder / "t-0", 30)
    other = TopicLog(end=10, segments={10: bytearray()})
    other.data(5)
    other.write(folder / "t-0")
    return "recovery-line", folder


@produces("missing-segment", exit=0)
def _(folder: Path) -> Asked:
    plain(folder / "t-0")
    (folder / "t-1").mkdir()
    (folder / "t-1" / "leader-epoch-checkpoint").write_text("0\n0\n")
    return "recovery-line", folder


@produces("offset-gap", exit=0)
def _(folder: Path) -> Asked:
    log = TopicLog()
    for _ in range(3):
        log.data(10)
        log.roll()
    log.data(5)
    del log.segments[10]
    log.write(folder / "t-0")
    broker_files(folder, cleaner={"t-0": 3})
    return "recovery-line", folder


@produces("transaction-in-doubt", exit=3)
def _(folder: Path) -> Asked:
    log = TopicLog()
    log.data(2, 7)
    log.data(5)
    log.end_transaction(7, COMMIT)
    log.roll()
    log.data(1)
    log.segments[0][sorted(log.sizes)[1][1] + 70] ^= 1
    log.write(folder / "t-0")
    broker_files(folder, recovery_point={"t-0": 8})
    return "inspect", folder


@produces("abort-not-in-log", exit=0)
def _(folder: Path) -> Asked:
    plain(folder / "t-0", 30)
    entry = struct.pack(">hqqqq", 0, 7, 3, 9, 10)
    (folder / "t-0" / f"{0:020}.txnindex").write_bytes(entry)
    return "inspect", folder


def committed(folder: Path, *commits: tuple[str, str, int, int | None], producer: int = -1, of: int = 0) -> Path:
    """The log of what groups have committed; the first batch, and others in an open transaction of `producer`."""
    log = TopicLog()
    log.add(commit_batch(0, commits[:1]), [0], 1, "data")
    if len(commits) > 1:
        log.add(commit_batch(1, commits[1:], producer), range(1, len(commits)), len(commits), "data")
    return log.write(folder / f"__consumer_offsets-{of}")


@produces("committed-beyond-log-end", exit=3)
def _(folder: Path) -> Asked:
    plain(folder / "t-0")
    committed(folder, ("late", "t", 0, 40))
    return "recovery-line", folder


@produces("retention-hole", exit=3)
def _(folder: Path) -> Asked:
    plain(folder / "t-0", 9)
    committed(folder, ("early", "t", 0, 0))
    broker_files(folder, log_start={"t-0": 5})
    return "replay", folder


@produces("pending-commit", exit=0)
def _(folder: Path) -> Asked:
    plain(folder / "t-0", 9)
    committed(folder, ("g", "t", 0, 2), ("g", "t", 0, 8), producer=7)
    return "replay", folder


@produces("misplaced-commit", exit=0)
def _(folder: Path) -> Asked:
    plain(folder / "t-0", 9)
    committed(folder, ("g", "t", 0, 2), of=0)  # the hash of "g" is 103
    committed(folder, ("e", "t", 0, 2), of=1)
    return "replay", folder


@produces("partition-elsewhere", exit=0)
def _(folder: Path) -> Asked:
    plain(folder / "t-0")
    committed(folder, ("away", "u", 4, 2))
    return "replay", folder


@produces("missing-topic", exit=5)
def _(folder: Path) -> Asked:
    plain(folder / "kafka" / "t-0")
    run = checkpoints(folder / "run", checkpoint("a/0", 1, sources={"u-0": 3}))
    return "recovery-line", run, "--kafka", folder / "kafka"


@produces("starts-in-transaction", "open-transaction", exit=0)
def _(folder: Path) -> Asked:
    log = TopicLog()
    log.data(2)
    log.data(2, 7)
    log.end_transaction(7, ABORT)
    log.data(3, 7)
    log.write(folder / "kafka" / "t-0")
    run = checkpoints(folder / "run", checkpoint("a/0", 1, sources={"t-0": 3}))
    return "replay", run, "--kafka", folder / "kafka"


@produces("bad-checkpoint-file", exit=0)
def _(folder: Path) -> Asked:
    plain(folder / "t-0")
    (folder / "replication-offset-checkpoint").write_text("0\n5\nt 0 1\n")
    return "recovery-line", folder


@produces("interrupted-compaction", exit=0)
def _(folder: Path) -> Asked:
    path = plain(folder / "t-0") / f"{0:020}.log"
    path.with_name(f"{path.name}.swap").write_bytes(path.read_bytes())
    return "recovery-line", folder


@produces("skipped-folder", exit=0)
def _(folder: Path) -> Asked:
    plain(folder / "t-0")
    plain(folder / f"t-0.{'0' * 32}-delete")
    return "recovery-line", folder


@produces("deleted-segment", exit=0)
def _(folder: Path) -> Asked:
    path = plain(folder / "t-0") / f"{0:020}.log"
    path.rename(path.with_name(f"{path.name}.deleted"))
    (folder / "t-0" / f"{3:020}.log").write_bytes(b"")
    return "recovery-line", folder


@produces("beyond-log-end", exit=3)
def _(folder: Path) -> Asked:
    plain(folder / "kafka" / "orders-0", 2)
    sent = checkpoint("a/0", 1, sent={AB: 8}, sources={"orders-0": 4})
    run = checkpoints(folder / "run", sent, checkpoint("b/0", 1, received={AB: 3}))
    return "replay", run, "--kafka", folder / "kafka"


@produces("topic-recreated", exit=3)
def _(folder: Path) -> Asked:
    """A group committed offset 2 at a time before the oldest record of the log."""
    log = TopicLog()
    log.data(9, time=1_700_000_000_001)
    log.write(folder / "t-0")
    committed(folder, ("g", "t", 0, 2))
    return "recovery-line", folder


@produces("partition-without-offset", exit=0)
def _(folder: Path) -> Asked:
    for number in (0, 1):
        plain(folder / "kafka" / f"t-{number}")
    run = checkpoints(folder / "run", checkpoint("a/0", 1, sources={"t-0": 3}))
    return "recovery-line", run, "--kafka", folder / "kafka"
