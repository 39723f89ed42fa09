"""Committed offsets that were deleted or have expired: listed with their last value, and exported to set them again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.builders.kafka_broker import TopicLog, broker_files, commit_batch
from tests.program import Ended, cklog

Commit = tuple[str, str, int, int | None]


def broker(folder: Path, *commits: Commit) -> Path:
    """A partition of 9 offsets, and what groups have committed; None deletes."""
    records, log = TopicLog(), TopicLog()
    records.data(9)
    records.write(folder / "t-0")
    for commit in commits:
        log.add(commit_batch(log.end, [commit]), [log.end], log.end + 1, "data")
    log.write(folder / "__consumer_offsets-0")
    broker_files(folder, clean=True)
    return folder


def asked(folder: Path, *options: str) -> tuple[Ended, Any, Sequence[str]]:
    ended = cklog("recovery-line", folder, *options, "--json")
    found = json.loads(ended.out)
    told = [f["message"] for f in found["findings"] if f["id"] == "deleted-commit"]
    return ended, found.get("result"), told


def test_a_deleted_offset_is_listed_with_its_last_value_and_can_be_set_again(tmp_path: Path) -> None:
    folder = broker(tmp_path, ("gone", "t", 0, 3), ("gone", "t", 0, 5), ("here", "t", 0, 7), ("gone", "t", 0, None))
    ended, result, [message] = asked(folder)
    assert (ended.code, result["action"]) == (0, "restart")
    assert result["details"]["deleted_groups"] == [
        {
            "group": "gone",
            "partition": "t-0",
            "last_committed": 5,
            "resume": 5,
            "committed_time": 1_700_000_000_000,
        }
    ]
    assert "t-0 at 5 (committed 2023-11-14 22:13:20.000Z)" in message
    assert "--group gone --format kafka-csv" in message
    assert [(s["operator"], s["offset"]) for s in result["sources"]] == [("here", 7)]
    assert "Deleted offsets of groups" in cklog("recovery-line", folder).out
    assert cklog("replay", folder, "--group", "gone", "--format", "kafka-csv").out == "t,0,5\n"
    assert cklog("replay", folder, "--operator", "gone", "--format", "kafka-csv").out == "t,0,5\n"
    assert cklog("replay", folder, "--operator", "here", "--format", "kafka-csv").out == "t,0,7\n"
    assert cklog("recovery-line", folder, "--fail-on", "unchecked").code == 5


def test_an_offset_that_was_committed_again_is_not_deleted(tmp_path: Path) -> None:
    _, result, told = asked(broker(tmp_path, ("g", "t", 0, 3), ("g", "t", 0, None), ("g", "t", 0, 4)))
    assert (result["details"]["deleted_groups"], told) == ([], [])


def test_a_value_that_compaction_took_is_not_known(tmp_path: Path) -> None:
    folder = broker(tmp_path, ("g", "t", 0, None))
    _, _, [message] = asked(folder)
    assert "t-0 at an offset that the log no longer has" in message
    assert "kafka-csv" not in message
    assert cklog("replay", folder, "--format", "kafka-csv").out == ""


def test_a_value_below_the_log_s_end_is_moved_into_the_log(tmp_path: Path) -> None:
    folder = broker(tmp_path, ("g", "t", 0, 50), ("g", "t", 0, None))
    assert cklog("replay", folder, "--format", "kafka-csv").out == "t,0,9\n"


def test_what_a_group_without_its_offset_reads_is_decided_by_its_settings(tmp_path: Path) -> None:
    """From `earliest` on, offsets 0 to 4 come again; from `latest` on, 5 to 8 never come."""
    folder = broker(tmp_path / "known", ("gone", "t", 0, 5), ("gone", "t", 0, None))
    found = json.loads(cklog("impact", folder, "--group", "gone", "--json").out)["result"]
    spans = [(row["fate"], row["from"], row["most"], row["to"], row["count"]) for row in found["intervals"]]
    assert spans == [("may-be-doubled", 0, 5, None, None), ("may-be-missing", 5, 9, None, None)]
    assert not found.get("notes")
    folder = broker(tmp_path / "unknown", ("gone", "t", 0, None))
    found = json.loads(cklog("impact", folder, "--group", "gone", "--json").out)["result"]
    unknown = [(row["fate"], row["from"], row["most"]) for row in found["intervals"]]
    assert unknown == [("may-be-doubled", 0, 9), ("may-be-missing", 0, 9)]


def test_beside_another_run_the_deleted_offsets_of_its_group_are_listed(tmp_path: Path) -> None:
    folder = broker(tmp_path / "kafka", ("gone", "t", 0, 5), ("here", "t", 0, 7), ("gone", "t", 0, None))
    run = tmp_path / "run" / "checkpoints"
    run.mkdir(parents=True)
    (run / "part-0.jsonl").write_text('{"operator": "a", "subtask": 0, "checkpoint": 1, "sources": {"t-0": 4}}\n')
    for command in ("recovery-line", "replay", "impact"):
        ended = cklog(command, run.parent, "--kafka", folder, "--group", "gone", "--json")
        [message] = [f["message"] for f in json.loads(ended.out)["findings"] if f["id"] == "deleted-commit"]
        assert "t-0 at 5 (committed 2023-11-14 22:13:20.000Z)" in message
        assert "cklog replay FOLDER --group gone --format kafka-csv" in message
        assert "deleted-commit" not in cklog(command, run.parent, "--kafka", folder, "--group", "here").out


def test_one_group_of_a_broker(tmp_path: Path) -> None:
    folder = broker(tmp_path, ("a", "t", 0, 3), ("b", "t", 0, 50))
    ended, result, _ = asked(folder, "--group", "a")
    assert (ended.code, result["action"]) == (0, "restart")
    assert [row["group"] for row in result["details"]["groups"]] == ["a"]
    assert asked(folder)[0].code == asked(folder, "--group", "b")[0].code == 3
    assert cklog("replay", folder, "--group", "a", "--format", "kafka-csv").out == "t,0,3\n"
    assert cklog("impact", folder, "--group", "a").code == 0
    assert cklog("recovery-line", folder, "--group", "c").code == 66
