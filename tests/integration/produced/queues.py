"""Output queues: what their records tell against one another."""

from __future__ import annotations

from pathlib import Path

from tests.builders.kafka import Log, batch, cec
from tests.builders.queues import GOLDEN, chain, emits, queue, records
from tests.builders.queues import Row as Told
from tests.integration.produced.cases import Asked, flip, produces, sample

NUMBERED = [row | {"input": 10 * i} for i, row in enumerate(records(GOLDEN), 1)]


def checkpoint(folder: Path, found: list[dict[str, object]], *more: str) -> Asked:
    """Ask for the eventual checkpoint of a queue of these records."""
    queue(folder, found)
    return "eventual-checkpoint", folder, "--operator", "agg1", *more


def told(*rows: Told) -> list[dict[str, object]]:
    """Records of these types, windows, timestamps, and numbers of open windows."""
    return records(list(rows))


@produces("output-gap", "doubtful-window", exit=3)
def _(folder: Path) -> Asked:
    found = told(("open", "w0", 1, 1), ("open", "w1", 2, 2), ("open", "w2", 3, 3), ("result", "w1", 4, 2))
    return checkpoint(folder, [*found[:3], *told(*[("check", "w2", 5, 2)] * 5)[4:]])


@produces("window-count-mismatch", exit=3)
def _(folder: Path) -> Asked:
    found = records(GOLDEN)
    found[4]["open_windows"] = 4
    found[5]["open_windows"] = 5
    return checkpoint(folder, found)


@produces("extent-over-target", exit=3)
def _(folder: Path) -> Asked:
    queue(folder, NUMBERED)
    return "extent", folder, "--operator", "agg1", "--over-time", "--max-extent", "2"


@produces("replay-unknown", exit=5)
def _(folder: Path) -> Asked:
    queue(folder, records(GOLDEN))
    return "extent", folder, "--operator", "agg1", "--over-time", "--max-replay", "1"


@produces("window-order", exit=3)
def _(folder: Path) -> Asked:
    opened = [("open", "w0", 1, 1), ("open", "w1", 2, 2), ("open", "w2", 3, 3)]
    return checkpoint(folder, records([*opened, ("result", "w2", 4, 2), ("check", "w2", 5, 2)]))


@produces("empty-queue", exit=0)
def _(folder: Path) -> Asked:
    (folder / "outputs" / "agg1").mkdir(parents=True)
    (folder / "outputs" / "agg1" / "part-0.jsonl").write_text('{"type":"open","wi')
    return "eventual-checkpoint", folder, "--operator", "agg1"


@produces("missing-queue", exit=5)
def _(folder: Path) -> Asked:
    run = sample("cec-aggregate", folder)
    (run / "outputs" / "agg1" / "part-00000.jsonl").unlink()
    return "recovery-line", run


@produces("missing-window", exit=3)
def _(folder: Path) -> Asked:
    found = told(("open", "w1", 1, 1), ("open", "w2", 2, 2), ("open", "w3", 3, 3), ("open", "w4", 4, 4))
    return checkpoint(folder, [found[0], found[1], found[3]])


@produces("lost-footprint", exit=5)
def _(folder: Path) -> Asked:
    return checkpoint(folder, [row for row in records(GOLDEN)[2:] if row["type"] != "check"])


@produces("lost-result", exit=3)
def _(folder: Path) -> Asked:
    found = told(("open", "w0", 1, 1), ("open", "w1", 2, 2), ("result", "w1", 3, 1), ("open", "w1", 4, 2))
    return checkpoint(folder, [found[0], found[1], found[3]])


@produces("ambiguous-tie", exit=3)
def _(folder: Path) -> Asked:
    return checkpoint(folder, told(("open", "a", 1, 1), ("open", "b", 1, 2)))


@produces("repeated-records", exit=0)
def _(folder: Path) -> Asked:
    queue(folder, NUMBERED, "part-0.jsonl")
    queue(folder, NUMBERED[:3], "part-1.jsonl")
    return "eventual-checkpoint", folder, "--operator", "agg1"


@produces("output-order", exit=3)
def _(folder: Path) -> Asked:
    found = [dict(row) for row in NUMBERED]
    found[4]["ts"] = 9
    return checkpoint(folder, found)


@produces("forward-mismatch", exit=3)
def _(folder: Path) -> Asked:
    found = told(("open", "w1", 1, 1), ("result", "w1", 2, 0), ("open", "w2", 3, 1), ("check", "w2", 4, 1))
    return checkpoint(folder, [found[0], *found[2:], *records([("open", "w3", 5, 2)] * 5)[4:]], "--forward")


@produces("upstream-behind", exit=0)
def _(folder: Path) -> Asked:
    emits(folder, "a", 4)
    emits(folder, "b", 9)
    chain(folder, "src", "a", "b")
    return "recovery-line", folder


@produces("no-setting", exit=3)
def _(folder: Path) -> Asked:
    run = sample("cec-aggregate", folder)
    return "advise", "extent", run, "--operator", "agg1", "--max-recovery-time", "0.000001"


def kafka(folder: Path, log: Log, **more: object) -> Asked:
    """Ask for the eventual checkpoint of a queue in Kafka."""
    log.write(folder / "outputs" / "agg1" / "out-0")
    return "eventual-checkpoint", folder, "--operator", "agg1"


def two_batches(first: int = 0, second: int = 2) -> Log:
    log = Log()
    for base, times in ((first, (1, 2)), (second, (3, 4))):
        log.add(batch(base, [cec(t, t, "open", window=f"w{t}", open_windows=t) for t in times]))
    return log


@produces("corrupt-batch", exit=3)
def _(folder: Path) -> Asked:
    asked = kafka(folder, two_batches())
    flip(folder / "outputs" / "agg1" / "out-0" / f"{0:020}.log", 90)
    return asked


@produces("offset-jump", exit=0)
def _(folder: Path) -> Asked:
    return kafka(folder, two_batches(second=9))


@produces("open-transaction", exit=3)
def _(folder: Path) -> Asked:
    log = two_batches()
    log.add(batch(4, [cec(5, 5, "open", open_windows=5)], flags=0x10, producer=7))
    return kafka(folder, log)


@produces("index-beyond-log", exit=0)
def _(folder: Path) -> Asked:
    log = two_batches()
    log.index = [(3, 10**6)]
    return kafka(folder, log)


@produces("log-beyond-index", exit=0)
def _(folder: Path) -> Asked:
    log = Log()
    for n in range(60):
        log.add(batch(n, [cec(n, n, pad="x" * 500)]))
    del log.index[1:], log.times[1:]
    return kafka(folder, log)
