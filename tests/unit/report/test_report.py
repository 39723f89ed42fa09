"""The report as Markdown and JSON: every part is what its own command answers, and none costs another."""

from __future__ import annotations

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
    assert str(REPOSITORY) not in whole.out


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


def test_steps_to_copy_and_to_put_back_do_what_they_say(tmp_path: Path) -> None:
    run = tmp_path / "a run"
    shutil.copytree(SAMPLES / "spark-wordcount", run)
    steps = told(run)["result"]["steps"]
    copy = next(step for step in steps if step["do"].startswith("Copy"))
    restart = steps[-1]

    def shell(command: str) -> str:
        return subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout

    shell(copy["command"])
    assert shell(copy["check_command"]) == ""
    (run / "written-by-a-restart").touch()
    shell(restart["undo_command"])
    assert shell(copy["check_command"]) == ""
    assert not (run / "written-by-a-restart").exists()
    shell(copy["undo_command"])
    assert run.is_dir()
    assert not Path(f"{run}.before-restart").exists()


def test_the_repair_of_a_step_repairs(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(SAMPLES / "kafka-streams-state", run)
    assert told(run)["result"]["action"] == "repair-first"
    steps = [step for step in told(run)["result"]["steps"] if step["do"].startswith("Repair")]
    for step in steps:
        subprocess.run(step["command"], shell=True, check=True, cwd=tmp_path)
    assert told(run)["result"]["action"] == "restart"


def test_salvage_copies_before_anything_else() -> None:
    steps = told("sample_logs/kafka-broker")["result"]["steps"]
    assert "before anything else" in next(step["do"] for step in steps if "cp -a" in (step["command"] or ""))


def test_hostile_names_stay_text_in_markdown(tmp_path: Path) -> None:
    run = tmp_path / "a`b"
    shutil.copytree(SAMPLES / "domino-cycle", run)
    rename_operators(run, {"op1": "<img src=x>|[a](http:b)"})
    ended = cklog("report", run, "--format", "md")
    outside = "".join(ended.out.split("```")[::2])
    assert r"\<img src=x\>\|\[a\](http:b)" in outside
    assert "<img" not in outside.replace(r"\<img", "")
