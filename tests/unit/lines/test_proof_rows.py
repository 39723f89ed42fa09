"""A proof that looks at a part of the records says what one that looks at all of them says."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from cklog.errors import NotFound
from cklog.inputs.tables import WITH_PLACES
from cklog.lines import proof_rows
from cklog.lines.proof_rows import distinct_rows, rows_to_judge
from cklog.lines.verify import judge, stored_and_marks
from cklog.model.names import Subtask

SUBTASKS = [Subtask("a", 0), Subtask("b", 0), Subtask("b", 1)]
CHANNELS = ["a/0->b/0", "a/0->b/1", "b/0->b/1", "b/1->a/0"]


def history(rng: random.Random) -> pa.Table:
    """Records of three subtasks: some name no channel, some are deltas, some are there twice and disagree."""
    rows: list[dict[str, Any]] = []
    with_variables = rng.random() < 0.4
    for subtask in SUBTASKS:
        marks = dict.fromkeys(CHANNELS, 0)
        for number in sorted(rng.sample(range(40), rng.randint(0, 25))):
            marks = {name: mark + rng.randint(0, 3) for name, mark in marks.items()}
            told = {name: mark for name, mark in marks.items() if rng.random() < 0.7}
            row = dict.fromkeys(WITH_PLACES.names) | {
                "operator": subtask.operator,
                "subtask": None if subtask.subtask == 0 and rng.random() < 0.3 else subtask.subtask,
                "checkpoint": number,
                "time": number * 10,
                "sent": [(n, m) for n, m in told.items() if n.startswith(f"{subtask}->")],
                "received": [(n, m) for n, m in told.items() if n.endswith(f"->{subtask}")],
                "form": rng.choice(["full", "full", "delta", None]),
            }
            if row["form"] == "delta" and rng.random() < 0.5:
                row["parent"] = rng.randint(0, number)
            if with_variables and rng.random() < 0.6:
                form = rng.choice(["base", "delta", "delta"])
                row["variables"] = json.dumps([{"name": "v", "form": form}])
            rows.append(row)
            if rng.random() < 0.1:
                rows.append(row | {"bytes": 7})
    rng.shuffle(rows)
    return pa.Table.from_pylist(rows, schema=WITH_PLACES)


def judged(rows: list[dict[str, Any]], before: Mapping[Any, int], line: Mapping[str, int], maximal: bool) -> object:
    stored, marks = stored_and_marks(rows, SUBTASKS, CHANNELS, {}, before=before)
    try:
        checks, findings, index = judge(line, stored, marks, (), maximal)
    except NotFound as error:
        return error.message
    at = {name: (stored[name].numbers[i] if i < len(stored[name].numbers) else None) for name, i in index.items()}
    return checks, findings, at


@pytest.mark.parametrize("seed", range(150))
def test_a_part_of_the_records_is_judged_as_all_of_them(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof_rows, "_LAST", 2)
    monkeypatch.setattr(proof_rows, "_AT_ONCE", 3)
    rng = random.Random(seed)
    table = history(rng)
    as_of = rng.choice([None, None, 250])
    everything = distinct_rows(table.to_batches(), as_of)
    numbers: dict[str, list[int]] = {str(subtask): [0] for subtask in SUBTASKS}
    for row in everything:
        numbers[f"{row['operator']}/{row['subtask']}"].append(row["checkpoint"])
    numbers = {name: sorted({*known})[-rng.choice([3, 99]) :] for name, known in numbers.items()}
    for maximal in (False, True):
        line = {name: rng.choice(known) for name, known in numbers.items()}
        part = rows_to_judge(table, line, CHANNELS, as_of, maximal)
        assert judged(part.rows, part.before, line, maximal) == judged(everything, {}, line, maximal)


def test_what_lies_below_the_line_is_not_looked_at() -> None:
    rows = [
        dict.fromkeys(WITH_PLACES.names) | {"operator": "a", "subtask": 0, "checkpoint": n, "sent": [("a/0->b/0", n)]}
        for n in range(1, 1_001)
    ]
    table = pa.Table.from_pylist(rows, schema=WITH_PLACES)
    found = rows_to_judge(table, {"a/0": 990}, ["a/0->b/0"], None, maximal=True)
    assert [row["checkpoint"] for row in found.rows] == list(range(990, 1_001))
    assert [row["checkpoint"] for row in rows_to_judge(table, {"a/0": 990}, [], None, maximal=False).rows] == [990]
