"""Make the sample of latencies: `python sample_logs/make_sink_latency.py`. The same bytes every time.

sink-latency      a job with a coordinated checkpoint every 10 s fails after 45.2 s, is back at 51 s and catches up

A source makes 120 records a second; each takes some 40 ms to the sink, and 30 more in the second of a checkpoint. While
the job is down records wait; then the sink takes three times as many a second, in order, until none waits.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from make_native import START, Record, line, write_jsonl

FOLDER = Path(__file__).parent / "sink-latency"
SECONDS, RATE = 80, 120
FAILED_MS, BACK_MS = 45_200, 51_000
EVERY_MS = 10_000
SUBTASKS = ("bids", "count", "sink")


def results() -> list[Record]:
    """Every record with the time at which the source made it and the one at which it was at the sink."""
    found, free = [], 0.0
    for number in range(SECONDS * RATE):
        made = number * 1000 // RATE
        took = 30 + number * 7919 % 23 + (30 if made >= EVERY_MS and made % EVERY_MS < 1000 else 0)
        if made + took >= FAILED_MS and made < BACK_MS:
            free = max(free, BACK_MS)
        at = max(made + took, free)
        free = at + 1000 / (3 * RATE)
        found.append({"created": START + made, "time": START + round(at), "bid": number})
    return found


def checkpoints() -> list[Record]:
    """Rounds of all three subtasks, but for those that the job was down for."""
    return [
        {
            "operator": name,
            "checkpoint": number,
            "round": number,
            "time": START + number * EVERY_MS + 100 * place,
            "kind": "coordinated",
            "duration_ms": 90,
        }
        for number in range(1, SECONDS * 1000 // EVERY_MS)
        for place, name in enumerate(SUBTASKS)
        if not FAILED_MS <= number * EVERY_MS < BACK_MS
    ]


def main() -> None:
    """Write job.json, the checkpoints and the sink's results."""
    operators = [{"name": name, "parallelism": 1} for name in SUBTASKS]
    job = {"job": "bids", "operators": operators, "failure_time": START + FAILED_MS}
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "job.json").write_bytes(line(job))
    write_jsonl(FOLDER / "checkpoints" / "rounds.jsonl", checkpoints())
    text = "".join(json.dumps(result, separators=(",", ":")) + "\n" for result in results())
    (FOLDER / "results").mkdir(exist_ok=True)
    (FOLDER / "results" / "sink.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
