"""Runbooks of a line at the initial state ask who gives up all state; scripts work from any working directory."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SAMPLES
from tests.program import cklog
from tests.standins import run_script


def lost_state(folder: Path) -> Path:
    """A query whose only complete chain of state has lost its first file."""
    run = Path(shutil.copytree(SAMPLES / "spark-wordcount", folder / "run"))
    (run / "ck/state/0/0/1.delta").unlink()
    return run


def test_a_query_without_any_state_to_load_starts_over_and_repeats_results(tmp_path: Path) -> None:
    ended = cklog("recovery-line", lost_state(tmp_path), "--json")
    run = json.loads(ended.out)["result"]["runs"][0]
    assert (ended.code, run["action"], run["chosen"], run["doubled"]) == (4, "start-over", None, None)
    assert run["command"].startswith("rm -r -- ./ck/commits ./ck/offsets ./ck/state ")


@pytest.mark.parametrize("lost", ["", "yes"])
def test_all_state_of_a_query_is_removed_only_where_somebody_gave_it_up(lost: str, tmp_path: Path) -> None:
    run = lost_state(tmp_path)
    script = cklog("runbook", run, "--format", "script").out
    ran = run_script(script, tmp_path / "work", "query.py", LOST=lost)
    assert (ran.code == 0, bool(ran.named("spark-submit"))) == (bool(lost), bool(lost)), ran.err
    assert (run / "ck/commits/0").exists() != bool(lost)
    assert "results since batch 0 may be in the sink twice" in script
    assert "in the sink once" not in script


def steps_of(path: Path, *options: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    result = json.loads(cklog("recovery-line", path, *options, "--json").out)["result"]
    steps = json.loads(cklog("runbook", path, *options, "--json").out)["result"]["steps"]
    return result, steps


@pytest.mark.parametrize(
    ("sample", "options"),
    [
        ("connect-offsets/topic", ("--source-from", "orders-mysql=mysql-bin.000124:4")),
        ("meteor-shower", ()),
    ],
)
def test_every_run_at_its_initial_state_asks_before_anything_changes(sample: str, options: tuple[str, ...]) -> None:
    result, steps = steps_of(SAMPLES / sample, *options)
    names = [run["run"] for run in result["runs"] if run["chosen"] is None]
    assert names
    for name in names:
        mine = [step for step in steps if step["run"] == name]
        [asks] = [i for i, step in enumerate(mine) if "LOST" in (step["check"] or "")]
        assert "reads again" in mine[asks]["why"]
        assert not [step for step in mine[:asks] if step["dangerous"] and "stop" not in (step["command"] or "")]


@pytest.mark.quarter
@pytest.mark.parametrize(
    ("sample", "words"),
    [("flink-orders", ("job.jar",)), ("spark-wordcount", ("query.py",)), ("uncoordinated-join", ())],
)
def test_a_script_of_a_relative_path_works_from_another_directory(
    sample: str, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(SAMPLES / sample, tmp_path / "here" / "run", symlinks=True)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    script = cklog("runbook", "run", "--map", "/srv/nothing=run", "--format", "script").out
    ran = run_script(script, tmp_path / "work", *words, cwd=tmp_path / "elsewhere")
    assert ran.code == 0, ran.err
