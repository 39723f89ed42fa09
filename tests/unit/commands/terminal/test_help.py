"""Help for three in the morning: questions, groups, examples that run, and exit codes that are true."""

from __future__ import annotations

import re
import shlex
import tempfile
from typing import Any

import pytest
from typer.main import get_command

from cklog.commands.app import Commands, app
from cklog.commands.terminal.examples import commands_with_examples, examples_of, exits_of
from tests.conftest import REPOSITORY
from tests.program import cklog


def _every_command() -> dict[str, Any]:
    """Every command and group by its words after `cklog`, from the program itself."""
    found: dict[str, Any] = {"": get_command(app)}
    for name in list(found[""].list_commands(None)):
        found[name] = found[""].get_command(None, name)
        inner = found[name].list_commands(None) if isinstance(found[name], type(found[""]).__mro__[1]) else ()
        found |= {f"{name} {one}": found[name].get_command(None, one) for one in inner}
    return found


COMMANDS = _every_command()
LEAVES = [name for name in COMMANDS if not any(other.startswith(f"{name} ".lstrip()) for other in COMMANDS if other)]
EXAMPLES = [example for name in COMMANDS for example in examples_of(name)]


def test_the_commands_of_groups_were_found() -> None:
    assert {"advise delta", "simulate cec", "recovery-line"} <= set(LEAVES)
    assert "advise" not in LEAVES


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_fits_80_columns_and_ends_in_two_examples_and_exit_codes(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ended = cklog(*name.split(), "-h")
    assert ended.code == 0
    assert max(map(len, ended.out.splitlines())) <= 80
    assert "..." not in ended.out.partition("\n")[2]
    _, _, rest = ended.out.partition("\nExamples, in a clone of cklog:\n")
    examples, _, exits = rest.partition("\nExit codes:\n")
    joined = examples.replace("\\\n", " ").splitlines()
    assert [" ".join(line.split()) for line in joined] == list(examples_of(name))
    assert len(examples_of(name)) == 2
    assert [int(line.split()[0]) for line in exits.splitlines() if line[2] != " "] == list(exits_of(name))


def test_no_example_is_of_a_command_that_is_not_there() -> None:
    assert set(commands_with_examples()) == set(COMMANDS)


@pytest.mark.quarter
@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run_and_end_as_their_help_says(example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    words = shlex.split(example)[1:]
    ended = cklog(*words)
    assert ended.out
    assert ended.code in (0, 3, 4, 5)
    named = max((name for name in COMMANDS if words[: len(name.split())] == name.split()), key=len)
    assert ended.code in exits_of(named)


def test_commands_are_listed_by_question_each_once_and_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    told = cklog("-h").out
    listed = [name for those in Commands.questions.values() for name in those]
    assert sorted(listed) == sorted(set(listed))
    assert set(listed) <= set(Commands.places)
    for name in Commands.places:
        assert [line.split()[0] for line in told.splitlines() if line.startswith("  ")].count(name) == 1
        summary = " ".join(COMMANDS[name].help.partition("\n\n")[0].split())
        assert summary in " ".join(told.split())


@pytest.mark.parametrize("name", LEAVES)
def test_options_are_in_groups(name: str) -> None:
    told = cklog(*name.split(), "-h").out
    titles = [line for line in told.splitlines() if line and not line.startswith((" ", "Usage"))]
    assert titles[0] == "Arguments:"
    assert "How to print:" in titles
    assert ("Engine:" in titles) == (name != "explain" and not name.startswith("simulate"))
    printed = told.partition("\nHow to print:\n")[2].partition("\n\n")[0]
    assert "--format" in printed
    assert "--engine" not in printed


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("recovery-line", "sample_logs/uncoordinated-join", "--at", "join/0=5"), 4),
        (("report", "sample_logs/uncoordinated-join", "--at", "join/0=5"), 4),
        (("extent", "sample_logs/cec-aggregate", "--operator", "agg1", "--max-extent", "1"), 3),
        (("impact", "sample_logs/odysseus-precise", "--recovery", "rollback", "--checkpoint", "unknown"), 5),
        (("chain", "sample_logs/no-such-folder"), 66),
        (("diff", "sample_logs/domino-cycle", "sample_logs/uncoordinated-join", "--exit-code"), 1),
        (("explain", "no-such-id"), 2),
        (("simulate", "cec"), 2),
        (("simulate", "nexmark", "--no-log", "--rate", "nothing"), 2),
    ],
)
def test_exit_codes_are_those_of_the_help(args: tuple[str, ...], code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    assert cklog(*args).code == code
    assert code in exits_of(args[0])


def test_arguments_have_the_names_that_the_documents_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    # how they are bracketed differs by version of typer
    assert re.match(r"Usage: cklog diff \[OPTIONS\] \W*BEFORE\W+AFTER\W*\n", cklog("diff", "-h").out)
    assert re.match(r"Usage: cklog scan \[OPTIONS\] \W*ROOT\W+ROOT\W*\n", cklog("scan", "-h").out)


def test_a_help_promises_no_exit_code_that_never_comes() -> None:
    """`explain` reads no run, and `diff` has no findings of its own."""
    assert list(exits_of("explain")) == [0, 2, 73]
    assert 3 not in exits_of("diff")


def test_a_taken_folder_is_refused_by_a_simulation_as_its_help_says() -> None:
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/taken", "w") as file:
            file.write("x")
        assert cklog("simulate", "nexmark", folder, "--rate", "1").code in exits_of("simulate nexmark")
