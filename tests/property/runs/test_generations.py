"""Random pipelines of one program, each started several times, all in one folder: every pipeline is one line.

The oracle is how they were made: which job was restored from which. Pipelines read the same two partitions and are
apart in them, so that no job's offsets go on in another pipeline's; their checkpoints' numbers overlap at will.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders.flink_folders import Snapshot, checkpoint, torn
from tests.examples import examples
from tests.reading.flink_folders import asked

APART = 1_000


@dataclass(frozen=True)
class Started:
    """A job: the numbers of its checkpoints that are retained, and how many it began and did not complete."""

    numbers: tuple[int, ...]
    begun: int


@st.composite
def pipelines(draw: st.DrawFn) -> list[list[Started]]:
    found = []
    for _ in range(draw(st.integers(1, 3))):
        last, jobs = draw(st.integers(0, 3)), []
        for _ in range(draw(st.integers(1, 4))):
            completed = tuple(range(last + 1, last + 1 + draw(st.integers(1, 3))))
            jobs.append(Started(completed[-draw(st.integers(1, 3)) :], draw(st.integers(0, 2))))
            last = completed[-1]
        found.append(jobs)
    return found


@given(pipelines(), st.permutations([f"{i:x}" * 32 for i in range(16)]))
@settings(max_examples=examples(40), deadline=None)
def test_every_pipeline_is_one_line(made: list[list[Started]], names: list[str]) -> None:
    expected, free = {}, iter(names)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for which, jobs in enumerate(made):
            for job, name in zip(jobs, free, strict=False):
                for number in job.numbers:
                    offsets = (APART * which + number, APART * (len(made) - which) + number)
                    sources = [[("t", split, offset) for split, offset in enumerate(offsets)]]
                    checkpoint(root, name, number, Snapshot(sources=sources))
                for more in range(job.begun):
                    torn(root, name, job.numbers[-1] + 1 + more, {"x": 1})
                newest = name
            expected[newest] = jobs[-1].numbers[-1]
        answer = asked("recovery-line", root)
        assert {entry["operator"]: entry["checkpoint"] for entry in answer["result"]["line"]} == expected
