"""What snapshots hold: operators, their parallelism and state, and each checkpoint's story in the job manager's log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from cklog.engine.reading import Reading
from cklog.errors import NotFound
from cklog.inputs.offers import OffersSnapshots
from cklog.inputs.snapshots import LoggedCheckpoint
from cklog.local_files import plain_reason
from cklog.model.findings import Finding
from cklog.model.inspection import Inspection
from cklog.model.question import InspectQuestion, Question
from cklog.model.verdict import Draft
from cklog.model.wording import many
from cklog.runs.snapshots.beside.pending import PendingRow, pending_in
from cklog.runs.snapshots.findings import NeededFolder, name_of
from cklog.runs.snapshots.heads import rows_of
from cklog.runs.snapshots.plan import plan_snapshots
from cklog.runs.snapshots.verdicts import JudgedSnapshot, Survey

_KINDS = (
    "managed-keyed",
    "raw-keyed",
    "managed-operator",
    "raw-operator",
    "input-channel",
    "output-channel",
    "coordinator",
)


class SnapshotRow(TypedDict):
    """A snapshot, and whether it can be restored; `flawed` of its `files` are not as its metadata has them."""

    snapshot: str
    id: int | None
    kind: str
    version: int | None
    verdict: str
    files: int
    flawed: int
    state_bytes: int


class OperatorRow(TypedDict):
    """An operator of the snapshot that its job restarts from; `finished` subtasks, and bytes of state by kind."""

    snapshot: str
    uid: str | None
    name: str | None
    id: str
    parallelism: int
    max_parallelism: int
    finished: int
    state_bytes: dict[str, int]


class UidRow(TypedDict):
    """The operator id that a uid stands for, and the operator that has it; None: no one here."""

    uid: str
    id: str
    snapshot: str | None
    name: str | None


class HistoryRow(LoggedCheckpoint):
    """What a job manager's log says of a checkpoint, and what is on disk of it now."""

    verdict: str


class SnapshotsInspection(Inspection):
    """What is here of snapshots of jobs; `pending` if sinks have anything to commit after a restore.

    `uid` and `history` are there if `--uid` and `--job-log` asked for them.
    """

    protocol: str
    snapshots: list[SnapshotRow]
    needs: list[NeededFolder]
    operators: list[OperatorRow]
    pending: NotRequired[list[PendingRow]]
    uid: NotRequired[list[UidRow]]
    history: NotRequired[list[HistoryRow]]


def inspect_snapshots(parser: OffersSnapshots, reading: Reading, asked: InspectQuestion) -> Draft[SnapshotsInspection]:
    """Say which snapshots are here, with their operators and state, as `asked`."""
    plan = plan_snapshots(parser, reading, Question(check_contents=asked.check_contents))
    result, findings = inspection(parser, plan.survey, plan.chosen, plan.rows, asked)
    return Draft("inspect", result, [*plan.findings, *findings], plan.survey.inputs)


def inspection(
    parser: OffersSnapshots,
    survey: Survey,
    chosen: Mapping[str, JudgedSnapshot | None],
    needs: Sequence[NeededFolder],
    asked: InspectQuestion,
) -> tuple[SnapshotsInspection, list[Finding]]:
    """Return the result of `inspect`, and what the job's log says against it.

    Parameters
    ----------
    chosen : what each job would restart from; its operators are shown
    asked : `uid`, a name to find the operator of; `job_log`, the path of a job manager's log
    """
    whole = sum(j.verdict == "restorable" for j in survey.judged)
    jobs = sorted({j.folder.job for j in survey.judged if j.folder.number is not None})
    savepoints = sum("Savepoint" in j.kind for j in survey.judged)
    picked = [j for j in chosen.values() if j is not None]
    result: SnapshotsInspection = {
        "summary": (
            f"{many(len(jobs), 'job')}, {many(len(survey.judged), 'snapshot')} "
            f"({many(savepoints, 'savepoint')}), {whole} of them restorable."
        ),
        "formats": [parser.name],
        "protocol": "coordinated",
        "snapshots": [_snapshot(j) for j in survey.judged],
        "needs": list(needs),
        "operators": [row for j in picked for row in operators(j, survey.tables[j.folder.path])],
    }
    pending, _, findings, _ = pending_in(parser, picked, survey.tables, check_files=True)
    if pending:
        result["pending"] = pending
    if asked.uid:
        result["uid"] = _uid(parser, asked.uid, result["operators"])
    if asked.job_log:
        result["history"], told = _history(parser, survey, asked.job_log)
        findings += told
    return result, findings


def _snapshot(j: JudgedSnapshot) -> SnapshotRow:
    return {
        "snapshot": name_of(j),
        "id": j.id,
        "kind": j.kind,
        "version": j.version,
        "verdict": j.verdict,
        "files": j.files,
        "flawed": len(j.flaws),
        "state_bytes": j.bytes,
    }


def operators(judged: JudgedSnapshot, table: pa.Table) -> list[OperatorRow]:
    """Return one row per operator of a snapshot, with the bytes of its state by kind."""
    handles = table.filter(pc.equal(table["entry"], "handle")).select(["operator", "kind", "subtask", "bytes"])
    sums = handles.group_by(["operator", "kind"], use_threads=False).aggregate([("bytes", "sum")]).to_pylist()
    bytes_of = {(row["operator"], row["kind"]): row["bytes_sum"] for row in sums}
    channels = table.filter(pc.equal(table["entry"], "channel")).group_by(["operator", "kind"], use_threads=False)
    for row in channels.aggregate([("bytes", "sum")]).to_pylist():  # of a file that several share, each its own bytes
        bytes_of[row["operator"], f"{row['kind']}-channel"] = row["bytes_sum"]
    finished: dict[str, int] = {}
    for row in rows_of(table, "finished"):
        finished[row["operator"]] = finished.get(row["operator"], 0) + 1
    return [
        {
            "snapshot": name_of(judged),
            "uid": row["uid"] or None,
            "name": row["name"] or None,
            "id": row["operator"],
            "parallelism": row["parallelism"],
            "max_parallelism": row["max_parallelism"],
            "finished": row["parallelism"] if row["kind"] == "finished" else finished.get(row["operator"], 0),
            "state_bytes": {
                kind: bytes_of[row["operator"], kind] for kind in _KINDS if (row["operator"], kind) in bytes_of
            },
        }
        for row in rows_of(table, "operator")
    ]


def _uid(parser: OffersSnapshots, uid: str, rows: Sequence[OperatorRow]) -> list[UidRow]:
    """The id that Flink makes of a uid, and the operator that has it."""
    id = parser.id_of_uid(uid)
    found = [row for row in rows if row["id"] == id]
    named: list[UidRow] = [{"uid": uid, "id": id, "snapshot": r["snapshot"], "name": r["name"]} for r in found]
    return named or [{"uid": uid, "id": id, "snapshot": None, "name": None}]


def _history(parser: OffersSnapshots, survey: Survey, path: str) -> tuple[list[HistoryRow], list[Finding]]:
    """What the job manager's log says of each checkpoint, beside what is on disk."""
    try:
        told = parser.job_log(path)
    except OSError as error:
        raise NotFound(f"--job-log {path}: {plain_reason(error)}") from None
    jobs = {j.folder.job for j in survey.judged if j.folder.number is not None}
    by_key: dict[tuple[str | None, int | None], JudgedSnapshot] = {
        (parser.job_id(j.folder.job), j.folder.number): j for j in survey.judged
    }
    rows: list[HistoryRow] = []
    findings: list[Finding] = []
    for row in told:
        key = (row["job"], row["checkpoint"])
        if row["job"] is None and len(jobs) == 1:
            key = (parser.job_id(next(iter(jobs))), row["checkpoint"])
        judged = by_key.get(key)
        rows.append({**row, "verdict": judged.verdict if judged is not None else "gone"})
        if row["state"] == "completed" and judged is not None and judged.verdict == "no-metadata":
            message = f"{name_of(judged)}: completed, says the log, and without metadata now: it was lost since"
            findings.append(
                Finding("completed-without-metadata", "error", name_of(judged), message, effect="older-line")
            )
    return rows, findings
