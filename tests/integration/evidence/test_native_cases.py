"""Run folders that were answered wrongly: each has a README that says the right answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.integration.evidence.cases import CASES, answer, kept, said
from tests.program import cklog


def slips(found: dict[str, Any]) -> set[str]:
    told = said(found, "unknown-member")
    return {message.partition("unknown member ")[2].partition("?")[0] for _, message in told}


@kept
@pytest.mark.parametrize("command", ["inspect", "recovery-line"])
def test_misspelt_members_are_named_with_what_they_may_mean(command: str) -> None:
    code, found = answer(command, CASES / "users" / "native-typo", "--strict")
    meant = {"recieved": "received", "paralelism": "parallelism", "chanels": "channels"}
    assert slips(found) == {f"{name}: did you mean {right}" for name, right in meant.items()}
    assert code == 0
    assert cklog("recovery-line", CASES / "users" / "native-typo", "--fail-on", "unchecked").code == 5


ROW = {"operator": "b", "checkpoint": 1, "recieved": 3}


@pytest.mark.parametrize("form", ["lines", "many files", "parquet"])
def test_a_slip_is_seen_in_every_form_of_records(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    (folder / "a.jsonl").write_text('{"operator":"a","checkpoint":1,"colour":1}\n')
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist([ROW]), folder / "b.parquet")
    for number in range({"parquet": 0, "lines": 1, "many files": 40}[form]):
        line = json.dumps(ROW | {"subtask": number}) + "\n"
        (folder / f"b{number}.jsonl").write_text(line)
    _, found = answer("inspect", tmp_path)
    assert slips(found) == {"recieved: did you mean received"}
    rows = {row["operator"] for row in found["result"]["subtasks"]}
    assert rows == {"a", "b"}, "the records count all the same"


def test_members_of_ones_own_are_no_slips(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    own = '{"operator":"a","checkpoint":1,"sent":{"a/0->b/0":1},"spent":2,"host":"x","took":1,"cost":3}\n'
    (tmp_path / "checkpoints" / "a.jsonl").write_text(own)
    assert slips(answer("inspect", tmp_path)[1]) == set()


@kept
def test_the_newest_line_that_loses_nothing_is_named_next_to_one_that_does() -> None:
    case = CASES / "users" / "native-lost-tail-of-log"
    code, found = answer("recovery-line", case)
    (run,) = found["result"]["runs"]
    assert (code, run["action"]) == (3, "repair-first")
    assert "Or take --at src/0=3, the newest line" in run["note"]
    assert "58 records of sources" in run["note"]
    code, found = answer("recovery-line", case, "--at", "src/0=3")
    assert (code, found["result"]["action"]) == (0, "restart")


@kept
def test_nobody_is_asked_to_drop_what_is_sent_again() -> None:
    run = CASES / "users" / "drop-at-receiver" / "run"
    code, found = answer("recovery-line", run)
    assert (code, found["result"]["action"]) == (0, "restart")
    [channel] = [channel for channel in found["result"]["channels"] if channel["channel"] == "agg/0->sink/0"]
    assert [channel[name] for name in ("replay_from", "replay_to", "resent_from", "resent_to")] == [280, 430, 430, 454]
    answered = cklog("recovery-line", run).out
    assert (
        "no receiver on this line has processed them: truncate each log at `from`, or process each number" in answered
    )
    steps = cklog("runbook", run).out
    assert "\"$JOB\" truncate 'agg/0->sink/0' 430 454" in steps
    assert "receivers must not drop them" in steps
    for text in (answered, steps, cklog("runbook", run, "--format", "script").out):
        assert "drop them at" not in text
        assert "ignore" not in text


@kept
@pytest.mark.parametrize("case", ["parquet-gzip-short-bytes", "parquet-gzip-short-seq"])
def test_a_page_that_is_shorter_than_its_header_says_has_no_rows(case: str) -> None:
    code, found = answer("recovery-line", CASES / "security" / case)
    assert (code, found["result"]["action"]) == (3, "repair-first")
    [(severity, message)] = said(found, "corrupt-file")
    assert (severity, message.partition(":")[0]) == ("error", "channels/big.parquet")
    assert "decompress to expected size, expected: 160000, but got:80000" in message


def test_messages_in_flight_without_a_log_are_missing_or_come_twice_but_not_both() -> None:
    _, found = answer("impact", "users/native-checkpoint0")
    rows = [(row["fate"], row["from"], row["to"]) for row in found["result"]["intervals"]]
    assert sorted(rows) == [("doubled", 321, 340), ("may-be-missing", 258, 321)]
