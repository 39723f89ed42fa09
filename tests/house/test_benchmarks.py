"""The page of speed and the scripts that write it have the same tables."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.data import Data
from benchmarks.page import blocks, with_table
from benchmarks.registry import Room, Table, tables
from benchmarks.tables.scaling import slope
from benchmarks.timing import Command, Cost, Runs, alternating, measured
from tests.conftest import REPOSITORY

PAGE = REPOSITORY / "docs" / "speed.md"
TABLES = tables()


def test_every_table_of_the_page_is_written_by_one_script_and_every_script_has_its_place() -> None:
    assert [name for name, _ in blocks(PAGE.read_text(encoding="utf-8"))] == list(TABLES)


def test_no_table_of_the_page_was_typed() -> None:
    """Outside of what scripts write, no line of the page is a row."""
    prose = PAGE.read_text(encoding="utf-8")
    for name, _ in blocks(prose):
        prose = with_table(prose, name, "")
    assert [line for line in prose.splitlines() if line.startswith("|")] == []


def test_what_a_script_wrote_has_its_columns() -> None:
    for name, content in blocks(PAGE.read_text(encoding="utf-8")):
        if "*Measured 2" in content:
            assert content.startswith(f"| {' | '.join(TABLES[name].columns)} |\n"), name


def test_every_module_of_tables_is_run() -> None:
    modules = {path.stem for path in (REPOSITORY / "benchmarks" / "tables").glob("*.py")} - {"__init__"}
    assert modules == {table.rows.__module__.rpartition(".")[2] for table in TABLES.values()}


@pytest.mark.parametrize("name", TABLES)
def test_every_table_has_sizes_of_either_kind(name: str) -> None:
    table = TABLES[name]
    assert table.quick
    assert table.full
    assert set(table.largest).isdisjoint(table.full)


def test_a_row_of_another_width_is_refused() -> None:
    table = Table[int](name="two", columns=("a", "b"), rows=lambda room, sizes: iter(()), quick=(1,), full=(1,))
    assert table.markdown([("1", "2")]) == "| a | b |\n|---|---|\n| 1 | 2 |\n"
    with pytest.raises(ValueError, match="2 columns"):
        table.markdown([("1",)])


BURN = "import time\nwhile time.process_time() < {}: pass"
LEFT = f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-c", {BURN.format(0.4)!r}], start_new_session=True)
"""


def test_cpu_of_children_counts_that_outlive_the_command() -> None:
    """As a JVM outlives the Python which began it: nobody in the tree waits for this child."""
    cost = measured(Command("left", (sys.executable, "-c", LEFT)))
    assert cost.cpu >= 0.4
    assert cost.wall < cost.cpu + 60


def test_peak_is_that_of_the_largest_process_and_not_of_who_measures() -> None:
    held = bytearray(300 << 20)
    small, large = (
        measured(Command("held", (sys.executable, "-c", f"x = bytearray({size} << 20)"))) for size in (1, 100)
    )
    assert small.peak < 90 < large.peak
    assert len(held) >> 20 > large.peak


def test_a_command_that_fails_is_no_measure() -> None:
    with pytest.raises(RuntimeError, match=r"exit 7[\s\S]*no luck"):
        measured(Command("fails", (sys.executable, "-c", "import sys; print('no luck', file=sys.stderr); sys.exit(7)")))


def test_who_goes_first_alternates(tmp_path: Path) -> None:
    log = tmp_path / "log"
    commands = [Command(name, (sys.executable, "-c", f"open({str(log)!r}, 'a').write({name!r})")) for name in "ab"]
    runs = alternating(commands, 3, warm=False)
    assert log.read_text() == "abbaab"
    assert [len(costs) for costs in runs.costs.values()] == [3, 3]


def test_a_ratio_is_the_median_of_the_pairs_not_of_the_sums() -> None:
    """A pair on a busy machine is slow for both."""
    own, peer = ([Cost(0, cpu, 0) for cpu in row] for row in ((1, 30, 2), (2, 60, 1)))
    assert Runs({"own": own, "peer": peer}).ratio("own", "peer") == 0.5


def test_answers_that_differ_are_not_compared() -> None:
    with pytest.raises(ValueError, match="not the same answer"):
        Runs({"a": [Cost(1, 1, 1, {"count": 4.0})], "b": [Cost(1, 1, 1, {"count": 5.0})]}).count()


def test_an_input_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    data = Data(tmp_path)

    def broken(folder: Path) -> None:
        folder.mkdir()
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        data.made("input", broken)
    assert not (tmp_path / "input").exists()
    made = data.made("input", lambda folder: folder.mkdir())
    assert Room(data, 1).data.made("input", broken) == made


def test_the_exponent_is_that_of_the_power_law() -> None:
    assert slope([10**k for k in range(4, 9)], [3e-6 * 10 ** (1.5 * k) for k in range(4, 9)]) == pytest.approx(1.5)


@pytest.mark.slow
def test_one_table_runs_and_is_written_and_nothing_else_of_the_page_changes(tmp_path: Path) -> None:
    page = tmp_path / "speed.md"
    shutil.copy(PAGE, page)
    words = ["--quick", "--tables", "cold", "--data", str(tmp_path / "data"), "--page", str(page)]
    subprocess.run([sys.executable, REPOSITORY / "benchmarks" / "run.py", *words], check=True)
    before, after = (dict(blocks(path.read_text(encoding="utf-8"))) for path in (PAGE, page))
    cold = after["cold"]
    assert cold.count("\n| `") == 4
    assert "quick sizes" in cold
    assert after | {"cold": before["cold"]} == before
