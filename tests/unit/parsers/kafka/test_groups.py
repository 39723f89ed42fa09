"""Committed offsets of consumer groups: every version of key and value, and which commit holds."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklog.parsers.kafka.groups import NotACommit, UnknownCommit, commit_key, commit_value, coordinator
from tests.builders import kafka_broker
from tests.builders.kafka import ABORT, COMMIT, Row, batch
from tests.builders.kafka_broker import TopicLog, commit_batch
from tests.reading.kafka_broker import logs_of


def committed(folder: Path) -> dict[tuple[str, str], int]:
    return {(commit.group, commit.name): commit.offset for commit in logs_of(folder).commits[0]}


def commits(log: TopicLog, *rows: tuple[str, str, int, int | None], producer: int = -1) -> None:
    offsets = range(log.end, log.end + len(rows))
    log.add(commit_batch(log.end, rows, producer), offsets, log.end + len(rows), "data", producer)


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_every_version_of_a_value(version: int) -> None:
    epoch = 5 if version >= 3 else None
    value = kafka_broker.commit_value(77, version, 1700000000000)
    assert commit_value(value) == (77, 1700000000000, epoch)


@pytest.mark.parametrize("version", [0, 1])
def test_every_version_of_a_key(version: int) -> None:
    assert commit_key(kafka_broker.commit_key("gruppe ü", "a-b", 3, version)) == ("gruppe ü", "a-b", 3)


@pytest.mark.parametrize("version", [2, 3, 8, 11, 24])
def test_keys_of_other_kinds_are_passed_over(version: int) -> None:
    assert commit_key(struct.pack(">h", version) + b"anything") is None


def test_later_kinds_of_keys_are_not_known_and_negative_ones_damaged() -> None:
    for version, refusal in ((25, UnknownCommit), (255, UnknownCommit), (-1, NotACommit)):
        with pytest.raises(NotACommit) as raised:
            commit_key(struct.pack(">h", version) + b"anything")
        assert raised.type is refusal


@given(st.binary(max_size=60), st.sampled_from([b"\0\0", b"\0\1", b"\0\3", b"\0\4", b""]))
def test_any_bytes_are_a_commit_or_are_refused(rest: bytes, version: bytes) -> None:
    for decode in (commit_key, commit_value):
        with contextlib.suppress(NotACommit):
            decode(version + rest)


@given(st.text(max_size=30), st.integers(1, 200))
def test_the_coordinator_is_by_javas_hash(group: str, partitions: int) -> None:
    code = 0
    for unit in memoryview(group.encode("utf-16-le", "surrogatepass")).cast("H"):
        code = code * 31 + unit
    signed = (code + 2**31) % 2**32 - 2**31
    assert coordinator(group, partitions) == (0 if signed == -(2**31) else abs(signed) % partitions)


def test_the_hash_without_a_positive_counterpart() -> None:
    assert coordinator("polygenelubricants", 50) == 0


def test_the_last_commit_holds_and_deleted_ones_are_gone(tmp_path: Path) -> None:
    log = TopicLog()
    commits(log, ("g", "t", 0, 5), ("g", "t", 1, 6), ("h", "t", 0, 1))
    log.roll()
    commits(log, ("g", "t", 0, 4), ("g", "t", 1, None))
    log.write(tmp_path / "__consumer_offsets-0")
    assert committed(tmp_path) == {("g", "t-0"): 4, ("h", "t-0"): 1}


def test_a_commit_in_a_transaction_holds_when_it_is_committed(tmp_path: Path) -> None:
    log = TopicLog()
    commits(log, ("a", "t", 0, 1), ("b", "t", 0, 1), ("c", "t", 0, 1))
    commits(log, ("a", "t", 0, 2), producer=5)
    commits(log, ("b", "t", 0, 2), producer=6)
    commits(log, ("c", "t", 0, 2), producer=7)
    commits(log, ("d", "t", 0, 2), producer=7)
    log.end_transaction(5, COMMIT)
    log.end_transaction(6, ABORT)
    log.write(tmp_path / "__consumer_offsets-0")
    found = {commit.group: (commit.offset, commit.pending) for commit in logs_of(tmp_path).commits[0]}
    assert found == {"a": (2, None), "b": (1, None), "c": (1, 2)}


def test_a_transaction_that_commits_later_holds_by_its_place_in_the_log(tmp_path: Path) -> None:
    log = TopicLog()
    commits(log, ("a", "t", 0, 9), producer=5)
    commits(log, ("a", "t", 0, 3))
    log.end_transaction(5, COMMIT)
    log.write(tmp_path / "__consumer_offsets-0")
    assert committed(tmp_path) == {("a", "t-0"): 3}


def test_commits_behind_a_cut_are_lost(tmp_path: Path) -> None:
    log = TopicLog()
    commits(log, ("g", "t", 0, 5))
    place = len(log.segments[0])
    commits(log, ("x", "t", 0, 5))
    commits(log, ("g", "t", 0, 8))
    log.segments[0][place + 70] ^= 1
    log.write(tmp_path / "__consumer_offsets-0")
    assert committed(tmp_path) == {("g", "t-0"): 5}


def test_a_commit_in_the_wrong_partition_is_told_and_yields(tmp_path: Path) -> None:
    assert coordinator("g2", 2) == 1
    for partition, offset in ((0, 99), (1, 5)):
        log = TopicLog()
        log.end = 10 * (1 - partition)
        log.segments = {log.end: bytearray()}
        commits(log, ("g2", "t", 0, offset), *([("g2", "t", 1, 4)] if partition == 0 else []))
        log.write(tmp_path / f"__consumer_offsets-{partition}")
    found = {commit.name: (commit.offset, commit.misplaced) for commit in logs_of(tmp_path).commits[0]}
    assert found == {"t-0": (5, False), "t-1": (4, True)}


def test_where_other_brokers_have_the_rest_nothing_is_said_of_places(tmp_path: Path) -> None:
    log = TopicLog()
    commits(log, ("g1", "t", 0, 5))
    log.write(tmp_path / "__consumer_offsets-17")
    assert [commit.misplaced for commit in logs_of(tmp_path).commits[0]] == [False]


def test_records_that_are_no_commit_are_damage_and_the_rest_is_read(tmp_path: Path) -> None:
    log = TopicLog()
    rows = [
        Row(b"\0\3\0\0", kafka_broker.commit_key("g", "t", 0)),
        Row(kafka_broker.commit_value(7), kafka_broker.commit_key("g", "t", 1)),
        Row(b"\0\7", kafka_broker.commit_key("g", "t", 2)),
        Row(b"group metadata", b"\0\2\0\1g"),
        Row(b"no key"),
    ]
    log.add(batch(0, rows), range(5), 5, "data")
    log.write(tmp_path / "__consumer_offsets-0")
    found, damage, _ = logs_of(tmp_path).commits
    assert [(commit.name, commit.offset) for commit in found] == [("t-1", 7)]
    assert [(d.id, d.offset) for d in damage] == [("bad-record", 0), ("bad-record", 0), ("unknown-version", 0)]
