"""What a Flink job manager's log (INFO) says of checkpoints, by its checkpoint coordinator's own sentences.

    Triggering checkpoint 5 (type=…) @ 1795226310693 for job <32 hex>.            older: without (type=…)
    Completed checkpoint 5 for job <32 hex> (12345 bytes, checkpointDuration=87 ms, finalizationTime=3 ms).
    Completed checkpoint 5 for job <32 hex> (12345 bytes in 87 ms).              older
    Checkpoint 5 of job <32 hex> expired before completing.
    Decline checkpoint 5 by task … of job <32 hex> at …
    Failed to trigger or complete checkpoint 5 for job <32 hex>. (…)
    Received late message for now expired checkpoint attempt 5 from task … of job <32 hex> at …
    Restoring job <32 hex> from Checkpoint 4 @ …                                older: from latest valid checkpoint: …

Other lines are passed over; a log may be cut anywhere, and of a very long line only the beginning is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from cklog.storage import open_file

_JOB = rb"(?: (?:for|of) job (?P<job>[0-9a-f]{32}))?"
_TASK_OF_JOB = rb"(?: .* of job (?P<job>[0-9a-f]{32}))?"
_SENTENCES: dict[str, re.Pattern[bytes]] = {
    "triggered": re.compile(
        rb"Triggering checkpoint (?P<id>[0-9]{1,18})\b"
        rb"(?:.* @ (?P<time>[0-9]{1,18})(?: for job (?P<job>[0-9a-f]{32}))?)?"
    ),
    "completed": re.compile(
        rb"Completed checkpoint (?P<id>[0-9]{1,18})\b" + _JOB + rb"(?: \((?P<bytes>[0-9]{1,18}) bytes"
        rb"(?:(?: in|, checkpointDuration=| \(.*\), checkpointDuration=) ?(?P<ms>[0-9]{1,18}) ms)?)?"
    ),
    "expired": re.compile(rb"Checkpoint (?P<id>[0-9]{1,18})" + _JOB + rb" expired before completing"),
    "declined": re.compile(rb"Decline checkpoint (?P<id>[0-9]{1,18}) by task" + _TASK_OF_JOB),
    "failed": re.compile(rb"Failed to trigger or complete checkpoint (?P<id>[0-9]{1,18})\b" + _JOB),
    "late": re.compile(rb"late message for now expired checkpoint attempt (?P<id>[0-9]{1,18})\b" + _TASK_OF_JOB),
    "restored": re.compile(
        rb"Restoring job (?P<job>[0-9a-f]{32}) from (?:latest valid checkpoint: )?(?:[A-Z][a-z]+ )?"
        rb"(?:Check|Save)point (?P<id>[0-9]{1,18})\b"
    ),
}
_RANK = ("triggered", "failed", "declined", "expired", "completed")
_LINE_LIMIT = 1 << 12


def job_log(path: str) -> list[dict[str, Any]]:
    """A row per checkpoint: its final `state`, when it was triggered, and what else the log tells; sorted.

    Raises
    ------
    OSError : there is no such file
    """
    found: dict[tuple[str | None, int], dict[str, Any]] = {}
    for line in _lines(path):
        for state, sentence in _SENTENCES.items():
            match = sentence.search(line)
            if match is not None:
                _note(found, state, match.groupdict())
                break
    rows = [row for _, row in sorted(found.items(), key=lambda pair: (pair[0][0] or "", pair[0][1]))]
    known = {row["job"] for row in rows if row["job"]}
    for row in rows:
        if row["job"] is None and len(known) == 1:
            row["job"] = next(iter(known))
    return _merged(rows)


def _lines(path: str) -> Iterable[bytes]:
    """The lines of a log; of a very long one its beginning."""
    with open_file(path) as file:
        rest = b""
        while block := file.read(1 << 20):
            *lines, rest = (rest + block).split(b"\n")
            yield from (line[:_LINE_LIMIT] for line in lines)
            rest = rest[:_LINE_LIMIT]
        yield rest


def _note(found: dict[tuple[str | None, int], dict[str, Any]], state: str, told: dict[str, bytes | None]) -> None:
    job = (told.get("job") or b"").decode() or None
    number = int(told["id"] or 0)
    empty = {
        "job": job,
        "checkpoint": number,
        "state": "triggered",
        "trigger_time": None,
        "duration_ms": None,
        "bytes": None,
        "late": 0,
        "restored": 0,
    }
    row = found.setdefault((job, number), empty)
    if state in ("late", "restored"):
        row[state] += 1
        return
    if _RANK.index(state) >= _RANK.index(row["state"]):
        row["state"] = state
    for name, key in (("trigger_time", "time"), ("duration_ms", "ms"), ("bytes", "bytes")):
        value = told.get(key)
        if value is not None:
            row[name] = int(value)


def _merged(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of one checkpoint that some sentences name with its job and others without, as one."""
    found: dict[tuple[str | None, int], dict[str, Any]] = {}
    for row in rows:
        key = (row["job"], row["checkpoint"])
        if key not in found:
            found[key] = row
            continue
        old = found[key]
        for name, value in row.items():
            if name in ("late", "restored"):
                old[name] += value
            elif name == "state":
                old[name] = max(old[name], value, key=_RANK.index)
            elif old[name] is None:
                old[name] = value
    return [found[key] for key in sorted(found, key=lambda k: (k[0] or "", k[1]))]
