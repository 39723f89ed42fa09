"""Positions of Flink's CDC sources in a database's log, compared with where that log begins (`--source-from`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from cklog.inputs.offers import OffersSnapshots
from cklog.inputs.snapshots import CDC
from cklog.lines.unchecked import range_names
from cklog.model.findings import Finding, Where
from cklog.model.lines import RecoveryLine, SourceOffset
from cklog.model.verdict import Draft
from cklog.runs.snapshots.findings import name_of
from cklog.runs.snapshots.heads import rows_of
from cklog.runs.snapshots.plan import SnapshotPlan
from cklog.runs.snapshots.state import cdc_position, operator_labels
from cklog.source_positions.named_options import by_name
from cklog.source_positions.positions import words
from cklog.source_positions.retained import Retained, retained


class _Resumes(NamedTuple):
    """A source that reads a database's log, where it resumes, and the metadata that says so."""

    source: SourceOffset
    position: Mapping[str, Any]
    place: str

    @property
    def names(self) -> tuple[str, ...]:
        """What `--source-from` may call it: its operator, or its split."""
        return self.source.operator, self.source.source


def with_positions(
    draft: Draft[RecoveryLine], parser: OffersSnapshots, plan: SnapshotPlan, told: Sequence[str]
) -> Draft[RecoveryLine]:
    """Add to a line whether databases still have what its CDC sources resume at.

    Parameters
    ----------
    told : NAME=POSITION of `--source-from`, by a source's operator or split

    Raises
    ------
    UsageError : one is of another form, or no position of that database
    NotFound : there is no such source
    """
    found = list(_resuming(parser, plan))
    starts = by_name("--source-from", told, {each for one in found for each in one.names})
    if not found:
        return draft
    line, rows, findings = draft.result, [], []
    name = range_names(line)
    for one in found:
        begins = next((starts[each] for each in one.names if each in starts), None)
        held = None if begins is None else retained(one.position, begins)
        subject = name(one.source)
        rows.append({"of": subject, "begins": begins, "held": None if held is None else held.held})
        if held is not None and held.held is not True:
            findings.append(_finding(one, subject, held))
    result = replace(line, details=line.details | {"positions": rows})
    return replace(draft, result=result, findings=[*draft.findings, *findings])


def _resuming(parser: OffersSnapshots, plan: SnapshotPlan) -> Iterator[_Resumes]:
    for group in plan.groups:
        judged = plan.chosen[group.job]
        if judged is None:
            continue
        table = plan.survey.tables[judged.folder.path]
        labels = operator_labels(table)
        for row in rows_of(table, "source"):
            if row["kind"] == CDC:
                position, operator = cdc_position(row), labels.get(row["operator"], row["operator"])
                subtask = -1 if row["subtask"] is None else row["subtask"]
                job = parser.job_id(group.job)
                source = SourceOffset(row["name"], words(position), operator, subtask, job=job)
                yield _Resumes(source, position, judged.folder.metadata or name_of(judged))


def _finding(one: _Resumes, subject: str, held: Retained) -> Finding:
    at = one.source.offset
    where = (Where(one.place),)
    if held.held is None:
        message = f"{subject}: cklog cannot tell whether the database still has {at}: {held.because}"
        return Finding("position-unknown", "error", subject, message, where, effect="unknown")
    message = (
        f"{subject} resumes at {at}, which the database no longer has: {held.because}. A restored job fails at this "
        "source and restarts in a loop. Restore the database's log, or start the source with a new snapshot"
    )
    return Finding("position-gone", "error", subject, message, where, effect="restart-fails")
