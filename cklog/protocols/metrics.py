"""CheckMate's metrics of a checkpointing protocol, from a history (ICDE 2024, section V).

*Average checkpointing time*: of one local checkpoint; of a coordinated round from its first checkpoint to its last.
*Invalid checkpoints* have two counts, which the paper does not tell apart: useless ones (on a Z-cycle, for good) and
those that this failure rolled past (what its Table III counts). *Message overhead*: bytes sent over bytes without
what the protocol added. *Restart work*: the state to load and the messages to replay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.types import Mask
from cklog.engine.scan import Reduce
from cklog.history.records import CheckpointRecords
from cklog.lines.checkpoint_sets import checkpoint_sets
from cklog.lines.rollback import domino_depths, rollback_distances
from cklog.lines.rounds import described_rounds, rounds_of
from cklog.model.findings import Finding, InputUsed
from cklog.model.lines import Round
from cklog.model.question import Question
from cklog.model.verdict import Draft
from cklog.runs.records.evidence import Planned
from cklog.runs.records.inspection import RecordsInspection, inspect_records
from cklog.runs.records.plan import plan_line
from cklog.runs.records.reading import RecordReader

SIZES = pa.schema(
    [pa.field("all", pa.int64()), pa.field("messages", pa.int64()), pa.field("sized", pa.int64())]
    + [pa.field(name, pa.int64()) for name in ("bytes", "protocol_bytes", "split")]
)
"""Counts of a log's messages: of `sized` ones the bytes are logged, of `split` ones the protocol's share of them too.

`bytes` and `protocol_bytes` add up those of `split` messages; `all` is 0, the one key by which rows are summed."""

SIZES_REDUCE = Reduce(("all",), dict.fromkeys(SIZES.names[1:], "sum"))
"""Sums the rows of all batches."""


def message_sizes(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Count a batch of messages: a kernel that makes one row of `SIZES`."""
    both = pc.and_(pc.is_valid(batch["bytes"]), pc.is_valid(batch["protocol_bytes"]))
    split = batch.filter(both)
    counts = (
        0,
        batch.num_rows,
        batch.num_rows - batch["bytes"].null_count,
        pc.sum(split["bytes"]).as_py() or 0,
        pc.sum(split["protocol_bytes"]).as_py() or 0,
        split.num_rows,
    )
    return pa.RecordBatch.from_arrays([pa.array([n], pa.int64()) for n in counts], schema=SIZES)


class RoundCounts(TypedDict):
    """Coordinated rounds by state; straggling ones are complete too."""

    complete: int
    straggling: int
    incomplete: int


class CheckpointingTime(TypedDict):
    """Mean times in ms: of a local checkpoint, and of a complete round; None: not known."""

    local: float | None
    round: float | None


class Share(TypedDict):
    """Some of the stored checkpoints, and which share of all they are."""

    checkpoints: int
    share: float


class InvalidCheckpoints(TypedDict):
    """Checkpoints on a Z-cycle, and those that this failure rolled past."""

    useless: Share
    rolled_past: Share


class RollbackSpread(TypedDict):
    """A number per subtask: the greatest, the mean and the sum."""

    max: int
    mean: float
    sum: int


class RollbackMetrics(TypedDict):
    """How far subtasks go back: in checkpoints, in ms (None: not known of all), in messages, in depth of the domino."""

    subtasks: int
    checkpoints: RollbackSpread
    time_ms: RollbackSpread | None
    received: int
    sent: int
    depth: int
    at_initial: int
    total_domino: bool


class MessageOverhead(TypedDict):
    """All logged messages and their bytes, the protocol's among them; `ratio` of all bytes to the payload's."""

    messages: int
    bytes: int | None
    protocol_bytes: int | None
    ratio: float | None


class RestartWork(TypedDict):
    """The state to load (deltas with their bases), messages to replay and their bytes; None: not logged."""

    state_bytes: int | None
    messages: int
    message_bytes: int | None


class ProtocolMetrics(TypedDict):
    """The metrics of a checkpointing protocol; None where there is nothing to measure, or no consistent line."""

    protocol: str
    checkpoints: int
    forced: int
    rounds: RoundCounts | None
    checkpointing_time_ms: CheckpointingTime
    invalid: InvalidCheckpoints | None
    rollback: RollbackMetrics | None
    message_overhead: MessageOverhead | None
    restart: RestartWork | None


class MeasuredInspection(RecordsInspection):
    """What is here, with the metrics of the protocol and the rounds that were not as they should be."""

    protocol_metrics: ProtocolMetrics
    rounds: list[Round]


class RunMetrics(ProtocolMetrics):
    """The metrics of a run, which is called by its folder's name."""

    run: str


class RunComparison(TypedDict):
    """The metrics of several runs side by side."""

    runs: list[RunMetrics]


class Metrics(NamedTuple):
    """The metrics of a run (`found`), the line that they rest on, and its straggling and incomplete rounds."""

    found: ProtocolMetrics
    planned: Planned
    slow_rounds: list[Round]


def with_metrics(reader: RecordReader) -> Draft[MeasuredInspection]:
    """Say what is here, with the metrics of the protocol and the rounds that were not as they should be."""
    inspected, metrics = inspect_records(reader), protocol_metrics(reader, Question())
    result: MeasuredInspection = {
        **inspected.result,
        "protocol_metrics": metrics.found,
        "rounds": metrics.slow_rounds,
    }
    return Draft(
        command=inspected.command,
        result=result,
        findings=[*metrics.planned.evidence.findings, *inspected.findings],
        inputs=inspected.inputs,
        indeterminate=metrics.planned.evidence.indeterminate,
    )


def compared(runs: Mapping[str, RecordReader]) -> Draft[RunComparison]:
    """Put the metrics of several runs side by side, by the name of their folders."""
    rows: list[RunMetrics] = []
    findings: list[Finding] = []
    inputs: list[InputUsed] = []
    indeterminate = False
    for name, reader in runs.items():
        metrics = protocol_metrics(reader, Question())
        evidence = metrics.planned.evidence
        rows.append({"run": name, **metrics.found})
        findings += [
            replace(f, subject=f"{name}: {f.subject}", message=f"{name}: {f.message}") for f in evidence.findings
        ]
        inputs += [replace(used, path=f"{name}/{used.path}") for used in evidence.inputs]
        indeterminate |= evidence.indeterminate
    return Draft("compare", {"runs": rows}, findings, inputs, indeterminate=indeterminate)


def protocol_metrics(reader: RecordReader, question: Question) -> Metrics:
    """Measure a run by the metrics of checkpointing protocols (CheckMate, section V)."""
    planned = plan_line(reader, question)
    overhead, findings, inputs = _message_overhead(reader)
    known = planned.evidence.inputs
    evidence = planned.evidence.joined(findings, [used for used in inputs if used not in known])
    planned = planned._replace(evidence=evidence)
    history = evidence.history
    rounds = described_rounds(history, rounds_of(evidence.records, evidence.built))
    found: ProtocolMetrics = {
        "protocol": planned.result.protocol,
        "checkpoints": int(np.count_nonzero(history.label > 0)),
        "forced": _forced_count(evidence.records.table["kind"]),
        "rounds": _round_counts(rounds),
        "checkpointing_time_ms": _checkpointing_time(evidence.records.table["duration_ms"], rounds),
        "invalid": None,
        "rollback": None,
        "message_overhead": overhead,
        "restart": None,
    }
    if planned.result.consistent:
        found["invalid"] = _invalid_checkpoints(planned)
        found["rollback"] = _rollback_metrics(planned)
        found["restart"] = _restart_work(planned)
    return Metrics(found, planned, [r for r in rounds if r.state != "complete"])


def _forced_count(kinds: pa.ChunkedArray) -> int:
    """Count the checkpoints that a communication-induced protocol forced."""
    return int(pc.sum(pc.fill_null(pc.equal(kinds.cast(pa.string()), "forced"), False)).as_py() or 0)


def _round_counts(rounds: list[Round]) -> RoundCounts | None:
    """Count rounds by state; straggling ones are complete too."""
    if not rounds:
        return None
    states = [r.state for r in rounds]
    return {
        "complete": states.count("complete") + states.count("straggling"),
        "straggling": states.count("straggling"),
        "incomplete": states.count("incomplete"),
    }


def _checkpointing_time(durations: pa.ChunkedArray, rounds: list[Round]) -> CheckpointingTime:
    """Return mean times in ms: of a local checkpoint, and of a complete round."""
    spans = [r.span_ms for r in rounds if r.state != "incomplete" and r.span_ms is not None]
    local = pc.mean(durations).as_py()
    return {
        "local": None if local is None else round(local, 3),
        "round": round(sum(spans) / len(spans), 3) if spans else None,
    }


def _invalid_checkpoints(planned: Planned) -> InvalidCheckpoints:
    """Count the useless checkpoints and those that the line rolls past, with their shares of all stored ones."""
    history = planned.evidence.history
    sets, stored = checkpoint_sets(history, planned.line, planned.evidence.execution.useless), history.label > 0
    total = int(np.count_nonzero(stored))
    return {"useless": _share(sets.useless & stored, total), "rolled_past": _share(sets.rolled_past & stored, total)}


def _share(chosen: Mask, total: int) -> Share:
    """Count the checkpoints that a mask, shape (rows,), chooses, as a share of all `total` stored ones."""
    count = int(np.count_nonzero(chosen))
    return {"checkpoints": count, "share": round(count / total, 6) if total else 0.0}


def _rollback_metrics(planned: Planned) -> RollbackMetrics:
    """Return the greatest, mean and total distance; domino depth, and whether initial states were reached."""
    history, result = planned.evidence.history, planned.result
    depth = domino_depths(history, history.newest)
    distances = rollback_distances(history, planned.line, None, depth, planned.evidence.last)
    times = [d.time_ms for d in result.rollback]
    known = [t for t in times if t is not None]
    checkpoints = [d.checkpoints for d in distances]
    return {
        "subtasks": sum(c > 0 for c in checkpoints),
        "checkpoints": {"max": max(checkpoints, default=0), "mean": _mean(checkpoints), "sum": sum(checkpoints)},
        "time_ms": {"max": max(known), "mean": _mean(known), "sum": sum(known)} if known and known == times else None,
        "received": sum(d.received for d in distances),
        "sent": sum(d.sent for d in distances),
        "depth": int(depth.max(initial=0)),
        "at_initial": int(np.count_nonzero((planned.line == 0) & (history.newest > 0))),
        "total_domino": bool((planned.line == 0).all() and (history.newest > 0).any()),
    }


def _mean(values: list[int]) -> float:
    return round(sum(values) / len(values), 3) if values else 0.0


def _restart_work(planned: Planned) -> RestartWork:
    """Return the state to load (deltas with their bases), messages to replay and their bytes; None: not logged."""
    ranges = planned.result.channels
    bytes_known = all(r.bytes is not None for r in ranges)
    return {
        "state_bytes": _state_bytes(planned),
        "messages": sum(r.replay_to - r.replay_from for r in ranges),
        "message_bytes": sum(r.bytes or 0 for r in ranges) if bytes_known and ranges else None,
    }


def _state_bytes(planned: Planned) -> int | None:
    """Add up the bytes of the line's checkpoints and of every checkpoint that their deltas build on."""
    built, records = planned.evidence.built, planned.evidence.records
    sizes = records.table["bytes"].to_pylist()
    parents = _parent_rows(records)
    total, known = 0, False
    for row in built.row[built.history.first[:-1] + planned.line].tolist():
        while row >= 0:
            known |= sizes[row] is not None
            total += sizes[row] or 0
            row = parents[row]
    return total if known else None


def _parent_rows(records: CheckpointRecords) -> list[int]:
    """Return for each record the row of the one that it is a delta on: a former one of its subtask; -1 for none.

    A delta that names no parent is one on the record before it.
    """
    forms = records.table["form"].cast(pa.string()).to_pylist()
    named = records.table["parent"].cast(pa.int64()).to_pylist()
    checkpoints = list(zip(records.subtask.tolist(), records.number.tolist(), strict=True))
    row_of = {checkpoint: row for row, checkpoint in enumerate(checkpoints)}
    found = []
    for row, (subtask, number) in enumerate(checkpoints):
        parent = -1
        if forms[row] == "delta" and named[row] is None:
            parent = row - 1 if row and checkpoints[row - 1][0] == subtask else -1
        elif forms[row] == "delta" and named[row] < number:
            parent = row_of.get((subtask, named[row]), -1)
        found.append(parent)
    return found


def _message_overhead(reader: RecordReader) -> tuple[MessageOverhead | None, list[Finding], list[InputUsed]]:
    """Measure all logged messages with and without the protocol's bytes; None where there are no logs."""
    scanned = reader.scan_messages(("bytes", "protocol_bytes"), message_sizes, SIZES, SIZES_REDUCE)
    if scanned is None:
        return None, [], []
    return _overhead_of_sizes(scanned.table), scanned.findings, scanned.inputs


def _overhead_of_sizes(table: pa.Table) -> MessageOverhead:
    """Return all bytes by those of the payload, from rows of `SIZES`; None where they are not logged apart."""
    row = {name: sum(table[name].to_pylist()) for name in SIZES.names[1:]}
    if not row["split"]:
        return {"messages": row["messages"], "bytes": None, "protocol_bytes": None, "ratio": None}
    payload = row["bytes"] - row["protocol_bytes"]
    return {
        "messages": row["messages"],
        "bytes": row["bytes"],
        "protocol_bytes": row["protocol_bytes"],
        "ratio": round(row["bytes"] / payload, 4) if payload > 0 else None,
    }
