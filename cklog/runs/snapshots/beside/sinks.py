"""The line of a job as its sinks see it: its checkpoint, what that has pending, and by what ids a table may know it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cklog.errors import UsageError
from cklog.inputs.offers import OffersSnapshots
from cklog.inputs.sink_tables import Pending
from cklog.runs.snapshots.lineage import Candidates
from cklog.runs.snapshots.plan import SnapshotPlan, job_named, older_than
from cklog.runs.snapshots.verdicts import NOT_READ, JudgedSnapshot
from cklog.runs.snapshots.waiting import FILES, waiting_in
from cklog.sink_tables.beside import AskedLine
from cklog.sink_tables.fitting import NamedTable
from cklog.sink_tables.judge import writers_of
from cklog.sink_tables.model import Restart

"""Verdicts on snapshots that may be as good as any other."""


def snapshot_line(
    parser: OffersSnapshots, plan: SnapshotPlan, tables: Sequence[NamedTable], chosen: bool, check_files: bool
) -> AskedLine:
    """Return the line of the one job for its tables; of several, of the one that the tables know.

    Raises
    ------
    UsageError : nothing says which of several jobs writes to the tables
    """
    group = _writing(parser, plan, tables, check_files)
    judged = plan.chosen[group.job]

    def restart(of: JudgedSnapshot) -> Restart:
        return _restart(parser, plan, group, of, check_files)

    def older() -> Iterable[Restart]:
        if judged is not None:
            yield from map(restart, older_than(group, judged))

    return AskedLine(
        run=parser.job_id(group.job),
        subtask=f"{parser.job_id(group.job)}/0",
        unit="checkpoint",
        restart=restart(judged) if judged is not None else _without_state(parser, group),
        older=older,
        usable=lambda asked: True,
        name=lambda number: _called(group, number),
        chosen=chosen or judged is None,
    )


def snapshot_restart(
    parser: OffersSnapshots,
    plan: SnapshotPlan,
    tables: Sequence[NamedTable],
    line: Mapping[str, int | None],
    check_files: bool,
) -> Restart:
    """Return what a restart from a line offers, of the job that writes to the tables; None: it starts anew."""
    group = _writing(parser, plan, tables, check_files)
    number = next((n for name, n in line.items() if job_named(parser, plan.groups, name) is group), None)
    judged = next((j for j in group.snapshots if number is not None and j.id == number), None)
    if judged is None:
        return _without_state(parser, group)
    return _restart(parser, plan, group, judged, check_files)


def _writing(
    parser: OffersSnapshots, plan: SnapshotPlan, tables: Sequence[NamedTable], check_files: bool
) -> Candidates:
    """Return the job that writes to some tables: the only one, or the only one whose id each of them knows."""

    def is_known(group: Candidates) -> bool:
        judged = plan.chosen[group.job]
        restart = (
            _without_state(parser, group) if judged is None else _restart(parser, plan, group, judged, check_files)
        )
        return all(writers_of(one.account, restart, one.known) for one in tables)

    groups = plan.groups
    if len(groups) > 1 and tables:
        groups = [group for group in groups if is_known(group)]
    if len(groups) == 1:
        return groups[0]
    jobs = ", ".join(parser.job_id(group.job) for group in plan.groups[:5])
    told = f"several jobs are here: {jobs}" if jobs else "no job is here"
    why = ", and the tables know more than one of them" if groups else ", and no table says which of them writes to it"
    raise UsageError(f"--sink: {told}{why if jobs and tables else ''}", "name the folder of the one that writes to it")


def _called(group: Candidates, number: int) -> str:
    found = next((j for j in group.snapshots if j.id == number), None)
    return "no state" if found is None else found.folder.path.rpartition("/")[2] or f"checkpoint {number}"


def _ids(parser: OffersSnapshots, group: Candidates) -> frozenset[str]:
    """The ids of all attempts of a job: its own, its forebears', those of the snapshots' folders."""
    jobs = {group.job, *group.forebears, *group.restarts, *(j.folder.job for j in group.snapshots)}
    return frozenset(parser.job_id(job) for job in jobs)


def _restart(
    parser: OffersSnapshots, plan: SnapshotPlan, group: Candidates, judged: JudgedSnapshot, check_files: bool
) -> Restart:
    number = 0 if judged.id is None else judged.id
    return Restart(
        line=number,
        counts="checkpoint",
        writers=_ids(parser, group),
        asks=parser.job_id(judged.folder.job),
        same_to=number,
        pending=_pending(parser, plan, judged, check_files),
    )


def writes_as(parser: OffersSnapshots, group: Candidates) -> Restart:
    """Return whom tables may know a job as, whatever it restarts from."""
    return _without_state(parser, group)


def _without_state(parser: OffersSnapshots, group: Candidates) -> Restart:
    return Restart(
        line=0,
        counts="checkpoint",
        writers=_ids(parser, group),
        asks="",
        same_to=0,
        without_state=True,
        unknown=any(judged.verdict in NOT_READ for judged in group.snapshots),
    )


def _pending(
    parser: OffersSnapshots, plan: SnapshotPlan, judged: JudgedSnapshot, check_files: bool
) -> tuple[Pending, ...] | None:
    """What the state has pending for tables; None: it could not be read."""
    table = plan.survey.tables.get(judged.folder.path)
    if table is None:
        return None
    waiting = waiting_in(parser, judged.folder.path, table, check_files)
    return tuple(one.pending for one in waiting if one.commits and one.form != FILES)
