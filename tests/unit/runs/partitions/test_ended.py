"""How transactions ended that a checkpoint names by producer and epoch: read from logs, some of them damaged."""

from __future__ import annotations

from pathlib import Path

from cklog.kafka_logs.ended import Ended, ProducerEpoch, how_ended
from tests.builders.kafka import ABORT, COMMIT, TRANSACTIONAL, Row, batch
from tests.builders.kafka_broker import TopicLog, broker_files
from tests.reading.kafka_broker import logs_of

Stretch = tuple[str, Ended, int, int | None, int]


def ended(folder: Path, producer: int = 7, epoch: int = 0) -> list[Stretch]:
    """The parts of a transaction: partition, end, stretch and records."""
    one = ProducerEpoch(producer, epoch)
    return [(part.partition, *part[1:2], *part[3:]) for part in logs_of(folder).ended([one])[one]]


def transaction(end: int | None) -> TopicLog:
    log = TopicLog()
    log.data(2, 7)
    log.data(5)
    log.data(1, 7)
    if end is not None:
        log.end_transaction(7, end)
    return log


def test_a_marker_ends_what_its_producer_wrote_since_the_one_before(tmp_path: Path) -> None:
    transaction(COMMIT).write(tmp_path / "a-0")
    transaction(ABORT).write(tmp_path / "a-1")
    transaction(None).write(tmp_path / "a-2")
    assert ended(tmp_path) == [
        ("a-0", "committed", 0, 9, 3),
        ("a-1", "aborted", 0, 9, 3),
        ("a-2", "open", 0, None, 3),
    ]
    assert ended(tmp_path, epoch=1) == [], "the producer's next incarnation"
    assert ended(tmp_path, producer=8) == []


def test_of_several_under_one_name_the_last_counts(tmp_path: Path) -> None:
    log = transaction(COMMIT)
    log.data(1, 7)
    log.end_transaction(7, ABORT)
    log.write(tmp_path / "a-0")
    assert ended(tmp_path) == [("a-0", "aborted", 9, 11, 1)]


def test_the_epoch_of_the_data_tells_transactions_of_one_producer_apart(tmp_path: Path) -> None:
    log = transaction(ABORT)
    log.add(batch(log.end, [Row(b"v")], flags=TRANSACTIONAL, producer=7, epoch=1), [log.end], log.end + 1, "open", 7)
    log.end_transaction(7, COMMIT)
    log.write(tmp_path / "a-0")
    assert ended(tmp_path) == [("a-0", "aborted", 0, 9, 3)]
    assert ended(tmp_path, epoch=1) == [("a-0", "committed", 9, 11, 1)]


def test_damage_between_data_and_marker_leaves_the_end_unknown(tmp_path: Path) -> None:
    """The damaged batch may be a marker that ended it the other way, and the marker that of another transaction."""
    log = transaction(COMMIT)
    log.roll()
    log.data(1)
    log.segments[0][sorted(log.sizes)[1][1] + 70] ^= 1
    log.write(tmp_path / "t-0")
    broker_files(tmp_path, recovery_point={"t-0": 9})
    assert ended(tmp_path) == [("t-0", "unknown", 0, 9, 3)]


def test_a_marker_that_a_restarting_broker_cuts_off_ends_nothing(tmp_path: Path) -> None:
    log = transaction(COMMIT)
    log.segments[0][sorted(log.sizes)[-1][1] + 30] ^= 1
    log.write(tmp_path / "t-0")
    assert ended(tmp_path) == [("t-0", "open", 0, None, 3)]


def test_parts_that_ended_in_different_ways_are_not_known(tmp_path: Path) -> None:
    transaction(COMMIT).write(tmp_path / "a-0")
    transaction(None).write(tmp_path / "a-1")
    one = ProducerEpoch(7, 0)
    assert how_ended(logs_of(tmp_path).ended([one])[one]) == "unknown"
    assert how_ended(logs_of(tmp_path).ended([one])[one][:1]) == "committed"


def test_what_follows_a_cut_is_of_no_transaction(tmp_path: Path) -> None:
    log = transaction(COMMIT)
    log.segments[0][sorted(log.sizes)[1][1] + 70] ^= 1
    log.write(tmp_path / "t-0")
    assert ended(tmp_path) == [("t-0", "open", 0, None, 2)]
