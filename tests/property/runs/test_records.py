"""Whole runs, written to disk and read back: the line is the exhaustive maximum, however the files lie."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cklog.engine import Engine
from cklog.model import CHECKPOINTS, EVENTS, MESSAGES, Answer
from cklog.model.question import Question
from cklog.render.formats import render
from cklog.run import Options, Run, open_run
from tests.conftest import REPOSITORY
from tests.oracles.lines import (
    EPOCH,
    Execution,
    checkpoint_records,
    event_records,
    executions,
    failures,
    latest_line,
    message_records,
)

SCHEMAS = {"checkpoints": CHECKPOINTS, "channels": MESSAGES, "events": EVENTS}
Tables = dict[str, list[dict[str, Any]]]


def tables(execution: Execution, failed: frozenset[str], rng: random.Random) -> Tables:
    """All records; the current state of survivors is in their events, or (silent ones, and some more) volatile."""
    heard = {event.subtask for event in execution.events}
    alive = sorted(set(execution.subtasks) - failed)
    return {
        "checkpoints": checkpoint_records(execution, [s for s in alive if s not in heard or rng.random() < 0.3]),
        "channels": message_records(execution),
        "events": event_records(execution),
    }


def write(folder: Path, run: Tables, rng: random.Random) -> None:
    """Records shuffled over one to three files of any kind, some of them twice; all subtasks in the manifest."""
    for place, records in run.items():
        (folder / place).mkdir(parents=True, exist_ok=True)
        if place == "checkpoints":
            records = records + [r for r in records if rng.random() < 0.1]
        records = rng.sample(records, len(records))
        files = min(rng.randint(1, 3), len(records))
        for i in range(files):
            _file(folder / place / f"part-{i}", records[i::files], SCHEMAS[place], rng)


def _file(path: Path, records: list[dict[str, Any]], schema: pa.Schema, rng: random.Random) -> None:
    if rng.random() < 0.3 and records:
        rows = [{f.name: _arrow(r.get(f.name), f) for f in schema} for r in records]
        table = pa.Table.from_pylist(rows, schema=schema)
        pq.write_table(table, path.with_suffix(".parquet"), row_group_size=rng.randint(1, 50))
        return
    lines = "".join(json.dumps(r, separators=rng.choice([(",", ":"), (", ", ": ")])) + "\n" for r in records)
    if rng.random() < 0.3:
        data = pa.compress(lines.encode(), codec="gzip", asbytes=True)
        path.with_suffix(".jsonl.gz").write_bytes(data)
    else:
        path.with_suffix(".jsonl").write_text(lines, encoding="utf-8")


def _arrow(value: Any, field: pa.Field) -> Any:
    return sorted(value.items()) if pa.types.is_map(field.type) and value is not None else value


def manifest(folder: Path, execution: Execution) -> None:
    count: dict[str, int] = {}
    for name in execution.subtasks:
        operator, _, number = name.rpartition("/")
        count[operator] = max(count.get(operator, 0), int(number) + 1)
    operators = [{"name": name, "parallelism": n} for name, n in count.items()]
    (folder / "job.json").write_text(
        json.dumps({"operators": operators, "channels": [{"channel": c} for c in execution.channels]})
    )


def ask(folder: Path, question: Question, split: int = 1 << 20) -> Answer:
    with open_run(str(folder), Options(split_bytes=split)) as run:
        return run.recovery_line(question)


def labels(answer: Answer, execution: Execution) -> dict[str, int]:
    """The line as the oracle writes it; subtasks that the oracle does not know are left out."""
    return {
        f"{e.operator}/{e.subtask}": execution.checkpoints(f"{e.operator}/{e.subtask}") + 1
        if e.checkpoint is None
        else e.checkpoint
        for e in answer.result.line
        if f"{e.operator}/{e.subtask}" in execution.subtasks
    }


@st.composite
def failed_runs(draw: st.DrawFn) -> tuple[Execution, frozenset[str], random.Random]:
    execution = draw(executions())
    return execution, draw(failures(execution)), random.Random(draw(st.integers(0, 1 << 30)))


@settings(max_examples=120)
@given(failed_runs())
def test_the_line_of_a_run_folder_is_the_exhaustive_maximum(
    case: tuple[Execution, frozenset[str], random.Random],
) -> None:
    execution, failed, rng = case
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        manifest(folder, execution)
        write(folder, tables(execution, failed, rng), rng)
        question = Question(failed=tuple(sorted(failed)))
        found = ask(folder, question)
        assert labels(found, execution) == latest_line(execution, failed)
        other = ask(folder, Question(failed=question.failed, algorithm="rollback-propagation"), split=97)
        assert render(other, "json") == render(found, "json")


@settings(max_examples=60)
@given(failed_runs())
def test_verify_proves_the_line_and_that_none_is_newer(case: tuple[Execution, frozenset[str], random.Random]) -> None:
    execution, failed, rng = case
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        manifest(folder, execution)
        write(folder, tables(execution, failed, rng), rng)
        question = Question(failed=tuple(sorted(failed)))
        line = {f"{e.operator}/{e.subtask}": e.checkpoint for e in ask(folder, question).result.line}
        with open_run(name) as run:
            checks = {c.check: c.holds for c in run.verify(line, True, question).result["checks"]}
        assert checks["consistent"] is True
        assert checks["maximal"] is True


@settings(max_examples=60)
@given(failed_runs(), st.integers(0, 400))
def test_what_happens_later_changes_nothing_as_of_then(
    case: tuple[Execution, frozenset[str], random.Random], moment: int
) -> None:
    execution, failed, rng = case
    whole = tables(execution, failed, rng)
    before = {place: [r for r in rows if r["time"] <= EPOCH + moment] for place, rows in whole.items()}
    question = Question(failed=tuple(sorted(failed)), as_of=EPOCH + moment, explain=True)
    answers = []
    for run in (before, whole):
        with tempfile.TemporaryDirectory() as name:
            manifest(Path(name), execution)
            write(Path(name), run, rng)
            answers.append(ask(Path(name), question))
    assert answers[0].result == answers[1].result
    assert answers[0].exit_code == answers[1].exit_code


@pytest.mark.spark
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(case=failed_runs())
def test_both_engines_give_the_same_bytes(case: tuple[Execution, frozenset[str], random.Random], spark: Engine) -> None:
    execution, failed, rng = case
    question = Question(failed=tuple(sorted(failed)), explain=True)
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        manifest(Path(name), execution)
        write(Path(name), tables(execution, failed, rng), rng)
        local = render(ask(Path(name), question), "json")
        patch.setattr(Run, "engine_for", lambda _run, _size: spark)
        assert render(ask(Path(name), question, split=131), "json") == local


@pytest.mark.parametrize(("seed", "zone"), [("1", "UTC"), ("2", "Asia/Kolkata"), ("3", "America/St_Johns")])
def test_hash_seed_and_time_zone_do_not_show(seed: str, zone: str) -> None:
    args = ["recovery-line", "sample_logs/uncoordinated-join", "--explain", "--json", "--failed", "join"]
    told = subprocess.run(
        [sys.executable, "-m", "cklog", *args],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone},
        capture_output=True,
        check=True,
    )
    plain = subprocess.run([sys.executable, "-m", "cklog", *args], cwd=REPOSITORY, capture_output=True, check=True)
    assert told.stdout == plain.stdout
