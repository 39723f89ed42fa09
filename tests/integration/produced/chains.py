"""Base and delta checkpoints, what may be deleted, and advice that is made of what checkpoints cost."""

from __future__ import annotations

from pathlib import Path

from tests.builders.native import checkpoint
from tests.integration.produced.cases import AB, BA, Asked, base, checkpoints, delta, events, pair, produces, put


@produces("orphaned-deltas", exit=3)
def _(folder: Path) -> Asked:
    return "chain", checkpoints(folder, delta("a/0", 2, parent=1), base("b/0", 2))


@produces("unrestorable-checkpoints", exit=0)
def _(folder: Path) -> Asked:
    return "chain", checkpoints(folder, base("a/0", 1), delta("a/0", 3, parent=2), base("a/0", 4))


@produces("bad-parent", exit=3)
def _(folder: Path) -> Asked:
    return "chain", checkpoints(folder, base("a/0", 1), delta("a/0", 2, parent=3), delta("a/0", 3, parent=2))


@produces("bad-size", exit=0)
def _(folder: Path) -> Asked:
    return "chain", checkpoints(folder, base("a/0", 1, bytes=2**63 - 2))


@produces("sum-overflow", exit=0)
def _(folder: Path) -> Asked:
    deltas = (delta("a/0", n, parent=n - 1, bytes=2**53 - 1) for n in range(2, 1100))
    return "chain", checkpoints(folder, base("a/0", 1), *deltas)


@produces("marked-but-needed", exit=0)
def _(folder: Path) -> Asked:
    return "retention", checkpoints(folder, *pair(1, 1)), "--marked", "a/0=1"


@produces("incomplete-delta-history", exit=5)
def _(folder: Path) -> Asked:
    return "advise", "delta", checkpoints(folder, *(base("a/0", n) for n in (1, 2, 3)))


def usual(*more: dict[str, object]) -> list[dict[str, object]]:
    """Three bases, each with a delta."""
    pairs = ((base("a/0", n), delta("a/0", n + 1, parent=n)) for n in (1, 3, 5))
    return [*(one for two in pairs for one in two), *more]


@produces("estimated-bound", exit=0)
def _(folder: Path) -> Asked:
    return "advise", "delta", checkpoints(folder, *usual())


@produces("unpriced-checkpoints", exit=0)
def _(folder: Path) -> Asked:
    return "advise", "delta", checkpoints(folder, *usual(delta("a/0", 7, parent=6, bytes=None)))


@produces("no-setting", exit=3)
def _(folder: Path) -> Asked:
    return "advise", "delta", checkpoints(folder, *usual()), "--max-restore-time", "0.00001"


@produces("restore-bound-broken", exit=0)
def _(folder: Path) -> Asked:
    grown = (delta("a/0", n, parent=n - 1, duration_ms=10.0 if n < 6 else 90.0) for n in range(2, 9))
    return "advise", "delta", checkpoints(folder, base("a/0", 1), *grown), "--max-restore-time", "0.3"


@produces("estimated-order", "no-duration", exit=0)
def _(folder: Path) -> Asked:
    return "advise", "protocol", checkpoints(folder, *pair(1, 1), *pair(2, 2, number=2))


@produces("impossible-order", "no-message-sizes", exit=0)
def _(folder: Path) -> Asked:
    """Each receives the other's message before it sends its own."""
    told = (("a", "receive", BA, 0), ("a", "send", AB, 1), ("b", "receive", AB, 0), ("b", "send", BA, 1))
    steps = (
        {"event": event, "operator": name, "subtask": 0, "lsn": lsn, "channel": channel, "seq": 0, "time": lsn}
        for name, event, channel, lsn in told
    )
    taken = ({"event": "checkpoint", "operator": n, "subtask": 0, "lsn": 2, "checkpoint": 1, "time": 2} for n in "ab")
    return "advise", "protocol", events(folder, *steps, *taken)


@produces("conflicting-samples", exit=0)
def _(folder: Path) -> Asked:
    sizes = ({"operator": "a", "subtask": 0, "time": 1000 * n, "bytes": n % 7 + 1} for n in range(60))
    put(folder / "state" / "a.jsonl", *sizes, {"operator": "a", "subtask": 0, "time": 5000, "bytes": 99})
    return "advise", "timing", folder, "--period", "5"


@produces("not-restorable", exit=4)
def _(folder: Path) -> Asked:
    run = checkpoints(folder, checkpoint("a/0", 1, form="base"), delta("a/0", 3, parent=2), base("a/0", 4))
    return "chain", run, "--checkpoint", "3"
