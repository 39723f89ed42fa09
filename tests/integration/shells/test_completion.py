"""Completion in real shells on a terminal: a tabulator is typed behind half a word. `.ci/programs` installs them."""

from __future__ import annotations

import os
import pty
import select
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.program import asked

COMMANDS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
PATIENCE_SECONDS = 60.0


class Typed:
    """A shell that somebody types into."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._child, self._terminal = pty.fork()
        if self._child == 0:
            os.chdir(REPOSITORY)
            os.execvpe(command[0], command, environment)

    def type(self, keys: str) -> None:
        """Type keys."""
        os.write(self._terminal, keys.encode())

    def until(self, shown: str) -> str:
        """What comes on the screen until a text is there."""
        seen, end = b"", time.monotonic() + PATIENCE_SECONDS
        while shown.encode() not in seen:
            assert time.monotonic() < end, f"{shown!r} never came: {seen!r}"
            if select.select([self._terminal], [], [], 1)[0]:
                seen += os.read(self._terminal, 1 << 16)
        return seen.decode(errors="replace")

    def close(self) -> None:
        """Hang up."""
        os.close(self._terminal)
        os.waitpid(self._child, 0)


@pytest.fixture(params=list(COMMANDS))
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Typed]:
    """A shell that has read the script which `cklog --show-completion` prints in it."""
    name = request.param
    if shutil.which(name) is None:
        pytest.skip(f"no {name}: .ci/programs installs it")
    program = tmp_path / "cklog"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m cklog "$@"\n')
    program.chmod(0o755)
    (tmp_path / "script").write_text(asked(_CKLOG_COMPLETE=f"source_{name}").stdout)
    kept = {one: value for one, value in os.environ.items() if one not in ("CKLOG_PATH", "COLUMNS", "LINES")}
    paths = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(REPOSITORY), "HOME": str(tmp_path)}
    typed = Typed(COMMANDS[name], {**kept, **paths, "TERM": "xterm" if name == "fish" else "dumb"})
    first = "autoload -U compinit; compinit -u -D; " if name == "zsh" else ""
    typed.type(f"{first}source {tmp_path / 'script'}; echo rea''dy\n")  # what is echoed is not what is printed
    typed.until("ready\r\n")
    yield typed
    typed.close()


@pytest.mark.quarter
@pytest.mark.parametrize(
    ("line", "whole"),
    [
        ("cklog recovery-l", "cklog recovery-line"),
        ("cklog recovery-line --no-che", "cklog recovery-line --no-check-files"),
        ("cklog retention --format scr", "cklog retention --format script"),
        (
            "cklog chain sample_logs/patent-store --operator tot",
            "cklog chain sample_logs/patent-store --operator totals",
        ),
        ("cklog recovery-line sample_logs/domino-cy", "cklog recovery-line sample_logs/domino-cycle"),
    ],
)
def test_a_word_is_completed(shell: Typed, line: str, whole: str) -> None:
    shell.type(f"{line}\t")
    shell.until(whole.removeprefix(line))  # of what was typed nothing is looked for: shells draw it as they like
    shell.type("\x01echo 'the line is' \n")  # at the beginning of the line
    assert whole in shell.until(f"the line is {whole}")
