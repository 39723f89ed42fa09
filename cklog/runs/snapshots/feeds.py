"""What jobs read of other jobs as of each of their snapshots: the offsets of their sources.

Nothing in a snapshot tells what a sink has written as of it: what a job writes, and how, is said by its `job.json`.
"""

from __future__ import annotations

from collections.abc import Mapping

from cklog.inputs.feeds import Feeds, Input, Point
from cklog.inputs.offers import OffersSnapshots
from cklog.model.values import is_integer
from cklog.runs.snapshots.lineage import Candidates
from cklog.runs.snapshots.plan import SnapshotPlan, newer_than
from cklog.runs.snapshots.state import source_offsets
from cklog.runs.snapshots.verdicts import JudgedSnapshot


def snapshot_feeds(parser: OffersSnapshots, plan: SnapshotPlan, most: int) -> list[Feeds]:
    """Return what each job reads as of what it restarts from, and of older snapshots that can be restored."""
    return [_feeds(parser, plan, group, most, len(plan.groups) > 1) for group in plan.groups]


def _feeds(parser: OffersSnapshots, plan: SnapshotPlan, group: Candidates, most: int, several: bool) -> Feeds:
    newest = plan.chosen[group.job]
    newer = len(newer_than(group, newest)) if newest is not None else len(group.snapshots)
    whole = [j for j in group.snapshots[newer:] if j.verdict == "restorable" or j is newest]
    id = parser.job_id(group.job)
    points: list[Point] = []
    names: set[str] = set()
    for judged in whole[: most - 1]:
        read = _read(plan, judged)
        names |= read.keys()
        at = () if judged is newest or judged.id is None else ((f"{id}/0", judged.id),)
        points.append(Point(judged.folder.path.rpartition("/")[2] or id, at, read, {}))
    points.append(Point("the beginning", (), dict.fromkeys(names, 0), {}, initial=True))
    inputs = tuple(Input(name) for name in sorted(names))
    return Feeds(id if several else "", inputs, (), tuple(points), more=len(whole) > most - 1)


def _read(plan: SnapshotPlan, judged: JudgedSnapshot) -> Mapping[str, int | None]:
    """The next offset of each source; None where the snapshot has a marker instead of one."""
    found: dict[str, int | None] = {}
    for source in source_offsets(plan.survey.tables[judged.folder.path]):
        offset = 0 if source.offset is None else source.offset
        known = offset if is_integer(offset) and offset >= 0 else None
        before = found.get(source.source, known)
        found[source.source] = None if before is None or known is None else max(before, known)
    return found
