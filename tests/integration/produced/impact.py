"""Impact by a system log, and latency."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.integration.produced.cases import Asked, Record, events, produces, put, sample

Rows = list[Record]


def precise(folder: Path, place: str = "", change: Callable[[Rows], Any] = list.copy, **told: Any) -> Path:
    """A run that left everything that precise recovery needs, with the rows of one place, or its manifest, changed."""
    run = sample("odysseus-precise", folder)
    if place:
        path = run / place / "part-00000.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        changed = change(rows)
        put(path, *(rows if changed is None else changed))
    manifest = json.loads((run / "job.json").read_text())
    manifest["operators"][0].update(told.get("source", {}))
    manifest["operators"][1].update(told.get("query", {}))
    if "unknown" in told:
        del manifest["failure_time"]
    (run / "job.json").write_text(json.dumps(manifest))
    return run


@produces("no-times", exit=5)
def _(folder: Path) -> Asked:
    return "impact", precise(folder, "system", lambda rows: [{k: v for k, v in r.items() if k != "time"} for r in rows])


@produces("clock-backwards", exit=5)
def _(folder: Path) -> Asked:
    return "impact", precise(folder, "system", lambda rows: rows[7].update(time=100_000))


@produces("crash-time-unknown", exit=5)
def _(folder: Path) -> Asked:
    return "impact", precise(folder, unknown=True), "--recovery", "gap"


@produces("not-restarted", exit=0)
def _(folder: Path) -> Asked:
    return "impact", precise(folder, "system", lambda rows: rows[:7])


@produces("several-crashes", exit=5)
def _(folder: Path) -> Asked:
    again = [{"event": "boot", "time": 500_000}, {"event": "boot", "time": 600_000}]
    return "impact", precise(folder, "system", lambda rows: rows.extend(again)), "--recovery", "gap"


@produces("checkpoint-unknown", exit=5)
def _(folder: Path) -> Asked:
    return "impact", precise(folder), "--checkpoint", "unknown", "--recovery", "rollback"


@produces("missing-piece", exit=5)
def _(folder: Path) -> Asked:
    return "impact", sample("odysseus-gap", folder), "--recovery", "rollback"


@produces("bad-window", exit=3)
def _(folder: Path) -> Asked:
    return "impact", precise(folder, query={"window": {"ms": 0}}), "--recovery", "gap"


@produces("bad-period", exit=0)
def _(folder: Path) -> Asked:
    return "impact", precise(folder, source={"period_ms": -1}), "--recovery", "gap"


@produces("unordered-elements", exit=3)
def _(folder: Path) -> Asked:
    return "impact", precise(folder, "channels", lambda rows: rows[3].update(time=400_000))


@produces("parallel-source", exit=0)
def _(folder: Path) -> Asked:
    return "impact", precise(folder, "channels", lambda rows: rows[7].update(channel="in/0->count/1"))


S = 1000
FAILED = 20 * S + 300


def results(folder: Path, *more: Record, until: int = 60 * S) -> list[str | Path]:
    """Ten results a second, 50 ms after their records were made; none for nine seconds from the failure on."""
    found = [{"made": t, "time": t + 50} for t in range(0, until, 100) if not FAILED <= t + 50 < 29 * S]
    place = put(folder / "results" / "sink.jsonl", *found, *more).parent
    return ["latency", folder, "--results", place, "--event-time", "made"]


@produces("untimed-results", "no-checkpoint-times", "few-records", "failure-by-silence", exit=0)
def _(folder: Path) -> Asked:
    return results(folder, {"time": 7})


@produces("negative-latencies", "no-failure-time", exit=0)
def _(folder: Path) -> Asked:
    place = put(folder / "results" / "sink.jsonl", *({"made": t + 70, "time": t} for t in range(0, 9 * S, 5))).parent
    return "latency", folder, "--results", place, "--event-time", "made"


@produces("no-normal-latency", exit=0)
def _(folder: Path) -> Asked:
    return *results(folder), "--at", "-5000"


@produces("not-back-to-normal", exit=0)
def _(folder: Path) -> Asked:
    return *results(folder, until=30 * S), "--at", str(FAILED)


@produces("untimed-messages", "unsent-messages", exit=0)
def _(folder: Path) -> Asked:
    untimed = {"event": "receive", "operator": "b", "subtask": 0, "lsn": 9, "channel": "a/0->b/0", "seq": 1}
    return "latency", events(folder, untimed, a="s0 s1 C1", b="r0 r7")


@produces("last-channel-only", exit=0)
def _(folder: Path) -> Asked:
    return "latency", sample("raw-events", folder)
