"""sample_logs/flink-orders: cklog's verdicts are what Flink did when it tried each checkpoint (see its README)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SAMPLES
from tests.program import cklog

FIRST, SECOND = "aba3f4bfac52eaa92f2d9f59dce4f476", "125c88b9401f9252baa1b39e412cc4b8"
FAILS = {f"{FIRST}/chk-5": 2, f"{FIRST}/chk-6": 3}  # files missing
RESTORED = {f"{SECOND}/chk-{number}" for number in (11, 12, 13)}
TORN = {f"{FIRST}/chk-8", f"{SECOND}/chk-14"}


@pytest.fixture(scope="module")
def answer() -> dict[str, Any]:
    told = cklog("recovery-line", SAMPLES / "flink-orders", "--json")
    assert told.code == 0
    found: dict[str, Any] = json.loads(told.out)
    return found


def snapshots(answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Rows by snapshot."""
    result = answer["result"]
    return {row["snapshot"]: row for row in {**result.get("details", {}), **result}["snapshots"]}


def test_verdicts_are_flinks(answer: dict[str, Any]) -> None:
    rows = snapshots(answer)
    assert {name for name, row in rows.items() if row["verdict"] == "restorable"} == RESTORED
    assert {name: row["flawed"] for name, row in rows.items() if row["verdict"] == "missing-state-file"} == FAILS
    assert {name for name, row in rows.items() if row["verdict"] == "no-metadata"} == TORN
    assert [entry["checkpoint"] for entry in answer["result"]["line"]] == [13]


def test_the_readers_go_where_flinks_went(answer: dict[str, Any]) -> None:
    offsets = {source["source"]: source["offset"] for source in answer["result"]["sources"]}
    assert offsets == {"orders-0": 2088, "orders-1": 2086, "orders-2": 2086, "orders-3": 2084}
    told = cklog("replay", SAMPLES / "flink-orders", "--format", "flink-offsets").out
    assert told == "partition:0,offset:2088;partition:1,offset:2086;partition:2,offset:2086;partition:3,offset:2084\n"


def test_the_first_jobs_folder_must_stay(answer: dict[str, Any]) -> None:
    (finding,) = (f for f in answer["findings"] if f["id"] == "needed-by-other-job")
    assert finding["subject"] == FIRST
    assert all(name in finding["message"] for name in RESTORED)


def test_alone_the_first_job_has_nothing_to_restore() -> None:
    assert cklog("recovery-line", SAMPLES / "flink-orders" / FIRST).code == 4


def test_without_the_obsolete_files_the_answer_is_the_same(answer: dict[str, Any], tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(SAMPLES / "flink-orders", copy)
    assert not cklog("retention", copy, "--format", "paths").out
    planned = json.loads(cklog("retention", copy, "--drop-broken", "--json").out)["result"]["rows"]
    gone = [row["path"] for row in planned if row["fate"] == "OBSOLETE"]
    assert any(path.startswith(f"{FIRST}/") for path in gone), "the broken checkpoints may go"
    for path in gone:
        (copy / path).unlink()
    after = json.loads(cklog("recovery-line", copy, "--json").out)
    assert {name for name, row in snapshots(after).items() if row["verdict"] == "restorable"} == RESTORED
    assert after["result"]["line"] == answer["result"]["line"]
    assert after["result"]["sources"] == answer["result"]["sources"]
