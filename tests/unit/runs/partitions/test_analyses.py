"""Partitions of a broker's folder: where logs end, how transactions ended, what ranges hold, what is said of it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cklog.engine.scan import Engine
from cklog.errors import CorruptInput, NotFound, UsageError
from cklog.inputs.partitions import Partition, Range
from cklog.kafka_logs.findings import range_findings
from cklog.lines.exports import replay_formats
from cklog.lines.view import inspect_view
from cklog.model.question import Question
from cklog.render.view import view
from tests.builders.kafka import ABORT, COMMIT, Row, batch
from tests.builders.kafka_broker import TopicLog, broker_files, commit_batch, random_log
from tests.examples import examples
from tests.reading.kafka_broker import inspected, log_of, logs_of


def one(folder: Path) -> Partition:
    (found,) = logs_of(folder).partitions().values()
    return found


def ids(found: object) -> set[str]:
    return {finding.id for finding in found.findings}  # type: ignore[attr-defined]


@settings(max_examples=examples(60))
@given(st.integers(0, 1 << 32), st.integers(40, 4000))
def test_counts_equal_a_count_of_every_record(tmp_path_factory: pytest.TempPathFactory, seed: int, step: int) -> None:
    chance = random.Random(seed)
    log = random_log(chance)
    folder = log.write(tmp_path_factory.mktemp("log") / "t-0")
    logs = logs_of(folder.parent, split_bytes=step)
    p = logs.partitions()["t-0"]
    assert {t.producer: t.first for t in p.transactions.open} == log.running
    assert (p.log_start, p.log_end, p.restart_end) == (0, log.end, log.end)
    assert p.last_stable == min([log.end, *log.running.values()])
    assert p.records == len(log.records)
    assert sum(t.records for t in p.transactions.aborted) == sum(r.kind == "aborted" for r in log.records)
    pairs = [sorted(chance.choices(range(log.end + 1), k=2)) for _ in range(6)] + [[0, log.end]]
    for (start, end), count in zip(pairs, logs.counts([Range("t", 0, a, b) for a, b in pairs]), strict=True):
        found = {"data": count.data, "control": count.control, "aborted": count.aborted, "open": count.open}
        assert found == log.expected(start, end)
        assert count.exact
        assert (count.missing, count.beyond, count.cut) == (0, 0, 0)
        touched = {(r.segment, r.at) for r in log.records if start <= r.offset < end}
        assert count.bytes >= sum(log.sizes[place] for place in touched)


@settings(max_examples=examples(25))
@given(st.integers(0, 1 << 32))
def test_split_sizes_do_not_show(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    log = random_log(random.Random(seed), 90)
    folder = log.write(tmp_path_factory.mktemp("log") / "t-0").parent
    whole, parted = (logs_of(folder, split_bytes=step).partitions() for step in (1 << 30, 150))
    assert whole == parted


def test_both_engines_agree(tmp_path: Path, spark: Engine) -> None:
    for number in range(3):
        random_log(random.Random(number), 80).write(tmp_path / f"t-{number}")
    offsets = TopicLog()
    offsets.add(commit_batch(0, [("g", "t", 0, 7), ("g", "t", 1, 3)]), [0, 1], 2, "data")
    offsets.add(commit_batch(2, [("g", "t", 0, 9)], producer=4), [2], 3, "data")
    offsets.end_transaction(4, COMMIT)
    offsets.write(tmp_path / "__consumer_offsets-0")
    (tmp_path / "t-1" / f"{0:020}.log").open("ab").write(bytes(50))
    here, there = logs_of(tmp_path, 200), logs_of(tmp_path, 200, spark)
    assert here.partitions() == there.partitions()
    assert here.commits == there.commits
    wanted = [Range("t", n, start) for n in range(3) for start in (0, 5, 20, 33)]
    assert here.counts(wanted) == there.counts(wanted)


def transactional() -> TopicLog:
    """0-1 plain; 2-3 of producer 7, aborted at 6; 4-5 of producer 8, committed at 7; 8-10 of producer 7, open."""
    log = TopicLog()
    log.data(2)
    log.data(2, 7)
    log.data(2, 8)
    log.end_transaction(7, ABORT)
    log.end_transaction(8, COMMIT)
    log.data(3, 7)
    return log


def test_transactions_and_the_last_stable_offset(tmp_path: Path) -> None:
    p = one(transactional().write(tmp_path / "t-0"))
    assert [(t.producer, t.first, t.end, t.records) for t in p.transactions.aborted] == [(7, 2, 7, 2)]
    assert [(t.producer, t.first, t.records) for t in p.transactions.open] == [(7, 8, 3)]
    assert (p.transactions.committed, p.last_stable, p.log_end, p.control) == (1, 8, 11, 2)


def test_a_range_that_begins_in_an_aborted_transaction(tmp_path: Path) -> None:
    transactional().write(tmp_path / "t-0")
    count = logs_of(tmp_path).count("t", 0, 3, 20)
    assert (count.data, count.control, count.aborted, count.open) == (2, 2, 1, 3)
    assert (count.starts_in, count.unstable, count.beyond) == ("abort", 3, 9)
    assert {f.id for f in range_findings("channel c", count)} == {
        "beyond-log-end",
        "open-transaction",
        "starts-in-transaction",
    }


def broken(tmp_path: Path, at_batch: int = 2, segments: int = 1, **checkpoints: dict[str, int]) -> TopicLog:
    """Five batches of 10 in each of some segments of t-0; one batch of the first is damaged."""
    log = TopicLog()
    for number in range(segments):
        if number:
            log.roll()
        for _ in range(5):
            log.data(10)
    at = sorted(place for place in log.sizes if place[0] == 0)[at_batch][1]
    log.segments[0][at + 70] ^= 1
    log.write(tmp_path / "t-0")
    broker_files(tmp_path, False, **checkpoints)
    return log


def test_a_restart_cuts_at_the_first_bad_batch_and_deletes_later_segments(tmp_path: Path) -> None:
    broken(tmp_path, segments=3)
    p = one(tmp_path)
    assert (p.log_end, p.restart_end, p.last_stable) == (150, 20, 20)
    assert p.cut is not None
    assert (p.cut.batches, p.cut.records, p.cut.end) == (12, 120, 150)
    answer = log_of(tmp_path).recovery_line(Question())
    assert {"corrupt-batch", "restart-cuts-log"} <= ids(answer)
    assert answer.exit_code == 3
    assert "Copy the folder first" in view(answer).headline
    told = next(f.message for f in answer.findings if f.id == "restart-cuts-log")
    assert "BEFORE" in told
    assert "from offset 20 on" in told
    assert "12 whole batches with 120 records" in told


@settings(max_examples=examples(40))
@given(st.integers(0, 1 << 32))
def test_one_changed_byte_cuts_before_its_batch(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    chance = random.Random(seed)
    log = random_log(chance)
    places = sorted(log.sizes)
    k = chance.randrange(len(places))
    base, at = places[k]
    log.segments[base][at + chance.randrange(21, log.sizes[base, at])] ^= 1 << chance.randrange(8)
    behind = set(places[k + 1 :])
    p = one(log.write(tmp_path_factory.mktemp("log") / "t-0"))
    assert p.cut is not None
    assert (p.cut.path, p.cut.at) == (f"{base:020}.log", at)
    assert p.restart_end == max([base, *(end for place, end in log.ends.items() if place < places[k])])
    assert (p.cut.batches, p.cut.records) == (len(behind), sum((r.segment, r.at) in behind for r in log.records))


def test_damage_below_the_recovery_point_is_not_seen_by_a_restart(tmp_path: Path) -> None:
    broken(tmp_path, segments=3, recovery_point={"t-0": 70})
    p = one(tmp_path)
    assert (p.restart_end, p.cut) == (150, None)
    assert "unchecked-damage" in ids(log_of(tmp_path).recovery_line(Question()))


@pytest.mark.parametrize("clean", [True, False])
def test_a_segment_without_its_index_is_gone_through_and_cut_alone(tmp_path: Path, clean: bool) -> None:
    """A broker makes the index anew: it recovers that segment, trusted or not, and deletes no later one for it."""
    broken(tmp_path, segments=3, recovery_point={"t-0": 150})
    broker_files(tmp_path, clean=clean, recovery_point={"t-0": 150})
    (tmp_path / "t-0" / f"{50:020}.index").write_bytes(b"")
    p = one(tmp_path)
    assert (p.restart_end, p.cut) == (150, None)
    answer = log_of(tmp_path).recovery_line(Question())
    assert "unchecked-damage" not in ids(answer)
    [told] = [f for f in answer.findings if f.id == "restart-cuts-log"]
    assert "t-0/00000000000000000000.log has no index here" in told.message
    assert "Later segments stay" in told.message
    assert view(answer).headline.startswith("Copy the folder first: a restarting broker truncates the log where")
    (tmp_path / "t-0" / f"{0:020}.index").write_bytes(b"")
    assert "unchecked-damage" in ids(log_of(tmp_path).recovery_line(Question()))


def test_the_last_segment_without_its_index_is_cut_after_a_clean_stop(tmp_path: Path) -> None:
    broken(tmp_path)
    broker_files(tmp_path, clean=True)
    assert one(tmp_path).restart_end == 50
    (tmp_path / "t-0" / f"{900:020}.index").write_bytes(b"")
    assert one(tmp_path).restart_end == 20


def test_the_segment_that_holds_the_recovery_point_is_checked_whole(tmp_path: Path) -> None:
    broken(tmp_path, segments=3, recovery_point={"t-0": 45})
    assert one(tmp_path).restart_end == 20


def test_a_clean_stop_means_no_check(tmp_path: Path) -> None:
    broken(tmp_path)
    broker_files(tmp_path, clean=True)
    assert one(tmp_path).restart_end == 50


def test_a_bad_first_batch_leaves_an_empty_log(tmp_path: Path) -> None:
    broken(tmp_path, at_batch=0)
    assert one(tmp_path).restart_end == 0


def test_a_torn_tail_costs_nothing_that_was_whole(tmp_path: Path) -> None:
    log = transactional()
    log.write(tmp_path / "t-0")
    with (tmp_path / "t-0" / f"{0:020}.log").open("ab") as file:
        file.write(log.segments[0][:60])
    p = one(tmp_path)
    assert p.cut is not None
    assert (p.log_end, p.restart_end, p.cut.batches) == (11, 11, 0)
    answer = log_of(tmp_path).recovery_line(Question())
    assert "torn-tail" in ids(answer)
    assert answer.exit_code == 0
    with pytest.raises(CorruptInput):
        log_of(tmp_path, strict=True).recovery_line(Question())


def test_a_transaction_whose_marker_is_cut_off_is_open_after_the_restart(tmp_path: Path) -> None:
    log = TopicLog()
    log.data(2, 7)
    log.data(5)
    log.end_transaction(7, COMMIT)
    place = sorted(log.sizes)[1][1]
    log.segments[0][place + 70] ^= 1
    log.write(tmp_path / "t-0")
    p = one(tmp_path)
    assert (p.log_end, p.restart_end, p.last_stable) == (8, 2, 0)
    assert [t.producer for t in p.transactions.open] == [7]


def test_damage_inside_a_transaction_leaves_it_in_doubt(tmp_path: Path) -> None:
    log = TopicLog()
    log.data(2, 7)
    log.data(5)
    log.end_transaction(7, COMMIT)
    log.roll()
    log.data(1)
    log.segments[0][sorted(log.sizes)[1][1] + 70] ^= 1
    log.write(tmp_path / "t-0")
    broker_files(tmp_path, recovery_point={"t-0": 8})
    p = one(tmp_path)
    assert [(t.producer, t.fate, t.doubt) for t in p.transactions.doubtful] == [(7, "commit", True)]
    assert "transaction-in-doubt" in ids(inspected(log_of(tmp_path)))


def test_more_damage_than_is_listed_does_not_move_the_cut(tmp_path: Path) -> None:
    log = TopicLog()
    for _ in range(250):
        log.data(1)
    for _, at in sorted(log.sizes)[20:]:
        log.segments[0][at + 65] ^= 1
    log.write(tmp_path / "t-0")
    assert one(tmp_path).restart_end == 20


def test_what_was_acknowledged_and_is_gone(tmp_path: Path) -> None:
    broken(tmp_path, replication={"t-0": 50}, log_start={"t-0": 0})
    told = {f.id: f.message for f in log_of(tmp_path).recovery_line(Question()).findings}
    assert "high watermark was 50" in told["log-ends-early"]


def test_segments_missing_at_the_start_and_in_the_middle(tmp_path: Path) -> None:
    log = TopicLog()
    for _ in range(3):
        log.data(10)
        log.roll()
    log.data(5)
    del log.segments[0], log.segments[20]
    log.write(tmp_path / "t-0")
    broker_files(tmp_path, log_start={"t-0": 3}, cleaner={})
    answer = log_of(tmp_path).recovery_line(Question())
    told = [f.message for f in answer.findings if f.id == "missing-segment"]
    assert len(told) == 2
    broker_files(tmp_path, cleaner={"t-0": 3})
    answer = log_of(tmp_path).recovery_line(Question())
    assert {"offset-gap", "missing-segment"} <= ids(answer)
    assert one(tmp_path).log_start == 10


def test_a_segment_that_goes_on_behind_the_next_one(tmp_path: Path) -> None:
    log = TopicLog()
    log.data(30)
    log.write(tmp_path / "t-0")
    other = TopicLog(end=10, segments={10: bytearray()})
    other.data(5)
    other.write(tmp_path / "t-0")
    assert [d.id for d in one(tmp_path).damage] == ["offset-backwards"]


def grouped(tmp_path: Path) -> Path:
    """t-0 of 11 offsets from 1 on; group g at 3, late at 40, early at 0, away on a partition that is not here."""
    transactional().write(tmp_path / "t-0")
    offsets = TopicLog()
    rows = [("g", "t", 0, 3), ("late", "t", 0, 40), ("early", "t", 0, 0), ("away", "u", 4, 2)]
    offsets.add(commit_batch(0, rows), range(4), 4, "data")
    offsets.write(tmp_path / "__consumer_offsets-0")
    broker_files(tmp_path, log_start={"t-0": 1})
    return tmp_path


def test_groups_resume_inside_the_log(tmp_path: Path) -> None:
    answer = log_of(grouped(tmp_path)).replay(Question())
    line = answer.result
    assert [(e.operator, e.subtask, e.checkpoint, e.rolled_back) for e in line.line] == [("t", 0, 11, False)]
    assert {s.operator: (s.source, s.offset, s.replay_to) for s in line.sources} == {
        "g": ("t-0", 3, 11),
        "late": ("t-0", 11, 11),
        "early": ("t-0", 1, 11),
        "away": ("u-4", 2, None),
    }
    assert {s.subtask for s in line.sources} == {0}
    assert {"committed-beyond-log-end", "retention-hole", "partition-elsewhere", "open-transaction"} <= ids(answer)
    (row,) = [row for row in line.details["ranges"] if row["group"] == "g"]
    assert (row["data"], row["control"], row["aborted"], row["open"], row["records"]) == (2, 2, 1, 3, 8)
    assert replay_formats("g")["kafka-csv"](answer) == "t,0,3\n"
    assert replay_formats("g")["flink-offsets"](answer) == "partition:0,offset:3\n"
    titles = [section.title for section in view(answer).sections]
    assert titles == ["Recovery line", "Sources resume at", "Groups go on at", "To read again", "Partitions"]


def test_inspection_lists_everything(tmp_path: Path) -> None:
    answer = inspected(log_of(grouped(tmp_path)))
    assert [row["partition"] for row in answer.result["partitions"]] == ["__consumer_offsets-0", "t-0"]
    assert [row["fate"] for row in answer.result["transactions"]] == ["abort", "open"]
    assert [row["group"] for row in answer.result["groups"]] == ["away", "early", "g", "late"]
    assert answer.inputs[0].records == 4 + 11
    assert "4 groups" in inspect_view(answer).headline


@pytest.mark.parametrize(
    ("offset", "maximal", "refuted"),
    [
        (11, True, set()),
        (5, False, set()),
        (5, True, {"maximal"}),
        (0, False, {"restorable"}),
        (12, True, {"consistent"}),
    ],
)
def test_verify_an_offset(tmp_path: Path, offset: int, maximal: bool, refuted: set[str]) -> None:
    answer = log_of(grouped(tmp_path)).verify({"t/0": offset}, maximal, Question())
    assert {c.check for c in answer.result.checks if c.holds is False} == refuted


def test_what_a_log_cannot_be_asked(tmp_path: Path) -> None:
    log = log_of(grouped(tmp_path))
    for question in (Question(failed=("t",)), Question(at=(("t/0", 3),)), Question(as_of=5)):
        with pytest.raises(UsageError):
            log.recovery_line(question)
    with pytest.raises(NotFound):
        log.verify({"t/9": 3}, False, Question())
    with pytest.raises(UsageError):
        log.verify({"t/0": None}, False, Question())
    with pytest.raises(NotFound):
        log.analyses.logs.count("t", 9, 0)


def test_an_edge_batch_that_does_not_decode_is_not_exact(tmp_path: Path) -> None:
    log = TopicLog()
    rows = [Row(b"a", delta=0), Row(b"b", delta=9)]
    log.add(batch(0, rows, last_delta=9, payload=b"\x7f" * 20), [0, 9], 10, "data")
    log.write(tmp_path / "t-0")
    count = logs_of(tmp_path).count("t", 0, 4)
    assert not count.exact
    assert count.data == 2
