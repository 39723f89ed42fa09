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

from cklog.inputs.snapshots import LoggedCheckpoint
from cklog.progress import count_bytes, stage
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
_LOCATED = re.compile(rb" located at \S*/(?P<job>[0-9a-f]{32})/[a-z]+-[0-9]+\.?\s*$")
_RANK = ("triggered", "failed", "declined", "expired", "completed")
"""States from the weakest to the strongest: of several that a log names, the strongest is the final one."""
_LINE_LIMIT = 1 << 12


def job_log(path: str) -> list[LoggedCheckpoint]:
    """Read a log into a row per checkpoint, with its final `state`; sorted by job and checkpoint.

    A checkpoint that no sentence names with its job has the job None, unless the log is of one job only.

    Raises
    ------
    OSError : there is no such file
    """
    found: dict[tuple[str | None, int], LoggedCheckpoint] = {}
    for line in _read_lines(path):
        for state, sentence in _SENTENCES.items():
            match = sentence.search(line)
            if match is not None:
                _note_sentence(found, state, match.groupdict())
                break
    rows = [row for _, row in sorted(found.items(), key=lambda pair: (pair[0][0] or "", pair[0][1]))]
    known = {row["job"] for row in rows if row["job"]}
    for row in rows:
        if row["job"] is None and len(known) == 1:
            row["job"] = next(iter(known))
    return _merge_rows(rows)


def last_restore(path: str) -> tuple[str, int, int | None] | None:
    """Return job and checkpoint of the last restore that a log tells of, and the newest that was complete by then.

    None: it tells of none.

    Raises
    ------
    OSError : there is no such file
    """
    found, complete = None, dict[str | None, int]()
    for line in _read_lines(path):
        done, restored = _SENTENCES["completed"].search(line), _SENTENCES["restored"].search(line)
        if done is not None:
            job = (done["job"] or b"").decode() or None
            complete[job] = max(complete.get(job, 0), int(done["id"]))
        elif restored is not None:
            stored = _LOCATED.search(line)  # a restart has a job of its own; its folder is that of the one before
            job = (stored["job"] if stored else restored["job"]).decode()
            found = job, int(restored["id"]), complete.get(job, complete.get(None))
    return found


def _read_lines(path: str) -> Iterable[bytes]:
    """Read the lines of a log; of a very long one its beginning."""
    with open_file(path) as file, stage(f"reading {path}", "bytes", file.size(), size=file.size()):
        rest = b""
        while block := file.read(1 << 20):
            count_bytes(len(block))
            *lines, rest = (rest + block).split(b"\n")
            yield from (line[:_LINE_LIMIT] for line in lines)
            rest = rest[:_LINE_LIMIT]
        yield rest


def _note_sentence(
    found: dict[tuple[str | None, int], LoggedCheckpoint], state: str, groups: dict[str, bytes | None]
) -> None:
    """Add what one sentence says to the row of its checkpoint; `groups` are those of the sentence's pattern."""
    job = (groups.get("job") or b"").decode() or None
    number = int(groups["id"] or 0)
    empty: LoggedCheckpoint = {
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
    if state == "late":
        row["late"] += 1
    elif state == "restored":
        row["restored"] += 1
    elif _RANK.index(state) >= _RANK.index(row["state"]):
        row["state"] = state
    row["trigger_time"] = _number(groups.get("time"), row["trigger_time"])
    row["duration_ms"] = _number(groups.get("ms"), row["duration_ms"])
    row["bytes"] = _number(groups.get("bytes"), row["bytes"])


def _number(digits: bytes | None, otherwise: int | None) -> int | None:
    """Return the number that a sentence names; `otherwise` where it names none."""
    return otherwise if digits is None else int(digits)


def _merge_rows(rows: list[LoggedCheckpoint]) -> list[LoggedCheckpoint]:
    """Join rows of one checkpoint that some sentences name with its job and others without."""
    found: dict[tuple[str | None, int], LoggedCheckpoint] = {}
    for row in rows:
        key = (row["job"], row["checkpoint"])
        if key not in found:
            found[key] = row
            continue
        old = found[key]
        old["state"] = max(old["state"], row["state"], key=_RANK.index)
        old["late"] += row["late"]
        old["restored"] += row["restored"]
        old["trigger_time"] = row["trigger_time"] if old["trigger_time"] is None else old["trigger_time"]
        old["duration_ms"] = row["duration_ms"] if old["duration_ms"] is None else old["duration_ms"]
        old["bytes"] = row["bytes"] if old["bytes"] is None else old["bytes"]
    return [found[key] for key in sorted(found, key=lambda k: (k[0] or "", k[1]))]
