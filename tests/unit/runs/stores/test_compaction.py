"""Stores that read on where their changelog was compacted since: deletions may be gone that they never read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders.kafka_broker import TopicLog, broker_files
from tests.builders.stores import put_task
from tests.program import cklog

TOPIC = "shop-counts-changelog"


def line(root: Path, at: int, holes: tuple[int, ...], cleaned: int | None) -> tuple[int, Any, list[Any]]:
    """A store whose next offset is `at`, and a changelog of 20 offsets without those in `holes`; `cleaned` to there."""
    put_task(root / "state" / "shop", "0_0", ("counts",), {f"{TOPIC} 0": at - 1})
    log = TopicLog()
    log.data(20, holes=holes)
    log.write(root / "kafka" / f"{TOPIC}-0")
    if cleaned is not None:
        broker_files(root / "kafka", cleaner={f"{TOPIC}-0": cleaned} if cleaned else {})
    ended = cklog("recovery-line", root / "state", "--kafka", root / "kafka", "--json")
    found = json.loads(ended.out)
    (run,) = found["result"]["runs"]
    told = [(f["severity"], f["effect"]) for f in found["findings"] if f["id"] == "store-behind-compaction"]
    return ended.code, run, told


@pytest.mark.parametrize("cleaned", [15, None])
def test_a_store_behind_what_was_compacted_is_restored_as_a_whole(tmp_path: Path, cleaned: int | None) -> None:
    code, run, told = line(tmp_path, 5, (7, 9), cleaned)
    assert (code, run["action"], run["command"]) == (3, "repair-first", "rm -r -- ./shop/0_0")
    assert told == [("error", "data-lost")]


@pytest.mark.parametrize(
    ("at", "holes", "cleaned"),
    [
        (15, (7, 9), 15),  # at the first offset that is not compacted
        (5, (1, 2), 15),  # what is gone lies before the store's offset
        (5, (), 15),  # nothing is gone
        (5, (17,), 0),  # the broker does not compact it
    ],
)
def test_a_store_that_has_read_all_that_is_gone_resumes(
    tmp_path: Path, at: int, holes: tuple[int, ...], cleaned: int
) -> None:
    code, run, told = line(tmp_path, at, holes, cleaned)
    assert (code, run["action"], told) == (0, "restart", [])
