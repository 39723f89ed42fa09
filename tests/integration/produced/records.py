"""Any input, and lines of event logs: checkpoints, channels, `job.json`."""

from __future__ import annotations

from pathlib import Path

from tests.builders.native import checkpoint
from tests.integration.produced.cases import (
    AB,
    BA,
    Asked,
    base,
    checkpoints,
    cut,
    delta,
    events,
    job,
    log,
    pair,
    produces,
    put,
    sample,
)


@produces("bad-record", exit=3)
def _(folder: Path) -> Asked:
    return "recovery-line", checkpoints(folder, *pair(1, 1), "nonsense\n")


@produces("unknown-member", exit=0)
def _(folder: Path) -> Asked:
    return "recovery-line", checkpoints(folder, *pair(1, 1), '{"operator":"a","checkpoint":9,"sentt":{}}\n')


@produces("log-ends-before-sent", exit=3)
def _(folder: Path) -> Asked:
    log(folder, 0, 1, 2)
    return "inspect", checkpoints(folder, {**checkpoint("a", 1), "sent": {AB: 5}}), "--validate"


@produces("torn-tail", exit=0)
def _(folder: Path) -> Asked:
    return "recovery-line", checkpoints(folder, *pair(1, 1), '{"operator": "a", "subt')


@produces("corrupt-file", exit=3)
def _(folder: Path) -> Asked:
    join = sample("uncoordinated-join-parquet", folder)
    (join / "checkpoints" / ".join.parquet.crc").unlink()
    cut(join / "checkpoints" / "join.parquet")
    return "inspect", join


@produces("unfollowed-link", exit=0)
def _(folder: Path) -> Asked:
    run = checkpoints(folder / "run", *pair(1, 1))
    (run / "elsewhere").symlink_to("/")
    return "recovery-line", run


@produces("empty-file", exit=0)
def _(folder: Path) -> Asked:
    put(folder / "checkpoints" / "empty.jsonl")
    return "recovery-line", checkpoints(folder, *pair(1, 1))


@produces("missing-file", exit=3)
def _(folder: Path) -> Asked:
    run = checkpoints(folder, *pair(1, 1))
    (run / "checkpoints" / ".gone.jsonl.crc").write_bytes(b"crc\0\0\0\2\0")
    return "recovery-line", run


@produces("missing-state-file", exit=3)
def _(folder: Path) -> Asked:
    put(folder / "state" / "1", "state")
    return "recovery-line", checkpoints(
        folder, checkpoint("a/0", 1, uri="state/1"), checkpoint("a/0", 2, uri="state/2")
    )


@produces("checksum-mismatch", exit=3)
def _(folder: Path) -> Asked:
    run = checkpoints(folder, *pair(1, 1))
    put(run / "checkpoints" / "more.jsonl", *pair(2, 2, number=2))
    (run / "checkpoints" / ".part.jsonl.crc").write_bytes(b"crc\0\0\0\2\0" + bytes(4))
    return "recovery-line", run


@produces("unchecked-file", exit=0)
def _(folder: Path) -> Asked:
    run = checkpoints(folder, *pair(1, 1))
    (run / "checkpoints" / ".part.jsonl.crc").write_bytes(b"???")
    return "recovery-line", run


@produces("bad-manifest", exit=5)
def _(folder: Path) -> Asked:
    put(folder / "job.json", "{")
    return "recovery-line", checkpoints(folder, *pair(1, 1))


@produces("over-recovery-time", exit=3)
def _(folder: Path) -> Asked:
    run = checkpoints(folder, checkpoint("a/0", 1, bytes=10**9))
    return "recovery-line", run, "--read-rate", "1", "--max-recovery-time", "10"


@produces("conflicting-checkpoint", exit=3)
def _(folder: Path) -> Asked:
    return "recovery-line", checkpoints(folder, *pair(1, 1), *pair(2, 2, number=2), *pair(3, 3, number=2))


@produces("no-stored-checkpoint", exit=0)
def _(folder: Path) -> Asked:
    bc = "b/0->c/0"
    first = [checkpoint("a/0", n, sent={AB: 10 * n}) for n in (1, 2, 3, 4)]
    last = [checkpoint("c/0", n, received={bc: 10 * n - 2}) for n in (1, 2, 3, 4)]
    return "retention", checkpoints(folder, *first, *last)


@produces("foreign-channel", exit=3)
def _(folder: Path) -> Asked:
    return "recovery-line", checkpoints(folder, *pair(1, 1), checkpoint("a/0", 2, sent={BA: 2}))


@produces("watermark-decreases", exit=3)
def _(folder: Path) -> Asked:
    return "recovery-line", checkpoints(folder, *pair(5, 5), *pair(3, 5, number=2))


@produces("broken-chain", exit=3)
def _(folder: Path) -> Asked:
    return "recovery-line", checkpoints(folder, base("a/0", 1), delta("a/0", 3, parent=2))


@produces("receive-without-send", exit=3)
def _(folder: Path) -> Asked:
    now = checkpoint("a/0", 9, sent={AB: 1}, kind="volatile")
    return (
        "recovery-line",
        checkpoints(folder, *pair(1, 1), now, checkpoint("b/0", 2, received={AB: 7})),
        "--failed",
        "b",
    )


@produces("unknown-receipts", "no-channel-log", exit=3)
def _(folder: Path) -> Asked:
    a = [checkpoint("a/0", n, sent={AB: n - 1}, received={BA: n}) for n in (1, 2, 3)]
    b = [checkpoint("b/0", 1, sent={BA: 2}, received={AB: 0}), checkpoint("b/0", 3, sent={BA: 9})]
    return "recovery-line", checkpoints(folder, *a, *b, "{garbled\n")


@produces("no-checkpoint-record", exit=4)
def _(folder: Path) -> Asked:
    job(folder, operators=[{"name": "a"}, {"name": "b"}])
    return "recovery-line", events(checkpoints(folder, '{"torn'), a="s0 C1", b="r0 C1")


@produces("no-current-state", exit=5)
def _(folder: Path) -> Asked:
    return "recovery-line", checkpoints(folder, *pair(3, 3)), "--failed", "a"


@produces("no-consistent-line", exit=4)
def _(folder: Path) -> Asked:
    return "recovery-line", checkpoints(folder, *pair(0, 1, number=0))


@produces("inconsistent-round", exit=3)
def _(folder: Path) -> Asked:
    rounds = [{**one, "kind": "coordinated", "round": n} for n in (1, 2) for one in pair(10 * n, 15 * n - 5, number=n)]
    return "recovery-line", checkpoints(folder, *rounds)


@produces("unknown-subtasks", exit=5)
def _(folder: Path) -> Asked:
    rounds = [{**one, "kind": "coordinated", "round": n} for n in (1, 2) for one in pair(10 * n, 10 * n, number=n)]
    return "recovery-line", checkpoints(folder, *rounds, "{garbled\n")


@produces("index-falls", exit=3)
def _(folder: Path) -> Asked:
    late = checkpoint("a/0", 1, sent={AB: 0}, index=5), checkpoint("b/0", 1, received={AB: 1}, index=3)
    return "z-cycles", checkpoints(folder, *late), "--audit-cic"


@produces("checkpoint-unreachable", exit=4)
def _(folder: Path) -> Asked:
    a, b = (checkpoint("a/0", 1, sent={AB: 0}, received={BA: 1}), checkpoint("b/0", 1, sent={BA: 1}, received={AB: 1}))
    return "recovery-line", checkpoints(folder, a, b), "--at", "a/0=1"


@produces("retention-hole", exit=3)
def _(folder: Path) -> Asked:
    return "recovery-line", log(checkpoints(folder, *pair(4, 2)), 3)


@produces("duplicate-messages", exit=0)
def _(folder: Path) -> Asked:
    return "recovery-line", log(checkpoints(folder, *pair(4, 2)), 2, 3, 3)


@produces("shared-source", exit=0)
def _(folder: Path) -> Asked:
    one, two = (checkpoint(f"a/{n}", 1, sources={"orders": 10 + n}) for n in (0, 1))
    return "recovery-line", checkpoints(folder, one, two)


@produces("incomplete-line", exit=3)
def _(folder: Path) -> Asked:
    return "verify", checkpoints(folder / "run", *pair(1, 1)), "--line", put(folder / "line.json", '{"a/0": 1}')


@produces("not-restorable", exit=3)
def _(folder: Path) -> Asked:
    run = checkpoints(folder / "run", base("a/0", 1), delta("a/0", 3, parent=2))
    return "verify", run, "--line", put(folder / "line.json", '{"a/0": 3}')


@produces("orphan-messages", exit=3)
def _(folder: Path) -> Asked:
    run = checkpoints(folder / "run", *pair(1, 1), *pair(2, 2, number=2))
    return "verify", run, "--line", put(folder / "line.json", '{"a/0": 1, "b/0": 2}')


@produces("not-maximal", exit=3)
def _(folder: Path) -> Asked:
    run = checkpoints(folder / "run", *pair(1, 1), *pair(2, 2, number=2))
    return "verify", run, "--line", put(folder / "line.json", '{"a/0": 1, "b/0": 1}'), "--maximal"


@produces("missing-checkpoints", exit=0)
def _(folder: Path) -> Asked:
    return "recovery-line", checkpoints(folder, *(checkpoint("a/0", n, sent={AB: 3 * n}) for n in (1, 2)))
