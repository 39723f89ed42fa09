"""Output never replaces the input: `-o` inside PATH, or at a file that is read, by whatever name, is refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cklog.commands.app import Commands
from tests.conftest import SAMPLES
from tests.program import asked, cklog

FLINK = "flink-orders"
SNAPSHOT = "125c1252bd61481884bb23e41a77c92e"


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A copy of a Flink job's checkpoints."""
    found = tmp_path / "run"
    shutil.copytree(SAMPLES / FLINK, found)
    return found


def metadata(run: Path) -> Path:
    return sorted(run.rglob("_metadata"))[0]


def hard_link(run: Path) -> Path:
    link = run.parent / "linked"
    os.link(metadata(run), link)
    return link


def link_to_file(run: Path) -> Path:
    link = run.parent / "link"
    link.symlink_to(metadata(run))
    return link


def link_to_folder(run: Path) -> Path:
    link = run.parent / "folder"
    link.symlink_to(metadata(run).parent)
    return link / "new"


INSIDE: dict[str, Callable[[Path], Path | str]] = {
    "a file that is read": metadata,
    "a new file": lambda run: run / "answer.json",
    "a new file deep in it": lambda run: metadata(run).parent / "answer.json",
    "by ..": lambda run: run / "x" / ".." / ".." / run.name / "answer.json",
    "by a relative path": lambda run: os.path.relpath(metadata(run)),
    "a hard link elsewhere": hard_link,
    "a link to a file": link_to_file,
    "a link to a folder": link_to_folder,
}


@pytest.mark.parametrize("where", INSIDE)
def test_output_inside_path_is_refused_in_one_sentence_and_nothing_changes(where: str, run: Path) -> None:
    (run / "x").mkdir()
    place = INSIDE[where](run)
    before = tree(run)
    ended = cklog("recovery-line", run, "--brief", "-o", place)
    assert (ended.code, ended.out) == (73, "")
    first, second = ended.err.splitlines()[-2:]
    assert first.startswith(f"cklog: -o {place}: this would change the input: ")
    assert second == "hint: name a file elsewhere, or add --overwrite"
    assert tree(run) == before


@pytest.mark.parametrize("where", INSIDE)
def test_overwrite_allows_it(where: str, run: Path) -> None:
    (run / "x").mkdir()
    place = INSIDE[where](run)
    assert cklog("recovery-line", run, "--brief", "-o", place, "--overwrite").code == 0
    assert "Restore" in Path(place).read_text()


def test_a_file_elsewhere_is_replaced(run: Path) -> None:
    place = run.parent / "run-answer.json"  # a name that begins like that of PATH
    place.write_text("an older answer")
    assert cklog("recovery-line", run, "--json", "-o", place).code == 0
    assert json.loads(place.read_text())["schema"] == "cklog.recovery-line/1"


def test_path_is_the_current_folder_unless_one_is_named(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run)
    assert cklog("recovery-line", "-o", "answer.txt").code == 73
    assert cklog("recovery-line", "-o", "../answer.txt").code == 0


def test_the_run_that_path_is_a_part_of_is_input(run: Path) -> None:
    part = metadata(run)
    assert cklog("recovery-line", part, "-o", part.parent / "answer.txt").code == 73


def refused(words: list[object], *places: Path) -> None:
    """Each place is refused for a command that reads it, and the same command answers into another file."""
    for place in places:
        before = place.read_bytes() if place.is_file() else None
        ended = cklog(*map(str, words), "-o", place)
        assert (ended.code, "this would change the input" in ended.err) == (73, True), (place, ended)
        assert (place.read_bytes() if place.is_file() else None) == before


def test_every_folder_and_file_that_an_option_names_is_input(tmp_path: Path) -> None:
    streams, table = SAMPLES / "kafka-streams-state", SAMPLES / "tables" / "flink-older-checkpoint"
    shutil.copytree(streams, tmp_path / "streams")
    shutil.copytree(table, tmp_path / "flink")
    shutil.copytree(SAMPLES / "domino-cycle", tmp_path / "domino")
    kafka = tmp_path / "streams" / "kafka"
    refused(
        ["recovery-line", tmp_path / "streams" / "state", "--kafka", kafka],
        kafka / "answer",
        *sorted(kafka.rglob("*.log")),
    )
    other = tmp_path / "domino"
    refused(["recovery-line", SAMPLES / "uncoordinated-join", "--with", other], other / "answer", other / "job.json")
    refused(["compare", SAMPLES / "uncoordinated-join", other], other / "answer")
    refused(["scan", SAMPLES / "uncoordinated-join", other], other / "answer", other / "job.json")
    refused(["diff", SAMPLES / "uncoordinated-join", other], other / "answer")
    refused(["recovery-line", SAMPLES / FLINK, "--map", f"/nowhere={other}"], other / "answer", other / "job.json")
    sink = tmp_path / "flink" / "table"
    mapped = ["--map", f"file:///srv/cklog-sample/tables={SAMPLES / 'tables'}"]
    words = ["recovery-line", tmp_path / "flink" / "checkpoints", "--sink", f"db.orders={sink}", *mapped]
    refused(words, *[path for path in sorted(sink.rglob("*")) if path.is_file()][:2])


def test_files_of_lines_marks_and_answers_are_input(tmp_path: Path) -> None:
    run = SAMPLES / "domino-cycle"
    line = tmp_path / "line.json"
    assert cklog("recovery-line", run, "--json", "-o", line).code == 0
    marks = tmp_path / "marks"
    marks.write_text("# none\n")
    log = tmp_path / "jobmanager.log"
    log.write_text("nothing\n")
    refused(["verify", run, "--line", line], line)
    refused(["verify", run, "--restored", line], line)
    refused(["diff", line, line], line)
    refused(["diff", run, line], line)
    refused(["retention", run, "--marked", marks], marks)
    refused(["verify", SAMPLES / FLINK, "--from-log", log], log)
    refused(["retention", SAMPLES / FLINK, "--job-log", log, "--window", "7d", "--now", "2026-01-01"], log)


def test_an_answer_that_is_read_from_stdin_is_input(tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    shutil.copyfile(SAMPLES / "domino-cycle" / "expected.json", answer)
    before = answer.read_bytes()
    command = [sys.executable, "-m", "cklog", "diff", "-", str(SAMPLES / "domino-cycle"), "-o", str(answer)]
    with answer.open("rb") as file:
        ended = subprocess.run(command, stdin=file, capture_output=True, text=True, check=False)
    assert (ended.returncode, "this would change the input" in ended.stderr) == (73, True)
    assert answer.read_bytes() == before


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no names of open files")
def test_an_answer_goes_into_a_pipe_that_a_shell_has_opened() -> None:
    read, write = os.pipe()
    with os.fdopen(read, "rb") as answer:
        ended = cklog("recovery-line", SAMPLES / "domino-cycle", "--brief", "-o", f"/dev/fd/{write}")
        os.close(write)
        assert (ended.code, ended.out) == (0, "")
        assert b"Restart" in answer.read()


def test_annotated_results_go_to_a_folder_outside_path(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "odysseus-gap", tmp_path / "run")
    run, before = tmp_path / "run", tree(tmp_path / "run")
    ended = cklog("impact", run, "--annotate", run / "trust")
    assert (ended.code, "this would change the input" in ended.err) == (73, True)
    assert tree(run) == before
    assert not (run / "trust").exists()
    assert cklog("impact", run, "--annotate", run / "trust", "--overwrite").code == cklog("impact", run).code


def test_a_directory_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    ended = cklog("recovery-line", SAMPLES / "domino-cycle", "-o", tmp_path)
    assert (ended.code, ended.err) == (73, f"cklog: {tmp_path}: Is a directory\n")


def commands_with_output() -> list[str]:
    return [name for name in Commands.places if name not in ("simulate", "explain", "advise")]


@pytest.mark.parametrize("name", commands_with_output())
def test_every_command_that_writes_an_answer_has_both_options(name: str) -> None:
    shown = cklog(name, "--help").out
    assert "--output" in shown
    assert "--overwrite" in shown


def test_a_shell_completes_the_option() -> None:
    told = asked(_CKLOG_COMPLETE="complete_bash", COMP_WORDS="cklog recovery-line --over", COMP_CWORD="2")
    assert told.stdout.split() == ["--overwrite"]
