"""Whole runs, written to disk and read back: the line is the exhaustive maximum, however the files lie."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cklog.engine.scan import Engine
from cklog.model.question import Question
from cklog.render.formats import render
from cklog.run import Run, open_run
from tests.builders.executions import failed_runs, manifest, tables, write
from tests.conftest import REPOSITORY
from tests.examples import examples
from tests.oracles.lines import (
    EPOCH,
    Execution,
    latest_line,
)
from tests.reading.lines import ask, labels


@settings(max_examples=examples(120))
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


@settings(max_examples=examples(60))
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
            checks = {c.check: c.holds for c in run.verify(line, True, question).result.checks}
        assert checks["consistent"] is True
        assert checks["maximal"] is True


@settings(max_examples=examples(60))
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
@settings(max_examples=examples(12), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
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


@pytest.mark.quarter
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
