"""Cases of Flink, and of lines that were compared with Kafka's logs: each README says the right answer."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.integration.evidence.cases import CASES, answer, claims, ids, kept
from tests.program import cklog

REPORTS = CASES / "reports"
TAKEN = 1_795_000_000  # seconds: the time of checkpoint 41 in 05-topic-recreated

pytestmark = kept


def asked(path: str, *options: str) -> tuple[int, dict[str, Any]]:
    """Ask for the line of a report's folder; options that name a folder of the report begin with a dot."""
    folder = REPORTS / path.partition("/")[0]
    words = [str(folder / word[2:]) if word.startswith("./") else word for word in options]
    return answer("recovery-line", f"reports/{path}", *words)


def test_a_topic_made_again_is_no_restart_of_spark_or_of_a_group() -> None:
    for code, found in (
        asked("05-topic-recreated/spark-ck", "--kafka", "./kafka-b"),
        asked("05-topic-recreated/kafka-group"),
        asked("05-topic-recreated/kafka-group-epochs"),
    ):
        assert (code, found["result"]["action"]) == (3, "repair-first")
        assert "topic-recreated" in ids(found, "error")


def test_a_topic_made_again_is_no_restart_of_flink(tmp_path: Path) -> None:
    run = tmp_path / "ckpt"
    shutil.copytree(REPORTS / "05-topic-recreated/ckpt", run)
    [metadata] = run.glob("*/chk-41/_metadata")
    logs = REPORTS / "05-topic-recreated/kafka-b"
    os.utime(metadata, (TAKEN, TAKEN))
    code, found = answer("recovery-line", str(run), "--kafka", str(logs))
    assert (code, found["result"]["action"]) == (3, "repair-first")
    assert "topic-recreated" in ids(found, "error")
    os.utime(metadata)  # as of a copy that does not keep times: nothing shows it, and the answer says so
    code, found = answer("recovery-line", str(run), "--kafka", str(logs))
    assert (code, found["result"]["action"]) == (0, "restart")
    assert "topic orders was not deleted and created again since the checkpoint" in claims(found)


def test_offsets_beyond_the_end_of_a_topic_made_again() -> None:
    code, found = asked("05-topic-recreated/ckpt", "--kafka", "./kafka-a")
    assert code == 3
    assert "beyond-log-end" in ids(found, "error")


def test_a_pending_manifest_that_was_removed_leaves_the_checkpoint_before() -> None:
    pytest.importorskip("pyiceberg")
    code, found = asked("08-pending-manifest-orphan-removed/ckpt", "--sink", "./wh/d/t")
    [run] = found["result"]["runs"]
    assert (code, run["action"], run["chosen"]) == (3, "restart-older", "chk-13")
    assert [table["agrees"] for table in found["result"]["details"]["sinks"]] == [False]
    code, found = answer(
        "impact",
        "reports/08-pending-manifest-orphan-removed/ckpt",
        "--sink",
        str(REPORTS / "08-pending-manifest-orphan-removed/wh/d/t"),
    )
    assert (code, found["result"]["action"]) == (3, "restart-older")
    assert [row["checkpoint"] for row in found["result"]["line"]] == [13]
    fates = {(row["from"], row["fate"]) for row in found["result"]["intervals"]}
    assert fates == {(13, "skipped"), (14, "once")}, "the table has 13, and the job writes 14 again"


@pytest.mark.parametrize("below", ["", "ckpt"])
def test_the_table_that_a_pending_manifest_was_removed_from_is_looked_at_where_a_map_leads(below: str) -> None:
    pytest.importorskip("pyiceberg")
    case = "08-pending-manifest-orphan-removed"
    mapped = ("--map", f"/srv/job/h4/cases/{case}={REPORTS / case}")
    code, found = asked(f"{case}/{below}", *mapped)
    [run] = found["result"]["runs"]
    assert (code, run["action"], run["chosen"]) == (3, "restart-older", "chk-13")
    assert [table["agrees"] for table in found["result"]["details"]["sinks"]] == [False]
    assert not [claim for claim in claims(found) if "tables" in claim]
    code, found = answer("impact", f"reports/{case}/{below}", *mapped)
    fates = {(row["from"], row["fate"]) for row in found["result"]["intervals"]}
    assert (code, fates) == (3, {(13, "skipped"), (14, "once")})


def test_the_headline_is_of_the_line_that_is_answered() -> None:
    pytest.importorskip("pyiceberg")
    _, found = asked("08-pending-manifest-orphan-removed/ckpt", "--sink", "./wh/d/t")
    headline = found["result"]["details"]["headline"]
    assert "Restore bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb/chk-13" in headline
    assert "Restore bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb/chk-14" not in headline


def test_a_pending_manifest_that_nobody_looked_for_is_no_plain_restart() -> None:
    code, found = asked("08-pending-manifest-orphan-removed/ckpt")
    assert (code, found["result"]["action"]) == (5, "undetermined")
    assert "pending-unchecked" in ids(found, "error")
    code, found = answer("impact", "reports/08-pending-manifest-orphan-removed/ckpt")
    assert code == 5
    assert "may-be-missing" in {row["fate"] for row in found["result"]["intervals"] if row["of"] == "transaction"}


def test_a_transaction_that_kafka_has_committed_is_visible_already() -> None:
    code, found = asked("07-transaction-committed-already/ckpt", "--kafka", "./kafka")
    assert (code, found["result"]["action"]) == (0, "restart")
    assert [row["ended"] for row in found["result"]["details"]["transactions"]] == ["committed"]
    assert "transaction-committed" in ids(found)
    path = "reports/07-transaction-committed-already/ckpt"
    code, found = answer("impact", path, "--kafka", str(REPORTS / "07-transaction-committed-already/kafka"))
    fates = {(row["fate"], row["why"]) for row in found["result"]["intervals"] if row["of"] == "transaction"}
    assert (code, fates) == (0, {("visible", "committed-before")})


def test_two_programs_under_one_job_id_are_not_one_run() -> None:
    job = "0" * 32
    code, found = asked("29-two-jobs-one-id/ckpt")
    [run] = found["result"]["runs"]
    assert (code, run["action"], run["command"]) == (5, "undetermined", None)
    [message] = [f["message"] for f in found["findings"] if f["id"] == "several-programs"]
    assert f"--at {job}/0=102" in message
    assert f"--at {job}/0=206" in message
    code, found = asked("29-two-jobs-one-id/ckpt", "--at", f"{job}/0=102")
    assert (code, found["result"]["action"]) == (0, "restart")
    assert [source["source"] for source in found["result"]["sources"]] == ["payments-0"]


def test_retention_keeps_the_newest_checkpoint_of_each_program() -> None:
    path = REPORTS / "29-two-jobs-one-id/ckpt"
    _, found = answer("retention", str(path), "--keep", "1", "--jobs-stopped")
    gone = {row["path"].split("/")[1] for row in found["result"]["rows"] if row["fate"] == "OBSOLETE"}
    assert gone == {"chk-101", "chk-205"}


@pytest.mark.parametrize("path", ["11-legacy-kafka-consumer", "28-unknown-split"])
def test_a_source_that_cannot_be_read_has_an_unknown_position(path: str) -> None:
    code, found = asked(f"{path}/ckpt")
    assert (code, found["result"]["action"]) == (5, "undetermined")
    assert [source["offset"] for source in found["result"]["sources"]] == ["unknown"]
    assert "unread-state" in ids(found, "error")
    assert "which cklog cannot read" in claims(found)
    for command in ("recovery-line", "replay", "report", "impact"):
        for form in ("table", "md"):
            shown = cklog(command, REPORTS / path / "ckpt", "--format", form).out
            unknown = "cannot check where the job resumes" if command == "report" else "position unknown"
            assert unknown in shown, (command, form)
    for form in ("kafka-csv", "kafka-to-offset", "spark-offsets", "flink-offsets", "flink-sql", "kcat"):
        made = cklog("replay", REPORTS / path / "ckpt", "--format", form)
        assert (made.code, made.out) == (2, "")
        assert "position unknown" in made.err, form
    for command in ("impact", "report", "runbook", "scan", "replay"):
        assert cklog(command, REPORTS / path / "ckpt").code == 5, command


def test_a_position_in_a_binlog_is_shown_and_compared() -> None:
    path = "38-flink-cdc-binlog-purged/ckpt"
    _, found = asked(path)
    assert [source["offset"] for source in found["result"]["sources"]] == ["mysql-bin.003008:169375401"]
    assert "mysql-bin.003008:169375401" in claims(found)
    code, found = asked(path, "--source-from", "cdc=mysql-bin.003100:4")
    assert (code, found["result"]["action"]) == (3, "repair-first")
    assert "position-gone" in ids(found, "error")
    code, found = asked(path, "--source-from", "cdc=mysql-bin.003000:4")
    assert (code, found["result"]["action"]) == (0, "restart")
    assert "mysql-bin" not in claims(found)


@pytest.mark.parametrize("run", ["ckpt", "spark-ck"])
def test_partitions_that_were_added_are_named_and_exported(run: str) -> None:
    _, found = asked(f"10-partitions-added/{run}", "--kafka", "./kafka")
    [finding] = [f for f in found["findings"] if f["id"] == "partition-without-offset"]
    assert "orders-2, orders-3" in finding["message"]
    assert "120 records" in finding["message"]
    folder = REPORTS / "10-partitions-added"
    made = cklog("replay", folder / run, "--kafka", folder / "kafka", "--format", "spark-offsets").out
    assert made == '{"orders": {"0": 100, "1": 100, "2": -2, "3": -2}}\n'


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("13-hudi-flink-savepoint/ckpt", ("--sink", "13-hudi-flink-savepoint/tbl")),
        ("29-two-jobs-one-id/ckpt", ()),
        ("08-pending-manifest-orphan-removed/ckpt", ()),
    ],
    ids=["13", "29", "08"],
)
def test_where_evidence_is_missing_no_command_says_what_to_start_from(path: str, options: tuple[str, ...]) -> None:
    given = [str(REPORTS / word) if "/" in word else word for word in options]
    told = {
        command: cklog(command, REPORTS / path, *given, "--brief", "-q")
        for command in ("recovery-line", "impact", "runbook")
    }
    assert {ended.code for ended in told.values()} == {5}
    first = {command: ended.out.partition("\n")[0] for command, ended in told.items()}
    assert first["recovery-line"].startswith("Undetermined: ")
    assert first["impact"].startswith("May be ")
    assert "because evidence is missing" in first["impact"]
    assert first["runbook"] == "Undetermined: evidence is missing. 2 steps."
    assert "flink run" not in "".join(ended.out for ended in told.values())


def test_the_impact_has_what_a_database_no_longer_has() -> None:
    code, found = answer("impact", "reports/38-flink-cdc-binlog-purged/ckpt", "--source-from", "cdc=mysql-bin.003100:4")
    assert (code, found["result"]["action"]) == (3, "repair-first")
    assert "position-gone" in ids(found, "error")
    assert {row["guarantee"] for row in found["result"]["guarantees"]} == {"none"}


def test_the_tables_of_an_answer_are_of_the_line_that_is_answered() -> None:
    folder = "reports/08-pending-manifest-orphan-removed"
    code, found = answer("recovery-line", f"{folder}/ckpt", "--sink", str(REPORTS.parent / folder / "wh/d/t"))
    assert (code, found["result"]["action"]) == (3, "restart-older")
    assert [entry["checkpoint"] for entry in found["result"]["line"]] == [13]
    assert [source["offset"] for source in found["result"]["sources"]] == [130]
