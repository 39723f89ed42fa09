"""Spark: logs, positions, sinks and joint lines that were found with a wrong answer; each folder says the right one."""

from __future__ import annotations

import csv
import io

import pytest

from tests.integration.evidence.cases import CASES, answer, claims, kept, said
from tests.program import cklog

pytestmark = kept


def test_a_rate_source_without_its_start_time() -> None:
    code, found = answer("recovery-line", CASES / "engines/spark-rate-source-log-lost/ck")
    assert (code, found["result"]["action"]) == (3, "repair-first")
    [(severity, message)] = said(found, "missing-source-log")
    assert severity == "error"
    assert "sources/2/0" in message
    assert "the restart fails" in message


def test_a_hole_in_the_log_of_a_file_sink() -> None:
    """The log is read where both lie below PATH, by a scan, too, and where PATH is the checkpoint beside it."""
    case = CASES / "users/spark-sink-log-hole"
    code, found = answer("recovery-line", case)
    assert (code, found["result"]["action"]) == (3, "repair-first")
    [(severity, message)] = said(found, "sink-log-behind")
    assert severity == "error"
    assert message.startswith(
        "out/_spark_metadata/33 is missing. A restart works until batch 39, then every start fails"
    )
    assert answer("recovery-line", case / "ck")[1]["result"]["action"] == "repair-first"
    for root in (case, case.parent):
        scanned = cklog("scan", root, "--format", "csv", "-q", "--fail-on", "never").out
        (told,) = [
            (row["action"], row["exit"], row["worst"])
            for row in csv.DictReader(io.StringIO(scanned))
            if (root / row["path"]).resolve() == case.resolve()
        ]
        assert told == ("repair-first", "3", "sink-log-behind")
    assert cklog("scan", case / "ck", "-q").code == 3


def test_a_query_that_was_killed_in_its_first_batch() -> None:
    ck = CASES / "engines/spark-killed-in-batch-0/ck"
    code, found = answer("recovery-line", ck)
    result = found["result"]
    assert (code, result["action"], result["details"]["planned"]) == (0, "restart", 0)
    assert "state" not in result["runs"][0]["note"]
    assert not any("state folder" in note for note in result["notes"])
    steps = cklog("runbook", ck).out
    assert "LOST" not in steps
    assert "batch 0 runs first" in steps


def test_progress_that_is_tracked_asynchronously() -> None:
    ck = CASES / "engines/spark-async-progress/ck"
    code, found = answer("recovery-line", ck)
    assert (code, found["result"]["action"], found["result"]["details"]["committed"]) == (0, "restart", 31)
    assert {f["severity"] for f in found["findings"]} == {"info"}
    assert len(said(found, "async-progress")) == 1
    assert found["result"]["runs"][0]["doubled"] is None
    _, impact = answer("impact", ck)
    [interval] = impact["result"]["intervals"]
    assert (interval["fate"], interval["from"], interval["to"]) == ("may-be-doubled", 32, None)
    assert "Repair what the findings name" not in cklog("runbook", ck).out
    assert answer("recovery-line", ck, "--at", "query/0=14")[1]["result"]["details"]["committed"] == 14
    kept = {r["path"] for r in answer("retention", ck)[1]["result"]["rows"] if r["fate"] != "OBSOLETE"}
    assert {"offsets/14", "offsets/31", "commits/31"} <= kept


def test_a_kinesis_source_without_its_record_of_the_last_batch() -> None:
    ck = CASES / "reports/02-kinesis-metadata-missing/ck"
    code, found = answer("recovery-line", ck)
    assert (code, found["result"]["action"]) == (3, "repair-first")
    [(severity, message)] = said(found, "missing-source-log")
    assert severity == "error"
    assert "sources/0/shard-commit/10" in message
    code, back = answer("recovery-line", ck, "--at", "query/0=9")
    assert (code, back["result"]["details"]["committed"], said(back, "missing-source-log")) == (3, 9, [])


def test_a_delta_table_that_is_read_as_a_stream() -> None:
    case = CASES / "reports/04-delta-source-cleaned"
    _, found = answer("recovery-line", case / "ck")
    assert "Delta table 9646254c-4b5f-45eb-a967-538a8fc6ca0f" in claims(found)
    assert "version 5" in claims(found)
    code, found = answer("recovery-line", case / "ck", "--sink", case / "src")
    assert (code, found["result"]["action"]) == (3, "repair-first")
    [(severity, message)] = said(found, "source-table-cleaned")
    assert severity == "error"
    assert "begins with version 9. The restart fails" in message
    _, found = answer("recovery-line", case / "ck-recreated", "--sink", case / "src")
    assert found["result"]["action"] == "undetermined"
    assert "0a0a0a0a-1111-4222-8333-444444444444" in claims(found)


@pytest.mark.parametrize(
    ("run", "at", "up", "removed"),
    [
        ("run-no-at", (), 2, {"down/ck/offsets/3", "down/ck/sources/0/3"}),
        ("run-one-batch", ("--at", "query/0=0"), 0, {"down/ck/offsets/1", "down/ck/sources/0/1"}),
        ("run-sink-not-ahead", ("--at", "query/0=2"), 2, {"down/ck/offsets/3", "down/ck/sources/0/3"}),
        (
            "run-sink-ahead",
            ("--at", "query/0=2"),
            2,
            {"down/ck/offsets/3", "down/ck/sources/0/3", "down/out/_spark_metadata/3"},
        ),
    ],
)
def test_a_job_drops_the_plan_of_its_newest_batch(run: str, at: tuple[str, ...], up: int, removed: set[str]) -> None:
    folder = CASES / "brute/joint-plan-in-flight" / run
    _, found = answer("recovery-line", folder / "up", *at, "--with", folder / "down")
    line = {entry["job"]: entry["checkpoint"] for entry in found["result"]["line"]}
    assert sorted(line.values()) == [up, up]
    commands = [run["command"] for run in found["result"]["runs"] if run["command"] and "/sources/" in run["command"]]
    words = {word for command in commands for word in command.replace(")", " ").split()}
    assert {f"down/{word.removeprefix('./')}" for word in words if word.startswith("./")} == removed


def test_a_new_checkpoint_under_the_id_of_an_older_one() -> None:
    case = CASES / "reports/35-new-checkpoint-same-appid"
    sink = f"orders-writer={case / 'sink'}"
    code, found = answer("recovery-line", case / "ck", "--sink", sink)
    assert (code, found["result"]["action"]) == (3, "repair-first")
    outcomes = found["result"]["details"]["sinks"][0]["outcomes"]
    lost = {(o["fate"], o["from"], o["to"], o["strength"]) for o in outcomes if o["fate"] != "written"}
    assert lost == {("missing", 0, 4, "sure"), ("skipped-wrongly", 4, 5, "sure"), ("skipped-wrongly", 5, 501, "sure")}
    assert "where batch 0 of this checkpoint began" in found["result"]["runs"][0]["note"]


def test_a_table_of_hudi_that_flink_writes_is_not_spoken_of_as_spark_s() -> None:
    case = CASES / "reports/13-hudi-flink-savepoint"
    ended = cklog("recovery-line", case / "ckpt", "--sink", case / "tbl")
    assert ended.code == 5
    assert "foreachBatch" not in ended.out
    assert "8 to 7" not in ended.out
    assert "pending-instants" in ended.out
    assert "8 to 8" not in cklog("impact", case / "ckpt", "--sink", case / "tbl").out


def test_a_damaged_checkpoint_of_a_delta_table_whose_commits_are_all_there() -> None:
    case = CASES / "reports/14-delta-sink-corrupt-checkpoint"
    code, found = answer("recovery-line", case / "ck", "--sink", case / "sink")
    assert (code, found["result"]["action"]) == (0, "restart")
    [(severity, _)] = said(found, "corrupt-file")
    assert severity == "warning"
    [fit] = found["result"]["details"]["sinks"]
    assert (fit["agrees"], fit["guarantee"], fit["taken_to"]) == (True, "exactly-once", 11)
