"""State of Spark queries: folders that real Spark restarted, or refused to, and what must be said of them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.integration.evidence.cases import CASES, answer, kept

REPARTITION = "reports/43-spark-repartition"

pytestmark = kept


def copied(folder: Path, to: Path) -> Path:
    """Copy a folder that may be read-only, so that a command can remove files of the copy."""
    shutil.copytree(folder, to)
    for path in [to, *to.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200)
    return to


def repaired(folder: Path, found: Any, to: Path) -> tuple[int, str, int]:
    """Run an answer's command on a copy of its folder; return how the answer about the copy ends, and its line."""
    copy = copied(folder, to)
    subprocess.run(found["result"]["runs"][0]["command"], shell=True, check=True, cwd=copy)
    code, after = answer("recovery-line", copy)
    return code, after["result"]["action"], line(after)


def line(found: Any) -> int:
    committed: int = found["result"]["details"]["committed"]
    return committed


def errors(found: Any) -> list[tuple[str, str]]:
    return [(f["id"], f["message"]) for f in found["findings"] if f["severity"] == "error"]


@pytest.mark.parametrize(
    ("name", "batch", "stores"), [("after", 5, 4), ("shrunk-healthy-v1", 3, 2), ("shrunk-healthy-v2", 7, 1)]
)
def test_a_repartitioned_state_that_is_whole_is_restarted(name: str, batch: int, stores: int) -> None:
    code, found = answer("recovery-line", CASES / REPARTITION / name)
    assert (code, found["result"]["action"], line(found)) == (0, "restart", batch)
    assert f"all {stores} stores can load version {batch + 1}" in " ".join(found["result"]["notes"])
    assert found["result"]["details"]["remove"] == []
    assert errors(found) == []


def test_a_lost_partition_of_the_new_number_sends_the_query_back_before_the_repartition(tmp_path: Path) -> None:
    folder = CASES / REPARTITION / "partition-3-gone"
    code, found = answer("recovery-line", folder)
    assert (code, found["result"]["action"], line(found)) == (3, "repair-first", 2)
    removed = found["result"]["details"]["remove"]
    logs = {f"ck/{log}/{n}" for log in ("offsets", "commits") for n in range(6)}
    assert logs & set(removed) == {f"ck/{log}/{n}" for log in ("offsets", "commits") for n in (3, 4, 5)}
    assert repaired(folder, found, tmp_path / "copy") == (0, "restart", 2)


def test_retention_keeps_the_only_line(tmp_path: Path) -> None:
    _, found = answer("retention", CASES / REPARTITION / "partition-3-gone")
    fates = {row["path"]: row["fate"] for row in found["result"]["rows"]}
    needed = ["offsets/1", "offsets/2", "commits/2", "state/0/0/3.zip", "state/0/1/3.zip"]
    assert {fates[f"ck/{path}"] for path in needed} == {"VALID"}


@pytest.mark.parametrize(("batch", "holds"), [(2, True), (5, False)])
def test_verify_counts_the_partitions_of_the_batch(batch: int, holds: bool, tmp_path: Path) -> None:
    asked = tmp_path / "line.json"
    asked.write_text(json.dumps({"query/0": batch}))
    _, found = answer("verify", CASES / REPARTITION / "partition-3-gone", "--line", str(asked))
    assert {c["check"]: c["holds"] for c in found["result"]["checks"]}["loadable"] is holds


@pytest.mark.parametrize(("name", "batch"), [("after", 2), ("shrunk-healthy-v1", 1), ("shrunk-healthy-v2", 5)])
def test_going_back_before_a_repartition(name: str, batch: int) -> None:
    code, found = answer("recovery-line", CASES / REPARTITION / name, "--at", f"query/0={batch}")
    assert (code, found["result"]["action"], line(found)) == (3, "repair-first", batch)
    assert errors(found) == []


def test_a_repartition_that_was_not_finished(tmp_path: Path) -> None:
    folder = CASES / "engines/spark-unfinished-repartition"
    code, found = answer("recovery-line", folder)
    assert (code, found["result"]["action"], line(found)) == (3, "repair-first", 6)
    [(id, message)] = errors(found)
    assert id == "unfinished-repartition"
    assert "with 3 partitions" in message
    assert "remove ck/offsets/7, its .crc" in message
    assert [path for path in found["result"]["details"]["remove"] if "offsets" in path] == [
        "ck/offsets/.7.crc",
        "ck/offsets/7",
    ]
    assert repaired(folder, found, tmp_path / "copy") == (0, "restart", 6)


@pytest.mark.parametrize(
    ("case", "id", "said"),
    [
        (
            "spark-tws-schema-lost",
            "missing-state-file",
            "_stateSchema/default/0_fc6edc9f-c6a6-4033-b921-2c293e1dacc4 is missing",
        ),
        (
            "spark-v2-changelog-of-another-version",
            "corrupt-file",
            "left-keyWithIndexToValue/6_7791c1ed-c222-4414-9d49-644784330265.changelog",
        ),
    ],
)
def test_a_state_file_that_is_lost_or_of_another_version_stops_the_restart(case: str, id: str, said: str) -> None:
    code, found = answer("recovery-line", CASES / "engines" / case)
    assert (code, found["result"]["action"]) == (3, "repair-first")
    [(found_id, message)] = errors(found)
    assert (found_id, said in message, "The restart fails" in message) == (id, True, True)
    said_on = [f["id"] for f in found["findings"] if "goes on without" in f["message"]]
    assert {*said_on} <= {"unchecked-input"}


@pytest.mark.parametrize(
    ("provider", "batch", "path"), [("hdfs", 4, "ck/state/0/0/4.snapshot"), ("rocksdb", 5, "ck/state/0/0/5.zip")]
)
def test_a_damaged_snapshot_stops_a_spark_before_4_1(provider: str, batch: int, path: str, tmp_path: Path) -> None:
    folder = CASES / "engines/spark-35-snapshot-zeroed" / provider
    code, found = answer("recovery-line", folder)
    assert (code, found["result"]["action"], line(found)) == (3, "repair-first", batch)
    assert found["result"]["details"]["remove"] == [path]
    [(_, message)] = errors(found)
    assert "The restart fails" in message
    assert repaired(folder, found, tmp_path / "copy") == (0, "restart", batch)


def test_a_snappy_stream_that_is_cut(tmp_path: Path) -> None:
    folder = copied(CASES / "engines/spark-snappy-cut", tmp_path / "run")
    assert answer("recovery-line", folder)[1]["result"]["action"] == "restart"
    subprocess.run(["sh", "cut.sh"], check=True, cwd=folder)
    code, found = answer("recovery-line", folder)
    assert (code, found["result"]["action"], line(found)) == (3, "repair-first", 5)
    [(id, message)] = errors(found)
    assert id == "corrupt-file"
    assert "ck/state/0/0/7.delta: a snappy block of 75 bytes where 27 are left" in message
