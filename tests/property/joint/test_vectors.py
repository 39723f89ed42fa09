"""The joint line equals what trying every vector of points by simulating the run on finds."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from cklog.inputs.feeds import Feeds, Input, Output, Point, Rule, Written
from cklog.joint.graph import links_of, newest_vector
from tests.oracles.joint_runs import OUTSIDE, Job, consistent, crashed

RULES: dict[str, Rule] = {"topic": "appends", "skips": "skips", "overwrites": "overwrites"}
FEW, MANY = 150, 10_000


def feeds_of(jobs: list[Job]) -> list[Feeds]:
    """What logs tell of a simulated crash: numbers, and nothing of what records are."""
    found = []
    for j, job in enumerate(jobs):
        name = f"out-{j}"
        points = []
        for state in reversed(job.states):
            read = {_name(i): at for i, at in job.pos(state.kept).items()}
            written = Written(state.until, state.kept, state.known, job.can_cut)
            points.append(Point(f"batch {state.until}", (), read, {name: written}, initial=not state.until))
        output = Output(name, len(job.rows), RULES[job.sink], job.remembered)
        found.append(Feeds(f"job-{j}", tuple(Input(_name(i)) for i in job.inputs), (output,), tuple(points)))
    return found


def _name(i: int) -> str:
    return "outside" if i == OUTSIDE else f"out-{i}"


def disproved(seed: int, tally: Counter[str]) -> str:
    """Why the joint line of a random graph is wrong, "" if it is right."""
    jobs = crashed(random.Random(seed))
    good = consistent(jobs)
    feeds = feeds_of(jobs)
    vector = newest_vector(feeds, links_of(feeds)).points
    said = None if vector is None else tuple(len(job.states) - 1 - i for job, i in zip(jobs, vector, strict=True))
    highest = tuple(map(max, zip(*good, strict=True))) if good else None
    tally["no vector"] += not good
    tally["all at their newest"] += highest == tuple(len(job.states) - 1 for job in jobs)
    tally["some job goes back"] += good != [] and highest != tuple(len(job.states) - 1 for job in jobs)
    tally["cycles"] += any(i in jobs[j].inputs and j in jobs[i].inputs for i in range(len(jobs)) for j in range(i))
    if highest is not None and highest not in good:
        return f"seed {seed}: the greatest of {len(good)} vectors is not consistent"
    return "" if said == highest else f"seed {seed}: said {said}, is {highest}"


def test_the_joint_line_is_the_newest_vector_from_which_a_simulated_run_goes_on() -> None:
    tally = Counter[str]()
    assert [told for seed in range(FEW) if (told := disproved(seed, tally))] == []
    assert min(tally[kind] for kind in ("no vector", "all at their newest", "some job goes back", "cycles")) > 5


@pytest.mark.slow
def test_the_same_of_many_graphs(capsys: pytest.CaptureFixture[str]) -> None:
    tally = Counter[str]()
    wrong = [told for seed in range(MANY) if (told := disproved(seed, tally))]
    with capsys.disabled():
        print(f"\n{MANY} graphs: {len(wrong)} wrong; {', '.join(f'{n} {what}' for what, n in sorted(tally.items()))}")
    assert wrong == []
