"""What shells are offered, asked as their own scripts ask: by variables of the environment."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.conftest import SAMPLES
from tests.program import asked, cklog


def offered(line: str, **environment: str) -> list[str]:
    """The words that bash is offered for the last, unfinished word of a line."""
    ended = asked(
        _CKLOG_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(len(line.split(" ")) - 1), **environment
    )
    assert ended.stderr == ""
    return ended.stdout.split()


@pytest.mark.quarter
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("cklog re", ["recovery-line", "replay", "retention", "report"]),
        ("cklog advise d", ["delta"]),
        ("cklog recovery-line --no-c", ["--no-check-files", "--no-color"]),
        ("cklog recovery-line --engine s", ["spark"]),
        ("cklog recovery-line --format js", ["json", "jsonl"]),
        ("cklog simulate nexmark --format js", ["json", "jsonl"]),
        ("cklog replay --format kafka-t", ["kafka-to-offset"]),
        ("cklog recovery-line --format kafka-t", []),
        ("cklog retention --format s", ["script"]),
        ("cklog inspect --from kafka", ["kafka", "kafka-streams"]),
        ("cklog inspect sample_logs --run dom", ["domino-cycle"]),
        ("cklog recovery-line sample_logs/uncoordinated-join --failed jo", ["join", "join/0", "join/1"]),
        ("cklog recovery-line sample_logs/uncoordinated-join --failed join/0,si", ["join/0,sink", "join/0,sink/0"]),
        ("cklog recovery-line --json sample_logs/domino-cycle --failed op3", ["op3", "op3/0"]),
        ("cklog recovery-line sample_logs/flink-orders --failed ", []),  # it restarts as a whole
        ("cklog replay sample_logs/kafka-broker --operator ", ["audit", "billing"]),
        ("cklog replay sample_logs/flink-orders --operator ", ["orders"]),
        ("cklog chain sample_logs/patent-store --operator t", ["totals", "totals/0"]),
        ("cklog extent sample_logs/cec-aggregate --operator ag", ["agg1", "agg1/0"]),
        ("cklog recovery-line no/such/place --failed ", []),
    ],
)
def test_values_are_offered(line: str, words: list[str]) -> None:
    assert offered(line) == words


def test_values_are_those_of_the_run_that_the_variable_names() -> None:
    place = str(SAMPLES / "domino-cycle")
    assert offered("cklog recovery-line --failed op1", CKLOG_PATH=place) == ["op1", "op1/0"]


@pytest.mark.parametrize("command", ["recovery-line", "replay", "graph", "retention", "inspect", "simulate nexmark"])
def test_the_formats_offered_are_the_formats_taken(command: str) -> None:
    words = [*command.split(), *(["--no-log"] if command.startswith("simulate") else [str(SAMPLES / "domino-cycle")])]
    refused = cklog(*words, "--format", "nonsense").err
    taken = re.findall(r"[\w-]+", refused.partition("not one of ")[2].splitlines()[0])
    assert taken
    assert offered(f"cklog {command} --format ") == taken


@pytest.mark.quarter
@pytest.mark.parametrize("line", ["cklog recovery-line sam", "cklog verify --line sam", "cklog impact -o sam"])
def test_paths_are_left_to_each_shell(line: str) -> None:
    assert offered(line) == []  # bash: `complete -o default`
    assert asked(_CKLOG_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS=line).stdout.strip() == "_files"
    fish = {"_CKLOG_COMPLETE": "complete_fish", "_TYPER_COMPLETE_ARGS": line}
    assert asked(**fish, _TYPER_COMPLETE_FISH_ACTION="is-args").returncode == 1


def test_zsh_and_fish_are_offered_the_same_values() -> None:
    line = "cklog recovery-line sample_logs/uncoordinated-join --failed joi"
    zsh = asked(_CKLOG_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS=line).stdout
    assert re.findall(r'"([^"]+)"', zsh) == ["join", "join/0", "join/1"]
    fish = {"_CKLOG_COMPLETE": "complete_fish", "_TYPER_COMPLETE_ARGS": line}
    assert asked(**fish, _TYPER_COMPLETE_FISH_ACTION="is-args").returncode == 0
    assert asked(**fish, _TYPER_COMPLETE_FISH_ACTION="get-args").stdout.split() == ["join", "join/0", "join/1"]


def test_every_shell_gets_a_script() -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_CKLOG_COMPLETE" in asked(_CKLOG_COMPLETE=f"source_{shell}").stdout


def test_a_name_that_a_shell_would_run_is_not_offered(tmp_path: Path) -> None:
    names = ["good", '\\"; touch x #', "$(touch x)", "`touch x`", "a b", "'", "*", "a\nb", "a;b"]
    (tmp_path / "checkpoints").mkdir()
    records = [json.dumps({"operator": name, "subtask": 0, "checkpoint": 1}) + "\n" for name in names]
    (tmp_path / "checkpoints" / "x.jsonl").write_text("".join(records))
    ended = asked(
        _CKLOG_COMPLETE="complete_bash", COMP_WORDS=f"cklog recovery-line {tmp_path} --failed ", COMP_CWORD="4"
    )
    assert ended.stdout == "good\ngood/0\n"
