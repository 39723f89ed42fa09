"""README and docs are true: every command in them runs, and prints what they show."""

from __future__ import annotations

import re
import shlex
import tomllib

import pytest

from tests.conftest import REPOSITORY
from tests.program import cklog

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
MAKEFILE = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
TOOLS = [["python", "-m", "pytest"], ["python"], ["make"], ["git", "diff"]]
OPTIONS = {"-m", "-n0", "-x", "-rs", "--stat", "--hypothesis-profile=all"}

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
DOCS = [
    page for page in sorted((REPOSITORY / "docs").rglob("*.md")) if page.name != "run-folder.md"
]  # has its own test
PAGES = [README, *(page.read_text(encoding="utf-8") for page in DOCS)]
BLOCKS = [block for page in PAGES for block in re.findall(r"```console\n(.*?)```", page, flags=re.DOTALL)]
SHOWN = [
    (command.replace("\\\n", " "), output)
    for block in BLOCKS
    for command, output in re.findall(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", block, flags=re.MULTILINE)
]
MILLIONS = r"--tuples [0-9]{7}"
"""What runs for half a minute."""


def test_there_is_something_to_check() -> None:
    assert len([command for command, _ in SHOWN if "cklog " in command]) >= 20


def holds(words: list[str]) -> None:
    """A command of another tool is not run: what it names must be there."""
    tool = next(tool for tool in TOOLS if words[: len(tool)] == tool)
    named = words[len(tool) :]
    if tool == ["make"]:
        assert set(named) <= set(re.findall(r"^([a-z-]+):", MAKEFILE, flags=re.MULTILINE))
        return
    if "-m" in named:
        marks = [mark.partition(":")[0] for mark in PROJECT["tool"]["pytest"]["ini_options"]["markers"]]
        assert named.pop(named.index("-m") + 1) in marks
    options = [word for word in named if word.startswith("-")]
    assert set(options) <= OPTIONS
    assert [place for place in named if place not in options and not (REPOSITORY / place).exists()] == []


@pytest.mark.parametrize(
    ("command", "output"),
    [pytest.param(*one, marks=pytest.mark.slow if re.search(MILLIONS, one[0]) else ()) for one in SHOWN],
    ids=[command[:60] for command, _ in SHOWN],
)
def test_pages_show_what_the_command_prints(command: str, output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    last = command.split("&&")[-1].strip()
    if not last.startswith("cklog "):
        holds(shlex.split(last))
        return
    ended = cklog(*shlex.split(last)[1:])
    assert ended.out == output


COMMANDS = [
    *(
        "recovery-line",
        "verify",
        "replay",
        "inspect",
        "graph",
        "z-cycles",
        "compare",
        "retention",
        "chain",
        "rounds",
        "impact",
        "latency",
    ),
    *("extent", "eventual-checkpoint", "report", "scan", "runbook", "diff", "explain", "advise", "simulate"),
]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_readme_and_has_help(name: str) -> None:
    assert f"`cklog {name}`" in README
    ended = cklog(name, "--help")
    assert ended.code == 0
    assert "Usage:" in ended.out


def test_the_readme_repeats_what_was_measured() -> None:
    """Each number of its table of speed stands in docs/speed.md, which `benchmarks/run.py` writes."""
    measured = {*_NUMBER.findall((REPOSITORY / "docs" / "speed.md").read_text(encoding="utf-8"))}
    rows = README.partition("## Speed")[2].partition("## ")[0]
    told = [cells.split("|")[2:] for cells in rows.splitlines() if cells.startswith("| ")][1:]
    repeated = [_NUMBER.findall(cell.replace("16 KB", "")) for cells in told for cell in cells]
    assert [number for numbers in repeated for number in numbers if number not in measured] == []
    assert sum(map(len, repeated)) > 10


_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
