"""CheckMate's metrics of a checkpointing protocol, from a history (ICDE 2024, section V).

*Average checkpointing time*: of one local checkpoint; of a coordinated round from its first checkpoint to its last.
*Invalid checkpoints* have two counts, which the paper does not tell apart: useless ones (on a Z-cycle, for good) and
those that this failure rolled past (what its Table III counts). *Message overhead*: bytes sent over bytes without
what the protocol added. *Restart work*: the state to load and the messages to replay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.types import Ints
from cklog.engine import Reduce
from cklog.lines.checkpoint_sets import checkpoint_sets
from cklog.lines.rollback import domino_depths, rollback_distances
from cklog.lines.rounds import described_rounds, rounds_of
from cklog.model.findings import Finding, InputUsed
from cklog.model.lines import Round
from cklog.model.question import Question
from cklog.model.verdict import Draft
from cklog.runs.records.evidence import Planned
from cklog.runs.records.plan import plan_line
from cklog.runs.records.reading import RecordReader

SIZES = pa.schema(
    [pa.field("all", pa.int64()), pa.field("messages", pa.int64()), pa.field("sized", pa.int64())]
    + [pa.field(name, pa.int64()) for name in ("bytes", "protocol_bytes", "split")]
)
"""Messages of a log; of `sized` ones the bytes are logged, of `split` ones with the protocol's share."""

SIZES_REDUCE = Reduce(("all",), dict.fromkeys(SIZES.names[1:], "sum"))


def sizes(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Kernel: one row of `SIZES` for a batch of messages; `bytes` are those of messages with both sizes."""
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


class Metrics(NamedTuple):
    """The metrics of a run by name, the line that they rest on, and rounds that were not as they should be."""

    found: dict[str, Any]
    planned: Planned
    slow_rounds: list[Round]


def with_metrics(reader: RecordReader, inspected: Draft[dict[str, Any]]) -> Draft[dict[str, Any]]:
    """Add the metrics of the protocol to what `inspect` answers, and the rounds that were not as they should be."""
    metrics = protocol_metrics(reader, Question())
    slow = [asdict(r) for r in metrics.slow_rounds]
    return replace(
        inspected,
        result={**inspected.result, "protocol_metrics": metrics.found, "rounds": slow},
        findings=[*metrics.planned.evidence.findings, *inspected.findings],
        indeterminate=metrics.planned.evidence.indeterminate,
    )


def compared(runs: Mapping[str, RecordReader]) -> Draft[dict[str, Any]]:
    """Put the metrics of several runs side by side, by the name of their folders."""
    rows: list[dict[str, Any]] = []
    findings: list[Finding] = []
    inputs: list[InputUsed] = []
    indeterminate = False
    for name, reader in runs.items():
        metrics = protocol_metrics(reader, Question())
        evidence = metrics.planned.evidence
        rows.append({"run": name} | metrics.found)
        findings += [
            replace(f, subject=f"{name}: {f.subject}", message=f"{name}: {f.message}") for f in evidence.findings
        ]
        inputs += [replace(used, path=f"{name}/{used.path}") for used in evidence.inputs]
        indeterminate |= evidence.indeterminate
    return Draft("compare", {"runs": rows}, findings, inputs, indeterminate=indeterminate)


def protocol_metrics(reader: RecordReader, question: Question) -> Metrics:
    """Measure a run by the metrics of checkpointing protocols (CheckMate, section VI)."""
    planned = plan_line(reader, question)
    overhead, findings, inputs = _overhead(reader)
    known = planned.evidence.inputs
    evidence = planned.evidence.joined(findings, [used for used in inputs if used not in known])
    planned = replace(planned, evidence=evidence)
    line = planned.line
    history = evidence.history
    rounds = described_rounds(history, rounds_of(evidence.records, evidence.built))
    found: dict[str, Any] = {
        "protocol": planned.result.protocol,
        "checkpoints": int(np.count_nonzero(history.label > 0)),
        "forced": _forced(evidence.records.table["kind"]),
        "rounds": _round_counts(rounds),
        "checkpointing_time_ms": _checkpointing_time(evidence.records.table["duration_ms"], rounds),
        "invalid": None,
        "rollback": None,
        "message_overhead": overhead,
        "restart": None,
    }
    if planned.result.consistent:
        found |= {"invalid": _invalid(planned), "rollback": _rollback(planned), "restart": _restart(planned, line)}
    return Metrics(found, planned, [r for r in rounds if r.state != "complete"])


def _forced(kinds: pa.ChunkedArray) -> int:
    return int(pc.sum(pc.fill_null(pc.equal(kinds.cast(pa.string()), "forced"), False)).as_py() or 0)


def _round_counts(rounds: list[Round]) -> dict[str, int] | None:
    if not rounds:
        return None
    states = [r.state for r in rounds]
    return {
        "complete": states.count("complete") + states.count("straggling"),
        "straggling": states.count("straggling"),
        "incomplete": states.count("incomplete"),
    }


def _checkpointing_time(durations: pa.ChunkedArray, rounds: list[Round]) -> dict[str, float | None]:
    """Means: of a local checkpoint, and of a complete round."""
    spans = [r.span_ms for r in rounds if r.state != "incomplete" and r.span_ms is not None]
    local = pc.mean(durations).as_py()
    return {
        "local": None if local is None else round(local, 3),
        "round": round(sum(spans) / len(spans), 3) if spans else None,
    }


def _invalid(planned: Planned) -> dict[str, Any]:
    history = planned.evidence.history
    sets, stored = checkpoint_sets(history, planned.line), history.label > 0
    total = int(np.count_nonzero(stored))
    counts = {kind: int(np.count_nonzero(getattr(sets, kind) & stored)) for kind in ("useless", "rolled_past")}
    return {
        kind: {"checkpoints": count, "share": round(count / total, 6) if total else 0.0}
        for kind, count in counts.items()
    }


def _rollback(planned: Planned) -> dict[str, Any]:
    """Greatest, mean and total distance; depth and whether initial states were reached."""
    history, result = planned.evidence.history, planned.result
    depth = domino_depths(history, history.newest)
    distances = rollback_distances(history, planned.line, None, depth)
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


def _restart(planned: Planned, line: Ints) -> dict[str, Any]:
    """State to load (with what its deltas rest on), messages to replay and their bytes; None: not logged."""
    ranges = planned.result.channels
    bytes_known = all(r.bytes is not None for r in ranges)
    return {
        "state_bytes": _state_bytes(planned, line),
        "messages": sum(r.replay_to - r.replay_from for r in ranges),
        "message_bytes": sum(r.bytes or 0 for r in ranges) if bytes_known and ranges else None,
    }


def _state_bytes(planned: Planned, line: Ints) -> int | None:
    """Bytes of the line's checkpoints and of every checkpoint that their deltas rest on."""
    built, records = planned.evidence.built, planned.evidence.records
    sizes = records.table["bytes"].to_pylist()
    forms, parents = (
        records.table[name].cast(t).to_pylist() for name, t in (("form", pa.string()), ("parent", pa.int64()))
    )
    place = {(s, n): r for r, (s, n) in enumerate(zip(records.subtask.tolist(), records.number.tolist(), strict=True))}
    total, known = 0, False
    for row in built.row[built.history.first[:-1] + line].tolist():
        while row >= 0:
            known |= sizes[row] is not None
            total += sizes[row] or 0
            row = _base(row, forms, parents, place, records.subtask, records.number)
    return total if known else None


def _base(
    row: int,
    forms: list[str | None],
    parents: list[int | None],
    place: Mapping[tuple[int, int], int],
    subtask: Ints,
    number: Ints,
) -> int:
    """The record that a delta rests on; -1 for none."""
    if forms[row] != "delta":
        return -1
    parent = parents[row]
    if parent is None:
        return row - 1 if row and subtask[row - 1] == subtask[row] else -1
    return place.get((int(subtask[row]), parent), -1) if parent < number[row] else -1


def _overhead(reader: RecordReader) -> tuple[dict[str, Any] | None, list[Finding], list[InputUsed]]:
    """Bytes of all logged messages with and without the protocol's; None where there are no logs."""
    scanned = reader.scan_messages(("bytes", "protocol_bytes"), sizes, SIZES, SIZES_REDUCE)
    if scanned is None:
        return None, [], []
    return _ratio(scanned.table), scanned.findings, scanned.inputs


def _ratio(table: pa.Table) -> dict[str, Any]:
    """All bytes by the payload's; None where they are not logged apart."""
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
