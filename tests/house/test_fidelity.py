"""docs/fidelity.md and its companions: what their tables quote as shown by a command is answered by that command."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
import sys

import pytest

from tests.conftest import REPOSITORY
from tests.program import cklog

PAGES = sorted((REPOSITORY / "docs").glob("fidelity*.md"))
ROWS = [row for page in PAGES for row in page.read_text(encoding="utf-8").splitlines() if row.startswith("|")]
QUOTED = dict.fromkeys(quote for row in ROWS for quote in re.findall(r"`([^`]*)`", row))
OPEN = ("PATH", "FOLDER", "…")
"""A command with one of these stands for many."""

ELSEWHERE = ("cklog simulate cec --paper",)
"""Takes minutes, and is tested by tests/property/simulate already."""

COMPLETE = [
    quote
    for quote in QUOTED
    if quote.startswith("cklog ")
    and " " in quote[6:]
    and quote not in ELSEWHERE
    and not any(word in quote for word in OPEN)
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
    ("cklog simulate cyclic --no-log --workers 5", "11.1% and 31.2%", "32 (11.1%)"),
    ("cklog advise timing sample_logs/meteor-shower --period 5", "15.9%, raised, s_max 264 MB", "15.9%, raised to 20%"),
    ("cklog advise timing sample_logs/meteor-shower --period 5", "420.0 MB, for 545.0 MB", "own        420.0 "),
    ("cklog advise delta sample_logs/incremental --operator join", "39.3 MB of 96.0", "saved 39.3 MB"),
    (
        "cklog advise delta sample_logs/incremental --operator join --max-restore-time 0.3",
        "0.3 s 0.676 s",
        "0.676 s, more",
    ),
    ("cklog chain sample_logs/patent-store --operator figure --state data3", "in Checkpoint 2", " 3       2   base "),
    (
        "cklog simulate odysseus --no-log --recovery gap --period 1",
        "gap: 90000 missing, 59999 wrong",
        "     90000   59999         0\n",
    ),
    (
        "cklog simulate odysseus --no-log --recovery gap",
        "9,000 missing, 5,999 wrong",
        "      9000    5999         0\n",
    ),
    (
        "cklog simulate odysseus --no-log --recovery rollback",
        "3,000 doubled",
        "         0       0      3000\n",
    ),
    (
        "cklog simulate nexmark --no-log --query q3 --protocol coor --hot-items 10 --orders-first --failure-at 90",
        "26 ms, for 24 ms without hot items",
        "latency, median                                 25.75",
    ),
)
"""What a row says, and where the command's output has it."""


@pytest.mark.quarter
@pytest.mark.parametrize(("command", "said", "shown"), SAYS, ids=[said for _, said, _ in SAYS])
def test_what_a_row_says_is_what_its_command_prints(
    command: str, said: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(REPOSITORY)
    assert [row for row in ROWS if said in row and (f"`{command}`" in row or "--sweep" in command)]
    ended = cklog(*shlex.split(command)[1:])
    assert shown in ended.out + ended.err


FIGURES_SAY = (
    ("fidelity_meteor", "preservation", "28066 B against 15824 B", "28066 B | 110 messages, 15824 B | 1.77 |"),
    (
        "fidelity_meteor",
        "preservation",
        "178 messages against 91",
        "| raw-events | 178 messages, 31724 B | 91 messages",
    ),
    ("fidelity_checkmate", "rounds", "240 400 360 240 … | the same; 270 450 360 270", "| Q1 | 240 | 270 | 240 |"),
    ("fidelity_checkmate", "rounds", "240 400 320 240 at 10 s", "| Q8 | 360 | 360 | 320 |"),
    ("fidelity_checkmate", "failure", "9.5, 10.7, 7.8 and 9.4", "| 5 | unc | 1.4% | 9.5 |"),
    ("fidelity_checkmate", "failure", "9.5, 10.7, 7.8 and 9.4", "| 10 | unc | 1.4% | 10.7 |"),
    ("fidelity_checkmate", "failure", "9.5, 10.7, 7.8 and 9.4", "| 5 | cic-hmnr | 1.7% | 7.8 |"),
    ("fidelity_checkmate", "failure", "9.5, 10.7, 7.8 and 9.4", "| 10 | cic-hmnr | 1.6% | 9.4 |"),
    ("fidelity_checkmate", "failure", "at 78 s there would be 15.6", "15.6 at 78 s"),
    ("fidelity_checkmate", "8", "28, 23 and 22 times", "| 28 |"),
    ("fidelity_checkmate", "8", "28, 23 and 22 times", "| 23 |"),
    ("fidelity_checkmate", "8", "28, 23 and 22 times", "| 22 |"),
    ("fidelity_checkmate", "load", "111 to 128% of its time", "| Q3 | 80% | 80% | 111% |"),
    ("fidelity_checkmate", "load", "111 to 128% of its time", "| Q12 | 80% | 80% | 128% |"),
    ("fidelity_meteor", "table1", "7640, 318", " 318 |"),
    (
        "fidelity_meteor",
        "table1",
        "5.3 failures of a node a year",
        "| failures of a node in a year, middle of the ranges | | 5.3 |",
    ),
    ("fidelity_meteor", "table1", "0.67 of a rack", "| among them, failures of its rack | | 0.67 |"),
    ("fidelity_meteor", "bytes", "100% = 1 − 0 / 150 MB", "| TMI, period 600 s | 100% | 100% | 100% |"),
    ("fidelity_meteor", "bytes", "57% with three", "| TMI, period 200 s | 100% | 100% | 57% |"),
    (
        "fidelity_meteor",
        "bytes",
        "80% = 1 − 200 / 1000 MB; by the method 82%",
        "| SignalGuru, period 200 s | 80% | 80% | 82% |",
    ),
    ("fidelity_meteor", "bytes", "| about 50% | 75% |", "| BCP, period 200 s | 50% | 75% |"),
    (
        "fidelity_odysseus",
        "marks",
        "wrong results are then called trustworthy",
        "wrong | trustworthy | untrustworthy |",
    ),
)
"""Script, its part, what a row says, and where the part's output has it."""

SLOW_FIGURES_SAY = (
    (
        "fidelity_checkmate",
        "4",
        "1.4 to 1.5%; 0.8 to 0.9%",
        "| 5 | unc | keeps sources | 20 | 48 s | 1.4% | 366 | 47.0%",
    ),
    ("fidelity_checkmate", "4", "64.2% rolled past", "| 725 | 64.2% | 43.9% | 1.5% |"),
    (
        "fidelity_checkmate",
        "4",
        "1.4 to 1.5%; 0.8 to 0.9%",
        "| 10 | cic-hmnr | keeps sources | 20 | 78 s | 1.6% | 1185 |",
    ),
    ("fidelity_checkmate", "12", "120 to 282 times", "| Q12 | in turn | 282 | 256.2 |"),
    ("fidelity_checkmate", "12", "108 to 256 times", "| Q3 | in turn | 120 | 108.1 |"),
    ("fidelity_checkmate", "12", "1.0 to 1.1 times if orders come first", "| Q3 | first | 117 | 1.1 |"),
)
"""The same, of parts that take minutes."""


@pytest.mark.quarter
@pytest.mark.parametrize(
    ("script", "part", "said", "shown"),
    [*FIGURES_SAY, *(pytest.param(*one, marks=pytest.mark.slow) for one in SLOW_FIGURES_SAY)],
)
def test_what_a_row_says_is_what_its_script_prints(
    script: str, part: str, said: str, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [row for row in ROWS if said in row and f"`figures {part}`" in row]
    monkeypatch.setattr(sys, "argv", [script, part])
    importlib.import_module(f"benchmarks.{script}").main()
    assert shown in capsys.readouterr().out


def test_every_status_is_defined_on_the_page() -> None:
    """The first word or two of a status; rows that compare with no number have none."""
    text = (REPOSITORY / "docs" / "fidelity.md").read_text(encoding="utf-8")
    defined = re.findall(r"(?m)^\| (\w[\w ]*) \|", text.split("## ")[0])[1:]
    assert len(defined) == 7
    column = None
    for page in PAGES:
        for line in page.read_text(encoding="utf-8").splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
            if not cells or "status" in cells:
                column = cells.index("status") if "status" in cells[1:] else None
            elif column is not None and cells[column] not in ("", "below") and set(cells[column]) != {"-"}:
                assert cells[column].startswith(tuple(defined)), line


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
    for section in "".join(page.read_text(encoding="utf-8") for page in PAGES).split("\n## ")[1:]:
        script = re.search(r"`figures` is `python ([\w/.]+)`", section)
        if not script:
            continue
        asked = {part for words in re.findall(r"`figures ([^`]+)`", section) for part in words.split()}
        assert asked <= parts_of(script[1])
        found += len(asked)
    assert found > 5
