"""Jobs as a graph, and the newest points of all that fit together.

A vector has one point of each job. It is consistent if no point has read what the restarted job that wrote it will not
have written, or will write otherwise, and if nothing is lost. Per link from a job p to a job c that is, with `stays` of
`cklog.joint.rules`:

    read(c's point) <= stays(p's point)

Both sides do not fall as points get newer, so of two consistent vectors the one with the newer point of each job is
consistent, too: where it takes c's point from one of them, that one's point of p is no newer than the point taken, and
so stays at least as much. Points from which an output would lose records are left out beforehand, which leaves the
points of a job in their order. So the newest consistent vector is unique, and is what the fixpoint of
`cklog.lines.fixpoint` finds: a job is a process, an output a channel, `stays` what is sent, `read` what is received.
What readers need and is no longer there makes a vector lossy. That gets no better with older points, so it is looked at
afterwards.

A link of which a side is not known at some point forces nothing, and is told by name. One whose numbers fall as points
get newer is such a link: damaged evidence forces nothing either.
"""

from __future__ import annotations

import posixpath
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cklog.history.history import History, history_of
from cklog.inputs.feeds import Feeds, Input, Output, Point
from cklog.joint.rules import Effect, effect_of
from cklog.lines.fixpoint import NoConsistentLine, recovery_line
from cklog.lines.rollback import rollback_steps


@dataclass(frozen=True, slots=True)
class Link:
    """An output of a job that another reads; jobs by index, numbers and effects by their points, newest first."""

    producer: int
    consumer: int
    output: Output
    input: Input
    read: tuple[int | None, ...]
    effects: tuple[Effect | None, ...]

    @property
    def stays(self) -> tuple[int | None, ...]:
        return tuple(None if effect is None else effect.stays for effect in self.effects)

    @property
    def unknown(self) -> str:
        """Why it forces nothing, "" if it does."""
        if self.input.broken or self.output.broken:
            return self.input.broken or self.output.broken
        if None in self.effects:
            return f"nothing tells what {self.output.name} holds as of every point of its job"
        if None in self.read:
            return f"nothing tells how far {self.input.name} was read as of every point"
        if _rises(self.read) or _rises(self.stays):
            return f"{self.output.name}: an older point has read, or written, more than a newer one"
        return ""


@dataclass(frozen=True, slots=True)
class Fall:
    """A job that goes back from a point to another, because by then it had read `first` up to `end` (exclusive)."""

    job: int
    from_: int
    to: int
    link: Link
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Vector:
    """The newest consistent vector: the index of each job's point; None: there is none, and `stuck` says why."""

    points: tuple[int, ...] | None
    falls: tuple[Fall, ...] = ()
    refused: tuple[tuple[int, int, str], ...] = ()
    stuck: str = ""


def links_of(jobs: Sequence[Feeds]) -> list[Link]:
    """Find which outputs are inputs of other jobs: by name, or as the files of one are listed by the other."""
    return [
        Link(p, c, output, given, _read(consumer, given, output, producer), _effects(producer.points, output))
        for p, producer in enumerate(jobs)
        for output in producer.outputs
        for c, consumer in enumerate(jobs)
        for given in consumer.inputs
        if c != p and _feeds(output, given)
    ]


def newest_vector(jobs: Sequence[Feeds], links: Sequence[Link]) -> Vector:
    """Find the newest consistent vector of points.

    Cost: O(rounds · links · log points), rounds being the longest chain of jobs that force one another.
    """
    refused = [*_refused(jobs)]
    barred = {(job, point) for job, point, _ in refused}
    allowed = [[i for i in reversed(range(len(job.points))) if (j, i) not in barred] for j, job in enumerate(jobs)]
    for j, left in enumerate(allowed):
        if not left:
            why = next((why for job, _, why in refused if job == j), "nothing can be restored")
            return Vector(None, refused=tuple(refused), stuck=f"{jobs[j].job}: {why}")
    known = [link for link in links if not link.unknown]
    history = _history(allowed, known)
    try:
        line = recovery_line(history).tolist()
    except NoConsistentLine as error:
        link = known[_channel(history, error.channel)]
        why = f"the oldest point of {jobs[link.consumer].job} has read of {link.output.name} what will not be there"
        return Vector(None, refused=tuple(refused), stuck=why)
    falls = [
        Fall(
            step.subtask,
            allowed[step.subtask][step.from_],
            allowed[step.subtask][step.to],
            known[_channel(history, step.channel)],
            step.orphans_from,
            step.orphans_to,
        )
        for step in rollback_steps(history)
    ]
    return Vector(tuple(allowed[j][x] for j, x in enumerate(line)), tuple(falls), tuple(refused))


def lost_of(link: Link, vector: Sequence[int]) -> int:
    """Return how many numbers a consumer still needs at its point that can no longer be read."""
    read = link.read[vector[link.consumer]]
    return 0 if read is None else max(link.output.first - read, 0)


def _history(allowed: Sequence[Sequence[int]], links: Sequence[Link]) -> History:
    """Points as checkpoints of processes, the oldest as the initial state; outputs as channels."""
    names = [f"{j:06}/0" for j in range(len(allowed))]
    channels = [f"{names[link.producer]}->{names[link.consumer]}#{k:06}" for k, link in enumerate(links)]
    sent = {
        channel: [_sure(link.stays[i]) for i in allowed[link.producer]]
        for channel, link in zip(channels, links, strict=True)
    }
    received = {
        channel: [_sure(link.read[i]) for i in allowed[link.consumer]]
        for channel, link in zip(channels, links, strict=True)
    }
    return history_of({name: [*range(1, len(left))] for name, left in zip(names, allowed, strict=True)}, sent, received)


def _channel(history: History, index: int) -> int:
    return int(history.channels[index].rpartition("#")[2])


def _sure(value: int | None) -> int:
    assert value is not None  # links with unknown numbers were left out
    return value


def _refused(jobs: Sequence[Feeds]) -> Iterator[tuple[int, int, str]]:
    """Points from which an output, whoever reads it, would lose records: job, point, why."""
    for j, job in enumerate(jobs):
        for i, point in enumerate(job.points):
            effects = [effect_of(o, point.written[o.name]) for o in job.outputs if o.name in point.written]
            why = next((effect.refused for effect in effects if effect is not None and effect.refused), "")
            if why:
                yield j, i, why


def _rises(numbers: Iterable[int | None]) -> bool:
    return any(older is not None and newer is not None and older > newer for newer, older in pairwise(numbers))


def _effects(points: Sequence[Point], output: Output) -> tuple[Effect | None, ...]:
    return tuple(effect_of(output, p.written[output.name]) if output.name in p.written else None for p in points)


def _reached(commits: Sequence[str], output: Output) -> list[int | None]:
    """How far a table was read, in its writer's numbers, by who has read so many of some commits, the oldest first.

    Commits before those that the table still has are lost to who stands there; any other that it does not have is one
    of which nobody knows what it was.
    """
    oldest = next((k for k, commit in enumerate(commits) if commit in output.commits), None)
    found: list[int | None] = [0]
    for k, commit in enumerate(commits):
        number = output.commits.get(commit)
        lost = number is None and output.first and oldest is not None and k < oldest
        found.append(output.first - 1 if lost else number)
    return found


def _feeds(output: Output, given: Input) -> bool:
    """Whether an input is an output: of files, one that lists a file of it; of tables, by its id or its commits."""
    if output.name == given.name:
        return True
    if output.commits and given.commits:
        if output.table and given.table:
            return output.table == given.table
        return not output.commits.keys().isdisjoint(given.commits)
    return bool(output.files and given.files and not output.files.keys().isdisjoint(given.files.keys()))


def _read(consumer: Feeds, given: Input, output: Output, producer: Feeds) -> tuple[int | None, ...]:
    """How far the output was read as of each point, in the output's own numbers.

    A file of the output's folder that its log does not list is none that the job will have written: whoever read it has
    read more than there is.
    """
    own = [point.read.get(given.name) for point in consumer.points]
    if given.commits and output.commits:
        reached = _reached(given.commits, output)
        return tuple(None if n is None else reached[n] for n in own)
    if given.files is None or output.files is None:
        return tuple(own)
    folders = {posixpath.dirname(path) for path in output.files}
    kept = [point.written[output.name].kept or 0 for point in producer.points if output.name in point.written]
    beyond = max(output.end or 0, max(output.files.values(), default=-1) + 1, *kept, 0) + 1
    numbers, reach, furthest = [], [0], 0
    for path, number in sorted(given.files.items(), key=lambda pair: (pair[1], pair[0])):
        if posixpath.dirname(path) in folders:
            furthest = max(furthest, output.files.get(path, beyond - 1) + 1)
            numbers.append(number)
            reach.append(furthest)
    return tuple(None if n is None else reach[bisect_left(numbers, n)] for n in own)
