"""Which folder stands for a run in a scan: of a Spark query the one that also holds what its file sink wrote."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cklog.storage import Root
from cklog.sweep.finding import places_below
from tests.conftest import SAMPLES

WORDCOUNT = SAMPLES / "spark-wordcount"


def places(root: Path) -> list[str]:
    return [place.folder for place in places_below(Root(str(root)))]


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    shutil.copytree(WORDCOUNT, tmp_path / "jobs" / "a")
    return tmp_path / "jobs"


def test_a_checkpoint_and_its_sink_are_one_run(jobs: Path) -> None:
    assert places(jobs) == ["a"]
    assert places(jobs / "a") == [""]
    assert places(jobs / "a" / "ck") == [""]


def test_a_checkpoint_without_a_sink_stands_for_itself(jobs: Path) -> None:
    shutil.rmtree(jobs / "a" / "out")
    assert places(jobs) == ["a/ck"]


@pytest.mark.parametrize("other", ["spark-state-hdfs/ck", "domino-cycle"])
def test_where_another_run_lies_nobody_knows_whose_sink_it_is(jobs: Path, other: str) -> None:
    shutil.copytree(SAMPLES / other, jobs / "a" / "more" / "other")
    assert places(jobs) == ["a/ck", "a/more/other"]
