"""The line of several jobs: planned as one graph, each point that is chosen asked of its own kind, and told as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from cklog.inputs.feeds import Feeds, Point
from cklog.joint.declared import declared_outputs, with_declared
from cklog.joint.graph import Link, Vector, links_of, newest_vector
from cklog.joint.telling import Told, told
from cklog.kafka_logs.logs import PartitionLogs
from cklog.kinds.kind import Kind
from cklog.model.lines import RecoveryLine
from cklog.model.question import KafkaLogs, Question
from cklog.model.verdict import Draft
from cklog.storage import Root

MOST_POINTS = 64
"""Points of one job that are looked at, the newest first."""

_REFUSALS = ("unreachable-batch", "checkpoint-unreachable")


@dataclass(frozen=True, slots=True)
class Member:
    """A PATH of the question: what it is called, its folder, what answers for it, and what that is asked."""

    name: str
    root: Root
    kind: Kind
    question: Question


@dataclass
class _Asked:
    """Answers of the kinds, each asked for once."""

    members: Sequence[Member]
    drafts: dict[tuple[int, tuple[tuple[str, int], ...]], Draft[RecoveryLine]] = field(default_factory=dict)

    def draft(self, member: int, at: tuple[tuple[str, int], ...]) -> Draft[RecoveryLine]:
        key = member, at
        if key not in self.drafts:
            one = self.members[member]
            self.drafts[key] = one.kind.recovery_line(replace(one.question, at=at), KafkaLogs())
        return self.drafts[key]

    def grants(self, member: int, point: Point) -> bool:
        """Whether a job's own kind says, too, that it can go back to a point."""
        if point.initial or point.at == self.members[member].question.at or not point.at:
            return True
        draft = self.draft(member, point.at)
        reached = {(entry.checkpoint, entry.state) for entry in draft.result.line}
        refused = draft.unrecoverable or any(f.id in _REFUSALS for f in draft.findings)
        return not refused and all((number, "stored") in reached for _, number in point.at)


def joint_draft(members: Sequence[Member], logs: PartitionLogs | None = None) -> Draft[RecoveryLine]:
    """Find the newest points of all jobs that fit together, and say what to do, job by job.

    A point that a job's logs offer and its own kind then refuses, as where state is lost, is taken out, and the search
    goes on without it; each time there is one point less.
    """
    asked = _Asked(members)
    found = [(m, feeds) for m, one in enumerate(members) for feeds in one.kind.feeds(one.question, MOST_POINTS)]
    owners = [m for m, _ in found]
    said = [declared_outputs(one.root) for one in members]
    own = [feeds.job for _, feeds in found]
    named = [replace(feeds, job=_name(members[m].name, feeds.job)) for m, feeds in found]
    jobs = with_declared(named, [said[m] for m in owners], logs)
    newest = [job.points[0] if job.points else None for job in jobs]
    while True:
        links = links_of(jobs)
        vector = newest_vector(jobs, links)
        refused = _refused(asked, owners, jobs, vector)
        if refused is None:
            break
        jobs = [_without(job, refused[1]) if j == refused[0] else job for j, job in enumerate(jobs)]
    return told(_gathered(asked, owners, own, jobs, newest, links, vector))


def _name(member: str, job: str) -> str:
    return f"{member}:{job[:8]}" if job else member


def _without(job: Feeds, point: Point) -> Feeds:
    return replace(job, points=tuple(one for one in job.points if one is not point))


def _refused(asked: _Asked, owners: Sequence[int], jobs: Sequence[Feeds], vector: Vector) -> tuple[int, Point] | None:
    """The first chosen point that its own kind refuses."""
    for j, i in enumerate(vector.points or ()):
        point = jobs[j].points[i]
        if not asked.grants(owners[j], point):
            return j, point
    return None


def _gathered(
    asked: _Asked,
    owners: Sequence[int],
    own: Sequence[str],
    jobs: Sequence[Feeds],
    newest: Sequence[Point | None],
    links: Sequence[Link],
    vector: Vector,
) -> Told:
    chosen = [jobs[j].points[i] for j, i in enumerate(vector.points)] if vector.points is not None else []
    first = [asked.draft(m, asked.members[m].question.at) for m in owners]
    then = [
        first[j] if point.initial or not point.at else asked.draft(owners[j], point.at)
        for j, point in enumerate(chosen)
    ]
    return Told(
        jobs=jobs,
        own=own,
        paths=[asked.members[m].root.path for m in owners],
        newest=newest,
        links=links,
        vector=vector,
        first=first,
        drafts=then or first,
    )
