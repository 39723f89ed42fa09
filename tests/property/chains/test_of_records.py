"""Chains of checkpoint records with and without variables: `chain`, `recovery-line` and `verify` agree."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cklog.chains.answer import ChainQuestion
from cklog.model.question import Question
from cklog.parsers.tables.records import NotARecord, strict_json
from cklog.run import open_run
from tests.builders.native import checkpoint, write
from tests.conftest import SAMPLES
from tests.examples import examples

Record = dict[str, Any]


@st.composite
def records(draw: st.DrawFn) -> list[Record]:
    """Checkpoints of two subtasks without channels: any form, parents that need not be there, variables that change."""
    found = []
    for subtask in range(2):
        for number in sorted(draw(st.sets(st.integers(1, 9), min_size=1, max_size=7))):
            row = checkpoint(f"a/{subtask}", number, status=draw(st.sampled_from(["complete"] * 4 + ["incomplete"])))
            row |= draw(form(number))
            listed = draw(st.none() | st.lists(st.sampled_from("xyz"), unique=True, max_size=3))
            if listed is not None:
                row["variables"] = [{"name": name, "bytes": 8} | draw(form(number)) for name in listed]
            found.append(row)
    return found


@st.composite
def form(draw: st.DrawFn, number: int) -> Record:
    if draw(st.booleans()):
        return {"form": "base"}
    parent = draw(st.none() | st.integers(max(number - 2, 0), number - 1) | st.integers(0, 9))
    return {"form": "delta"} | ({} if parent is None else {"parent": parent})


def restorable(rows: list[Record], subtask: int) -> list[int]:
    """By the definition, in order: a part is whole if it is a base, or stands on a whole part of its name before it."""
    whole: dict[tuple[str, int | None], bool] = {}
    able, before = [], None
    for row in (row for row in rows if row["subtask"] == subtask):
        parts = row.get("variables") or [{"name": ""} | row]
        good = []
        for part in parts:
            parent = part.get("parent", before)
            stands = part["form"] == "base" or whole.get((part["name"], parent), False)
            whole[part["name"], row["checkpoint"]] = row.get("status", "complete") == "complete" and stands
            good.append(whole[part["name"], row["checkpoint"]])
        able += [row["checkpoint"]] if all(good) else []
        before = row["checkpoint"]
    return able


@given(records())
@settings(max_examples=examples(150))
def test_all_three_go_by_the_same_checkpoints(rows: list[Record]) -> None:
    with TemporaryDirectory() as folder:
        write(Path(folder), "checkpoints", rows)
        with open_run(folder) as run:
            together = {r.subtask: r.checkpoint for r in run.chain(ChainQuestion()).result.together}
            line = run.recovery_line(Question()).result.line
            proof = run.verify({f"a/{e.subtask}": e.checkpoint for e in line}, True, Question()).result
    for entry in line:
        able = restorable(rows, entry.subtask)
        assert together[entry.subtask] == max(able, default=None)
        assert entry.checkpoint == max(able, default=0)
    assert proof.summary.startswith("Proved")


@given(st.randoms(use_true_random=False), st.sampled_from(["join", "count", "window"]))
@settings(max_examples=examples(150))
def test_damage_costs_the_records_it_hits_and_what_stands_on_them(chance: random.Random, operator: str) -> None:
    data = bytearray((SAMPLES / "incremental" / "checkpoints" / f"{operator}.jsonl").read_bytes())
    for _ in range(chance.randrange(1, 4)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    assume(data.count(b'"crc32c":"') == 48 * (2 if operator == "count" else 1))  # else a line without one is believed
    rows = [row for line in bytes(data).split(b"\n")[:-1] if (row := intact(line)) is not None]
    with TemporaryDirectory() as folder:
        path = Path(folder, "checkpoints", f"{operator}.jsonl")
        path.parent.mkdir()
        path.write_bytes(bytes(data))
        with open_run(folder) as run:
            answer = run.chain(ChainQuestion())
    assert len(rows) == 48 * (2 if operator == "count" else 1) or answer.findings
    for one in answer.result.together:
        assert one.subtask is not None
        assert one.checkpoint == max(restorable(rows, one.subtask), default=None)


def intact(line: bytes) -> Record | None:
    """A line whose checksum is right."""
    try:
        return strict_json(line, required=True)
    except NotARecord:
        return None
