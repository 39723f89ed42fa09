"""What may go of a Spark checkpoint, and of a store of chains: batches, state files, pins, damage."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SAMPLES
from tests.program import cklog

STATEFUL = ("spark-state-hdfs", "spark-state-rocksdb")
POLICIES: tuple[tuple[str, ...], ...] = ((), ("--keep", "2"), ("--keep", "99"), ("--pin", "query/0=3"))
REAL = (
    "A_file_hdfs_parquetsink",
    "B_rate_rocksdb_changelog",
    "C_transformWithState",
    "F_rocksdb_ckptformat_v2",
    "R_rocksdb_nochangelog_retain3",
)


def asked(command: str, path: Path, *more: str) -> dict[str, Any]:
    ended = cklog(command, path, *more, "--json")
    assert "Traceback" not in ended.err
    answer: dict[str, Any] = json.loads(ended.out) if ended.out else {"error": ended.err}
    return answer | {"exit": ended.code}


def planned(path: Path, *more: str) -> dict[str, dict[str, Any]]:
    return {row["path"]: row for row in asked("retention", path, *more)["result"]["rows"]}


def sample(name: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLES / name, tmp_path / name))


def delete(path: Path, plan: dict[str, dict[str, Any]]) -> int:
    gone = [name for name, row in plan.items() if row["fate"] == "OBSOLETE"]
    for name in gone:
        (path / name).unlink()
    return len(gone)


def batches_of(plan: dict[str, dict[str, Any]]) -> set[int]:
    """The batches that files stay for."""
    return {int(row["needed_by"].rpartition("=")[2]) for row in plan.values() if row["needed_by"]}


def restart(path: Path, batch: int | None = None) -> tuple[Any, ...]:
    """What a restart does, now or after batch `batch`."""
    at = () if batch is None else ("--at", f"query/0={batch}")
    result = asked("recovery-line", path, *at)["result"]
    details = result["details"]
    told = [details[name] for name in ("committed", "planned", "restart_fails")]
    return result["line"], result["sources"], told, [row["name"] for row in details["stores"]]


@pytest.mark.quarter
@pytest.mark.parametrize("name", [*STATEFUL, "spark-wordcount"])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_restart_misses_nothing(name: str, policy: tuple[str, ...], tmp_path: Path) -> None:
    copy = sample(name, tmp_path)
    kept = batches_of(planned(copy, *policy))
    before = {batch: restart(copy, batch) for batch in [None, *kept]}
    gone = delete(copy, planned(copy, *policy))
    assert gone or "99" in policy
    assert {batch: restart(copy, batch) for batch in before} == before
    assert not delete(copy, planned(copy, *policy))


@pytest.mark.parametrize("name", REAL)
def test_a_real_query_misses_nothing(name: str, shared_data: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(shared_data / "spark-checkpoints" / name, tmp_path / name))
    keep = 2 if name.startswith("R") else 3  # of R's oldest batch the start was purged
    plan = planned(copy, "--keep", str(keep))
    kept = batches_of(plan)
    before = {batch: restart(copy, batch) for batch in [None, *kept]}
    assert len(kept) == keep
    assert delete(copy, plan)
    assert {batch: restart(copy, batch) for batch in before} == before


@pytest.mark.parametrize("name", STATEFUL)
def test_whatever_state_file_is_lost_what_can_still_be_restored_stays(name: str, tmp_path: Path) -> None:
    whole = SAMPLES / name
    files = [p.relative_to(whole) for p in sorted((whole / "ck" / "state").rglob("*")) if p.is_file()]
    lost = [path for path in files if re.fullmatch(r"[0-9]+\.(delta|snapshot|changelog|zip)", path.name)]
    assert lost
    for number, path in enumerate(lost):
        copy = Path(shutil.copytree(whole, tmp_path / str(number)))
        (copy / path).unlink()
        before = restart(copy)
        delete(copy, planned(copy))
        assert restart(copy) == before


@pytest.mark.quarter
@pytest.mark.parametrize("name", STATEFUL)
@pytest.mark.parametrize("policy", POLICIES[:2])
def test_damage_lets_go_of_nothing_that_the_whole_checkpoint_keeps(
    name: str, policy: tuple[str, ...], tmp_path: Path
) -> None:
    copy = sample(name, tmp_path)
    needed = {path for path, row in planned(copy, *policy).items() if row["fate"] != "OBSOLETE"}
    for path in [p for p in sorted((copy / "ck").rglob("*")) if p.is_file() and not p.name.endswith(".crc")]:
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2])
        gone = {name for name, row in planned(copy, *policy).items() if row["fate"] == "OBSOLETE"}
        assert not gone & needed, path
        path.write_bytes(data)


def test_what_would_be_kept_if_it_were_mended_stays(tmp_path: Path) -> None:
    """Without offsets/4 neither batch 4 nor 5 is a target: --keep 2 keeps 6 and 3, and what there is of those two."""
    copy = sample("spark-state-rocksdb", tmp_path)
    (copy / "ck/offsets/4").write_bytes(b"")
    sst = next((copy / "ck/state/0/0/SSTs").glob("000009-*.sst"))  # of the snapshot of version 6
    sst.unlink()
    plan = planned(copy, "--keep", "2")
    rules = {path.removeprefix("ck/"): (row["rule"], row["needed_by"]) for path, row in plan.items()}
    assert rules["commits/6"] == ("line", "query/0=6")
    assert rules["commits/3"] == ("keep", "query/0=3")
    assert rules["commits/5"] == ("repairable", "query/0=5")
    assert rules["state/0/0/6.zip"] == ("repairable", "query/0=6")
    assert rules["state/0/0/3.zip"][0] == "line"
    assert plan["ck/commits/2"]["fate"] == "OBSOLETE"


def test_rules_of_a_checkpoint(tmp_path: Path) -> None:
    plan = planned(SAMPLES / "spark-state-hdfs", "--keep", "2", "--pin", "query/0=2")
    rules = {path.removeprefix("ck/"): (row["fate"], row["rule"], row["needed_by"]) for path, row in plan.items()}
    assert rules["offsets/7"] == ("VALID", "in-flight", None)
    assert rules["offsets/6"] == rules["offsets/5"] == rules["commits/6"] == ("VALID", "line", "query/0=6")
    assert rules["offsets/4"] == rules["commits/5"] == ("KEEP", "keep", "query/0=5")
    assert rules["offsets/2"] == rules["offsets/1"] == rules["state/0/0/3.delta"] == ("KEEP", "pin", "query/0=2")
    assert rules["commits/1"] == rules["offsets/3"] == rules["commits/.4.crc"] == ("OBSOLETE", "obsolete", None)
    assert rules["metadata"] == rules["state/0/_metadata/metadata"] == ("VALID", "query", None)
    assert {row[1] for path, row in rules.items() if path.startswith("sources/")} == {"source-log"}
    plans = [path for path in rules if re.fullmatch(r"offsets/[0-9]+", path)]
    assert plans == [f"offsets/{n}" for n in range(8)]


def test_by_the_time_that_a_batch_was_planned() -> None:
    path = SAMPLES / "spark-state-hdfs"
    batches = asked("inspect", path)["result"]["batches"]
    time = {row["batch"]: row["time"] for row in batches}
    plan = planned(path, "--window", "1s", "--now", str(time[4] + 1000))
    kept = {row["needed_by"]: row["rule"] for row in plan.values() if row["needed_by"]}
    assert kept == {"query/0=4": "window", "query/0=5": "window", "query/0=6": "line"}


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        (("--pin", "query/0=77"), 66, "batches 0 to 7"),
        (("--pin", "other/0=7"), 66, "query/0"),
        (("--marked", "query/0=1"), 2, "marks nothing"),
        (("--jobs-stopped",), 2, "Flink"),
    ],
)
def test_options_that_cannot_be_meant(options: tuple[str, ...], code: int, word: str) -> None:
    ended = cklog("retention", SAMPLES / "spark-state-hdfs", *options)
    assert (ended.code, ended.out) == (code, "")
    assert word in ended.err


def test_nothing_goes_where_no_batch_can_be_restored(tmp_path: Path) -> None:
    copy = sample("spark-state-hdfs", tmp_path)
    for path in (copy / "ck" / "commits").iterdir():
        path.write_bytes(b"")
    answer = asked("retention", copy)
    assert answer["result"]["doubt"] == "no-line"
    assert {row["fate"] for row in answer["result"]["rows"]} <= {"VALID", "KEEP"}


def test_state_that_cannot_be_judged_stays(tmp_path: Path) -> None:
    copy = sample("spark-state-hdfs", tmp_path)
    for path in (copy / "ck" / "offsets").iterdir():
        if not path.name.startswith("."):
            path.write_bytes(
                path.read_bytes().replace(b"HDFSBackedStateStoreProvider", b"SomebodyElsesStateProvider!!")
            )
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    answer = asked("retention", copy)
    assert answer["exit"] == 5
    state = [row for row in answer["result"]["rows"] if re.search(r"/state/0/\d/\d", row["path"])]
    assert {row["rule"] for row in state} == {"unjudged"}


def test_a_store_of_chains() -> None:
    plan = planned(SAMPLES / "patent-store", "--keep", "1")
    rules = {path: (row["fate"], row["rule"], row["needed_by"]) for path, row in plan.items()}
    assert rules["figure/0=3"] == ("VALID", "line", None)
    assert rules["figure/0=2"] == ("KEEP", "chain", "figure/0=3")
    marked = planned(SAMPLES / "patent-store", "--keep", "9", "--marked", "figure/0=1")
    assert marked["figure/0=1"]["rule"] == "marked"
    assert cklog("retention", SAMPLES / "patent-store", "--window", "1d", "--now", "5").code == 2
    assert cklog("retention", SAMPLES / "patent-store", "--pin", "figure/0=99").code == 66
