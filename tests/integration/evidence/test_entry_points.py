"""One evidence rule for every way to name a run: the same action and the same errors from each, in every command."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.bombs import MIB, gzipped
from tests.conftest import SAMPLES
from tests.integration.evidence.cases import CASES, answer, claims, kept
from tests.program import cklog

SPARK = ("spark-wordcount", "spark-state-hdfs", "spark-state-rocksdb")
SPARK_CASES = ("users/spark-sink-log-hole", "users/spark-source-log-entry", "engines/spark-rate-source-log-lost")
FLINK_CASES = ("reports/37-newest-metadata-empty", "reports/08-pending-manifest-orphan-removed")


def errors(found: Any) -> set[tuple[str, str]]:
    return {(f["id"], f["effect"]) for f in found["findings"] if f["severity"] == "error"}


def agrees(folder: Path, *more: Path) -> None:
    """Hold every command, about a folder and others that name the same run, to the line of the folder."""
    code, line = answer("recovery-line", folder)
    action = line["result"]["action"]
    for place in (folder, *more):
        for command in ("recovery-line", "replay", "runbook", "impact"):
            other, found = answer(command, place)
            assert (other, found["result"]["action"]) == (code, action), (command, place)
            assert errors(found) == errors(line), (command, place)
        _, rows = answer("scan", place)
        assert [(row["action"], row["exit"]) for row in rows["result"]["runs"]] == [(action, code)], place
        other, found = answer("report", place)
        assert (other, errors(found)) == (code, errors(line)), place


def checkpoint_in(folder: Path) -> Path:
    """The folder that the query was given as its checkpointLocation."""
    return next(path.parent for path in folder.rglob("offsets") if path.is_dir())


@pytest.mark.parametrize("name", SPARK)
def test_the_checkpoint_directory_of_a_sample_is_answered_as_its_parent(name: str) -> None:
    agrees(SAMPLES / name, checkpoint_in(SAMPLES / name))


@pytest.mark.quarter
@kept
@pytest.mark.parametrize("name", SPARK_CASES)
def test_the_checkpoint_directory_of_a_case_is_answered_as_its_parent(name: str) -> None:
    agrees(CASES / name, checkpoint_in(CASES / name))


@kept
@pytest.mark.parametrize("name", FLINK_CASES)
def test_the_folder_of_a_flink_job_is_answered_as_its_parent(name: str) -> None:
    job = next(path.parent for path in (CASES / name).rglob("chk-*"))
    agrees(CASES / name, job.parent, job)


def test_the_log_of_a_sink_beside_the_checkpoint_is_found_and_said(tmp_path: Path) -> None:
    run = Path(shutil.copytree(SAMPLES / "spark-wordcount", tmp_path / "run"))
    ck = checkpoint_in(run)
    ended = cklog("recovery-line", ck)
    assert f"a part of the run lies beside {ck}, so {run} is asked" in ended.err
    log = next(path for path in run.rglob("_spark_metadata"))
    newest = max((path for path in log.iterdir() if path.name.isdecimal()), key=lambda path: int(path.name))
    newest.unlink()
    newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)
    for place in (run, ck, ck / "offsets"):
        code, found = answer("recovery-line", place)
        assert code == 3
        assert {id for id, _ in errors(found)} & {"sink-log-behind", "sink-behind"}, place


@pytest.mark.parametrize("other", ["domino-cycle", "unreadable"])
def test_another_run_beside_the_checkpoint_changes_nothing(other: str, tmp_path: Path) -> None:
    """Nothing tells which of the two the sink belongs to."""
    run = Path(shutil.copytree(SAMPLES / "spark-wordcount", tmp_path / "run"))
    ck = checkpoint_in(run)
    if other == "unreadable":
        (run / other / "checkpoints").mkdir(parents=True)
        (run / other / "checkpoints" / "x.jsonl.gz").write_bytes(gzipped(b"\n" * MIB, 700))
    else:
        shutil.copytree(SAMPLES / other, run / other)
    ended = cklog("recovery-line", ck)
    assert (ended.code, ended.err) == (0, "")
    assert "whether the log of a file sink, if the query has one, agrees with this line" in ended.out


@pytest.mark.parametrize(("others", "checked"), [(1900, True), (2100, False)])
def test_among_many_files_no_sink_is_looked_for(others: int, checked: bool, tmp_path: Path) -> None:
    run = Path(shutil.copytree(SAMPLES / "spark-wordcount", tmp_path / "run"))
    (run / "others").mkdir()
    for number in range(others):
        (run / "others" / str(number)).touch()
    _, found = answer("recovery-line", checkpoint_in(run))
    assert ("the log of a file sink, if the query has one, agrees with this line" not in claims(found)) == checked


def test_a_sink_that_nothing_ties_to_the_checkpoint_is_not_checked(tmp_path: Path) -> None:
    """Two checkpoints beside one sink: which of them writes to it is not known."""
    run = Path(shutil.copytree(SAMPLES / "spark-wordcount", tmp_path / "run"))
    ck = checkpoint_in(run)
    shutil.copytree(ck, run / "another")
    _, found = answer("recovery-line", ck)
    assert "the log of a file sink, if the query has one, agrees with this line" in claims(found)


def test_retention_plans_for_the_folder_that_was_named() -> None:
    ck = checkpoint_in(SAMPLES / "spark-wordcount")
    ended = cklog("retention", ck, "--keep", "2", "--json")
    assert ended.err == ""
    assert '"path": "offsets/' in ended.out
