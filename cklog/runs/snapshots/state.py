"""What a snapshot restores: where its sources resume, what was in flight, which transactions its sink left open."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from cklog.inputs.snapshots import CDC, LATER_VERSION, SPLITS
from cklog.model.findings import Effect, Finding, Severity, Where
from cklog.model.lines import UNREAD_POSITION, SourceOffset
from cklog.runs.snapshots.heads import rows_of
from cklog.source_positions.positions import words

EARLIEST, LATEST, COMMITTED = -2, -1, -3
UNSET = -(1 << 63)

ICEBERG = "iceberg-table"
"""What a source is called that reads one: its state does not name the table."""

_MARKERS: Mapping[int, tuple[Severity, str, Effect, str]] = {
    EARLIEST: (
        "error",
        "source-at-earliest",
        "data-duplicated",
        "it starts at the earliest offset: all of the topic is read again",
    ),
    LATEST: (
        "error",
        "source-at-latest",
        "data-lost",
        "it starts at the latest offset when it is restored: what came between checkpoint and restore is lost",
    ),
    COMMITTED: (
        "warning",
        "source-at-committed",
        "none",
        "it starts where the group has committed, not where the job was",
    ),
    UNSET: ("warning", "source-not-started", "none", "its start was not decided yet: the job's own setting decides"),
}


def operator_labels(table: pa.Table) -> dict[str, str]:
    """Say what to call each operator: its uid, else its name, else its id; by id."""
    return {row["operator"]: row["uid"] or row["name"] or row["operator"] for row in rows_of(table, "operator")}


def source_offsets(table: pa.Table, job: str = "") -> list[SourceOffset]:
    """Say where each split of a job resumes; None: at its start. Another marker instead of an offset is kept.

    A table that is read as a stream resumes behind a snapshot, told as Spark's streams tell it. Where the state of a
    source could not be read, its offset is `UNREAD_POSITION`.
    """
    labels = operator_labels(table)
    names = {row["operator"]: row["name"] or labels[row["operator"]] for row in rows_of(table, "operator")}
    found = [
        SourceOffset(
            row["name"],
            words(cdc_position(row)) if row["kind"] == CDC else None if row["offset"] == EARLIEST else row["offset"],
            labels.get(row["operator"], row["operator"]),
            -1 if row["subtask"] is None else row["subtask"],
            job=job,
        )
        for row in rows_of(table, "source")
    ]
    found += [
        SourceOffset(ICEBERG, json.dumps({"snapshot_id": snapshot}), operator, -1, job=job)
        for operator, snapshot in table_positions(table).items()
        if snapshot is not None
    ]
    found += [
        SourceOffset(names[operator], UNREAD_POSITION, labels.get(operator, operator), subtask, job=job)
        for operator, subtask in _unread_sources(table)
    ]
    return sorted(found, key=lambda s: (s.operator, _numbered(s.source), s.subtask))


def _unread_sources(table: pa.Table) -> list[tuple[str, int]]:
    """Operators that read a source, with the subtasks whose position could not be read; -1: of the coordinator.

    What a coordinator holds counts only where nothing is known of the readers.
    """
    rows = [row for row in rows_of(table, "unread") if row["name"] == SPLITS]
    readers = sorted({(row["operator"], row["subtask"]) for row in rows if row["subtask"] is not None})
    known = {operator for operator, _ in readers} | {row["operator"] for row in rows_of(table, "source")}
    return readers + sorted({(row["operator"], -1) for row in rows if row["operator"] not in known})


def cdc_position(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return where a split of a database's log resumes, by the names that Debezium has for it."""
    found: dict[str, Any] = json.loads(row["detail"])
    return found


def table_positions(table: pa.Table) -> dict[str, int | None]:
    """Say up to which snapshot of an Iceberg table each operator that reads one has looked for files; None: none yet.

    Operators are told by their labels, or where two have the same one by their ids.
    """
    labels = operator_labels(table)
    rows = [row for row in rows_of(table, "enumerator") if row["kind"] == "iceberg"]
    called = Counter(labels.get(row["operator"]) for row in rows)
    return {_unique_label(row["operator"], labels, called): row["offset"] for row in rows}


def _unique_label(operator: str, labels: Mapping[str, str], called: Mapping[str | None, int]) -> str:
    """What to call an operator: its label, unless another one has the same."""
    label = labels.get(operator, operator)
    return label if called[label] == 1 else operator


def _numbered(name: str) -> tuple[str, int, str]:
    """A topic-partition in order of its number.

    >>> sorted(["t-10", "t-9"], key=_numbered)
    ['t-9', 't-10']
    """
    topic, _, number = name.rpartition("-")
    return (topic, int(number), "") if number.isdigit() else (name, 0, name)


def source_findings(snapshot: str, table: pa.Table) -> list[Finding]:
    """Return markers where offsets should be, splits that no reader or two readers have, and what was not decoded."""
    place = (Where(f"{snapshot}/_metadata" if snapshot else "_metadata"),)
    snapshot = snapshot or "."
    found = []
    readers: dict[tuple[str, str, str], list[int]] = {}
    for row in rows_of(table, "source"):
        if row["subtask"] is not None:
            readers.setdefault((row["operator"], row["name"], row["detail"] or ""), []).append(row["subtask"])
        if row["offset"] in _MARKERS and row["kind"] != "number-sequence":
            severity, id, effect, means = _MARKERS[row["offset"]]
            message = f"{row['name']} has no offset in {snapshot}: {means}"
            found.append(Finding(id, severity, row["name"], message, place, effect))
    found += _assignments(snapshot, table, readers, place)
    unread_sources = {operator for operator, _ in _unread_sources(table)}
    for row in rows_of(table, "unread"):
        if row["kind"] == LATER_VERSION:  # see `later_state_findings`
            continue
        of_source = row["name"] == SPLITS and row["operator"] in unread_sources
        more = _UNREAD_SOURCE if of_source else ""
        found.append(
            Finding(
                id="unread-state",
                severity="error" if of_source else "warning",
                subject=snapshot,
                message=f"{snapshot}: not read: {row['detail']} ({row['kind']}){more}",
                where=place,
                effect="unknown" if of_source else "none",
            )
        )
    return found


_UNREAD_SOURCE = (
    ". A source keeps its position in this state, so cklog cannot check where the job resumes or whether the source "
    "still has the data. Check the source's retention before the restart"
)


def _assignments(
    snapshot: str, table: pa.Table, readers: Mapping[tuple[str, str, str], Sequence[int]], place: tuple[Where, ...]
) -> list[Finding]:
    """The coordinator's list of partitions beside what the readers hold, by operator, split and cluster."""
    found = []
    for (_, name, _), subtasks in sorted(readers.items()):
        if len(subtasks) > 1:
            told = ", ".join(map(str, sorted(subtasks)))
            message = f"{snapshot}: split {name} is held by several readers ({told}): it is read more than once"
            found.append(
                Finding(
                    id="split-held-twice",
                    severity="error",
                    subject=name,
                    message=message,
                    where=place,
                    effect="data-duplicated",
                )
            )
    sources = {operator for operator, *_ in readers}
    silent = {row["operator"] for row in rows_of(table, "unread") if row["subtask"] is not None}
    silent |= {row["operator"] for row in rows_of(table, "finished")}  # what is done holds nothing any more
    silent |= {row["operator"] for row in rows_of(table, "operator") if row["kind"] == "finished"}
    silent -= sources
    held = {(operator, name) for operator, name, _ in readers}
    for row in rows_of(table, "enumerator"):
        key = (row["operator"], row["name"])
        if row["kind"] == "assigned" and row["name"] and key not in held and row["operator"] not in silent:
            message = (
                f"{snapshot}: the coordinator has given {row['name']} to a reader, and no reader holds it: unless it "
                "was bounded and is done, it will not be read after a restore"
            )
            found.append(
                Finding(
                    id="split-without-reader", severity="warning", subject=row["name"], message=message, where=place
                )
            )
    return found


def in_flight(table: pa.Table) -> list[dict[str, Any]]:
    """Return data of unaligned checkpoints that is restored with the channels, per channel; bytes."""
    labels = operator_labels(table)
    rows = [
        {
            "operator": labels.get(row["operator"], row["operator"]),
            "subtask": row["subtask"],
            "direction": row["kind"],
            "gate": row["gate"],
            "channel": row["channel"],
            "bytes": row["bytes"],
        }
        for row in rows_of(table, "channel")
        if row["bytes"]
    ]
    return sorted(rows, key=lambda r: (r["direction"], r["operator"], r["subtask"], r["gate"] or 0, r["channel"] or 0))


def in_flight_sums(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the same per operator and direction."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in rows:
        key = (row["snapshot"], row["operator"], row["direction"])
        empty = {"snapshot": key[0], "operator": key[1], "direction": key[2], "channels": 0, "bytes": 0}
        total = found.setdefault(key, empty)
        total["channels"] += 1
        total["bytes"] += row["bytes"]
    return [found[key] for key in sorted(found)]


def transactions(table: pa.Table) -> list[dict[str, Any]]:
    """Return Kafka transactions of an exactly-once sink: pending ones are committed by a restore, open ones aborted."""
    labels = operator_labels(table)
    rows = [
        {
            "operator": labels.get(row["operator"], row["operator"]),
            "subtask": row["subtask"],
            "transaction": row["name"],
            "state": row["kind"],
            "producer": row["detail"],
        }
        for row in rows_of(table, "transaction")
        if row["kind"] in ("open", "pending", "failed")
    ]
    return sorted(rows, key=lambda r: (r["operator"], r["transaction"], r["state"]))


def read_again(mine: Sequence[SourceOffset], other: Sequence[SourceOffset]) -> list[dict[str, Any]]:
    """Return per source the offsets of two snapshots, and how many records each reads that the other has done.

    None where one of the two has no offset.
    """
    theirs: dict[tuple[str, str], Any] = {(s.operator, s.source): s.offset for s in other}
    alone = _of_one_operator(mine).keys() & _of_one_operator(other).keys()
    by_name = {s.source: s.offset for s in other if s.source in alone}
    rows = []
    for source in mine:
        there = theirs.get((source.operator, source.source), by_name.get(source.source))
        known = _is_offset(source.offset) and _is_offset(there)
        rows.append(
            {
                "source": source.source,
                "reader": source.operator,
                "offset": source.offset,
                "other": there,
                "read_again": max(there - source.offset, 0) if known else None,
                "read_again_by_other": max(source.offset - there, 0) if known else None,
            }
        )
    return rows


def _is_offset(value: Any) -> bool:
    return isinstance(value, int) and value >= 0


def _of_one_operator(sources: Sequence[SourceOffset]) -> dict[str, str]:
    """The operator of each source of which one operator alone has it: an operator may be called otherwise elsewhere."""
    found: dict[str, set[str]] = {}
    for source in sources:
        found.setdefault(source.source, set()).add(source.operator)
    return {name: next(iter(operators)) for name, operators in found.items() if len(operators) == 1}
