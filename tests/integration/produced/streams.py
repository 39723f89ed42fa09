"""State folders of Kafka Streams, and dumps of CheckMate."""

from __future__ import annotations

from pathlib import Path

from tests.builders.checkmate import BUCKET, START, put_log, put_snapshot
from tests.builders.kafka_broker import TopicLog
from tests.builders.stores import APP, checkpoint, put_store, put_task
from tests.builders.stores import put_log as put_changelog
from tests.integration.produced.cases import Asked, produces

COUNTS = f"{APP}-counts-changelog"


def beside(folder: Path, stores: tuple[str, ...], entries: dict[str, int] | None, start: int, end: int) -> Asked:
    """Ask about a task beside the changelog of `counts`, which holds the offsets [start, end)."""
    put_task(folder / APP, "0_0", stores, entries)
    put_changelog(folder / "kafka", COUNTS, 0, end, start)
    return "recovery-line", folder / APP, "--kafka", folder / "kafka"


@produces("store-beyond-log", exit=3)
def _(folder: Path) -> Asked:
    return beside(folder, ("counts",), {f"{COUNTS} 0": 41}, 0, 40)


@produces("store-behind-compaction", exit=3)
def _(folder: Path) -> Asked:
    put_task(folder / APP, "0_0", ("counts",), {f"{COUNTS} 0": 4})
    log = TopicLog()
    log.data(20, holes=(7, 9))
    log.write(folder / "kafka" / f"{COUNTS}-0")
    return "recovery-line", folder / APP, "--kafka", folder / "kafka"


@produces("missing-task", exit=0)
def _(folder: Path) -> Asked:
    put_changelog(folder / "kafka", COUNTS, 1, 40, 0)
    return beside(folder, ("counts",), {f"{COUNTS} 0": 39}, 0, 40)


@produces("store-below-log", exit=4)
def _(folder: Path) -> Asked:
    return beside(folder, ("counts",), {f"{COUNTS} 0": 41}, 50, 90)


@produces("compacted-log-cut", exit=4)
def _(folder: Path) -> Asked:
    return beside(folder, ("counts",), None, 20, 40)


@produces("no-store-checkpoint", "missing-changelog", exit=4)
def _(folder: Path) -> Asked:
    return beside(folder, ("counts", "sums"), None, 0, 40)


@produces("entry-without-store", "store-without-entry", exit=3)
def _(folder: Path) -> Asked:
    put_task(folder / APP, "0_0", ("kept", "new"), {f"{APP}-kept-changelog 0": 1, f"{APP}-gone-changelog 0": 5})
    return "recovery-line", folder / APP


@produces("negative-offset", exit=0)
def _(folder: Path) -> Asked:
    task = put_task(folder / APP, "0_0", ("a", "b"), {})
    (task / ".checkpoint").write_bytes(checkpoint({f"{APP}-a-changelog 0": -1, f"{APP}-b-changelog 0": 5}))
    return "recovery-line", folder / APP


@produces("unclean-store", exit=0)
def _(folder: Path) -> Asked:
    task = put_task(folder / APP, "0_0", (), None)
    put_store(task / "rocksdb" / "counts", "offsets", {f"{COUNTS}-0".encode(): 41, b"status": 1})
    return "recovery-line", folder / APP


@produces("unread-store", exit=5)
def _(folder: Path) -> Asked:
    task = put_task(folder / APP, "0_0", (), None)
    store = put_store(task / "rocksdb" / "counts", "offsets", {f"{COUNTS}_0".encode(): 41, b"status": 0})
    for table in store.glob("*.sst"):
        table.unlink()
    return "recovery-line", folder / APP


def deploy(folder: Path, coordinated: bool = False) -> Path:
    """`src` feeds `map`, each on two workers, three snapshots of each; all but two messages were received."""
    for w in range(2):
        for k in range(3):
            stamp = k if coordinated else START + 1000 * k + 7 * w
            sent = None if coordinated else {f"src_map_{w * 2 + j}": 10 * (k + 1) - 1 for j in range(2)}
            got = None if coordinated else {f"src_map_{i * 2 + w}": 10 * (k + 1) - 3 for i in range(2)}
            put_snapshot(folder, w + 1, "src", stamp, sent, taken={str(w): 100 * (k + 1)})
            put_snapshot(folder, w + 1, "map", stamp, None if coordinated else {}, got)
        for j in range(2):
            put_log(folder, w + 1, f"src_map_{w * 2 + j}", [] if coordinated else [0] * 35)
    return folder


@produces("assumed-partitions", "unfinished-upload", exit=0)
def _(folder: Path) -> Asked:
    (deploy(folder) / BUCKET / f"snapshot_1_map_{START + 2000}.bin").unlink()
    return "recovery-line", folder


@produces("dead-timeline", exit=0)
def _(folder: Path) -> Asked:
    put_log(deploy(folder), 1, "src_map_0", [0] * 20 + [1] * 10 + [2] * 5)
    return "recovery-line", folder


@produces("unit-without-snapshots", exit=0)
def _(folder: Path) -> Asked:
    deploy(folder, coordinated=True)
    for path in [*folder.glob(f"{BUCKET}/snapshot_2_map_*"), *folder.glob("worker-*-logs/*")]:
        path.unlink()
    return "recovery-line", folder


@produces("assumed-complete", exit=0)
def _(folder: Path) -> Asked:
    for k in range(3):
        put_snapshot(folder, 1, "a", START + 100 * k, {"a_b_0": k}, {})
        put_snapshot(folder, 1, "b", START + 100 * k + 7, {}, {"a_b_0": k})
    return "recovery-line", folder


@produces("ambiguous-channel", exit=5)
def _(folder: Path) -> Asked:
    for operator in ("a", "b_c", "a_b", "c"):
        put_snapshot(folder, 1, operator, START, {}, {})
    put_log(folder, 1, "a_b_c_0", [0] * 4)
    return "recovery-line", folder


@produces("unreadable-file", exit=5)
def _(folder: Path) -> Asked:
    path = deploy(folder) / BUCKET / f"snapshot_1_map_{START + 2000}.bin"
    path.unlink()
    path.mkdir()
    return "recovery-line", folder
