"""What jobs read of other jobs as of each of their snapshots, the offsets of their sources, and the tables they write.

Nothing in a snapshot tells what a sink has written as of it, but that a table is stamped with the checkpoint: what else
a job writes, and how, is said by its `job.json`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cklog.inputs.feeds import Feeds, Input, Point, Written
from cklog.inputs.offers import OffersSnapshots
from cklog.model.values import is_integer
from cklog.runs.snapshots.beside.sinks import writes_as
from cklog.runs.snapshots.lineage import Candidates
from cklog.runs.snapshots.plan import SnapshotPlan, newer_than
from cklog.runs.snapshots.state import ICEBERG, source_offsets, table_positions
from cklog.runs.snapshots.verdicts import JudgedSnapshot
from cklog.sink_tables.fitting import NamedTable
from cklog.sink_tables.outputs import TableOutput, table_outputs


def snapshot_feeds(
    parser: OffersSnapshots, plan: SnapshotPlan, most: int, tables: Sequence[NamedTable] = ()
) -> list[Feeds]:
    """Return what each job reads and writes as of what it restarts from, and of older snapshots that can be restored.

    `tables` are those that one of the jobs writes to, as far as is known.
    """
    return [_feeds(parser, plan, group, most, tables, len(plan.groups) > 1) for group in plan.groups]


def _feeds(
    parser: OffersSnapshots,
    plan: SnapshotPlan,
    group: Candidates,
    most: int,
    tables: Sequence[NamedTable],
    several: bool,
) -> Feeds:
    newest = plan.chosen[group.job]
    newer = len(newer_than(group, newest)) if newest is not None else len(group.snapshots)
    whole = [j for j in group.snapshots[newer:] if j.verdict == "restorable" or j is newest]
    id = parser.job_id(group.job)
    points: list[Point] = []
    names: set[str] = set()
    outputs = table_outputs(tables, writes_as(parser, group))
    streams = _table_inputs(plan, whole[: most - 1])
    for judged in whole[: most - 1]:
        read = _read(plan, judged) | _tables_read(plan, judged, streams)
        names |= read.keys()
        at = () if judged is newest or judged.id is None else ((f"{id}/0", judged.id),)
        points.append(Point(judged.folder.path.rpartition("/")[2] or id, at, read, _written(outputs, judged.id)))
    points.append(Point("the beginning", (), dict.fromkeys(names, 0), _written(outputs, 0), initial=True))
    inputs = tuple(streams.get(name) or Input(name) for name in sorted(names))
    return Feeds(
        id if several else "", inputs, tuple(one.output for one in outputs), tuple(points), more=len(whole) > most - 1
    )


def _written(outputs: Sequence[TableOutput], checkpoint: int | None) -> Mapping[str, Written]:
    """How far tables are written as of a checkpoint, 0: as of the beginning."""
    if checkpoint is None:
        return {one.output.name: Written(None) for one in outputs}
    return {one.output.name: one.written(checkpoint + 1 if checkpoint else 0) for one in outputs}


def _read(plan: SnapshotPlan, judged: JudgedSnapshot) -> dict[str, int | None]:
    """The next offset of each source; None where the snapshot has a marker instead of one."""
    found: dict[str, int | None] = {}
    for source in source_offsets(plan.survey.tables[judged.folder.path]):
        if source.source == ICEBERG:
            continue
        offset = 0 if source.offset is None else source.offset
        known = offset if is_integer(offset) and offset >= 0 else None
        before = found.get(source.source, known)
        found[source.source] = None if before is None or known is None else max(before, known)
    return found


def _table_inputs(plan: SnapshotPlan, newest_first: Sequence[JudgedSnapshot]) -> dict[str, Input]:
    """The tables that a job reads as streams, by the names of their sources: what it has read of each, in order."""
    commits: dict[str, dict[str, None]] = {}
    for judged in reversed(newest_first):
        for name, snapshot in _positions(plan, judged).items():
            commits.setdefault(name, {}).update({} if snapshot is None else {str(snapshot): None})
    return {name: Input(name, commits=tuple(read)) for name, read in commits.items() if read}


def _tables_read(plan: SnapshotPlan, judged: JudgedSnapshot, streams: Mapping[str, Input]) -> dict[str, int | None]:
    """How far each table is read: so many of the commits that the job has read up to; None where nothing tells."""
    here = _positions(plan, judged)
    found: dict[str, int | None] = dict.fromkeys(streams)
    for name in here.keys() & streams.keys():
        snapshot = here[name]
        found[name] = 0 if snapshot is None else streams[name].commits.index(str(snapshot)) + 1
    return found


def _positions(plan: SnapshotPlan, judged: JudgedSnapshot) -> dict[str, int | None]:
    """The snapshot up to which each table was looked through, by the source that reads it."""
    positions = table_positions(plan.survey.tables[judged.folder.path])
    return {f"{ICEBERG} of {operator}": snapshot for operator, snapshot in positions.items()}
