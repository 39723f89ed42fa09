"""Spark's sinks by batch: what is skipped, what comes twice, what is lost."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.builders.kafka_broker import job_logs
from tests.conftest import SAMPLES
from tests.reading.impact import fates, impact, kept

WORDCOUNT = "file:///srv/cklog-sample/wordcount"


@pytest.fixture
def wordcount(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLES / "spark-wordcount", tmp_path / "wordcount"))


def of_spark(folder: Path, *options: str, exit: int = 0) -> dict[str, Any]:
    return impact(folder, "--map", f"{WORDCOUNT}={folder}", *options, exit=exit)


def without(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.unlink()
        (path.parent / f".{path.name}.crc").unlink(missing_ok=True)


def test_a_log_of_results_hides_the_batch_in_flight(wordcount: Path) -> None:
    found = of_spark(wordcount)
    assert fates(found) == [
        ("out", "of the log", "once", 6, 7, "sink-log-lacks-it"),
        ("out", "of all files", "once", 6, 7, "no-left-files"),
    ]
    assert kept(found) == {"out of the log": "exactly-once", "out of all files": "exactly-once"}
    assert found["again"][0]["from"] == {"logOffset": 5}
    assert found["again"][0]["to"] == {"logOffset": 6}


def test_files_of_the_first_run_are_named(wordcount: Path) -> None:
    (wordcount / "out" / "part-00000-left-over.json").write_text("{}\n")
    found = of_spark(wordcount)
    assert fates(found)[1] == ("out", "of all files", "may-be-doubled", 6, 7, "left-files")
    assert found["intervals"][1]["names"] == ["out/part-00000-left-over.json"]
    assert kept(found) == {"out of the log": "exactly-once", "out of all files": "at-least-once"}


def test_a_sink_that_has_the_batch_skips_it(wordcount: Path) -> None:
    without(wordcount, "ck/commits/5", "ck/offsets/6")
    found = of_spark(wordcount)
    assert fates(found) == [("out", "", "skipped", 5, 6, "sink-log-has-it")]
    assert found["line"] == [{"operator": "query", "subtask": 0, "checkpoint": 4}]


def test_only_the_newest_plan_is_run_again(wordcount: Path) -> None:
    """Tried with Spark 4.3 and foreachBatch: with commits 3 and 4 of 0 to 4 gone, batch 4 alone was run."""
    without(wordcount, "ck/commits/5")
    done = of_spark(wordcount)
    assert {row[3:5] for row in fates(done)} == {(6, 7)}, "the sink's log lists batch 5, and its state is there"
    without(wordcount, "out/_spark_metadata/5")
    found = of_spark(wordcount, exit=3)
    assert fates(found)[0] == ("out", "", "may-be-missing", 5, 6, "not-run-again")
    assert [row[3:5] for row in fates(found)[1:]] == [(6, 7), (6, 7)]


def test_of_batches_without_commits_only_those_that_the_log_lacks_may_be_missing(wordcount: Path) -> None:
    """Tried with Spark 4.3: the log lists the others, and a restart leaves what they wrote as it is."""
    without(wordcount, *(f"ck/commits/{n}" for n in range(6)), "out/_spark_metadata/1", "out/_spark_metadata/5")
    found = of_spark(wordcount, exit=4)
    missing = [row for row in fates(found) if row[2] == "may-be-missing"]
    assert missing == [("out", "", "may-be-missing", n, n + 1, "not-run-again") for n in (1, 5)]


def test_a_plan_of_which_only_the_checksum_is_left_is_made_afresh(wordcount: Path) -> None:
    """With another range of input, perhaps: its batch may come twice, and no other, once the checksum file is gone."""
    (wordcount / "ck" / "offsets" / "6").unlink()
    found = of_spark(wordcount, exit=3)
    assert ("out", "", "may-be-doubled", 6, 7, "planned-afresh") in fates(found)


def test_an_unknown_sink_is_told_of_by_kind(wordcount: Path) -> None:
    shutil.rmtree(wordcount / "out")
    found = impact(wordcount / "ck")
    assert [(row[1], row[2]) for row in fates(found)] == [
        ("foreachBatch, Kafka, console", "may-be-doubled"),
        ("that keep batch numbers", "once"),
    ]
    assert {row["at_best"] for row in found["guarantees"]} == {"exactly-once"}


def test_missing_input_is_lost(wordcount: Path) -> None:
    (wordcount / "in" / "minute-6.json").unlink()
    found = of_spark(wordcount, exit=3)
    assert fates(found)[-1] == ("out", "", "missing", 6, 7, "input-file-missing")
    assert found["intervals"][-1]["names"] == [f"{WORDCOUNT}/in/minute-6.json"]
    assert kept(found)["out of the log"] == "at-most-once"


@pytest.mark.parametrize("outside", [True, False])
@pytest.mark.parametrize("how", ["missing", "cut", "missing folder"])
def test_input_that_nothing_lists_is_not_said_to_be_kept(wordcount: Path, how: str, outside: bool) -> None:
    """Which files the batch in flight reads stands in the source's own log alone."""
    log = wordcount / "ck" / "sources" / "0" / "6"
    if how == "missing folder":
        shutil.rmtree(log.parent)
    elif how == "missing":
        without(wordcount, "ck/sources/0/6")
    else:
        log.write_bytes(log.read_bytes()[:40])
    found = impact(wordcount, exit=3) if outside else of_spark(wordcount, exit=3)
    assert [row["kept"] for row in found["again"]] == [None]
    assert kept(found) == dict.fromkeys(("out of the log", "out of all files"), "at-most-once")


def test_a_compact_log_lists_all_before(wordcount: Path) -> None:
    """With nothing but a compact file up to the batch in flight its input is known; up to the one before, it is not."""
    log = wordcount / "ck" / "sources" / "0"
    lines = [(log / f"{n}").read_bytes().removeprefix(b"v1\n") for n in range(7)]
    for newest, known in ((6, True), (5, None)):
        shutil.rmtree(log)
        log.mkdir()
        (log / f"{newest}.compact").write_bytes(b"v1\n" + b"\n".join(lines[: newest + 1]))
        found = of_spark(wordcount, exit=0 if known else 3)
        assert [row["kept"] for row in found["again"]] == [known]


def test_going_back_does_batches_again(wordcount: Path) -> None:
    found = of_spark(wordcount, "--at", "query/0=3", exit=3)
    assert [row[1:5] for row in fates(found)] == [
        ("of the log", "may-be-missing", 4, 7),
        ("of all files", "doubled", 4, 7),
    ]
    assert len(found["intervals"][1]["names"]) == 2
    assert all(name.startswith("out/part-") for name in found["intervals"][1]["names"])


@pytest.mark.parametrize("batch", [3, 4])
def test_input_of_batches_that_are_done_again_is_not_said_to_be_kept(wordcount: Path, batch: int) -> None:
    """Spark plans them afresh, and reads what the source's log lists behind the batch that it goes back to."""

    def kept_at() -> set[bool | None]:
        found = of_spark(wordcount, "--at", f"query/0={batch}", exit=3)
        assert {row["evidence"][0]["holds"] for row in found["guarantees"]} == {found["again"][0]["kept"]}
        return {row["kept"] for row in found["again"]}

    assert kept_at() == {True}
    (wordcount / "in" / f"minute-{batch}.json").unlink()
    assert kept_at() == {True}
    (wordcount / "in" / f"minute-{batch + 1}.json").unlink()
    assert kept_at() == {False}
    log = wordcount / "ck" / "sources" / "0" / f"{batch + 1}"
    log.write_bytes(log.read_bytes()[:40])
    found = of_spark(wordcount, "--at", f"query/0={batch}", exit=3)
    assert [row["kept"] for row in found["again"]] == [None]
    assert [row[2:5] for row in fates(found)] == [("may-be-missing", batch + 1, 7), ("doubled", batch + 1, 7)]


def test_nor_is_all_input_where_no_batch_is_left(wordcount: Path) -> None:
    shutil.rmtree(wordcount / "ck" / "state" / "0" / "1")
    found = of_spark(wordcount, exit=4)
    assert found["line"] == [{"operator": "query", "subtask": 0, "checkpoint": -1}]
    assert all(row["evidence"][0]["because"] == "input-unknown" for row in found["guarantees"])


def test_a_lost_sink_log_loses_results(wordcount: Path) -> None:
    without(wordcount, "out/_spark_metadata/5")
    found = of_spark(wordcount, exit=3)
    assert ("out", "of the log", "missing", 5, 6, "sink-log-lost") in fates(found)


def test_a_result_that_is_gone_is_missing_for_every_reader(wordcount: Path) -> None:
    name = "out/part-00000-67f5eb1c-0baa-4604-b1b8-82f7b080c748-c000.json"
    (wordcount / name).unlink()
    found = of_spark(wordcount, exit=3)
    assert ("out", "", "missing", 3, 4, "result-file-gone") in fates(found)
    assert [row["names"] for row in found["intervals"] if row["why"] == "result-file-gone"] == [[name]]
    assert kept(found) == {"out of the log": "at-most-once", "out of all files": "at-most-once"}


def test_results_of_batches_that_are_done_again_are_named_once(wordcount: Path) -> None:
    """A compacted entry of the sink's log lists them a second time."""
    log = wordcount / "out" / "_spark_metadata"
    lines = [(log / f"{n}").read_text().removeprefix("v1\n") for n in range(5)]
    without(wordcount, "out/_spark_metadata/4")
    (log / "4.compact").write_text("\n".join(["v1", *lines]))
    found = of_spark(wordcount, "--at", "query/0=2", exit=3)
    [names] = [row["names"] for row in found["intervals"] if row["why"] == "done-again"]
    assert len(names) == len(set(names)) == 3, "of batches 3 to 5"


def test_a_batch_that_the_sinks_log_loses_is_not_skipped(wordcount: Path) -> None:
    """Nobody wrote the state after batch 5, so that the repair takes it out of the sink's log."""
    without(wordcount, "ck/commits/5", "ck/offsets/6", "ck/state/0/0/6.delta")
    found = of_spark(wordcount, exit=3)
    assert [row[1:3] for row in fates(found)] == [("of the log", "once"), ("of all files", "may-be-doubled")]
    [left] = found["intervals"][1]["names"]
    assert left in (wordcount / "out" / "_spark_metadata" / "5").read_text(), "the first run wrote it"


def test_an_input_file_of_the_next_batch_that_is_gone_is_lost(wordcount: Path) -> None:
    """The source has listed it, and no plan has it yet."""
    without(wordcount, "ck/offsets/6", "in/minute-6.json")
    found = of_spark(wordcount, exit=3)
    assert ("out", "", "missing", 6, 7, "input-file-missing") in fates(found)
    assert set(kept(found).values()) == {"at-most-once"}
    assert [row["kept"] for row in found["again"]] == [False]


def test_of_a_copy_without_results_nothing_is_known(wordcount: Path) -> None:
    for path in (wordcount / "out").glob("part-*"):
        path.unlink()
    found = of_spark(wordcount)
    assert {row[2] for row in fates(found) if row[5] == "result-file-gone"} == {"may-be-missing"}


def test_state_that_cannot_be_loaded_does_several_batches_again(wordcount: Path) -> None:
    for delta in (wordcount / "ck" / "state").glob("*/*/6.delta"):
        delta.unlink()
        (delta.parent / f".{delta.name}.crc").unlink()
    found = of_spark(wordcount, exit=3)
    line = found["line"][0]["checkpoint"]
    assert line < 5
    assert [row[2:5] for row in fates(found)] == [("may-be-missing", line + 1, 7), ("doubled", line + 1, 7)]


def test_kafka_logs_tell_whether_the_input_is_kept(tmp_path: Path) -> None:
    """A query that reads the partition in-0, with batch 1 in flight from offset 100 to 200."""
    ck = tmp_path / "ck"
    for name, text in {
        "metadata": '{"id":"7d404119-fad2-4efb-9d4f-12c2457a6fe2"}',
        "offsets/0": 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}\n{"in":{"0":100}}',
        "offsets/1": 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":2,"conf":{}}\n{"in":{"0":200}}',
        "commits/0": 'v1\n{"nextBatchWatermarkMs":0}',
    }.items():
        (ck / name).parent.mkdir(parents=True, exist_ok=True)
        (ck / name).write_text(text)
    (ck / "sources" / "0").mkdir(parents=True)
    (ck / "sources" / "0" / "0").write_bytes(b'\0v1\n{"in":{"0":0}}')
    assert [row["guarantee"] for row in impact(ck)["guarantees"]] == ["none", "at-most-once"]
    found = impact(ck, "--kafka", str(job_logs(tmp_path / "kafka")))
    (row,) = found["again"]
    assert (row["source"], row["from"], row["to"], row["kept"]) == ("in-0", 100, 200, True)
    assert [row["guarantee"] for row in found["guarantees"]] == ["at-least-once", "exactly-once"]
