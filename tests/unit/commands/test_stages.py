"""The bar and the lines of -v: there while an answer takes long, gone when it is there, and never in anybody's way."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from cklog.commands.terminal.bar import Bar
from cklog.progress import Stage
from tests.conftest import REPOSITORY, SAMPLES
from tests.program import cklog
from tests.screen import SLOW, UNTIL_SHOWN, program, screen, watched

SAMPLE = "sample_logs/uncoordinated-join"
ASK = ["recovery-line", SAMPLE, "--explain", "--json", "--split-size", "1KiB"]
ANSWER = (SAMPLES / "uncoordinated-join" / "expected.json").read_bytes()
LONG = SLOW.format(seconds=1.5)
"""With it each of the two scans of the sample takes over a second."""

FRAME = b"\r\x1b[2K"


def frames(drawn: bytes) -> list[str]:
    """What the bar showed, without colors."""
    return [re.sub("\x1b\\[[0-9;]*m", "", frame) for frame in drawn.decode().split(FRAME.decode()) if frame.strip()]


@pytest.mark.parametrize("options", [[], ["--no-color"]])
def test_a_long_scan_shows_a_bar_that_is_gone_at_the_end(options: list[str]) -> None:
    shown = watched([*ASK, *options], UNTIL_SHOWN)
    assert (shown.code, shown.out) == (0, ANSWER)
    size = sum(path.stat().st_size for path in (SAMPLES / "uncoordinated-join" / "channels").glob("*.jsonl"))
    scanned = [frame for frame in frames(shown.drawn) if frame.startswith("scanning channels")]
    assert any(f"/{size / 1000:.1f} kB" in frame for frame in scanned)
    assert screen(shown.drawn) == [""]
    assert b"\x1b[?25l" not in shown.drawn
    assert (b"\x1b[3" in shown.drawn) == (not options)


def test_on_one_terminal_the_answer_is_all_that_stays() -> None:
    shown = watched(ASK, UNTIL_SHOWN, answer_too=True)
    assert b"scanning" in shown.drawn
    lines = "\n".join(line.rstrip() for line in screen(shown.drawn, 10_000))
    assert lines == ANSWER.decode()


@pytest.mark.quarter
@pytest.mark.parametrize("columns", [12, 40, 200])
def test_the_bar_keeps_to_one_line(columns: int) -> None:
    shown = watched(ASK, UNTIL_SHOWN, columns=columns)
    assert frames(shown.drawn)
    assert screen(shown.drawn, columns) == [""]


@pytest.mark.quarter
@pytest.mark.parametrize(
    ("options", "environment"), [(["-q"], {}), (["-q", "-v"], {}), ([], {"TERM": "dumb"}), ([], {"TERM": ""})]
)
def test_who_wants_no_bar_or_cannot_show_it_gets_none(options: list[str], environment: dict[str, str]) -> None:
    shown = watched([*ASK, *options], LONG, environment=environment)
    assert shown == (0, b"", ANSWER)


def test_an_answer_that_comes_soon_shows_nothing() -> None:
    patient = "import cklog.commands.terminal.stages as stages\nstages._PATIENCE_SECONDS = 600\n"
    assert watched(ASK, patient) == (0, b"", ANSWER)


def test_nothing_is_drawn_and_the_bar_not_loaded_where_stderr_is_a_pipe() -> None:
    """What draws is a module of its own; Rich itself may be loaded by an older typer."""
    bar = "cklog.commands.terminal.bar"
    loaded = (
        f"\nimport atexit, os, sys\natexit.register(lambda: os.write(1, b'bar' if '{bar}' in sys.modules else b''))"
    )
    told = subprocess.run(program(ASK, LONG + loaded), cwd=REPOSITORY, capture_output=True, check=True)
    assert (told.stderr, told.stdout) == (b"", ANSWER)


IN_ONE_CALL = """
import signal, time
import cklog.engine.local as local
def stuck(scan, splits):
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # as in a call that no signal ends: a thread is woken
    time.sleep(600)
local.tasks_of = lambda splits: [tuple(splits)]  # one task is done in the main thread
local.run_splits = stuck
"""


@pytest.mark.parametrize("work", [SLOW.format(seconds=600), IN_ONE_CALL])
def test_ctrl_c_leaves_the_terminal_as_it_was(work: str) -> None:
    """In the midst of a task that goes on, and of a call in which nothing can be unwound."""
    shown = watched(ASK, work, interrupt_at=b"scanning")
    assert (shown.code, shown.out) == (130, b"")
    assert screen(shown.drawn) == [""]
    assert b"\x1b[?25l" not in shown.drawn


def test_verbose_tells_every_stage_where_stderr_is_no_terminal() -> None:
    ended = cklog(*ASK, "-v")
    assert ended.out == ANSWER.decode()
    told = re.findall(r"^(.+?)(?:: (.+))? (\d+\.\d) s$", ended.err, re.MULTILINE)
    stages = {what: said for what, said, _ in told}
    for table in ("checkpoints", "channels"):
        sizes = [path.stat().st_size for path in (REPOSITORY / SAMPLE / table).glob("*.jsonl")]
        splits = sum(-(-size // 1024) for size in sizes)
        said = f"{sum(sizes):,} B" if sum(sizes) < 10_000 else f"{sum(sizes) / 1000:.1f} kB"
        assert stages[f"scanning {table}"] == f"{splits} splits, {said} on local engine,"
    assert list(stages)[-1] == "answering"


def test_verbose_on_a_terminal_has_the_lines_and_the_bar() -> None:
    shown = watched([*ASK, "-v"], UNTIL_SHOWN)
    assert shown.out == ANSWER
    lines = screen(shown.drawn)
    assert any(line.startswith("scanning channels: ") for line in lines)
    assert not any("━" in line for line in lines)
    assert "━" in shown.drawn.decode()


def test_names_from_the_input_do_nothing_to_the_terminal(tmp_path: Path) -> None:
    hostile = "listing s3://a\x1b[2Jb\nc [red]d[/red] ?secret_key=x"
    read, write = os.pipe()
    bar = Bar(write, False)
    bar.show(Stage(hostile, "files", None))
    bar.close()
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        drawn = pipe.read()
    assert screen(drawn) == [""]
    assert "[red]d" in drawn.decode()
    assert "secret_key=x" not in drawn.decode()
    folder = tmp_path / "a\x1b[2Jb"
    folder.mkdir()
    assert "\x1b" not in cklog("inspect", folder, "-v").err
