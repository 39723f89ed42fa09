"""Flink: files of snapshots, jobs that go on from others, and where sources begin."""

from __future__ import annotations

from pathlib import Path

from tests.builders import flink as fb
from tests.builders.flink_folders import HEIR, OLD, ORIGIN, Snapshot, assigned, checkpoint, job, metadata, torn
from tests.builders.kafka import ABORT, COMMIT, TRANSACTIONAL, Row, batch
from tests.builders.kafka_broker import TopicLog
from tests.integration.produced.cases import Asked, cut, produces, put, sample


def line(root: Path, *more: str | Path) -> Asked:
    """Ask for the line, with the stored paths leading to this folder."""
    return "recovery-line", root, "--map", f"{ORIGIN}={root}", *more


@produces("missing-state-file", exit=3)
def _(folder: Path) -> Asked:
    job(folder)
    (folder / OLD / "chk-7" / "p7").unlink()
    return line(folder)


@produces("size-mismatch", exit=3)
def _(folder: Path) -> Asked:
    job(folder)
    (folder / OLD / "chk-7" / "p7").write_bytes(b"y" * 99)
    return line(folder)


@produces("no-metadata", exit=0)
def _(folder: Path) -> Asked:
    job(folder)
    torn(folder, OLD, 8, {"x": 3})
    return line(folder)


@produces("no-metadata", exit=5)
def _(folder: Path) -> Asked:
    """As a copy that leaves out `_metadata` has it: a job keeps at least one checkpoint that is complete."""
    torn(folder, OLD, 7, {"x": 3})
    torn(folder, OLD, 8, {"x": 3})
    return line(folder)


@produces("completed-without-metadata", exit=3)
def _(folder: Path) -> Asked:
    run = sample("flink-orders", folder)
    [path] = run.glob("125c*/chk-13/_metadata")
    path.unlink()
    return "inspect", run, "--job-log", run / "jobmanager.log"


@produces("corrupt-metadata", exit=3)
def _(folder: Path) -> Asked:
    job(folder)
    cut(folder / OLD / "chk-7" / "_metadata")
    return line(folder)


@produces("unknown-version", exit=5)
def _(folder: Path) -> Asked:
    job(folder)
    (folder / OLD / "chk-7" / "_metadata").write_bytes(bytes.fromhex("4960672d00000063"))
    return line(folder)


@produces("corrupt-file", exit=3)
def _(folder: Path) -> Asked:
    run = sample("flink-orders", folder)
    [metadata_file] = run.glob("125c*/chk-13/_metadata")
    state = max((p for p in metadata_file.parent.iterdir() if p != metadata_file), key=lambda p: p.stat().st_size)
    state.write_bytes(bytes(state.stat().st_size))
    return "recovery-line", run, "--map", f"file:///srv/cklog-sample/flink-orders={run}"


@produces("contents-not-checked", exit=0)
def _(folder: Path) -> Asked:
    job(folder)
    return line(folder)


@produces("files-outside", exit=5)
def _(folder: Path) -> Asked:
    job(folder)
    (folder / OLD / "chk-7" / "_metadata").write_bytes(metadata(Snapshot({"../elsewhere/shared/z": 5}), 7))
    return line(folder)


@produces("files-not-checked", exit=0)
def _(folder: Path) -> Asked:
    job(folder)
    return line(folder, "--no-check-files")


@produces("stored-elsewhere", exit=0)
def _(folder: Path) -> Asked:
    job(folder)
    return "recovery-line", folder


@produces("needed-by-other-job", exit=0)
def _(folder: Path) -> Asked:
    job(folder)
    checkpoint(folder, HEIR, 12, Snapshot({f"{OLD}/shared/s7": 107, f"{HEIR}/shared/a": 9}))
    return line(folder)


@produces("inferred-lineage", exit=0)
def _(folder: Path) -> Asked:
    checkpoint(folder, OLD, 6, Snapshot(sources=[[("t", 0, 10)]]))
    checkpoint(folder, HEIR, 7, Snapshot(sources=[[("t", 0, 20)]]))
    return line(folder)


@produces("same-program", exit=0)
def _(folder: Path) -> Asked:
    checkpoint(folder, OLD, 7, Snapshot(sources=[[("t", 0, 10)]]))
    checkpoint(folder, HEIR, 7, Snapshot(sources=[[("t", 0, 5)]], backend="u-2"))
    return line(folder)


@produces("claim-needed", exit=0)
def _(folder: Path) -> Asked:
    change = fb.changelog([], [fb.changes_inlined([b"x"])])
    keyed = fb.metadata(6, [fb.operator(6, [fb.subtask(6, keyed=change)])], checkpoint=7)
    path = folder / OLD / "chk-7" / "_metadata"
    path.parent.mkdir(parents=True)
    path.write_bytes(keyed.data)
    return line(folder)


@produces("renamed-snapshot", exit=3)
def _(folder: Path) -> Asked:
    job(folder)
    (folder / OLD / "chk-7").rename(folder / OLD / "chk-9")
    return line(folder)


@produces("no-restorable-snapshot", exit=3)
def _(folder: Path) -> Asked:
    job(folder, numbers=(7,))
    job(folder, name=HEIR, numbers=(9,))
    (folder / OLD / "chk-7" / "p7").unlink()
    return line(folder)


@produces("checkpoint-unreachable", exit=4)
def _(folder: Path) -> Asked:
    job(folder)
    (folder / OLD / "chk-6" / "p6").unlink()
    return line(folder, "--at", f"{OLD}=6")


def starting(folder: Path, offset: int) -> Asked:
    """Ask about a snapshot whose only split has a marker in place of an offset."""
    checkpoint(folder, OLD, 7, Snapshot(sources=[[("t", 0, offset)]]))
    return line(folder)


@produces("source-at-latest", exit=3)
def _(folder: Path) -> Asked:
    return starting(folder, -1)


@produces("source-at-earliest", exit=3)
def _(folder: Path) -> Asked:
    return starting(folder, -2)


@produces("source-at-committed", exit=0)
def _(folder: Path) -> Asked:
    return starting(folder, -3)


@produces("source-not-started", exit=0)
def _(folder: Path) -> Asked:
    return starting(folder, -(1 << 63))


@produces("split-held-twice", "split-without-reader", exit=3)
def _(folder: Path) -> Asked:
    splits = [[("t", 0, 1), ("t", 1, 2)], [("t", 0, 1)]]
    checkpoint(folder, OLD, 7, Snapshot(sources=splits, coordinator=assigned([("t", 0), ("t", 1), ("t", 2)])))
    return line(folder)


@produces("unread-state", exit=0)
def _(folder: Path) -> Asked:
    coordinator = fb.coordinator(2, b"nobody knows this layout")
    checkpoint(folder, OLD, 7, Snapshot(sources=[[("t", 0, 10)]], coordinator=coordinator))
    return line(folder)


@produces("not-restorable", exit=3)
def _(folder: Path) -> Asked:
    job(folder / "run")
    (folder / "run" / OLD / "chk-7" / "p7").unlink()
    stored = ("--line", put(folder / "line.json", f'{{"{OLD}/0": 7}}'))
    return "verify", folder / "run", "--map", f"{ORIGIN}={folder / 'run'}", *stored


@produces("several-programs", exit=5)
def _(folder: Path) -> Asked:
    checkpoint(folder, OLD, 7, Snapshot(program="count"))
    checkpoint(folder, OLD, 8, Snapshot(program="join"))
    return line(folder)


@produces("several-programs", exit=0)
def _(folder: Path) -> Asked:
    checkpoint(folder, OLD, 7, Snapshot(program="count"))
    checkpoint(folder, OLD, 8, Snapshot(program="join"))
    return line(folder, "--at", f"{OLD}/0=7")


def with_transaction(folder: Path, end: int, epoch: int = 3) -> Asked:
    """A checkpoint with a pending transaction of producer 7, which ended in the log of out-0."""
    data, lists = fb.operator_state(
        {"streaming_committer_raw_states": [fb.versioned(2, fb.collector(7, [fb.committable("out-7", 7, epoch)]))]}
    )
    held = fb.subtask(6, 0, managed=fb.states(fb.inline(data), lists))
    made = [fb.operator(6, [held], bytes(range(16)), "out: Committer")]
    properties = fb.properties((), "Checkpoint", "FORWARD_BACKWARD")
    path = folder / "ck" / OLD / "chk-7"
    path.mkdir(parents=True)
    (path / "_metadata").write_bytes(fb.metadata(6, made, checkpoint=7, properties=properties).data)
    log = TopicLog()
    log.add(batch(0, [Row(b"v")], flags=TRANSACTIONAL, producer=7, epoch=epoch), [0], 1, "open", 7)
    log.end_transaction(7, end)
    log.write(folder / "kafka" / "out-0")
    return "recovery-line", folder / "ck", "--kafka", folder / "kafka"


@produces("transaction-aborted", exit=3)
def _(folder: Path) -> Asked:
    return with_transaction(folder, ABORT)


@produces("transaction-committed", exit=0)
def _(folder: Path) -> Asked:
    return with_transaction(folder, COMMIT)


@produces("transaction-committed", exit=0)
def _(folder: Path) -> Asked:
    return with_transaction(folder, COMMIT, epoch=32766)
