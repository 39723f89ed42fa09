"""Tasks that the changelogs tell of, and whose folders are not here: an answer about the others says so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cklog.model.question import Question
from cklog.run import Options, open_run
from tests.conftest import SAMPLES
from tests.program import cklog


def missed(folder: Path) -> list[str]:
    with open_run(str(folder), Options()) as run:
        answer = run.recovery_line(Question())
    return [finding.subject for finding in answer.findings if finding.id == "missing-task"]


@pytest.mark.parametrize(
    ("task", "partition"), [("1_0", "counts-changelog-0"), ("1_1", "counts-changelog-1"), ("1_2", "counts-changelog-2")]
)
def test_a_task_whose_folder_is_gone_is_told_of(task: str, partition: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(SAMPLES / "kafka-streams-state", folder)
    assert missed(folder) == []
    shutil.rmtree(folder / "state" / "wordcount" / task)
    assert missed(folder) == [f"wordcount-{partition}"]
    shutil.rmtree(folder / "kafka")
    assert missed(folder) == []  # without logs nothing names it


def test_a_store_whose_changelog_is_not_among_the_logs_is_no_plain_restart(tmp_path: Path) -> None:
    """It goes on from an offset that the changelog may not reach: then its task would have to go first."""
    folder = tmp_path / "app"
    shutil.copytree(SAMPLES / "kafka-streams-state", folder)
    shutil.rmtree(folder / "kafka" / "wordcount-counts-changelog-1")
    ended = cklog("recovery-line", folder, "--json")
    answer = json.loads(ended.out)
    assert (answer["result"]["action"], ended.code) == ("undetermined", 5)
    assert "missing-changelog" in {finding["id"] for finding in answer["findings"]}
