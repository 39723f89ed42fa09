"""Tables on narrow terminals: columns where they can be read, else records, with nothing lost."""

from __future__ import annotations

import re

import pytest

from cklog.render.formats import _fitting_table
from cklog.render.view import Section
from tests.conftest import SAMPLES
from tests.terminal import on_terminal

WIDE = Section(
    "Line",
    ("subtask", "checkpoint", "rolled", "uri"),
    (("a/0", 13, "no", "file:/srv/" + "x" * 90), ("b/0", 7, "-", "file:/srv/" + "y" * 90)),
)


def laid_out(section: Section, width: int) -> list[str]:
    from io import StringIO

    from rich.console import Console

    out = StringIO()
    Console(file=out, width=width, no_color=True).print(_fitting_table(section, width))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_rows_become_records_where_words_would_be_cut_to_shreds() -> None:
    assert laid_out(WIDE, 44) == [
        "a/0",
        "  checkpoint: 13; rolled: no;",
        "  uri:",
        "  file:/srv/" + "x" * 32,
        "  " + "x" * 42,
        "  " + "x" * 16,
        "b/0",
        "  checkpoint: 7;",
        "  uri:",
        "  file:/srv/" + "y" * 32,
        "  " + "y" * 42,
        "  " + "y" * 16,
    ]


def test_columns_stay_where_a_word_is_cut_twice_at_the_most() -> None:
    assert laid_out(WIDE, 80)[0].split() == ["subtask", "checkpoint", "rolled", "uri"]


def test_rows_become_records_where_columns_would_take_more_lines() -> None:
    rows = ("the whole", "0.073 to 0.0876 s", "0.073 to 12.8 s"), ("join/0", "0.061 to 0.0732 s", "0.073 to 6.4546 s")
    assert laid_out(Section("Time", ("of", "restore", "ready"), rows), 36) == [
        "the whole",
        "  restore: 0.073 to 0.0876 s;",
        "  ready: 0.073 to 12.8 s",
        "join/0",
        "  restore: 0.061 to 0.0732 s;",
        "  ready: 0.073 to 6.4546 s",
    ]


@pytest.mark.quarter
@pytest.mark.parametrize("columns", [30, 44, 60, 80])
@pytest.mark.parametrize("run", ["flink-orders", "kafka-broker", "spark-wordcount", "incremental"])
def test_no_line_is_wider_than_the_terminal_and_no_cell_is_lost(run: str, columns: int) -> None:
    narrow = on_terminal("inspect", SAMPLES / run, columns=columns).out
    wide = on_terminal("inspect", SAMPLES / run, columns=1000).out
    assert max(map(len, narrow.splitlines())) <= columns

    def letters(text: str) -> list[str]:
        cells = (re.split(r" {2,}|\s*$", line) for line in text.splitlines() if not set(line) <= {"─"})
        return sorted({re.sub(r"\s", "", cell) for line in cells for cell in line if len(cell) > 3})

    run_together = re.sub(r"[\s─]", "", narrow)
    numbers = [word for word in letters(wide) if re.fullmatch(r"\d+", word)]
    assert [number for number in numbers if number not in run_together] == []
