"""What is deleted of stores that would go wrong: their own folder, and only where a changelog can restore it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cklog.parsers.kafka.state.offsets import QUIX
from tests.builders.kafka_broker import TopicLog, commit_batch
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
    assert "keep shop/0_0: the changelog is damaged" in run["note"]


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
    assert run["command"] == "find . -mindepth 1 -delete"


def test_what_is_deleted_without_a_look_at_the_changelogs_says_so(tmp_path: Path) -> None:
    task = put_task(tmp_path / "shop", "0_0", ("counts",), {f"{TOPIC} 0": 60, "shop-gone-changelog 0": 7})
    run, errors = line(tmp_path)
    assert [f["id"] for f in errors] == ["entry-without-store"]
    assert run["command"] == f"rm -r -- ./shop/{task.name}"
    assert {row["claim"] for row in run["unchecked"] if row["kind"] == "log"} == {
        "the changelogs hold all that the deleted stores held"
    }


def test_an_application_whose_own_offsets_were_deleted_is_no_plain_restart(tmp_path: Path) -> None:
    """It would read its input again, into stores that have taken it in."""
    put_task(tmp_path / "state" / "shop", "0_0", ("counts",), {f"{TOPIC} 0": 49})
    put_log(tmp_path / "kafka", TOPIC, 0, 50)
    log = TopicLog()
    for i, offset in enumerate((7, None)):
        log.add(commit_batch(i, [("shop", "orders", 0, offset)]), [i], i + 1, "data")
    log.write(tmp_path / "kafka" / "__consumer_offsets-0")
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
