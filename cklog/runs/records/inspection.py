"""What is here: operators, checkpoints, channels and the metrics of checkpointing, from records alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NotRequired, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.columns import entries
from cklog.history.history import History
from cklog.history.records import CheckpointRecords
from cklog.history.watermarks import UNBOUNDED, CurrentState, build_history
from cklog.lines.entries import protocol_of
from cklog.lines.replay_ranges import first_retained
from cklog.model.findings import Finding, InputUsed
from cklog.model.inspection import Inspection, TimeSpan
from cklog.model.verdict import FLAWS, NOT_JUDGED, Draft
from cklog.model.wording import many, numbered
from cklog.queues.full_scans import QueueRow
from cklog.runs.records.reading import RecordReader


class QueuesInspected(NamedTuple):
    """A row about each output queue, what is wrong with them, and which they are."""

    rows: list[QueueRow]
    findings: list[Finding]
    inputs: list[InputUsed]


_NO_QUEUES = QueuesInspected([], [], [])


class SubtaskRow(TypedDict):
    """The checkpoint records of a subtask: how many, their first and last number, and their times in ms."""

    operator: str
    subtask: int
    checkpoints: int
    first: int | None
    last: int | None
    first_time: int | None
    last_time: int | None


class ChannelRow(TypedDict):
    """A channel: what its newest checkpoints have `sent` and `received`, and what the logs hold of it.

    Numbers are those of the next message. `gaps` between the islands of the logs; None: there are no logs.
    """

    channel: str
    sent: int | None
    received: int | None
    log_from: int | None
    log_to: int | None
    messages: int | None
    bytes: int | None
    gaps: int | None


class EventCount(TypedDict):
    """Raw events of one kind."""

    event: str
    records: int


class MetricDistribution(TypedDict):
    """Values in a few numbers; percentiles by the nearest rank."""

    count: int
    mean: float
    p50: float
    p95: float
    p99: float
    max: float
    sum: float


class CheckpointCounts(TypedDict):
    """Checkpoints by kind and status, their durations in ms and their sizes in bytes; None: no record says."""

    checkpoints: int
    by_kind: dict[str, int]
    by_status: dict[str, int]
    duration_ms: MetricDistribution | None
    state_bytes: MetricDistribution | None


class RecordsInspection(Inspection):
    """What is here of a run of records; `events` if the records were made of raw events, `queues` if there are any."""

    protocol: str
    time_span: TimeSpan | None
    metrics: CheckpointCounts
    subtasks: list[SubtaskRow]
    sources: list[str]
    channels: list[ChannelRow]
    events: NotRequired[list[EventCount]]
    queues: NotRequired[list[QueueRow]]


def inspect_records(
    reader: RecordReader, queues: QueuesInspected = _NO_QUEUES, validate: bool = False
) -> Draft[RecordsInspection]:
    """Say what is here, with what is known of output queues; `validate`: and where logs end before checkpoints."""
    from cklog.runs.records import channel_logs as log

    read = reader.read_checkpoints()
    findings, inputs, raw = read.findings, read.inputs, read.raw
    records = reader.records(read)
    logs = None
    if reader.tables.has("channels"):
        logs, more, used = reader.scan_all("channels", log.columns(None), log.runs, log.RUNS, log.RUNS_REDUCE)
        findings, inputs = findings + more, inputs + used
    built = build_history(records, (), CurrentState(), any(f.id in FLAWS for f in findings))
    inputs = [*inputs, *queues.inputs]
    events = None if raw is None else raw.order.counted
    result = inspection(records, built.history, logs, inputs, queues.rows, events)
    found = [*findings, *queues.findings, *built.findings]
    if (
        validate and logs is not None and not any(f.id in NOT_JUDGED for f in found)
    ):  # else it is not known where they end
        found += _short_logs(result["channels"], first_retained(reader.tables.manifest))
    return Draft("inspect", result, found, inputs)


def _short_logs(channels: Iterable[ChannelRow], retained: Mapping[str, int]) -> Iterator[Finding]:
    """Yield the channels whose newest checkpoint has sent messages that the log does not hold."""
    for row in channels:
        name, sent = row["channel"], row["sent"] or 0
        end = max(row["log_to"] or 0, retained.get(name, 0))
        if end < sent:
            text = (
                f"{name}: the newest checkpoint has sent messages up to {sent - 1}, but the log ends before message "
                f"{end}. A restart from this checkpoint loses {numbered('message', end, sent - 1)} if they are in "
                "flight. Flush the log up to `sent` before the record is written"
            )
            yield Finding("log-ends-before-sent", "warning", name, text)


def inspection(
    records: CheckpointRecords,
    history: History,
    logs: pa.Table | None,
    inputs: Sequence[InputUsed],
    queues: Sequence[QueueRow] = (),
    events: Mapping[str, int] | None = None,
) -> RecordsInspection:
    """Return the result of `inspect`.

    Parameters
    ----------
    logs : every island of the channel logs (`cklog.runs.records.channel_logs.RUNS`), None if there are no logs
    queues : a row for each output queue (`cklog.queues.full_scans.census`)
    events : raw events by kind, if the records were made of them
    """
    subtasks = _subtasks(records)
    channels = _channels(records, history, logs)
    operators = sorted({s.operator for s in records.subtasks})
    times = [t for row in subtasks for t in (row["first_time"], row["last_time"]) if t is not None]
    span: TimeSpan | None = {"from": min(times), "to": max(times)} if times else None
    protocol = "eventual" if queues and not len(records.number) else "mixed" if queues else protocol_of(records)
    result: RecordsInspection = {
        "summary": (
            f"{many(len(operators), 'operator')}, {many(len(subtasks), 'subtask')}, {many(len(channels), 'channel')}, "
            f"{many(len(records.number), 'checkpoint record')} ({protocol}){_made_of(events)}{_queues(queues)}."
        ),
        "formats": sorted({used.format for used in inputs}),
        "protocol": protocol,
        "time_span": span,
        "metrics": metrics(records),
        "subtasks": subtasks,
        "sources": sorted(set(entries(records.table["sources"])[2])),
        "channels": channels,
    }
    if events is not None:
        result["events"] = [{"event": kind, "records": n} for kind, n in events.items()]
    if queues:
        result["queues"] = list(queues)
    return result


def _made_of(events: Mapping[str, int] | None) -> str:
    return "" if events is None else f" made of {sum(events.values())} raw events"


def _queues(queues: Sequence[QueueRow]) -> str:
    return f", {len(queues)} output queue{'s' if len(queues) != 1 else ''}" if queues else ""


def metrics(records: CheckpointRecords) -> CheckpointCounts:
    """Return CheckMate's checkpointing metrics, as far as the records have them (its section V).

    Counts by kind and status; duration in milliseconds and state size in bytes, each with mean, p50, p95, p99
    (nearest rank) and maximum; None where no record says anything.
    """
    table = records.table
    kinds = _counted(table["kind"], "local")
    return {
        "checkpoints": int(np.count_nonzero(records.number)) - kinds.get("volatile", 0),
        "by_kind": kinds,
        "by_status": _counted(table["status"], "complete"),
        "duration_ms": _distribution(table["duration_ms"]),
        "state_bytes": _distribution(table["bytes"]),
    }


def _counted(column: pa.ChunkedArray, absent: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in pc.value_counts(column.cast(pa.string())).to_pylist():
        word = row["values"] or absent
        counts[word] = counts.get(word, 0) + row["counts"]
    return dict(sorted(counts.items()))


def _distribution(column: pa.ChunkedArray) -> MetricDistribution | None:
    values = np.sort(column.drop_null().to_numpy())
    if not len(values):
        return None
    p50, p95, p99 = (values[-(-q * len(values) // 100) - 1].item() for q in (50, 95, 99))
    total = sum(values.tolist())
    return {
        "count": len(values),
        "mean": total / len(values),
        "p50": p50,
        "p95": p95,
        "p99": p99,
        "max": values[-1].item(),
        "sum": total,
    }


def _subtasks(records: CheckpointRecords) -> list[SubtaskRow]:
    time = records.table["time"]
    rows: list[SubtaskRow] = []
    for i, (operator, number) in enumerate(records.subtasks):
        low, high = np.searchsorted(records.subtask, [i, i + 1]).tolist()
        times = time.slice(low, high - low).drop_null()
        span = pc.min_max(times).as_py() if len(times) else {"min": None, "max": None}
        rows.append(
            {
                "operator": operator,
                "subtask": number,
                "checkpoints": high - low,
                "first": int(records.number[low]) if high > low else None,
                "last": int(records.number[high - 1]) if high > low else None,
                "first_time": span["min"],
                "last_time": span["max"],
            }
        )
    return rows


def _channels(records: CheckpointRecords, history: History, logs: pa.Table | None) -> list[ChannelRow]:
    """One row per channel that a checkpoint or a log names."""
    newest = dict(
        zip(
            history.channels,
            zip(
                history.sent_of(history.newest).tolist(),
                [None if n == UNBOUNDED else n for n in history.received_of(history.newest).tolist()],
                strict=True,
            ),
            strict=True,
        )
    )
    held: dict[str, list[dict[str, Any]]] = {}
    for row in logs.to_pylist() if logs is not None else []:
        held.setdefault(row["channel"], []).append(row)
    rows: list[ChannelRow] = []
    for name in sorted({*newest, *held}):
        islands = sorted(held.get(name, []), key=lambda row: row["from"])
        sent, received = newest.get(name, (None, None))
        rows.append(
            {
                "channel": name,
                "sent": sent,
                "received": received,
                "log_from": islands[0]["from"] if islands else None,
                "log_to": islands[-1]["to"] if islands else None,
                "messages": sum(row["to"] - row["from"] for row in islands) if logs is not None else None,
                "bytes": sum(row["bytes"] for row in islands) if logs is not None else None,
                "gaps": len(islands) - 1 if islands else None,
            }
        )
    return rows
