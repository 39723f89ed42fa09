"""The report as Markdown and JSON: every part is what its own command answers, and none costs another."""

from __future__ import annotations

import html
import json
import shlex
import shutil
import subprocess
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cklog.kinds.records import RecordsKind
from tests.conftest import REPOSITORY, SAMPLES
from tests.program import cklog
from tests.reading.renamed import rename_operators

RUNS = sorted(path.name for path in SAMPLES.iterdir() if path.is_dir())
SCHEMA = json.loads((files("cklog") / "schemas" / "report.json").read_text(encoding="utf-8"))
RESULTS = {
    "runbook": "runbook",
    "proof": "proof",
    "replay": "replay",
    "impact": "impact",
    "chains": "chains",
    "retention": "retention",
    "failures": "failures",
}


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)


def told(path: str | Path, *more: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cklog("report", path, "--json", *more).out)
    return found


@pytest.mark.quarter
@pytest.mark.parametrize("name", RUNS)
def test_the_report_ends_as_the_line_does_and_holds_what_each_command_answers(name: str) -> None:
    path = f"sample_logs/{name}"
    line = cklog("recovery-line", path, "--json", "--explain")
    report = cklog("report", path, "--json")
    assert report.code == line.code
    alone = json.loads(line.out)
    if "error" in alone:
        assert json.loads(report.out)["error"]["id"] == alone["error"]["id"]
        return
    found = json.loads(report.out)
    jsonschema.validate(found, SCHEMA)
    assert found["result"]["recovery_line"] == alone["result"]
    assert (found["verdict"], found["findings"]) == (alone["verdict"], alone["findings"])
    parts = {part["name"]: part for part in found["result"]["parts"]}
    assert not [part for part in parts.values() if part["state"] == "failed"]
    for part, member in RESULTS.items():
        if part == "proof":  # its command wants the line in a file
            continue
        ended = cklog(*shlex.split(parts[part]["command"])[1:], "--json")
        answer = json.loads(ended.out)
        if parts[part]["state"] == "answered":
            assert (found["result"][member], parts[part]["exit_code"]) == (answer["result"], ended.code)
            known = [*found["findings"], *parts[part]["findings"]]
            assert [finding for finding in answer["findings"] if finding not in known] == []
        else:
            assert found["result"][member] is None
            assert "error" in answer or answer["result"] is None
            assert parts[part]["why"].endswith(".")


@pytest.mark.quarter
@pytest.mark.parametrize("name", RUNS)
def test_markdown_begins_with_what_to_do_and_a_message_fits_a_chat(name: str) -> None:
    path = f"sample_logs/{name}"
    whole, brief = cklog("report", path, "--format", "md"), cklog("report", path, "--format", "md", "--brief")
    if whole.code == 66:
        return
    action = told(path)["result"]["action"]
    for ended in (whole, brief):
        assert ended.out.startswith(f"**Action: {action} (")
    assert len(brief.out) <= 1_600
    assert whole.code == brief.code
    assert whole.out == cklog("report", path, "--format", "md").out
    assert str(REPOSITORY) not in whole.out.replace(f"RUN={REPOSITORY}/", "")  # the script works from anywhere


def test_a_message_says_where_its_command_belongs_and_what_to_do_where_there_is_none(tmp_path: Path) -> None:
    folder = shutil.copytree("sample_logs/spark-wordcount", tmp_path / "run")
    (folder / "ck" / "state" / "0" / "0" / "6.delta").unlink()
    message = cklog("report", folder, "--format", "md", "--brief").out.splitlines()
    assert message[1:3] == [
        "Mind: in a copy of this folder: remove these files; then start the query on the copy.",
        "```sh",
    ]
    message = cklog("report", "sample_logs/cec-aggregate", "--format", "md", "--brief").out.splitlines()
    assert message[1] == "Start every subtask with its checkpoint of the line."


@pytest.mark.parametrize("name", ["uncoordinated-join", "uncoordinated-join-parquet", "spark-wordcount"])
def test_the_line_of_a_report_is_proved(name: str) -> None:
    proof = told(f"sample_logs/{name}")["result"]["proof"]
    assert proof["checks"]
    assert [check for check in proof["checks"] if check["holds"] is False] == []
    assert next(check["holds"] for check in proof["checks"] if check["check"] == "consistent") is True


def test_options_choose_the_line_of_the_report() -> None:
    found = told("sample_logs/uncoordinated-join", "--failed", "join/1")["result"]
    alone = json.loads(cklog("recovery-line", "sample_logs/uncoordinated-join", "--failed", "join/1", "--json").out)
    assert found["recovery_line"]["line"] == alone["result"]["line"]
    assert found["arguments"] == ["cklog", "report", "sample_logs/uncoordinated-join", "--failed", "join/1"]
    assert "--failed join/1" in found["parts"][0]["command"]


def test_a_part_that_fails_costs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    before = told("sample_logs/uncoordinated-join")["result"]

    def broken(*_: object) -> None:
        raise RuntimeError("no such luck")

    monkeypatch.setattr(RecordsKind, "retention", broken)
    ended = cklog("report", "sample_logs/uncoordinated-join", "--json")
    assert ended.code == 0
    after = json.loads(ended.out)["result"]
    part = next(part for part in after["parts"] if part["name"] == "retention")
    assert (part["state"], part["exit_code"]) == ("failed", 70)
    assert "no such luck" in part["why"]
    assert after["retention"] is None
    assert after["chains"] == before["chains"] is not None


def test_evidence_is_what_sha256sum_says() -> None:
    rows = {row["path"]: row for row in told("sample_logs/uncoordinated-join")["result"]["evidence"]}
    run = SAMPLES / "uncoordinated-join"
    assert rows["job.json"]["sha256"] == sha256((run / "job.json").read_bytes()).hexdigest()
    script = "find checkpoints -type f | LC_ALL=C sort | xargs sha256sum | sha256sum"
    printed = subprocess.run(script, shell=True, cwd=run, capture_output=True, text=True, check=True).stdout
    assert rows["checkpoints/"]["sha256"] == printed.split()[0]


def test_one_changed_byte_changes_the_evidence(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(SAMPLES / "uncoordinated-join", run)
    before = {row["path"]: row["sha256"] for row in told(run)["result"]["evidence"]}
    with (run / "job.json").open("ab") as file:
        file.write(b"\n")
    after = {row["path"]: row["sha256"] for row in told(run)["result"]["evidence"]}
    assert [path for path in before if before[path] != after[path]] == ["job.json"]


@pytest.mark.quarter
@pytest.mark.parametrize("name", RUNS)
def test_every_document_has_the_steps_of_the_runbook(name: str) -> None:
    path = f"sample_logs/{name}"
    ended = cklog("runbook", path, "--json")
    if ended.code == 66:
        return
    steps = json.loads(ended.out)["result"]["steps"]
    assert len(steps) >= 2
    markdown = cklog("report", path, "--format", "md").out
    page = html.unescape(cklog("report", path, "--format", "html").out)
    terminal = cklog("report", path).out
    for step in steps:
        for command in filter(None, (step["command"], step["check"], step["undo_command"])):
            assert f"```sh\n{command}\n```" in markdown
            assert f"<code>{command}</code>" in page
            assert all(line in terminal for line in command.splitlines())
        assert f"{step['number']}. {step['title']}" in terminal
        assert f'id="step-{step["number"]}"' in page


def test_options_of_the_line_are_those_of_the_steps() -> None:
    asked = ("--failed", "join/1", "--as-of", "2026-01-01T00:00:11Z")
    book = told("sample_logs/uncoordinated-join", *asked)["result"]["runbook"]
    alone = json.loads(cklog("runbook", "sample_logs/uncoordinated-join", *asked, "--json").out)["result"]
    assert book == alone
    again = next(step["command"] for step in book["steps"] if "recovery-line" in step["command"])
    assert "--failed=join/1 --as-of=1767225611000" in again


def test_a_folder_that_no_command_can_name_is_answered_for_all_the_same(tmp_path: Path) -> None:
    run = tmp_path / "a\trun"
    shutil.copytree(SAMPLES / "spark-wordcount", run)
    found = told(run)["result"]
    part = next(part for part in found["parts"] if part["name"] == "runbook")
    assert (part["state"], found["runbook"]) == ("refused", None)
    assert "control characters" in part["why"]
    assert "control characters" in cklog("report", run, "--format", "md").out


def test_hostile_names_stay_text_in_markdown(tmp_path: Path) -> None:
    run = tmp_path / "a`b"
    shutil.copytree(SAMPLES / "domino-cycle", run)
    rename_operators(run, {"op1": "<img src=x>|[a](http:b)"})
    ended = cklog("report", run, "--format", "md")
    outside = "".join(ended.out.split("```")[::2])
    assert r"\<img src=x\>\|\[a\](http:b)" in outside
    assert "<img" not in outside.replace(r"\<img", "")
