"""Which results of sinks a restart doubles or loses: Spark by batch, Flink by offset and transaction, Kafka, native."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cklog.impact.sinks.guarantees import guarantee_of
from cklog.impact.sinks.impact import GuaranteeEvidence, SinkImpact
from cklog.model import CheckpointId, LineEntry, RecoveryLine, ReplayRange
from cklog.parsers.flink.uid import operator_id
from cklog.runs.records.impact import Reached, impact_of
from tests.builders import flink as fb
from tests.builders.kafka_broker import TopicLog, commit_batch
from tests.conftest import SAMPLES
from tests.program import cklog

WORDCOUNT = "file:///srv/cklog-sample/wordcount"


def impact(folder: Path, *options: str, exit: int = 0) -> dict[str, Any]:
    ended = cklog("impact", folder, "--json", "-q", *options)
    assert ended.code == exit, ended.err
    found: dict[str, Any] = json.loads(ended.out)
    assert found["schema"] == "cklog.impact-sinks/1"
    result: dict[str, Any] = found["result"]
    return result


def fates(result: dict[str, Any]) -> list[tuple[Any, ...]]:
    keys = ("sink", "readers", "fate", "from", "to", "why")
    return [tuple(row[key] for key in keys) for row in result["intervals"]]


def kept(result: dict[str, Any]) -> dict[str, str]:
    return {f"{row['sink']} {row['readers']}".strip(): row["guarantee"] for row in result["guarantees"]}


# Spark


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
    found = of_spark(wordcount, exit=3)
    assert fates(found)[0] == ("out", "", "may-be-missing", 5, 6, "not-run-again")
    assert [row[3:5] for row in fates(found)[1:]] == [(6, 7), (6, 7)]


def test_an_unknown_sink_is_told_of_by_kind(wordcount: Path) -> None:
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


def test_going_back_does_batches_again(wordcount: Path) -> None:
    found = of_spark(wordcount, "--at", "query/0=3")
    assert [row[1:5] for row in fates(found)] == [
        ("of the log", "may-be-missing", 4, 7),
        ("of all files", "doubled", 4, 7),
    ]
    assert len(found["intervals"][1]["names"]) == 2
    assert all(name.startswith("out/part-") for name in found["intervals"][1]["names"])


def test_a_lost_sink_log_loses_results(wordcount: Path) -> None:
    without(wordcount, "out/_spark_metadata/5")
    found = of_spark(wordcount, exit=3)
    assert ("out", "of the log", "missing", 5, 6, "sink-log-lost") in fates(found)


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
    found = impact(ck, "--kafka", str(logs(tmp_path / "kafka")))
    (row,) = found["again"]
    assert (row["source"], row["from"], row["to"], row["kept"]) == ("in-0", 100, 200, True)
    assert [row["guarantee"] for row in found["guarantees"]] == ["at-least-once", "exactly-once"]


# Flink

JOB = "a" * 32


def sink_state(lists: dict[str, Sequence[bytes]]) -> fb.Built:
    data, places = fb.operator_state(lists)
    return fb.subtask(6, 0, managed=fb.states(fb.inline(data), places))


def flink(root: Path, number: int, offset: int, pending: Sequence[str], committer: bool = True) -> Path:
    """A job that reads topic `in` and writes with Kafka's exactly-once sink."""
    splits = [fb.versioned(0, fb.kafka_split("in", 0, offset))]
    source = fb.operator(6, [sink_state({"SourceReaderState": splits})], bytes.fromhex(operator_id("s")), "Source: in")
    both = [fb.committable(name, 70 + int(name.rpartition("-")[2]), 0) for name in pending]
    state: dict[str, Sequence[bytes]] = {}
    if pending:
        state = {"streaming_committer_raw_states": [fb.versioned(2, fb.collector(number, both))]}
    operators = [source, fb.operator(6, [fb.subtask(6)], bytes.fromhex(operator_id("w")), "out: Writer")]
    if committer:
        made = [sink_state(state)] if pending else [fb.subtask(6)]
        operators.append(fb.operator(6, made, bytes.fromhex(operator_id("c")), "out: Committer"))
    folder = root / JOB / f"chk-{number}"
    folder.mkdir(parents=True)
    data = fb.metadata(6, operators, checkpoint=number, properties=fb.properties((), "Checkpoint", "FORWARD_BACKWARD"))
    (folder / "_metadata").write_bytes(data.data)
    return folder


def test_pending_transactions_are_committed_by_the_restore(tmp_path: Path) -> None:
    flink(tmp_path, 7, 100, ["out-0-7"])
    found = impact(tmp_path)
    assert fates(found) == [
        ("out", "of all records", "may-be-doubled", 100, None, "read-again"),
        ("out", "of committed records", "once", "out-0-7", None, "committed-by-restore"),
    ]
    assert [(t["transaction"], t["fate"], t["producer"]) for t in found["transactions"]] == [
        ("out-0-7", "committed", "producer 77 epoch 0")
    ]
    best = {row["readers"]: row["at_best"] for row in found["guarantees"]}
    assert best == {"of committed records": "exactly-once", "of all records": "at-least-once"}


def test_what_a_newer_checkpoint_has_committed_is_doubled(tmp_path: Path) -> None:
    flink(tmp_path, 7, 100, ["out-0-7"])
    flink(tmp_path, 8, 250, ["out-0-8"])
    found = impact(tmp_path, "--at", f"{JOB}=7")
    assert ("out", "of all records", "doubled", 100, 250, "read-again") in fates(found)
    assert ("out", "of committed records", "may-be-doubled", "out-0-8", None, "committed-later") in fates(found)
    assert {t["transaction"]: t["fate"] for t in found["transactions"]} == {
        "out-0-7": "committed",
        "out-0-8": "visible",
    }
    assert found["intervals"][0]["count"] == 150
    assert {row["at_best"] for row in found["guarantees"]} == {"at-least-once"}


def test_a_sink_without_a_committer_takes_all_again(tmp_path: Path) -> None:
    flink(tmp_path, 7, 100, [], committer=False)
    flink(tmp_path, 8, 250, [], committer=False)
    found = impact(tmp_path, "--at", f"{JOB}=7", "--against", "chk-8")
    assert fates(found) == [("out", "", "doubled", 100, 250, "read-again")]
    (row,) = found["guarantees"]
    assert (row["guarantee"], row["at_best"]) == ("none", "at-least-once")
    assert row["evidence"][-1]["because"] == "no-committer"


def test_another_committer_is_not_guessed_about(tmp_path: Path) -> None:
    flink(tmp_path, 7, 100, [])
    (row,) = impact(tmp_path)["guarantees"]
    assert (row["at_best"], row["evidence"][-1]["because"]) == ("exactly-once", "unread-committer")


def test_against_names_one_snapshot(tmp_path: Path) -> None:
    flink(tmp_path, 7, 100, [])
    assert cklog("impact", tmp_path, "--against", "chk-9").code == 66


def logs(folder: Path) -> Path:
    """The topic that the job reads, the one it writes with a transaction still open, and what its group committed."""
    read, wrote, commits = TopicLog(), TopicLog(), TopicLog()
    read.data(300)
    wrote.data(5)
    wrote.data(4, producer=77)
    commits.add(commit_batch(0, [("job", "in", 0, 180)]), [0], 1, "data")
    for name, log in (("in-0", read), ("out-0", wrote), ("__consumer_offsets-0", commits)):
        log.write(folder / name)
    return folder


def test_kafka_logs_bound_what_comes_again(tmp_path: Path) -> None:
    flink(tmp_path / "job", 7, 100, ["out-0-7"])
    kafka = ("--kafka", str(logs(tmp_path / "kafka")))
    found = impact(tmp_path / "job", *kafka)
    (row,) = found["again"]
    assert (row["from"], row["to"], row["most"], row["kept"]) == (100, None, 300, True)
    (told,) = found["transactions"]
    assert [told[k] for k in ("fate", "log", "from", "to", "records")] == ["committed", "out-0", 5, 9, 4]
    assert kept(found) == {"out of committed records": "exactly-once", "out of all records": "at-least-once"}
    found = impact(tmp_path / "job", *kafka, "--group", "job")
    (row,) = found["again"]
    assert (row["from"], row["to"], row["most"]) == (100, 180, 300)
    assert fates(found)[0] == ("out", "of all records", "doubled", 100, 180, "read-again")


def test_offsets_that_the_log_no_longer_has_are_lost(tmp_path: Path) -> None:
    flink(tmp_path / "job", 7, 400, ["out-0-7"])
    found = impact(tmp_path / "job", "--kafka", str(logs(tmp_path / "kafka")))
    assert found["again"][0]["kept"] is False
    assert kept(found) == {"out of committed records": "at-most-once", "out of all records": "none"}


def test_logs_that_are_not_there(tmp_path: Path) -> None:
    flink(tmp_path / "job", 7, 100, [])
    folder = logs(tmp_path / "kafka")
    assert cklog("impact", tmp_path / "job", "--kafka", folder, "--group", "other").code == 66
    assert cklog("impact", tmp_path / "job", "--kafka", folder, "--channel", "in-0=no-9").code == 66
    assert cklog("impact", tmp_path / "job", "--group", "job").code == 2


# Kafka


def test_groups_of_a_crashed_broker() -> None:
    found = impact(SAMPLES / "kafka-broker", exit=3)
    rows = {(row["sink"], row["of"], row["fate"]): (row["from"], row["to"], row["count"]) for row in found["intervals"]}
    assert rows["billing", "orders-0", "may-be-doubled"] == (12, None, 17)
    assert rows["audit", "orders-0", "missing"] == (2, 3, 1)
    assert rows["audit", "orders-1", "missing"] == (10, 50, 30)
    assert kept(found) == {"audit": "none", "billing": "none"}
    (open_one,) = found["transactions"]
    assert (open_one["log"], open_one["from"], open_one["to"], open_one["records"]) == ("orders-0", 29, 37, 3)


# Native


def line_of(channels: Sequence[ReplayRange], entries: Sequence[LineEntry]) -> RecoveryLine:
    past: tuple[CheckpointId, ...] = ()
    return RecoveryLine(True, "uncoordinated", tuple(entries), tuple(channels), (), past, (), (), False)


def entry(name: str, state: Any = "stored") -> LineEntry:
    return LineEntry(name, 0, 3, None, None, False, state)


AB = ReplayRange("a/0->b/0", 4, 9, 5, 50, True, 9, 12)


def of_line(line: RecoveryLine, received: dict[str, int], logged: bool = True, **sink: Any) -> SinkImpact:
    manifest = {"operators": [{"name": "b", **sink}]}
    return impact_of(line, Reached(received, {}), manifest, logged, None)


def test_a_sink_puts_out_again_what_it_took_after_its_checkpoint() -> None:
    found = of_line(line_of([AB], [entry("a"), entry("b")]), {"a/0->b/0": 7})
    (row,) = found.intervals
    assert (row.sink, row.fate, row.from_, row.to, row.most, row.count) == ("b/0", "doubled", 4, 7, 12, 3)
    assert [(g.sink, g.guarantee, g.at_best) for g in found.guarantees] == [("b", "none", "exactly-once")]
    found = of_line(line_of([AB], [entry("a", "current"), entry("b")]), {"a/0->b/0": 7})
    assert [(g.sink, g.guarantee, g.at_best) for g in found.guarantees] == [("b", "at-least-once", "exactly-once")]


@pytest.mark.parametrize(("logged", "most"), [(True, 12), (False, None)])
def test_what_is_not_known_is_bounded_by_the_log(logged: bool, most: int | None) -> None:
    (row,) = of_line(line_of([AB], [entry("a"), entry("b")]), {}, logged).intervals
    assert (row.fate, row.from_, row.to, row.most, row.count) == ("may-be-doubled", 4, None, most, None)


def test_a_sink_that_keeps_running_takes_nothing_again() -> None:
    found = of_line(line_of([AB], [entry("a", "current"), entry("b", "current")]), {"a/0->b/0": 7})
    assert found.intervals == ()
    assert found.guarantees[0].guarantee == "exactly-once"


@pytest.mark.parametrize("delivery", ["transactional", "deduplicates"])
def test_a_sink_that_takes_nothing_twice(delivery: str) -> None:
    found = of_line(line_of([AB], [entry("a", "current"), entry("b")]), {"a/0->b/0": 7}, delivery=delivery)
    assert found.guarantees[0].guarantee == "exactly-once"
    found = of_line(line_of([AB], [entry("a"), entry("b")]), {"a/0->b/0": 7}, delivery=delivery)
    assert [(g.guarantee, g.at_best) for g in found.guarantees] == [("at-most-once", "exactly-once")]


def test_what_a_channel_has_lost_reaches_no_sink_below_it() -> None:
    gone = ReplayRange("a/0->b/0", 4, 9, 2, 20, False, 9, 12)
    onward = ReplayRange("b/0->c/0", 7, 7, 0, 0, True)
    found = of_line(line_of([gone, onward], [entry("a"), entry("b"), entry("c")]), {"b/0->c/0": 8})
    assert [(r.sink, r.fate, r.of, r.from_, r.to, r.count) for r in found.intervals] == [
        ("c/0", "doubled", "b/0->c/0", 7, 8, 1),
        ("c", "missing", "a/0->b/0", 4, 9, 3),
    ]
    assert [(g.guarantee, g.at_best) for g in found.guarantees] == [("none", "at-most-once")]


def test_a_ring_has_no_sink() -> None:
    back = ReplayRange("b/0->a/0", 1, 1, 0, 0, True)
    found = of_line(line_of([AB, back], [entry("a"), entry("b")]), {})
    assert (found.intervals, found.guarantees, found.notes) == ((), (), ("no-sinks",))
    assert of_line(line_of([AB, back], [entry("a"), entry("b")]), {"a/0->b/0": 5}, kind="sink").intervals


def test_queues_hold_what_was_put_out() -> None:
    found = impact(SAMPLES / "cec-aggregate")
    assert [row["fate"] for row in found["intervals"] if row["of"] == "filter1/0->agg1/0"] == ["once"]


# Guarantees


@pytest.mark.parametrize(
    ("input", "state", "output", "proven", "best"),
    [
        (True, True, True, "exactly-once", "exactly-once"),
        (True, True, False, "at-least-once", "at-least-once"),
        (True, True, None, "at-least-once", "exactly-once"),
        (None, True, True, "at-most-once", "exactly-once"),
        (False, True, True, "at-most-once", "at-most-once"),
        (True, False, True, "at-most-once", "at-most-once"),
        (None, None, None, "none", "exactly-once"),
        (False, True, False, "none", "none"),
        (False, True, None, "none", "at-most-once"),
    ],
)
def test_classes(input: bool | None, state: bool | None, output: bool | None, proven: str, best: str) -> None:
    pieces = [
        GuaranteeEvidence("input", input, "x"),
        GuaranteeEvidence("state", state, "x"),
        GuaranteeEvidence("output", output, "x"),
    ]
    found = guarantee_of("s", "", pieces)
    assert (found.guarantee, found.at_best) == (proven, best)
    assert (found.next is None) == (proven == "exactly-once")
    assert all(piece.holds is not True for piece in found.missing)
    assert bool(found.missing) == (found.next is not None)


# The command


def test_only_guarantees() -> None:
    ended = cklog("impact", SAMPLES / "uncoordinated-join", "--guarantee", "--json")
    found = json.loads(ended.out)
    assert (ended.code, found["schema"]) == (0, "cklog.impact-guarantee/1")
    assert [(row["sink"], row["at_best"]) for row in found["result"]["guarantees"]] == [("sink", "exactly-once")]


@pytest.mark.parametrize(
    "options", [("--recovery", "gap"), ("--restart", "9"), ("--group", "g"), ("--results", "x"), ("--annotate", "x")]
)
def test_options_of_another_kind_of_run_are_refused(options: tuple[str, str]) -> None:
    assert cklog("impact", SAMPLES / "uncoordinated-join", *options).code == 2


def test_a_log_of_tokens_is_no_log_of_crashes() -> None:
    found = impact(SAMPLES / "token-rounds")
    assert {row["sink"].partition("/")[0] for row in found["intervals"]} == {row["sink"] for row in found["guarantees"]}
