"""An answer on a screen: the verdict is never scrolled away, `--brief` fits, and a pager is asked only on request."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path

import pytest

from tests.conftest import SAMPLES
from tests.program import cklog
from tests.terminal import on_terminal

FLINK = SAMPLES / "flink-orders"
COMMAND = "flink run -s file:/srv/cklog-sample/flink-orders/125c88b9401f9252baa1b39e412cc4b8/chk-13"
RUNS = sorted(
    folder.name for folder in SAMPLES.iterdir() if folder.is_dir() and folder.name not in ("flink", "sink-latency")
)


def screen_lines(text: str, columns: int) -> int:
    return sum(max(1, math.ceil(len(line) / columns)) for line in text.splitlines())


@pytest.mark.parametrize("run", RUNS)
def test_brief_begins_as_the_whole_answer_does_and_fits_a_screen(run: str) -> None:
    place = SAMPLES / run / "state" if run == "kafka-streams-state" else SAMPLES / run
    whole, brief = cklog("recovery-line", place), cklog("recovery-line", place, "--brief")
    assert brief.code == whole.code
    assert brief.err == whole.err
    assert brief.out.splitlines()[:1] == whole.out.splitlines()[:1]
    assert len(brief.out.splitlines()) < 24


@pytest.mark.quarter
@pytest.mark.parametrize(("lines", "columns"), [(24, 80), (12, 80), (24, 50)])
@pytest.mark.parametrize("run", ["flink-orders", "kafka-broker", "reachability-uncoordinated"])
def test_on_a_terminal_brief_leaves_a_line_for_the_prompt_and_says_what_is_missing(
    run: str, lines: int, columns: int
) -> None:
    told = on_terminal("recovery-line", SAMPLES / run, "--brief", lines=lines, columns=columns).out
    assert screen_lines(told, columns) < lines
    findings = json.loads(cklog("recovery-line", SAMPLES / run, "--json").out)["findings"]
    shown = [finding for finding in findings if f"{finding['severity']} [{finding['id']}]" in told]
    assert (len(shown) < len(findings)) == told.rstrip().endswith(": without --brief")


def test_brief_has_the_command_to_paste_whole() -> None:
    assert COMMAND in cklog("recovery-line", FLINK, "--brief").out.splitlines()
    assert COMMAND in on_terminal("recovery-line", FLINK, "--brief", columns=40).out.splitlines()


def test_brief_says_what_is_restored_read_again_and_dropped() -> None:
    told = cklog("recovery-line", SAMPLES / "domino-cycle", "--brief").out.splitlines()
    assert told[1].startswith("Action: restart (")
    assert told[2] == "restore: op1/0=1, op2/0=1, op3/0=1"
    assert told[-1].startswith("truncate, or process each number once: ")


def test_brief_restores_nothing_where_no_line_is_consistent() -> None:
    told = cklog("recovery-line", SAMPLES / "uncoordinated-join", "--at", "join/0=5", "--brief")
    assert told.code == 4
    assert "restore:" not in told.out


@pytest.mark.parametrize("form", ["json", "csv", "md"])
def test_brief_is_of_tables_only(form: str) -> None:
    assert cklog("recovery-line", FLINK, "--brief", "--format", form).code == 2
    assert cklog("simulate", "nexmark", "--no-log", "--rate", "1", "--brief", "--format", form).code == 2


def test_a_long_answer_ends_in_its_verdict_and_its_command() -> None:
    told = on_terminal("recovery-line", FLINK, columns=300).out.splitlines()
    lead = told[: told.index("")]
    assert lead == told[-1 - len(lead) : -1]
    assert lead[1].startswith("Action: restart (")
    assert lead[2].startswith("Not checked: ")
    assert told[-1] == COMMAND


@pytest.mark.parametrize("brief", [False, True])
def test_what_to_do_is_wrapped_between_words_and_its_command_is_not(brief: bool) -> None:
    told = on_terminal("recovery-line", FLINK, *(["--brief"] if brief else []), columns=50).out
    assert told.replace("\n", " ").count(" a checkpoint that was moved fails in its tasks. ") == (1 if brief else 2)
    assert [line for line in told.splitlines() if len(line) > 50 and line != COMMAND] == []


def test_sentences_of_a_runbook_are_wrapped_between_words_and_its_commands_are_not() -> None:
    told = on_terminal("runbook", FLINK, columns=60).out.splitlines()
    assert [line for line in told if len(line) > 60 and not line.startswith(" " * 7)] == []
    assert f'       {COMMAND} "$@"' in told
    at = told.index("1. Stop what still runs, with care: an instance that comes")
    assert told[at + 1] == "   back by itself writes to the folder while it is read,"


def test_an_answer_that_fits_is_told_once() -> None:
    told = on_terminal("recovery-line", FLINK, lines=200).out
    assert told.count(told.splitlines()[0] + "\n") == 1


def test_nothing_is_repeated_where_no_screen_is(tmp_path: Path) -> None:
    assert cklog("recovery-line", FLINK).out.count(COMMAND) == 1
    on_terminal("recovery-line", FLINK, "-o", tmp_path / "answer")
    assert (tmp_path / "answer").read_text() == cklog("recovery-line", FLINK).out


def test_a_pager_gets_the_answer_on_request_and_the_exit_code_stays() -> None:
    run = SAMPLES / "kafka-broker"
    assert on_terminal("recovery-line", run, "--pager", PAGER="sed s/^/PAGE:/").out.startswith("PAGE:Copy the folder")
    paged = on_terminal("recovery-line", run, "--pager", PAGER="head -n 1")
    assert (paged.code, len(paged.out.splitlines())) == (3, 1)
    assert "PAGE:" not in on_terminal("recovery-line", run, PAGER="sed s/^/PAGE:/").out
    assert on_terminal("recovery-line", run, "--pager", PAGER="").out.startswith("Copy the folder")


def test_a_pager_is_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", "sed s/^/PAGE:/")
    assert cklog("recovery-line", FLINK, "--pager").out == cklog("recovery-line", FLINK).out


def test_a_pager_that_is_not_there_is_one_line() -> None:
    ended = on_terminal("recovery-line", FLINK, "--pager", PAGER="no-such-pager -x")
    assert ended.code == 2
    assert ended.out.startswith("cklog: --pager: $PAGER is no-such-pager -x: No such file")


def test_ids_are_cut_in_what_to_do_as_everywhere_else(tmp_path: Path) -> None:
    folder = shutil.copytree(FLINK, tmp_path / "run")
    for metadata in folder.rglob("_metadata"):
        metadata.unlink()
    told = on_terminal("recovery-line", folder, "--brief").out
    assert told.startswith("Indeterminate: 125c88b9, aba3f4bf have each started several checkpoints, and\nnone of them")
    assert "\n125c88b9: undetermined: look for files called _metadata.\n" in told
    assert re.search("[0-9a-f]{32}", told) is None
