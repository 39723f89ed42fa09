"""Raw events: what is missing from them, what contradicts itself, what cannot be placed."""

from __future__ import annotations

from pathlib import Path

from tests.builders.native import checkpoint
from tests.integration.produced.cases import AB, Asked, checkpoints, events, job, produces


@produces("missing-events", exit=3)
def _(folder: Path) -> Asked:
    return "recovery-line", events(folder, a="s0 C1 - s2 C2", b="r0 C1")


@produces("trimmed-events", exit=0)
def _(folder: Path) -> Asked:
    return "recovery-line", events(folder, a="- s1 s2 C1", b="r1 r2 C1")


@produces("incomplete-event", exit=3)
def _(folder: Path) -> Asked:
    nowhere = {"event": "receive", "operator": "b", "subtask": 0, "lsn": 1, "seq": 0, "time": 1001}
    return "recovery-line", events(folder, nowhere, a="s0 C1", b="C1 - C2")


@produces("foreign-channel", exit=3)
def _(folder: Path) -> Asked:
    other = {"event": "receive", "operator": "b", "subtask": 0, "lsn": 1, "channel": "a/0->c/0", "seq": 0, "time": 1001}
    return "recovery-line", events(folder, other, a="s0 C1", b="C1 - C2")


@produces("mixed-local-order", exit=0)
def _(folder: Path) -> Asked:
    late = {"event": "checkpoint", "operator": "a", "subtask": 0, "checkpoint": 2, "time": 1009}
    return "recovery-line", events(folder, late, a="s0 C1", b="r0 C1")


@produces("order-backwards", exit=3)
def _(folder: Path) -> Asked:
    return "recovery-line", events(folder, a="C2 C1", b="C1")


@produces("order-backwards", exit=0)
def _(folder: Path) -> Asked:
    early = {"event": "checkpoint", "operator": "a", "subtask": 0, "lsn": 2, "checkpoint": 2, "time": 5}
    return "recovery-line", events(folder, early, a="s0 C1", b="r0 C1")


@produces("duplicate-send", exit=3)
def _(folder: Path) -> Asked:
    return "recovery-line", events(folder, a="s0 s1 s1 C1 s2 C2", b="r0 C1")


@produces("duplicate-receive", exit=0)
def _(folder: Path) -> Asked:
    return "recovery-line", events(folder, a="s0 s1 C1", b="r0 r0 r1 C1")


@produces("receive-without-send", exit=3)
def _(folder: Path) -> Asked:
    return "recovery-line", events(folder, a="s0 C1 C2", b="r0 r5 C1"), "--failed", "b"


@produces("unlogged-sends", exit=4)
def _(folder: Path) -> Asked:
    job(folder, operators=[{"name": "a"}, {"name": "b"}], channels=[{"channel": AB}])
    return "recovery-line", events(folder, b="- - C4 C5")


@produces("out-of-order-channel", exit=0)
def _(folder: Path) -> Asked:
    return "recovery-line", events(folder, a="s0 s1 s2 s3 C1", b="r1 r2 C1 r0")


@produces("unplaced-checkpoint", "unrecorded-checkpoint", exit=0)
def _(folder: Path) -> Asked:
    checkpoints(folder, *(checkpoint("a/0", n) for n in (1,)), *(checkpoint("b/0", n) for n in (1, 2, 7)))
    return "recovery-line", events(folder, a="s0 C1 s1 C2", b="r0 C1 r1 C2")
