"""The joint answer, from jobs whose kinds say what the tests want: who is asked, what is refused, what rows say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from cklog.inputs.feeds import Feeds, Input, Output, Point, Written
from cklog.joint.answer import Member, joint_draft
from cklog.joint.graph import links_of, lost_of
from cklog.kinds.kind import Kind
from cklog.model.actions import RunAction
from cklog.model.findings import Finding
from cklog.model.lines import LineEntry, RecoveryLine
from cklog.model.question import KafkaLogs, Question
from cklog.model.verdict import Draft
from cklog.storage import Root


def points(reads: Mapping[str, Sequence[int]], writes: Mapping[str, Sequence[int]]) -> tuple[Point, ...]:
    """Points, the newest first and the last one the beginning, that have read and written so much."""
    length = max(map(len, [*reads.values(), *writes.values()]))
    return tuple(
        Point(
            f"p{length - i}",
            (("op/0", length - i),),
            {name: numbers[i] for name, numbers in reads.items()},
            {name: Written(numbers[i]) for name, numbers in writes.items()},
            initial=i == length - 1,
        )
        for i in range(length)
    )


@dataclass
class Said:
    """A kind that says of its jobs what it is told, and refuses some checkpoints."""

    jobs: list[Feeds]
    refuses: frozenset[int] = frozenset()
    asked: list[int] = field(default_factory=list)

    def feeds(self, question: Question, most: int) -> list[Feeds]:
        return self.jobs

    def recovery_line(self, question: Question, kafka: KafkaLogs) -> Draft[RecoveryLine]:
        number = question.at[0][1] if question.at else 9
        self.asked.append(number)
        found = [Finding("checkpoint-unreachable", "error", "op", "is gone")] if number in self.refuses else []
        names = [job.job for job in self.jobs]
        line = RecoveryLine(
            consistent=True,
            protocol="coordinated",
            line=tuple(LineEntry("op", 0, number, None, None, False, "stored", job=name) for name in names),
            channels=(),
            sources=(),
            rolled_back=(),
            useless=(),
            steps=(),
            domino=False,
            runs=tuple(RunAction(name or "run", "restart", command=f"start {name}", lost=1) for name in names),
        )
        return Draft("recovery-line", line, found, [])


def job(
    reads: dict[str, list[int]],
    writes: dict[str, list[int]] | None = None,
    outputs: Sequence[Output] = (),
    name: str = "",
) -> Feeds:
    return Feeds(name, tuple(map(Input, reads)), tuple(outputs), points(reads, writes or {}))


def answer(root: Path, **kinds: Said) -> Draft[RecoveryLine]:
    home = Root(str(root))
    return joint_draft([Member(name, home, cast("Kind", kind), Question()) for name, kind in kinds.items()])


def chosen(draft: Draft[RecoveryLine]) -> dict[str, str]:
    return {row["job"]: row["from"] for row in draft.result.details["joint_order"]}


def writer(until: int, has: int, name: str = "x") -> Said:
    """A job at a point at which it had written less than its output holds, which can be cut."""
    return Said([job({}, {name: [until, 0]}, [Output(name, has, "skips", has)])])


def test_a_point_that_its_own_kind_refuses_is_taken_out(tmp_path: Path) -> None:
    reader = Said([job({"x": [4, 2, 1, 0]})], refuses=frozenset({3}))
    found = answer(tmp_path, a=writer(2, 4), b=reader)
    assert chosen(found) == {"a": "p2", "b": "p2"}  # of 4, 3, 2, 1 it is the third: 3 is refused
    assert {3, 2} <= set(reader.asked)


def test_the_beginning_is_asked_of_no_kind(tmp_path: Path) -> None:
    reader = Said([job({"x": [4, 0]})], refuses=frozenset({1}))
    found = answer(tmp_path, a=writer(2, 4), b=reader)
    assert chosen(found) == {"a": "p2", "b": "p1"}
    assert 1 not in reader.asked


def test_jobs_of_one_folder_have_their_own_rows(tmp_path: Path) -> None:
    both = Said([job({"y": [3, 0]}, name="j" * 32), job({"x": [2, 0]}, name="k" * 32)])
    found = answer(tmp_path, a=writer(2, 2), m=both).result
    assert [(e.job, e.operator) for e in found.line] == [
        ("a", "a:op"),
        ("m:jjjjjjjj", "m:jjjjjjjj:op"),
        ("m:kkkkkkkk", "m:kkkkkkkk:op"),
    ]
    assert [run.run for run in found.runs] == ["a", "m:jjjjjjjj", "m:kkkkkkkk"]


def test_a_cascade_is_a_domino_and_one_fall_is_none(tmp_path: Path) -> None:
    reader = Said([job({"x": [4, 2, 0]})])
    alone = answer(tmp_path, a=writer(2, 4), b=reader).result
    assert (alone.domino, len(alone.notes)) == (False, 2)
    assert alone.notes[0] == (
        "b goes back from p3 to p2: by then it had read records 2 to 3 of a, which a writes otherwise, or not at all, "
        "once it has restarted"
    )
    middle = Said([job({"x": [4, 2, 0]}, {"y": [4, 2, 0]}, [Output("y", 4, "skips", 4)])])
    cascade = answer(tmp_path, a=writer(2, 4), b=middle, c=Said([job({"y": [3, 2, 0]})])).result
    assert cascade.domino
    assert "had read record 2 of b" in cascade.notes[1]


@pytest.mark.parametrize(("unit", "lost"), [("record", 1 + 3), ("batch", 1)])
def test_records_that_retention_took_are_lost_beside_what_is_lost_anyway(tmp_path: Path, unit: str, lost: int) -> None:
    """Batches are no records: how many are lost with them nobody tells."""
    topic = Output("x", 9, first=5, unit=unit)
    found = answer(tmp_path, a=Said([job({}, {"x": [9, 0]}, [topic])]), b=Said([job({"x": [2, 0]})]))
    assert [f.id for f in found.findings] == ["joint-lost"]
    assert {run.run: run.lost for run in found.result.runs} == {"a": 1, "b": lost}


def test_of_what_nobody_knows_nothing_is_said_to_be_lost() -> None:
    unread: Any = Feeds("b", (Input("x"),), (), (Point("p", (), {"x": None}, {}),))
    (link,) = links_of([job({}, {"x": [9, 0]}, [Output("x", 9, first=5)]), unread])
    assert lost_of(link, (0, 0)) == 0
