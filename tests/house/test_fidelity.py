"""docs/fidelity.md and its companions: what their tables quote as shown by a command is answered by that command."""

from __future__ import annotations

import ast
import re
import shlex

import pytest

from tests.conftest import REPOSITORY
from tests.program import cklog

PAGES = sorted((REPOSITORY / "docs").glob("fidelity*.md"))
ROWS = [row for page in PAGES for row in page.read_text(encoding="utf-8").splitlines() if row.startswith("|")]
QUOTED = dict.fromkeys(quote for row in ROWS for quote in re.findall(r"`([^`]*)`", row))
OPEN = ("PATH", "FOLDER", "…")
"""A command with one of these stands for many."""

HELD = ("cklog simulate cec --paper",)
"""Takes minutes, and is held by tests/property/simulate already."""

COMPLETE = [
    quote
    for quote in QUOTED
    if quote.startswith("cklog ") and " " in quote[6:] and quote not in HELD and not any(word in quote for word in OPEN)
]
ANSWERED = (0, 3, 4, 5)
"""Exits of docs/json.md with an answer."""

REFUSED = {"cklog simulate cyclic --no-log --protocol coor": "deadlock"}
"""Where the paper's result is that it cannot be done: exit 2, and this word."""


def test_there_is_something_to_check() -> None:
    assert len(COMPLETE) > 20
    assert set(REFUSED) <= set(COMPLETE)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, marks=pytest.mark.slow) if command.startswith("cklog simulate") else command
        for command in COMPLETE
    ],
)
def test_a_command_of_the_tables_answers(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    ended = cklog(*shlex.split(command)[1:])
    if command in REFUSED:
        assert ended.code == 2
        assert REFUSED[command] in ended.err
    else:
        assert ended.code in ANSWERED
        assert ended.out


SAYS = (
    ("cklog rounds sample_logs/token-rounds --sweep node", "5.3 failures of a node", "  5.3\n"),
    ("cklog rounds sample_logs/token-rounds --sweep rack", "0.67 of a rack", "  0.67\n"),
    ("cklog rounds sample_logs/token-rounds", "47 to send again, all there", " 47    9400   yes"),
    ("cklog rounds sample_logs/token-rounds --failed-nodes n1,n2,n3,n4,n5", "186,000 of 186,000 bytes", " 186000 "),
    ("cklog rounds sample_logs/token-rounds-ap", "7 and 5 tuples, stored", " 5          0    1000   yes"),
    ("cklog advise timing sample_logs/meteor-shower --period 5", "15.9%, raised, s_max 264 MB", "15.9%, raised to 20%"),
    ("cklog advise delta sample_logs/incremental --operator join", "39.3 MB of 96.0", "saved 39.3 MB"),
    (
        "cklog advise delta sample_logs/incremental --operator join --max-restore-time 0.3",
        "0.3 s 0.676 s",
        "0.676 s, more",
    ),
    ("cklog chain sample_logs/patent-store --operator figure --state data3", "in Checkpoint 2", " 3       2   base "),
)
"""What a row says, and where the command's output has it."""


@pytest.mark.parametrize(("command", "said", "shown"), SAYS, ids=[said for _, said, _ in SAYS])
def test_what_a_row_says_is_what_its_command_prints(
    command: str, said: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(REPOSITORY)
    assert [row for row in ROWS if said in row and (f"`{command}`" in row or "--sweep" in command)]
    ended = cklog(*shlex.split(command)[1:])
    assert shown in ended.out + ended.err


@pytest.mark.parametrize("quote", [quote for quote in QUOTED if quote.startswith("python ")])
def test_a_script_of_the_tables_is_there(quote: str) -> None:
    named = re.findall(r"[\w/.]+\.py", quote)
    assert named
    assert [place for place in named if not (REPOSITORY / place).is_file()] == []


def parts_of(script: str) -> set[str]:
    """Return the parts that a script prints: the words that its docstring has in quotes."""
    text = ast.get_docstring(ast.parse((REPOSITORY / script).read_text(encoding="utf-8"))) or ""
    return set(re.findall(r"`(\w+)`", text))


def test_each_part_of_figures_is_one_of_its_script() -> None:
    """Under each heading `figures` is the script that is named below it."""
    found = 0
    for section in (REPOSITORY / "docs" / "fidelity.md").read_text(encoding="utf-8").split("\n## ")[1:]:
        script = re.search(r"`figures` is `python ([\w/.]+)`", section)
        if not script:
            continue
        asked = {part for words in re.findall(r"`figures ([^`]+)`", section) for part in words.split()}
        assert asked <= parts_of(script[1])
        found += len(asked)
    assert found > 5
