"""Ctrl-C or SIGTERM at any moment of any command: exit 130 or 143, in silence, and soon, not when the work is done."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.golden.cases import CASES, EXITS

PROGRAM = """
import os
from cklog.commands import main, interrupts

watch = interrupts._Interrupt.watch

def told(self):
    watch(self)
    os.write(2, b"watched\\n")

interrupts._Interrupt.watch = told
{first}
main()
"""
"""It says when it is ready for a Ctrl-C: before, what starts is Python itself."""

SOON = 60
"""Seconds that a busy machine may take to end a process; the work below would take far longer."""


def interrupted(words: list[str], after: float, first: str = "", sent: int = signal.SIGINT) -> tuple[int, bytes, bytes]:
    """Run a command and send a signal so many seconds after it is ready for one; return its exit code and output."""
    command = [sys.executable, "-c", PROGRAM.format(first=first), *words]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"watched\n"
        time.sleep(after)
        process.send_signal(sent)
        try:
            out, err = process.communicate(timeout=SOON)
        finally:
            process.kill()
    return process.returncode, out, err


SWALLOWED = """
import sys, time, cklog.commands as program
def run():
    while True:
        try:
            time.sleep(600)
        except BaseException:
            print("cklog: a bug", file=sys.stderr)
program._run = run
"""
THREADS = """
import time, cklog.commands as program
from concurrent.futures import ThreadPoolExecutor
def run():
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(time.sleep, [600] * 8))
program._run = run
"""
IN_ONE_CALL = """
import ctypes, cklog.commands as program
def run():
    libc = ctypes.CDLL(None)
    while True:
        libc.poll(None, 0, 600_000)  # lets go of the lock, and no exception ends it; it is begun again
program._run = run
"""
CLEANED = """
import os, time, cklog.commands as program
shown = os.dup(1)
def run():
    try:
        time.sleep(600)
    finally:
        os.write(shown, b"put away")
        os.write(1, b"not shown")
program._run = run
"""


@pytest.mark.quarter
@pytest.mark.parametrize("work", [SWALLOWED, THREADS, IN_ONE_CALL])
def test_work_that_goes_on_after_the_exception_is_ended(work: str) -> None:
    assert interrupted([], 0.3, work) == (130, b"", b"")
    assert interrupted([], 0.3, work, signal.SIGTERM) == (143, b"", b"")


def test_what_is_being_done_is_put_away_first() -> None:
    assert interrupted([], 0.3, CLEANED) == (130, b"put away", b"")
    assert interrupted([], 0.3, CLEANED, signal.SIGTERM) == (143, b"put away", b"")


def ends_well(words: list[str], after: float, whole: tuple[int, ...]) -> None:
    """The command ends with 130 in silence, or had answered in full before."""
    code, _, err = interrupted(words, after)
    assert code in (130, *whole), (words, after)
    if code == 130:
        assert err == b"", (words, after)
    assert b"Traceback" not in err
    assert b"a bug" not in err


@pytest.mark.parametrize("after", [0.01, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5])
def test_an_answer_is_interrupted_at_any_moment(after: float) -> None:
    ends_well(CASES["kafka-broker.txt"].split(), after, (3,))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_command_is_interrupted_on_every_sample(name: str) -> None:
    moments = random.Random(name)
    for _ in range(3):
        ends_well(CASES[name].split(), moments.uniform(0.005, 0.6), (EXITS.get(name, 0),))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose answer takes many seconds."""
    folder = tmp_path_factory.mktemp("large") / "run"
    make = ["simulate", "cec", str(folder), "--encoding", "jsonl.zst"]
    subprocess.run([sys.executable, "-m", "cklog", *make], check=True, capture_output=True)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("after", [0.1, 0.4, 0.8, 1.2, 1.8, 2.5])
def test_a_large_run_is_interrupted(large: Path, after: float) -> None:
    ends_well(["extent", "--operator", "agg1", str(large)], after, (0,))
