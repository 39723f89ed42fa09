"""--sink in every command that takes it, with tables that a stand-in hands over in place of a parser."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from cklog.errors import CorruptInput
from cklog.inputs.sink_tables import SinkTable, Stamp, TableCommit, Writer
from cklog.sink_tables.naming import named_uri
from tests.builders import flink as fb
from tests.conftest import SAMPLES
from tests.program import cklog

QUERY = Writer("9d15472e-e5b0-4f43-bd11-c0c4419c1c02", "batch")
JOB = Writer("125c88b9401f9252baa1b39e412cc4b8", "checkpoint", "op")
SPARK = str(SAMPLES / "spark-wordcount")
FLINK = str(SAMPLES / "flink-orders")


def written(uri: str, branch: str = "") -> SinkTable:
    """A table by its name: FORMAT-LAST, with all numbers up to the last one."""
    if uri == "damaged":
        raise CorruptInput("its log ends within a number")
    form, _, last = uri.rpartition("/")[2].partition("-")
    writer, first = (QUERY, 0) if form == "delta" else (JOB, 1)
    numbers = range(first, int(last) + 1)
    commits = tuple(TableCommit(str(100 + n), n * 1000, "append", 1, (Stamp(writer, n),)) for n in numbers)
    head = commits[-1].id if commits else None
    return SinkTable(uri, "delta" if form == "delta" else "iceberg", "main", commits, head, {}, {writer: int(last)})


@pytest.fixture(autouse=True)
def tables(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = ModuleType("cklog.parsers.sink_tables.opening")
    stand_in.read_table = written  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cklog.parsers.sink_tables.opening", stand_in)


def test_a_table_that_agrees_leaves_a_plain_restart() -> None:
    ended = cklog("recovery-line", SPARK, "--sink", "words=/lake/delta-5", "--json")
    found = json.loads(ended.out)
    assert (ended.code, found["result"]["action"]) == (0, "restart")
    (row,) = found["result"]["details"]["sinks"]
    assert (row["name"], row["agrees"], row["taken_to"]) == ("words", True, 5)


def test_a_table_behind_the_line_asks_for_an_older_one() -> None:
    ended = cklog("recovery-line", SPARK, "--sink", "words=/lake/delta-4", "--json")
    result = json.loads(ended.out)["result"]
    assert (ended.code, result["action"]) == (3, "restart-older")
    assert result["runs"][0]["chosen"] == "batch 4"
    assert result["details"]["sink_line"]["at"] == "query/0=4"
    headline = "The tables contradict batch 5; the newest line that they agree with is batch 4. With --at "
    assert result["details"]["headline"].startswith(f"{headline}query/0=4: The line is batch 4")
    assert "By state alone" not in result["details"]["headline"]
    assert cklog("recovery-line", SPARK, "--sink", "words=/lake/delta-4", "--at", "query/0=4").code == 3


def test_a_table_ahead_of_the_line_is_a_silent_loss() -> None:
    ended = cklog("recovery-line", SPARK, "--sink", "words=/lake/delta-8")
    assert ended.code == 3
    assert "Action: repair-first" in ended.out
    assert "[silent-loss] words: the table remembers batch 8" in ended.out
    assert "spark-submit" not in cklog("runbook", SPARK, "--sink", "words=/lake/delta-8").out


def test_an_iceberg_table_goes_back_before_the_job_is_restored() -> None:
    ended = cklog("runbook", FLINK, "--at", "125c=12", "--sink", "cat.db.t=/lake/iceberg-13", "--format", "md")
    assert ended.out.index("Take cat.db.t to 112") < ended.out.index("flink run -s")
    assert "rollback_to_snapshot('db.t', 112)" in ended.out.replace("\\_", "_")


def test_of_several_jobs_the_one_that_a_table_knows_is_held_against_it(tmp_path: Path) -> None:
    folder = shutil.copytree(FLINK, tmp_path / "checkpoints")
    other = folder / "00112233445566778899aabbccddeeff/chk-3"
    other.mkdir(parents=True)
    kind = fb.properties((), "Checkpoint", "FORWARD_BACKWARD")
    (other / "_metadata").write_bytes(fb.metadata(6, [fb.operator(6)], checkpoint=3, properties=kind).data)
    for command in ("recovery-line", "impact"):
        alone, beside = (cklog(command, root, "--sink", "orders=iceberg-13", "--json") for root in (FLINK, folder))
        held = [json.loads(ended.out)["result"].get("details", {}).get("sinks") for ended in (alone, beside)]
        assert alone.code == beside.code
        assert held[0] == held[1]
    line = tmp_path / "line.json"
    line.write_text(json.dumps({f"{JOB.id}/0": 12, f"{other.parent.name}/0": 3}))
    told = cklog("verify", folder, "--line", line, "--sink", "orders=iceberg-13")
    assert "silent-loss" in told.out
    ended = cklog("recovery-line", folder, "--sink", "orders=delta-3")
    assert ended.code == 2
    assert "no table says which of them writes to it" in ended.err


def test_no_command_is_to_be_pasted_while_the_tables_contradict() -> None:
    result = json.loads(cklog("recovery-line", FLINK, "--at", "125c=12", "--sink", "t=/lake/iceberg-13", "--json").out)[
        "result"
    ]
    assert result["action"] == "repair-first"
    assert (result["runs"][0]["command"], result["details"]["restore"]) == (None, [])


def test_a_line_is_refuted_by_a_table(tmp_path: Path) -> None:
    line = tmp_path / "line.json"
    line.write_text('{"query/0": 5}', encoding="utf-8")
    ended = cklog("verify", SPARK, "--line", str(line), "--sink", "words=/lake/delta-4")
    assert ended.code == 3
    assert "Refuted: the line is not exactly-once in tables." in ended.out
    assert "Refuted:" not in cklog("verify", SPARK, "--line", str(line), "--sink", "words=/lake/delta-6").out


def test_impact_counts_rows_of_tables_among_results() -> None:
    lost = ("impact", SPARK, "--sink", "words=/lake/delta-4", "--at", "query/0=5")
    result = json.loads(cklog(*lost, "--json").out)["result"]
    assert {"missing", "once"} <= {row["fate"] for row in result["intervals"] if row["sink"] == "words"}
    assert "words" in {row["sink"] for row in result["guarantees"]}
    assert 'batches from 6 on of "words"' in cklog(*lost).out


def test_impact_is_that_of_the_line_with_which_the_tables_agree() -> None:
    ended = cklog("impact", SPARK, "--sink", "words=/lake/delta-4", "--json")
    result = json.loads(ended.out)["result"]
    assert (ended.code, result["action"]) == (3, "restart-older")
    assert [row["checkpoint"] for row in result["line"]] == [4]
    assert {row["fate"] for row in result["intervals"] if row["sink"] == "words"} == {"once"}


def test_the_report_leads_with_what_the_tables_say() -> None:
    ended = cklog("report", SPARK, "--sink", "words=/lake/delta-4", "--format", "md")
    assert "The tables contradict batch 5; the newest line that they agree with is batch 4." in ended.out


def test_a_table_that_cannot_be_read_leaves_it_undetermined() -> None:
    ended = cklog("recovery-line", SPARK, "--sink", "words=damaged")
    assert ended.code == 5
    assert "Action: undetermined" in ended.out
    assert "[sink-unread]" in ended.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["recovery-line", str(SAMPLES / "domino-cycle"), "--sink", "t=/lake/delta-1"], "lines of Flink and Spark"),
        (["recovery-line", SPARK, "--sink", "a="], "expected [NAME=]URI"),
        (["recovery-line", SPARK, "--sink", "/x/delta-1", "--sink", "/y/delta-1"], "two tables of one name"),
    ],
)
def test_what_cannot_be_asked_is_refused(words: list[str], said: str) -> None:
    ended = cklog(*words)
    assert ended.code == 2
    assert said in ended.err


def test_a_uri_may_hold_an_equals_sign() -> None:
    assert named_uri("s3://b/day=1/t").name == "t"


def test_every_line_of_a_job_is_held_against_the_tables_of_its_manifest(tmp_path: Path) -> None:
    """Alone, among many, and together with another job."""
    folder = shutil.copytree(SPARK, tmp_path / "run")
    (folder / "ck/job.json").write_text(json.dumps({"sinks": {"words": "s3://lake/delta-9"}}))
    for place in (folder, folder / "ck"):
        assert json.loads(cklog("recovery-line", place, "--json").out)["result"]["action"] == "repair-first"
    (row,) = json.loads(cklog("scan", folder, "--json").out)["result"]["runs"]
    assert (row["action"], row["worst"]) == ("repair-first", ["silent-loss"])
    for first, other in ((folder, FLINK), (FLINK, folder)):
        joint = json.loads(cklog("recovery-line", first, "--with", other, "--json").out)
        assert "silent-loss" in {finding["id"] for finding in joint["findings"]}


@pytest.mark.parametrize("said", ['{"sinks": {"words": "s3:', "[1]", ""])
def test_a_damaged_manifest_is_named_and_does_not_change_whose_folder_it_is(tmp_path: Path, said: str) -> None:
    folder = shutil.copytree(f"{SPARK}/ck", tmp_path / "ck")
    (folder / "job.json").write_text(said)
    ended = cklog("recovery-line", folder)
    assert (ended.code, ended.out) == (65, "")
    assert f"{folder}/job.json: no JSON object" in ended.err
    told = cklog("scan", folder, "--json")
    (row,) = json.loads(told.out)["result"]["runs"]
    assert (told.code, row["format"], row["action"]) == (5, "spark-checkpoint", "undetermined")
    assert row["message"] == f"{folder}/job.json: no JSON object"


@pytest.mark.parametrize(("named", "damaged"), [("sinks", "sinkr"), ("outputs", "oUtputs")])
def test_a_damaged_name_in_a_manifest_is_no_manifest_without_it(tmp_path: Path, named: str, damaged: str) -> None:
    """One bit, and the table would not be asked: the line would be newer than what the table has taken."""
    folder = shutil.copytree(f"{SPARK}/ck", tmp_path / "ck")
    (folder / "job.json").write_text(json.dumps({damaged: {"words": "s3://lake/delta-9"}}))
    ended = cklog("recovery-line", folder)
    assert (ended.code, ended.out) == (65, "")
    assert f"no member {named}, but {damaged}, one bit away from it" in ended.err


def test_a_manifest_below_a_run_has_the_budget_of_all_json(tmp_path: Path) -> None:
    """30 MB that would become a gigabyte of lists."""
    folder = shutil.copytree(SPARK, tmp_path / "run")
    (folder / "more").mkdir()
    (folder / "more/job.json").write_text('{"x":[' + "[]," * 3_000_000 + "[]]}")
    ended = cklog("recovery-line", folder)
    assert (ended.code, ended.out) == (65, "")
    assert "more/job.json: the number of values in the JSON is over the budget" in ended.err
