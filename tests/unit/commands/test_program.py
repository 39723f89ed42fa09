"""The command line: exit codes, what goes where, and one clear line for everything that goes wrong."""

from __future__ import annotations

import gc
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from cklog.run import Run
from tests.conftest import REPOSITORY, SAMPLES
from tests.program import cklog, hide_java

JOIN = SAMPLES / "uncoordinated-join"


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["recovery-line", "no/such/place"], 66, "no such folder"),
        (["recovery-line", str(REPOSITORY / "README.md")], 66, "not a folder"),
        (["recovery-line", str(REPOSITORY / "docs")], 66, "nothing here that cklog knows"),
        (["recovery-line", str(JOIN), "--failed", "nobody"], 66, "no operator or subtask nobody"),
        (["recovery-line", str(JOIN), "--at", "join/0=99"], 66, "no usable checkpoint 99"),
        (["recovery-line", str(JOIN), "--at", "join/9=1"], 66, "no subtask join/9"),
        (["recovery-line", str(JOIN), "--at", "join/0"], 2, "expected OP/SUB=CKPT"),
        (["recovery-line", str(JOIN), "--as-of", "yesterday"], 2, "is no time"),
        (["recovery-line", str(JOIN), "--format", "yaml"], 2, "--format yaml"),
        (["recovery-line", str(JOIN), "--from", "magic"], 2, "--from magic"),
        (["recovery-line", str(JOIN), "--map", "x"], 2, "expected OLD=NEW"),
        (["recovery-line", str(JOIN), "--spark-above", "many"], 2, "is no size"),
        (["recovery-line", str(JOIN), "-o", "/no/such/folder/x"], 73, "No such file"),
        (["verify", str(JOIN), "--line", "no-such-file"], 66, "no such file"),
        (["verify", str(JOIN), "--line", str(REPOSITORY / "README.md")], 2, "--line"),
        (["replay", str(JOIN), "--format", "flink-offsets"], 2, "2 topics"),
    ],
)
def test_what_goes_wrong_is_one_line_and_its_exit_code(args: list[str], code: int, said: str) -> None:
    ended = cklog(*args)
    assert (ended.code, ended.out) == (code, "")
    lines = ended.err.splitlines()
    assert said in lines[0]
    assert all(line.startswith("hint: ") for line in lines[1:])


def test_under_json_an_error_is_an_object_on_stdout() -> None:
    ended = cklog("recovery-line", "no/such/place", "--json")
    error = json.loads(ended.out)["error"]
    assert (error["id"], error["exit"]) == ("not-found", 66)


@pytest.mark.parametrize("asked", [["--json"], ["--format", "json"], ["--format=json"]])
@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["recovery-line", "--nope"], "--nope"),
        (["recovery-line", str(JOIN), "--fail-on", "rain"], "'rain' is not one of 'error'"),
        (["recovery-line", str(JOIN), "one-too-many"], "one-too-many"),
        (["diff", str(JOIN)], "AFTER"),
        (["no-such-command"], "no-such-command"),
        (["simulate", "no-such-protocol"], "no-such-protocol"),
    ],
)
def test_a_command_line_that_cannot_be_read_is_told_as_every_error_is(
    args: list[str], said: str, asked: list[str]
) -> None:
    ended, plain = cklog(*args, *asked), cklog(*args)
    assert (ended.code, plain.code, plain.out) == (2, 2, "")
    assert ended.err == plain.err
    line, hint = ended.err.splitlines()
    assert line.startswith("cklog: ")
    assert said in line
    assert hint.startswith("hint: Usage: cklog ")
    assert ended.out.count("\n") == 1
    told = json.loads(ended.out)["error"]
    assert (told["id"], told["exit"]) == ("usage", 2)
    assert (f"cklog: {told['message']}", f"hint: {told['hint']}") == (line, hint)


@pytest.mark.parametrize("group", [[], ["simulate"]])
def test_without_a_question_the_help_is_printed(group: list[str]) -> None:
    ended = cklog(*group)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"Usage: {' '.join(['cklog', *group])} [OPTIONS] COMMAND")


def test_an_unreachable_checkpoint_is_exit_4_with_the_answer() -> None:
    ended = cklog("recovery-line", JOIN, "--at", "join/0=5", "--json")
    assert ended.code == 4
    assert json.loads(ended.out)["verdict"] == "unrecoverable"


def test_strict_refuses_damage(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "x.jsonl").write_bytes(b'{"operator":"a","checkpoint":1}\n{"torn')
    assert cklog("recovery-line", tmp_path).code == 0
    ended = cklog("recovery-line", tmp_path, "--strict")
    assert (ended.code, ended.out) == (65, "")


def test_a_refuted_line_is_exit_3(tmp_path: Path) -> None:
    line = {"join/0": 5, "join/1": 3, "orders/0": 4, "payments/0": 4, "sink/0": 3}
    (tmp_path / "line.json").write_text(json.dumps(line))
    ended = cklog("verify", JOIN, "--line", tmp_path / "line.json")
    assert ended.code == 3
    assert "Refuted: the line is not consistent" in ended.out


def test_an_older_line_is_consistent_and_not_maximal(tmp_path: Path) -> None:
    line = dict.fromkeys(["join/0", "join/1", "orders/0", "payments/0", "sink/0"], 0)
    (tmp_path / "line.json").write_text(json.dumps(line))
    assert cklog("verify", JOIN, "--line", tmp_path / "line.json").code == 0
    ended = cklog("verify", JOIN, "--line", tmp_path / "line.json", "--maximal")
    assert ended.code == 3
    assert "a newer consistent line exists" in ended.out


def test_the_path_defaults_to_the_variable_then_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = cklog("recovery-line", JOIN, "--json").out
    monkeypatch.setenv("CKLOG_PATH", str(JOIN))
    assert cklog("recovery-line", "--json").out == whole
    monkeypatch.delenv("CKLOG_PATH")
    monkeypatch.chdir(JOIN)
    assert cklog("recovery-line", "--json").out == whole


def test_a_missing_java_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    hide_java(monkeypatch)
    ended = cklog("recovery-line", JOIN, "--engine", "spark")
    assert ended.code == 69
    assert ended.err.splitlines()[0] == "cklog: Spark needs Java 17 or newer, and none was found"


def test_a_bug_is_a_line_and_exit_70(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Run, "recovery_line", lambda _run, *_: 1 // 0)
    ended = cklog("recovery-line", JOIN)
    assert ended.code == 70
    assert "a bug: ZeroDivisionError" in ended.err
    assert "Traceback" not in ended.err


def test_no_color_no_width_and_no_cut_ids_when_piped() -> None:
    told = cklog("recovery-line", JOIN).out
    assert "\x1b" not in told
    assert "payments/0->join/0" in told


def test_on_a_terminal_of_80_columns_nothing_is_lost() -> None:
    leader, follower = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "LINES": "40", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "cklog", "recovery-line", str(JOIN)]
    with subprocess.Popen(command, stdout=follower, env=environment, cwd=REPOSITORY) as child:
        os.close(follower)
        shown = b""
        while True:
            try:
                data = os.read(leader, 4096)
            except OSError:
                break
            shown += data
    os.close(leader)
    assert child.returncode == 0
    assert b"\x1b" not in shown
    assert b"payments/0" in shown


def test_a_reader_that_stops_early_is_no_error() -> None:
    command = f"{sys.executable} -m cklog recovery-line {JOIN} --json | head -1"
    told = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=REPOSITORY, capture_output=True, check=False)
    assert told.stdout == b"{\n"
    assert told.stderr == b""


INTERRUPTED_WHILE_LOADING = """
import sys

class Interrupts:
    def find_spec(self, name, *rest):
        if name == "cklog.commands.app":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupts())
from cklog.commands import main
main()
"""


def test_an_interrupt_while_libraries_are_loaded_is_no_traceback() -> None:
    command = [sys.executable, "-c", INTERRUPTED_WHILE_LOADING]
    ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_a_command_leaves_the_collector_of_this_process_on() -> None:
    assert gc.isenabled()
    assert cklog("recovery-line", JOIN).code == 0
    assert gc.isenabled()
