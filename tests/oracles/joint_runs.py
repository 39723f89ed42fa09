"""A tiny simulator of jobs that feed each other, of their crash, and of how they run on from any vector of points.

Records have identities: the job, the number of the batch, and which run of the job made it. Nothing here knows of
watermarks or lines: a vector of points is good if, once everything ran on from it, no job holds a record that is not
there under its number, and every piece of every input is in the output of whoever read it.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field
from typing import Literal

Sink = Literal["topic", "skips", "overwrites"]
Content = tuple[int, int, str]
SINKS: tuple[Sink, ...] = ("topic", "skips", "skips", "overwrites")
OUTSIDE = -1
FAR = 60
"""More of each input than any crashed run has read."""


@dataclass
class Batch:
    """What a run did under a number: the content that it wrote, and how far it read each input, from and to."""

    content: Content
    before: dict[int, int]
    after: dict[int, int]


@dataclass
class State:
    """What a job has stored after `until` batches: `known` of them were known to be in the sink by then."""

    until: int
    known: int
    kept: int = 0


@dataclass
class Job:
    inputs: list[int]
    sink: Sink
    two_phase: bool
    can_cut: bool
    batches: list[Batch] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    rows: list[Batch] = field(default_factory=list)
    remembered: int = 0

    def pos(self, until: int) -> dict[int, int]:
        return self.batches[until - 1].after if until else dict.fromkeys(self.inputs, 0)


def crashed(chance: random.Random) -> list[Job]:
    """Run two to four jobs for a while, and crash them all."""
    count = chance.randint(2, 4)
    jobs = []
    for j in range(count):
        others = [i for i in range(count) if i != j and (i < j or chance.random() < 0.25)]
        inputs = chance.sample(others, min(len(others), chance.choice((1, 1, 2))))
        if not inputs or chance.random() < 0.3:
            inputs.append(OUTSIDE)
        sink = chance.choice(SINKS)
        jobs.append(Job(inputs, sink, chance.random() < 0.3, sink != "topic" and chance.random() < 0.8))
    for job in jobs:
        job.states.append(State(0, 0))
    for _ in range(chance.randint(6, 26)):
        _step(jobs, chance.randrange(count), chance)
    for job in jobs:
        _leave(job, chance)
    return jobs


def _step(jobs: list[Job], j: int, chance: random.Random) -> None:
    """Run one batch of a job, if there is anything to read."""
    job = jobs[j]
    before = job.pos(len(job.batches))
    after = {}
    for i in job.inputs:
        there = before[i] + 2 if i == OUTSIDE else len(jobs[i].rows)
        after[i] = chance.randint(before[i], there)
    if after != before:
        job.batches.append(Batch((j, len(job.batches), "old"), before, after))
        if not job.two_phase:
            job.rows.append(job.batches[-1])
    if job.two_phase and job.states[-1].until > len(job.rows) and chance.random() < 0.6:
        job.rows = job.batches[: job.states[-1].until]
    if chance.random() < 0.7 and job.states[-1].until < len(job.batches):
        job.states.append(State(len(job.batches), len(job.rows) if job.two_phase else len(job.batches)))


def _leave(job: Job, chance: random.Random) -> None:
    """Leave what a crash leaves: some points, plans, and a sink that somebody may have touched."""
    first, rest = job.states[0], job.states[1:]
    keep = sorted(chance.sample(range(len(rest)), min(len(rest), chance.randint(1, 4))))
    job.states = ([first] if chance.random() < 0.8 or not keep else []) + [rest[i] for i in keep]
    plans = chance.choice(("none", "next", "all"))
    for state in job.states:
        newest = state is job.states[-1]
        reach = {"none": state.until, "all": len(job.batches), "next": state.until + newest}[plans]
        state.kept = min(reach, len(job.batches))
    last = job.states[-1]
    if plans == "next" and last.kept > last.until:  # a person may drop that plan, too
        job.states.insert(-1, State(last.until, last.known, last.until))
    job.remembered = len(job.rows) if job.sink == "skips" else 0
    touched = chance.random()
    if touched < 0.15:
        job.rows = job.rows[: chance.randint(0, len(job.rows))]  # taken back, and what it remembers is not
    elif touched < 0.3:
        job.remembered = chance.randint(0, job.remembered)


def after_restart(job: Job, state: State, cut: int | None, at_once: bool) -> tuple[set[tuple[int, Content]], bool]:
    """Run a job on from a state: what its sink holds then, by number, and whether anything that it read is missing."""
    rows = [(b.content[1], b) for b in job.rows if cut is None or b.content[1] < cut]
    memory = job.remembered if cut is None else min(job.remembered, cut)
    offered = [(n, job.batches[n]) for n in range(state.known, state.kept)]
    number, at = state.kept, dict(job.pos(state.kept))
    while min(at.values()) < FAR:
        leap = at_once and min(at.values()) < FAR - 8
        to = {i: max(at[i], FAR - 8) if leap else min(at[i] + 1, FAR) for i in at}
        offered.append((number, Batch((0, number, "new"), at, to)))
        number, at = number + 1, to
    for n, batch in offered:
        if job.sink == "overwrites":
            rows = [row for row in rows if row[0] != n]
        elif job.sink == "skips" and n < memory:
            continue
        rows.append((len(rows) if job.sink == "topic" else n, batch))
        memory = max(memory, n + 1) if job.sink == "skips" else 0
    seen: dict[int, set[int]] = {i: set() for i in job.inputs}
    for _, batch in rows:
        for i in job.inputs:
            seen[i].update(range(batch.before[i], batch.after[i]))
    return {(n, b.content) for n, b in rows}, any(len(seen[i]) < FAR for i in job.inputs)


def held(jobs: list[Job], reader: int, state: State) -> dict[int, set[tuple[int, Content]]]:
    """The records, by the job that wrote them, that a state has read, or that plans which it keeps name."""
    upto = jobs[reader].pos(state.kept)
    return {i: {(n, jobs[i].batches[n].content) for n in range(upto[i])} for i in jobs[reader].inputs if i != OUTSIDE}


def consistent(jobs: list[Job]) -> list[tuple[int, ...]]:
    """Every vector of points (indices into `states`) from which all can go on, by trying each."""
    outcomes = []
    for job in jobs:
        cuts = [None, *range(len(job.batches) + 1)] if job.can_cut else [None]
        mine = []
        for state in job.states:
            ends = [[after_restart(job, state, cut, at_once) for at_once in (True, False)] for cut in cuts]
            mine.append([[rows for rows, _ in end] for end in ends if not any(lost for _, lost in end)])
        outcomes.append(mine)
    holds = [[held(jobs, j, state) for state in job.states] for j, job in enumerate(jobs)]
    found = []
    for vector in itertools.product(*(range(len(job.states)) for job in jobs)):
        needed = [[holds[c][vector[c]].get(p, set()) for c in range(len(jobs)) if c != p] for p in range(len(jobs))]
        fits = (
            any(all(want <= rows for rows in end for want in needed[p]) for end in outcomes[p][vector[p]])
            for p in range(len(jobs))
        )
        if all(fits):
            found.append(vector)
    return found
