"""What a crash does to consumer groups: offset by offset, by the definition; and transactions without an end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders.kafka_broker import TopicLog, broker_files, commit_batch
from tests.program import cklog

START, CUT, END = 5, 20, 100
"""Of t-0: the log begins at 5, batch 20 to 29 is damaged, so that a starting broker cuts there, and 99 was the last."""

COMMITTED = (0, 4, 5, 6, 19, 20, 21, 60, 99, 100, 101, 120)


def impact(folder: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(cklog("impact", folder, "--json").out)["result"]
    return result


def t_and_u(folder: Path, *commits: tuple[str, str, int, int]) -> Path:
    """t-0 as above, u-0 of 10 whole offsets, and what groups have committed."""
    log, whole, offsets = TopicLog(), TopicLog(), TopicLog()
    for number in range(10):
        if number == 5:
            log.roll()
        log.data(10)
    log.segments[0][sorted(log.sizes)[2][1] + 70] ^= 1
    log.write(folder / "t-0")
    whole.data(10)
    whole.write(folder / "u-0")
    if commits:
        offsets.add(commit_batch(0, commits), range(len(commits)), len(commits), "data")
    offsets.write(folder / "__consumer_offsets-0")
    broker_files(folder, log_start={"t-0": START})
    return folder


def by_definition(committed: int) -> dict[str, set[int]]:
    """What becomes of each offset, for a group that has committed so far: it read those below, and none behind."""
    written, left = range(END), range(START, CUT)
    return {
        "missing": {offset for offset in written if offset >= committed and offset not in left},
        "may-be-doubled": {offset for offset in left if offset >= committed},
        "may-be-missing": set(range(CUT, committed)),  # given to new records, which the group takes for old ones
    }


def test_every_offset_of_a_group_has_the_fate_that_its_commit_gives_it(tmp_path: Path) -> None:
    folder = t_and_u(tmp_path, *((f"g{committed}", "t", 0, committed) for committed in COMMITTED))
    found = impact(folder)
    assert "notes" not in found
    for committed in COMMITTED:
        mine = [row for row in found["intervals"] if row["sink"] == f"g{committed}"]
        expected = by_definition(committed)
        for fate, offsets in expected.items():
            told = [(row["from"], row["most"]) for row in mine if row["fate"] == fate]
            assert {offset for start, end in told for offset in range(start, end)} == offsets, (committed, fate)
        assert {row["of"] for row in mine} <= {"t-0"}
        counts = {row["why"]: row["count"] for row in mine}
        assert counts.get("behind-commit", 0) == len(expected["may-be-doubled"])
        assert counts.get("below-log-start", 0) == max(START - committed, 0)
        assert counts.get("offsets-used-again", 0) == len(expected["may-be-missing"])
        if committed < END:  # of all that is cut, or of a part of it, which is not counted
            assert counts["cut-off"] == (END - CUT - 10 if committed <= CUT else None), "the damaged batch is of none"


def test_a_group_gets_all_only_where_each_of_its_partitions_keeps_all(tmp_path: Path) -> None:
    folder = t_and_u(
        tmp_path,
        *[("whole", "u", 0, 4), ("cut", "t", 0, 10), ("both", "u", 0, 4), ("both", "t", 0, 10)],
        *[("away", "v", 0, 4), ("half", "u", 0, 4), ("half", "v", 0, 4), ("worst", "t", 0, 10), ("worst", "v", 0, 4)],
    )
    found = impact(folder)
    assert {
        row["sink"]: (row["evidence"][0]["holds"], row["evidence"][0]["because"]) for row in found["guarantees"]
    } == {
        "whole": (True, "input-kept"),
        "cut": (False, "input-gone"),
        "both": (False, "input-gone"),
        "away": (None, "input-unknown"),
        "half": (None, "input-unknown"),
        "worst": (False, "input-gone"),
    }
    assert {row["sink"] for row in found["intervals"] if row["of"] == "v-0"} == set()


def test_without_a_group_that_is_said(tmp_path: Path) -> None:
    found = impact(t_and_u(tmp_path))
    assert (found["notes"], found["intervals"], found["guarantees"]) == (["no-groups"], [], [])


def test_open_transactions_of_topics_are_told_and_not_those_of_the_broker_s_own(tmp_path: Path) -> None:
    log, offsets = TopicLog(), TopicLog()
    log.data(3)
    log.data(2, producer=7)
    log.write(tmp_path / "t-0")
    offsets.add(commit_batch(0, [("g", "t", 0, 1)], producer=8), [0], 1, "open", 8)
    offsets.write(tmp_path / "__consumer_offsets-0")
    broker_files(tmp_path)
    told = [
        (row["log"], row["from"], row["to"], row["records"], row["fate"]) for row in impact(tmp_path)["transactions"]
    ]
    assert told == [("t-0", 3, 5, 2, "unknown")]


@pytest.mark.parametrize(("committed", "from_", "records"), [(1, 3, 2), (4, 4, 1), (5, None, 0)])
def test_results_in_an_open_transaction_are_neither_missing_nor_fine(
    tmp_path: Path, committed: int, from_: int | None, records: int
) -> None:
    """Offsets 0 to 2 are committed records, 3 and 4 those of a transaction without an end, 5 and 6 plain ones."""
    log, offsets = TopicLog(), TopicLog()
    log.data(3)
    log.data(2, producer=7)
    log.data(2)
    log.write(tmp_path / "t-0")
    offsets.add(commit_batch(0, [("g", "t", 0, committed)]), [0], 1, "data")
    offsets.write(tmp_path / "__consumer_offsets-0")
    broker_files(tmp_path)
    rows = impact(tmp_path)["intervals"]
    waiting = [(row["from"], row["most"], row["count"]) for row in rows if row["fate"] == "unknown"]
    assert waiting == ([] if from_ is None else [(from_, 7, records)])
    assert [row["count"] for row in rows if row["fate"] == "may-be-doubled"] == [7 - committed - records]
    assert {row["fate"] for row in rows} <= {"unknown", "may-be-doubled"}


@pytest.mark.parametrize(("partitions", "said"), [(1, "1 partition"), (2, "2 partitions")])
def test_a_recovery_point_that_nobody_tells_is_said_in_words_that_fit(
    tmp_path: Path, partitions: int, said: str
) -> None:
    for number in range(partitions):
        log = TopicLog()
        log.data(3)
        log.write(tmp_path / f"t-{number}")
    broker_files(tmp_path)
    result = json.loads(cklog("recovery-line", tmp_path, "--json").out)["result"]
    pronoun = "it is" if partitions == 1 else "they are"
    assert f"Of {said} the recovery point is not known: {pronoun} taken to be checked whole." in result["notes"]
