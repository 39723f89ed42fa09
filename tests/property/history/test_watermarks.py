"""Watermarks that fall: a log that is wrong somewhere must not make a line newer than what holds whoever is right.

What a subtask has received it has received for good, and what it has sent stays sent. If a later record says less, one
of the two is wrong, and nothing tells which. So a state has received up to the highest number that any record up to it
says, and has sent up to the lowest that any record from it on says. The line is the newest combination of checkpoints
in which, with these, no message is received that was not sent: found here by trying all of them.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from cklog.model.question import Question
from cklog.run import open_run
from tests.examples import examples

Marks = dict[str, tuple[list[int], list[int]]]
"""By channel, the watermarks of its sender's and of its receiver's checkpoints, from number 1 on."""

NAMES = ("a/0", "b/0", "c/0")


@st.composite
def marks(draw: st.DrawFn) -> Marks:
    counts = {name: draw(st.integers(1, 3)) for name in NAMES}
    pairs = draw(st.sets(st.sampled_from(list(itertools.permutations(NAMES, 2))), min_size=1, max_size=4))
    values = st.integers(0, 9)
    return {
        f"{one}->{other}": (
            draw(st.lists(values, min_size=counts[one], max_size=counts[one])),
            draw(st.lists(values, min_size=counts[other], max_size=counts[other])),
        )
        for one, other in sorted(pairs)
    }


def records(given: Marks) -> list[dict[str, Any]]:
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for channel, (sent, received) in given.items():
        for name, side, values in zip(channel.split("->"), ("sent", "received"), (sent, received), strict=True):
            for number, value in enumerate(values, 1):
                row = {"operator": name[0], "checkpoint": number, "sent": {}, "received": {}}
                found.setdefault((name, number), row)[side][channel] = value
    return list(found.values())


def newest_line(given: Marks) -> dict[str, int]:
    """The newest consistent combination, by trying all; of two none is newer everywhere, so their join is one too."""
    counts = {name: len(side) for c, sides in given.items() for name, side in zip(c.split("->"), sides, strict=True)}
    best = dict.fromkeys(counts, 0)
    for numbers in itertools.product(*(range(n + 1) for n in counts.values())):
        line = dict(zip(counts, numbers, strict=True))
        if all(
            max([0, *received[: line[channel.split("->")[1]]]]) <= min([0, *sent][line[channel.split("->")[0]] :])
            for channel, (sent, received) in given.items()
        ):
            best = {name: max(best[name], line[name]) for name in best}
    return best


def answered(given: Marks) -> tuple[dict[str, int], set[str]]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "checkpoints"
        place.mkdir()
        (place / "part-0.jsonl").write_text("".join(json.dumps(row) + "\n" for row in records(given)))
        with open_run(folder) as run:
            answer = run.recovery_line(Question())
    line = {f"{e.operator}/{e.subtask}": e.checkpoint or 0 for e in answer.result.line}
    return line, {finding.id for finding in answer.findings}


@settings(max_examples=examples(150))
@given(marks())
@example({"a/0->b/0": ([5], [9, 3])})
@example({"a/0->b/0": ([5, 2], [3])})
def test_the_line_holds_whichever_of_two_watermarks_is_wrong(given: Marks) -> None:
    line, told = answered(given)
    assert line == newest_line(given)
    sides = [side for both in given.values() for side in both]
    falls = any(later < earlier for side in sides for earlier, later in itertools.pairwise(side))
    assert ("watermark-decreases" in told) == falls


def test_the_newer_record_of_a_receiver_that_says_less_is_not_believed() -> None:
    assert answered({"a/0->b/0": ([5], [9, 3])})[0] == {"a/0": 1, "b/0": 0}
