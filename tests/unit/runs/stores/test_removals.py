"""What is deleted of stores that would go wrong: their own folder, and only where a changelog can restore it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cklog.parsers.kafka.state.offsets import QUIX
from tests.builders.kafka_broker import TopicLog, broker_files, commit_batch
from tests.builders.stores import put_log, put_store, put_task
from tests.program import cklog

TOPIC = "shop-counts-changelog"


def line(*args: str | Path, exit_code: int = 3) -> tuple[Any, list[Any]]:
    """The only run of a line, and its errors."""
    ended = cklog("recovery-line", *args, "--json")
    assert ended.code == exit_code, ended.err
    found = json.loads(ended.out)
    (run,) = found["result"]["runs"]
    return run, [f for f in found["findings"] if f["severity"] == "error"]


def put_commits(folder: Path, *commits: tuple[str, str, int, int | None]) -> None:
    log = TopicLog()
    for i, commit in enumerate(commits):
        log.add(commit_batch(i, [commit]), [i], i + 1, "data")
    log.write(folder / "__consumer_offsets-0")


def test_a_store_is_kept_where_its_changelog_is_damaged(tmp_path: Path) -> None:
    """The store may be the only whole copy of what the changelog has lost."""
    put_task(tmp_path / "state" / "shop", "0_0", ("counts",), {f"{TOPIC} 0": 60})
    put_log(tmp_path / "kafka", TOPIC, 0, 50)
    (segment,) = (tmp_path / "kafka").glob("*/*.log")
    data = bytearray(segment.read_bytes())
    data[200] ^= 1
    segment.write_bytes(bytes(data))
    run, errors = line(tmp_path / "state", "--kafka", tmp_path / "kafka")
    assert {f["id"] for f in errors} >= {"store-beyond-log"}
    assert (run["action"], run["command"]) == ("repair-first", None)
    assert "keep shop/0_0: its changelog may not restore it" in run["note"]


def test_of_two_instances_only_the_one_that_is_wrong_is_deleted(tmp_path: Path) -> None:
    for instance, at in (("one", 30), ("two", 60)):
        put_task(tmp_path / "state" / instance / "shop", "0_0", ("counts",), {f"{TOPIC} 0": at})
    put_log(tmp_path / "kafka", TOPIC, 0, 50)
    run, _ = line(tmp_path / "state", "--kafka", tmp_path / "kafka")
    assert run["command"] == "rm -r -- ./two/shop/0_0"


def test_a_task_that_is_path_itself_is_emptied(tmp_path: Path) -> None:
    task = put_task(tmp_path / "state" / "shop", "0_0", ("counts",), {f"{TOPIC} 0": 60})
    put_log(tmp_path / "kafka", TOPIC, 0, 50)
    run, _ = line(task, "--kafka", tmp_path / "kafka")
    assert run["command"] == "rm -rf -- ./.checkpoint ./rocksdb"


def test_nothing_is_deleted_without_a_look_at_the_changelogs(tmp_path: Path) -> None:
    put_task(tmp_path / "shop", "0_0", ("counts",), {f"{TOPIC} 0": 60, "shop-gone-changelog 0": 7})
    run, errors = line(tmp_path)
    assert [f["id"] for f in errors] == ["entry-without-store"]
    assert (run["action"], run["command"]) == ("repair-first", None)
    assert "keep shop/0_0: its changelog was not looked at (--kafka FOLDER)" in run["note"]
    assert {row["option"] for row in run["unchecked"] if row["kind"] == "log"} == {"--kafka FOLDER"}


@pytest.mark.parametrize("lost", ["all", "first", "acknowledged", "none"])
def test_a_task_is_kept_where_the_changelog_of_its_other_store_lacks_records(tmp_path: Path, lost: str) -> None:
    other = "shop-sums-changelog"
    put_task(tmp_path / "state" / "shop", "0_0", ("counts", "sums"), {f"{TOPIC} 0": 60, f"{other} 0": 29})
    put_log(tmp_path / "kafka", TOPIC, 0, 50)
    put_log(tmp_path / "kafka", other, 0, 50, start=40 if lost == "first" else 0)
    if lost == "all":
        for segment in (tmp_path / "kafka" / f"{other}-0").glob("*.log"):
            segment.write_bytes(b"")
    if lost == "acknowledged":
        broker_files(tmp_path / "kafka", replication={f"{other}-0": 70})
    run, _ = line(tmp_path / "state", "--kafka", tmp_path / "kafka", exit_code=5 if lost == "all" else 3)
    assert run["command"] == ("rm -r -- ./shop/0_0" if lost == "none" else None)


def test_what_a_file_says_names_no_folder(tmp_path: Path) -> None:
    """An entry may have the name of a topic that looks like the path of another task."""
    put_task(tmp_path / "shop", "0_0", ("counts",), {"bank/0_1/x-changelog 0": 7})
    put_task(tmp_path / "bank", "0_1", ("sums",), {"bank-sums-changelog 1": 7})
    ended = cklog("recovery-line", tmp_path, "--json")
    runs = {run["run"]: run["action"] for run in json.loads(ended.out)["result"]["runs"]}
    assert runs == {"bank": "restart", "shop": "repair-first"}


def test_offsets_of_a_topic_that_is_read_no_more_stop_nothing(tmp_path: Path) -> None:
    put_task(tmp_path / "state" / "shop", "0_0", ("counts",), {f"{TOPIC} 0": 49})
    put_log(tmp_path / "kafka", TOPIC, 0, 50)
    put_commits(tmp_path / "kafka", ("shop", "old", 0, 7), ("shop", "orders", 0, 9), ("shop", "old", 0, None))
    run, errors = line(tmp_path / "state", "--kafka", tmp_path / "kafka", exit_code=0)
    assert (run["action"], errors) == ("restart", [])
    assert any("no group whose offsets were deleted" in row["claim"] for row in run["unchecked"])


def test_an_application_whose_own_offsets_were_deleted_is_no_plain_restart(tmp_path: Path) -> None:
    """It would read its input again, into stores that have taken it in."""
    put_task(tmp_path / "state" / "shop", "0_0", ("counts",), {f"{TOPIC} 0": 49})
    put_log(tmp_path / "kafka", TOPIC, 0, 50)
    put_commits(tmp_path / "kafka", ("shop", "orders", 0, 7), ("shop", "orders", 0, None))
    run, errors = line(tmp_path / "state", "--kafka", tmp_path / "kafka")
    assert [(f["id"], f["effect"]) for f in errors] == [("deleted-commit", "data-duplicated")]
    assert (run["action"], run["command"]) == ("repair-first", None)


@pytest.mark.parametrize("inside", [False, True])
def test_of_quix_only_the_store_that_is_wrong_is_deleted(tmp_path: Path, inside: bool) -> None:
    pytest.importorskip("rocksdict")
    group = tmp_path / "state" / "app"
    for store, at in (("counts", 20), ("sums", 60)):
        put_store(group / store / "orders" / "0", QUIX, {b"__changelog_offset__": at})
        put_log(tmp_path / "kafka", f"changelog__app--orders--{store}", 0, 50)
    run, _ = line(group if inside else group.parent, "--kafka", tmp_path / "kafka")
    lead = "" if inside else "app/"
    assert run["command"] == f"rm -r -- ./{lead}sums/orders/0"
