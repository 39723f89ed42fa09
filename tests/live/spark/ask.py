"""Ask the program cklog, as a user does, and do what it prints."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.live.spark.judge import Answer, answer_of
from tests.standins import run_script

ROOT = Path(__file__).resolve().parents[3]
_WAIT_S = 300


def environment() -> dict[str, str]:
    """Return the environment of programs that import from this repository."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}


@dataclass(frozen=True)
class Program:
    """The program cklog, by the words of its command."""

    words: tuple[str, ...]

    def __call__(self, *words: str | Path) -> tuple[int, str]:
        """Return how it ended, and its stdout."""
        command = [*self.words, *map(str, words)]
        ended = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=_WAIT_S, check=False)
        return ended.returncode, ended.stdout

    def line(self, path: Path, *options: str) -> tuple[Answer, str]:
        """Ask where the run below a path restarts; return the answer and what was printed."""
        code, text = self("recovery-line", path, "--json", *options)
        return answer_of(code, text), text

    def script(self, path: Path) -> str:
        """Return the script of its runbook, "" if there is none."""
        return self("runbook", path, "--format", "script")[1]


def paste(command: str, folder: Path) -> str:
    """Paste a command into a shell in the folder; return why it failed, "" if it did not."""
    ended = subprocess.run(["bash", "-e", "-c", command], cwd=folder, capture_output=True, text=True, check=False)
    return "" if ended.returncode == 0 else f"exit {ended.returncode}: {ended.stderr.strip()}"


def follow(script: str, work: Path, program: Sequence[str]) -> tuple[int, str, bool]:
    """Run a script with all its confirmations; return its exit code, its words, and whether it starts the query."""
    confirmed = {name: "yes" for name in re.findall(r"\$\{([A-Z]+)-\}", script) if name not in ("SAVE", "JOB")}
    ran = run_script(script, work, "query.py", cwd=work.parent, cklog=program, PYTHONPATH=str(ROOT), **confirmed)
    return ran.code, ran.err.strip()[-600:], any(call[0] == "spark-submit" for call in ran.calls)


def images(home: Path) -> dict[str, bytes]:
    """Return the bytes of every file below a folder."""
    return {str(path.relative_to(home)): path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()}


def changed(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    """Return the names of files that are not the same."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
