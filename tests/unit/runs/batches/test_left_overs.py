"""Files that a restart does without once they are removed, and files that stop it because they were left behind."""

from __future__ import annotations

import pytest

from cklog.model.question import Question
from cklog.parsers.codecs.hadoop_crc import sidecar_of
from cklog.parsers.spark.parser import SparkCheckpoint
from cklog.runs.batches.line import BatchLog
from cklog.runs.batches.plan import plan_of
from tests.builders.spark import Memory, batch_time, sample
from tests.builders.spark_state import hdfs
from tests.reading.spark import said

TORN = b'v1\n{"batchWatermarkMs":0'
ENTRY = b'v1\n{"path":"file:///out/part-0","size":1,"action":"add"}'


def torn(without: tuple[str, ...] = (), more: str = "") -> Memory:
    root = sample()
    root.files["ck/offsets/6"] = TORN
    for path in without:
        root.remove(path)
    root.files.update({more: ENTRY} if more else {})
    return root


def command(root: Memory) -> str | None:
    line = BatchLog(SparkCheckpoint(root)).line("recovery-line", Question())[0].result
    return line.runs[0].command


def test_a_torn_newest_plan_is_taken_out_by_one_command_after_which_the_query_restarts() -> None:
    root = torn()
    assert command(root) == "rm -- ./ck/offsets/.6.crc ./ck/offsets/6"
    for path in root.plan().remove:
        del root.files[path]
    after = root.plan()
    assert (after.committed, after.planned, after.fails, after.remove) == (5, None, False, ())


@pytest.mark.parametrize("without", [("ck/offsets/4", "ck/commits/5"), ("ck/offsets/4",), ("ck/commits/5",)])
def test_a_torn_plan_stays_where_a_restart_without_it_would_fail(without: tuple[str, ...]) -> None:
    plan = torn(without).plan()
    assert (plan.fails or plan.skips, plan.remove, command(torn(without))) == (True, (), None)
    assert not [f for f in plan.findings if f.subject == "ck/offsets/6" and "remove" in f.message]


def test_a_sink_that_has_the_batch_gives_its_entry_up_with_the_plan() -> None:
    """It would skip the batch that is planned afresh, which may read more."""
    plan = torn(more="out/_spark_metadata/6").plan()
    assert {"ck/offsets/6", "out/_spark_metadata/6"} <= set(plan.remove)
    assert ("error", "sink-log-ahead", "out/_spark_metadata/6") in said(plan)
    root = torn(more="out/_spark_metadata/6.compact")
    root.remove("out/_spark_metadata/3")
    assert root.plan().remove == ()


@pytest.mark.parametrize("batch", range(6))
def test_what_the_sink_has_of_a_torn_plan_is_named_whatever_moment_is_asked_about(batch: int) -> None:
    """A restart of the files as they are now meets both, and needs both removed."""
    plan = torn(more="out/_spark_metadata/6").plan(as_of=batch_time(batch))
    assert plan.committed == batch
    ahead = [finding for finding in plan.findings if finding.id == "sink-log-ahead"]
    assert [(finding.severity, finding.subject) for finding in ahead] == [("error", "out/_spark_metadata/6")]
    assert "remove out/_spark_metadata/6 with their .crc" in ahead[0].message


@pytest.mark.parametrize(("log", "removable"), [("offsets", True), ("commits", False)])
def test_a_checksum_file_that_was_left_behind_stops_the_query(log: str, removable: bool) -> None:
    root = sample()
    for path in ("ck/offsets/6", f"ck/{log}/6", f"ck/{log}/.6.crc"):
        root.files.pop(path, None)
    root.files[f"ck/{log}/.6.crc"] = b"crc\0"
    plan = plan_of(SparkCheckpoint(root))
    assert ("error", "missing-batch-file", f"ck/{log}/6") in said(plan)
    assert plan.fails
    assert plan.remove == ((f"ck/{log}/.6.crc",) if removable else ())


def test_nothing_that_advises_to_remove_a_file_of_a_log_forgets_its_checksum_file() -> None:
    for number in range(7):
        for damage in (b"", TORN, b"{"):
            for log in ("offsets", "commits"):
                root = sample()
                root.files[f"ck/{log}/{number}"] = damage
                for finding in root.plan().findings:
                    assert "remove" not in finding.message or ".crc" in finding.message


def test_a_folder_of_a_source_that_the_plan_does_not_have_makes_the_answer_unsure() -> None:
    root = sample()
    root.files["ck/sources/1/0"] = root.files["ck/sources/0/0"]
    plan = root.plan()
    assert ("error", "unjudged-source", "ck/sources/1") in said(plan)
    assert plan.unjudged == "what a source reads of ck/sources/1 is not known"
    root = sample()
    root.files["ck/sources/clicks/0"] = root.files["ck/sources/0/0"]
    assert not root.plan().unjudged


@pytest.mark.parametrize(("name", "stops"), [("6", True), ("9.compact", True), ("9", False), ("6.compact", False)])
def test_a_checksum_file_that_was_left_behind_stops_the_sink(name: str, stops: bool) -> None:
    """Shown by Spark 3.5 for .9.compact.crc: batch 9 is compacted, so that nobody writes an entry 9."""
    root = sample()
    left = f"out/_spark_metadata/.{name}.crc"
    root.files[left] = b"crc\0"
    plan = root.plan()
    assert (plan.fails, plan.remove) == (stops, (left,) if stops else ())
    assert (("error", "sink-log-behind", left) in said(plan)) is stops


def test_a_checksum_file_that_was_left_behind_takes_no_results_with_it() -> None:
    """The sink has batch 6, and skips it: its entry stays."""
    root = sample()
    root.files["out/_spark_metadata/6"] = ENTRY
    for part in (0, 1):
        root.files[f"ck/state/0/{part}/7.delta"] = root.files[f"ck/state/0/{part}/6.delta"]
    root.files["out/_spark_metadata/.7.crc"] = b"crc\0"
    assert root.plan().remove == ("out/_spark_metadata/.7.crc",)


@pytest.mark.parametrize("gone", ["state/0/_metadata/metadata", "state/0/0/_metadata/schema"])
def test_a_checksum_file_that_was_left_behind_stops_the_state(gone: str) -> None:
    """Spark 4.3: `Rename destination … already exists`; without it the restart goes on."""
    root = hdfs()
    left = sidecar_of(gone)
    root.files[left] = b"crc\0"
    assert left not in root.plan().remove, "its file is there"
    del root.files[gone]
    plan = root.plan()
    assert (plan.fails, plan.remove) == (True, (left,))
    assert ("error", "missing-state-file", left) in said(plan)
