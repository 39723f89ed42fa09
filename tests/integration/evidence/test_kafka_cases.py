"""Folders of brokers, Streams and Connect that were answered wrongly: each has a README that says the right answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.integration.evidence.cases import CASES, answer, kept, said
from tests.program import cklog

REPORTS = CASES / "reports"

pytestmark = kept


def line(path: Path, *options: str | Path) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Ask for a line: the exit code, the result, and the messages by id."""
    code, found = answer("recovery-line", path, *options)
    return code, found["result"], {f["id"]: f["message"] for f in found["findings"]}


@pytest.mark.parametrize(
    ("case", "first", "end", "records"),
    [("17-empty-changelog-high-end", 480, 500, 0), ("17b-changelog-aborted", 10, 24, 3)],
)
def test_markers_and_aborted_records_are_not_applied(case: str, first: int, end: int, records: int) -> None:
    _, found, _ = line(REPORTS / case / "state", "--kafka", REPORTS / case / "kafka")
    (store,) = found["details"]["stores"]
    assert (store["restore_from"], store["restore_to"], store["records"]) == (first, end, records)
    assert [run["read_again"] for run in found["runs"]] == [records]
    assert f"{records} records are applied again" in found["details"]["headline"]


def test_mirrormaker_resumes_after_the_last_offset_that_it_stored() -> None:
    case = REPORTS / "46-mirrormaker-offsets"
    asked = (case / "store", "--from", "connect")
    code, found, _ = line(*asked)
    assert (code, [source["offset"] for source in found["sources"]]) == (0, [500, 480])
    assert {row["option"] for run in found["runs"] for row in run["unchecked"]} == {"--kafka FOLDER"}
    for option in (("--kafka", case / "kafka-A"), ("--source-from", "MirrorSourceConnector/0=700")):
        code, found, told = line(*asked, *option)
        assert (code, found["action"]) == (3, "repair-first")
        assert "200 offsets from 500 on were deleted" in told["position-gone"]
    code, found, _ = line(*asked, "--source-from", "MirrorSourceConnector/0=500")
    assert (code, found["action"]) == (0, "restart")
    code, _, _ = line(*asked, "--source-from", "MirrorSourceConnector/0=500", "--kafka", case / "kafka-A")
    assert code == 3, "what is claimed does not outweigh the log"


def test_a_topic_of_offsets_that_begins_late_has_lost_connectors() -> None:
    code, found, told = line(REPORTS / "32-connect-offsets-deleted" / "kafka", "--from", "connect")
    assert (code, found["action"], [run["run"] for run in found["runs"]]) == (0, "restart", ["other"])
    assert "begins at offset 9000" in told["compacted-log-cut"]


def test_a_brokers_answer_says_that_a_topic_of_offsets_begins_late() -> None:
    case = REPORTS / "32-connect-offsets-deleted"
    for place in (case, case / "kafka"):
        code, found, told = line(place)
        assert (code, found["action"]) == (0, "restart")
        assert "begins at offset 9000" in told["compacted-log-cut"]
        assert "connect-offsets: --from connect says where the connectors resume." in found["notes"]
        _, rows = answer("scan", place)
        [row] = rows["result"]["runs"]
        assert (row["action"], row["worst"]) == ("restart", ["compacted-log-cut"])


def test_a_hanging_transaction_is_named_with_its_way_out() -> None:
    _, found = answer("recovery-line", REPORTS / "34-hanging-transaction" / "kafka")
    group, log = sorted(message for _, message in said(found, "open-transaction"))
    assert group.startswith("group ledger")
    for words in (
        "producer 9001",
        "since offset 50 (2026-11-18 11:07:30.000Z",
        "they do not get the rest of the log, 401 offsets up to",
        "hanging",
        "abort --topic payments --partition 0 --start-offset 50",
    ):
        assert words in log
    assert "times it out" not in log


def test_two_instances_with_one_task_are_told_apart() -> None:
    case = REPORTS / "20-two-instances"
    _, found, _ = line(case, "--kafka", case / "kafka")
    assert [(f"{e['operator']}/{e['subtask']}", e["checkpoint"]) for e in found["line"]] == [
        ("instance1/0/0", 2),
        ("instance2/0/0", 3),
    ]
    assert [(row["task"], row["records"]) for row in found["details"]["stores"]] == [
        ("instance1/0/0", 1),
        ("instance2/0/0", 0),
    ]
    for instance, records in (("instance1", 1), ("instance2", 0)):
        code, found, _ = line(case / instance, "--kafka", case / "kafka")
        assert (code, found["action"]) == (0, "restart")
        assert [row["records"] for row in found["details"]["stores"]] == [records]


def test_a_store_that_may_hold_less_than_its_offset_says_is_taken_for_granted_openly() -> None:
    case = REPORTS / "19-checkpoint-ahead-of-store"
    code, found, _ = line(case / "state", "--kafka", case / "kafka")
    (run,) = found["runs"]
    (row,) = run["unchecked"]
    assert (code, found["action"], row["kind"], row["claim"], row["option"]) == (
        0,
        "restart",
        "state",
        "store counts has all updates up to its offset (26 bytes on disk for offsets up to 400)",
        None,
    )
    assert run["lost"] is None, "no file says what the store holds: its manifest is not here"
    for command in ("recovery-line", "runbook", "report"):
        told = cklog(command, case / "state", "--kafka", case / "kafka", "--brief").out
        assert "Not checked: whether store counts has all updates up to its offset" in told
    assert cklog("recovery-line", case / "state", "--kafka", case / "kafka", "--fail-on", "unchecked").code == 5


def test_an_open_transaction_of_a_broker_is_explained_as_one() -> None:
    explained = " ".join(cklog("explain", "open-transaction").out.split())
    row = explained.partition("· Kafka logs ·")[2]
    for words in (
        "every read_committed consumer: they stop before its first record",
        "has no coordinator, is hanging",
    ):
        assert words in row
    for command in ("find-hanging", "abort"):
        assert f"kafka-transactions.sh {command}" in row
    _, found = answer("recovery-line", "mission/open-transaction-explained/kafka-broker")
    [(severity, message)] = said(found, "open-transaction")
    assert severity == "warning"
    assert "stop at the last stable offset, 29: they do not get the rest of the log" in message
    assert "PATH has no __transaction_state log" in message
    assert "abort --topic orders --partition 0 --start-offset 29" in message
