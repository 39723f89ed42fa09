"""Folders of public reports that were answered correctly, and are to be: each has a README that says the answer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.evidence.cases import CASES, answer, ids, kept, said
from tests.program import cklog

pytestmark = kept


def asked(path: str, *options: str) -> tuple[int, str, dict[str, Any]]:
    """Ask for the line of a report's folder: exit code, action, answer."""
    code, found = answer("recovery-line", f"reports/{path}", *options)
    return code, found["result"]["action"], found


def offsets(found: dict[str, Any]) -> dict[str, Any]:
    return {source["source"]: source["offset"] for source in found["result"]["sources"]}


def batches(found: dict[str, Any]) -> tuple[int | None, int | None]:
    return found["result"]["details"]["committed"], found["result"]["details"]["planned"]


def test_the_last_positions_that_a_query_processed() -> None:
    code, action, found = asked("01-eventhubs-offsets/ck")
    assert (code, action, batches(found)) == (0, "restart", (6, 7))
    assert offsets(found) == {"telemetry-0": 699, "telemetry-1": 559}
    assert [source["replay_to"] for source in found["result"]["sources"]] == [799, 639]
    assert found["result"]["runs"][0]["doubled"] is None, "batch 7 may be in the sink, in part"
    exported = cklog("replay", CASES / "reports/01-eventhubs-offsets/ck", "--format", "spark-offsets").out
    assert exported == '{"telemetry": {"0": 699, "1": 559}}\n'


def test_a_store_whose_changelog_begins_after_its_offset() -> None:
    case = CASES / "reports/16-store-below-log"
    code, action, found = asked("16-store-below-log/state", "--kafka", str(case / "kafka"))
    assert (code, action) == (4, "start-over")
    [(severity, message)] = said(found, "store-below-log")
    assert severity == "warning"
    assert "begins at offset 150, task 0/0 goes on at 121: out of range" in message
    assert "under exactly-once the whole task is" in message
    assert "deleted the records before it. State that was written only there is lost" in message
    (store,) = found["result"]["details"]["stores"]
    assert [store[name] for name in ("start", "restore_from", "restore_to", "records")] == ["beginning", 150, 400, 250]


def test_a_group_that_fell_behind_retention() -> None:
    code, action, found = asked("22-committed-below-start/kafka")
    assert (code, action) == (3, "repair-first")
    [(severity, message)] = said(found, "retention-hole")
    assert severity == "error"
    assert "at offset 900, but the log begins at 1200: 300 offsets are gone, and auto.offset.reset decides" in message


def test_an_index_that_a_broker_calls_corrupt_loses_no_record() -> None:
    code, action, found = asked("23-corrupt-index/kafka")
    assert (code, action, ids(found, "error", "warning")) == (0, "restart", set())
    (partition,) = found["result"]["details"]["partitions"]
    assert (partition["log_start"], partition["restart_end"], partition["log_end"]) == (2076, 2376, 2376)


@pytest.mark.parametrize(
    ("case", "source", "gone"),
    [
        ("25-gtid-gap", "shop=3E11FA47-71CA-11E1-9E33-C80AA9429562:1-100", False),
        ("25-gtid-gap", "shop=3E11FA47-71CA-11E1-9E33-C80AA9429562:1-150", True),
        ("26-pg-offset-before-slot", "stock=0/2400000", False),
        ("26-pg-offset-before-slot", "stock=0/2500000", True),
    ],
)
def test_a_position_against_the_begin_of_its_source(case: str, source: str, gone: bool) -> None:
    code, action, found = asked(case, "--source-from", source)
    assert (code, action) == ((3, "repair-first") if gone else (0, "restart"))
    assert ids(found, "error", "warning") == ({"position-gone"} if gone else set())


@pytest.mark.parametrize(
    ("case", "committed", "planned"), [("31-two-runs-file-source", 5, None), ("40-tmp-files-left", 4, 5)]
)
def test_files_that_a_crash_leaves_are_in_no_way(case: str, committed: int, planned: int | None) -> None:
    code, action, found = asked(f"{case}/ck")
    assert (code, action, batches(found)) == (0, "restart", (committed, planned))
    assert ids(found, "error", "warning") == set()
    assert found["result"]["details"]["remove"] == []


def test_the_newest_metadata_is_empty() -> None:
    code, action, found = asked("37-newest-metadata-empty/flink")
    assert (code, action, offsets(found)) == (3, "restart-older", {"in-0": 80})
    (run,) = found["result"]["runs"]
    assert (run["newest"], run["chosen"], run["command"].endswith("/chk-8")) == ("chk-9", "chk-8", True)
    [(severity, message)] = said(found, "corrupt-metadata")
    assert severity == "error"
    assert "/chk-9/_metadata" in message


def test_an_offset_in_a_transaction_that_never_ended() -> None:
    code, action, found = asked("41-unstable-offset-commit/kafka")
    assert (code, action, offsets(found)) == (0, "restart", {"in-0": 120})
    assert ids(found, "warning") == {"open-transaction", "pending-commit"}
    assert "producer 31" in said(found, "open-transaction")[0][1]
    [(_, message)] = said(found, "pending-commit")
    assert "offset 200 of in-0 waits in an open transaction" in message
    assert "get no position and wait" in message, "readers that require stable offsets are refused"
