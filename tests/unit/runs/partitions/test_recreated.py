"""A topic that was made again under its name: what shows it, and what does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders.kafka_broker import TopicLog, broker_files, commit_batch
from tests.program import cklog
from tests.standins import run_script

STORED = 1_700_000_000_000
"""When the builder's groups commit, in ms; the leader epoch of its commits is 5."""


def errors(folder: Path, offset: int, *, time: int = 1000, epochs: str = "", records: int = 9) -> list[str]:
    """Ask about a log of one batch and a group; return the ids of errors."""
    log = TopicLog()
    log.data(records, time=time)
    log.write(folder / "t-0")
    if epochs:
        rows = epochs.split(",")
        (folder / "t-0" / "leader-epoch-checkpoint").write_text("\n".join(["0", str(len(rows)), *rows, ""]))
    commits = TopicLog()
    commits.add(commit_batch(0, [("g", "t", 0, offset)]), [0], 1, "data")
    commits.write(folder / "__consumer_offsets-0")
    broker_files(folder, clean=True)
    (folder / ".kafka_cleanshutdown").touch()
    found = json.loads(cklog("recovery-line", folder, "--json").out)
    return [finding["id"] for finding in found["findings"] if finding["severity"] == "error"]


@pytest.mark.parametrize(
    ("time", "offset", "told"),
    [
        (STORED + 1, 2, ["topic-recreated"]),
        (STORED, 2, []),
        (STORED - 1, 2, []),
        (STORED + 1, 0, []),  # nothing was read of it
        (STORED + 1, 9, ["topic-recreated"]),  # up to its end
        (STORED + 1, 10, ["committed-beyond-log-end"]),  # that says it all
    ],
)
def test_the_oldest_record_is_younger_than_the_offset(tmp_path: Path, time: int, offset: int, told: list[str]) -> None:
    assert errors(tmp_path, offset, time=time) == told


@pytest.mark.parametrize(
    ("offset", "fate", "error"), [(4, "missing", "topic-recreated"), (12, "may-be-missing", "committed-beyond-log-end")]
)
def test_a_group_of_another_topic_is_reset_to_the_start_of_this_one(
    tmp_path: Path, offset: int, fate: str, error: str
) -> None:
    """None of its 9 records was read: the advice, the plan, the runbook and the impact start at offset 0."""
    folder = tmp_path / "kafka"
    assert errors(folder, offset, time=STORED + 1) == [error]
    answer = json.loads(cklog("recovery-line", folder, "--json").out)
    assert [source["offset"] for source in answer["result"]["sources"]] == [0]
    assert "offset 0 of this log" in str(answer["findings"]) or "Reset it to 0" in str(answer["findings"])
    assert cklog("replay", folder, "--group", "g", "--format", "kafka-csv").out == "t,0,0\n"
    rows = json.loads(cklog("impact", folder, "--json").out)["result"]["intervals"]
    lost = [(row["fate"], row["from"], row["to"], row["why"]) for row in rows if row["why"] == "another-log"]
    assert lost == [(fate, 0, min(offset, 9), "another-log")]
    ran = run_script(cklog("runbook", folder, "--format", "script").out, tmp_path / "work")
    assert ran.code == 0, ran.err
    assert (tmp_path / "work" / "committed" / "g").read_text() == "t,0,0\n"


@pytest.mark.parametrize(
    ("epochs", "offset", "told"),
    [
        ("0 0", 2, ["topic-recreated"]),
        ("0 0,5 7", 2, ["topic-recreated"]),  # epoch 5 begins behind the offset
        ("0 0,5 2", 2, []),  # as of a group that began at what was the end
        ("5 0", 2, []),
        ("6 0", 2, []),  # a log that was cut in an unclean election has later epochs
        ("0 0", 9, []),  # at the end nothing is passed over, and a follower may not know the epoch yet
    ],
)
def test_the_log_does_not_know_the_leader_epoch(tmp_path: Path, epochs: str, offset: int, told: list[str]) -> None:
    assert errors(tmp_path, offset, epochs=epochs) == told


def test_a_compacted_log_without_a_record_before_the_offset_shows_nothing(tmp_path: Path) -> None:
    """Its oldest record is behind the offset, and may well be younger."""
    log = TopicLog(end=5, segments={0: bytearray()})
    log.data(4, time=STORED + 1)
    log.write(tmp_path / "t-0")
    commits = TopicLog()
    commits.add(commit_batch(0, [("g", "t", 0, 3)]), [0], 1, "data")
    commits.write(tmp_path / "__consumer_offsets-0")
    assert "topic-recreated" not in cklog("recovery-line", tmp_path).out
