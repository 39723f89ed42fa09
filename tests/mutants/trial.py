"""Faults put into a copy of the tree, and the tests that mirror their rooms, run there (`warm`)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.conftest import REPOSITORY, SHARED
from tests.mutants.faults import Fault

SECONDS = 600
"""A trial that takes longer is ended: a fault that makes a loop endless is noticed by anybody."""


_ENVIRONMENT = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}

_NOTHING = 5
"""pytest's exit code where there is no test."""


class Copy:
    """A copy of the tree, links and all, beside a link to the shared data."""

    def __init__(self, quick: bool) -> None:
        self._quick = quick
        self.folder = Path(tempfile.mkdtemp(prefix="cklog-mutants-"))
        self.root = self.folder / "main"
        self._passing: set[str] = set()
        self._room = ""
        self._server: subprocess.Popen[str] | None = None

    def __enter__(self) -> Copy:
        shutil.copytree(
            REPOSITORY, self.root, symlinks=True, ignore=shutil.ignore_patterns(".git", "__pycache__", ".*cache")
        )
        if SHARED.is_dir():
            (self.folder / "shared").symlink_to(SHARED.parent)
        where = [sys.executable, "-c", "import cklog; print(cklog.__file__)"]
        found = subprocess.run(where, cwd=self.root, capture_output=True, text=True, check=True).stdout
        assert found.startswith(str(self.root)), f"the copy is not what is imported there: {found}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def survives(self, room: str, fault: Fault) -> tuple[bool, str]:
        """Whether no test of a room notices a fault; and the test that does, which passes without it."""
        self._serve(room)
        lines = [fault.line, fault.last]
        said = self._ask({"path": fault.path, "number": fault.number, "way": fault.way, "lines": lines})
        if "below" in said:
            failed = self._in_a_new_process(fault, said["below"])
            return not failed, failed
        if not said["failed"]:
            return True, f"{said['reached']} tests reach it"
        return False, f"{said['failed']} {said.get('how', '')}".strip()

    def _serve(self, room: str) -> None:
        """Have the tests of a room ready in a process of their own, one room at a time."""
        if self._room == room:
            return
        self.close()
        self._room = room
        command = [sys.executable, "-m", "tests.mutants.warm", room, *["quick"] * self._quick]
        self._server = subprocess.Popen(
            command, cwd=self.root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_ENVIRONMENT
        )
        said = self._heard()
        print(f"{room}: {said['tests']} tests, {said['took']} s; without any fault fail {said['failed']}", flush=True)

    def _ask(self, asked: dict[str, object]) -> dict[str, Any]:
        assert self._server is not None
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(asked) + "\n")
        self._server.stdin.flush()
        return self._heard()

    def _heard(self) -> dict[str, Any]:
        assert self._server is not None
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        assert line, f"the process with the tests of {self._room} ended"
        said: dict[str, Any] = json.loads(line)
        return said

    def close(self) -> None:
        """End the process of a room."""
        if self._server is not None:
            self._server.kill()
            self._server.wait()
        self._server = None

    def _in_a_new_process(self, fault: Fault, names: list[str]) -> str:
        """The first test that notices a fault in what runs as its module is imported."""
        file = self.root / fault.path
        whole = file.read_text()
        file.write_text(fault.text)
        try:
            failed = self._failing(*names) if names else ""
        finally:
            file.write_text(whole)
        if failed and failed not in self._passing:
            assert not self._failing(failed), f"{failed} fails without any fault"
            self._passing.add(failed)
        return failed

    def _failing(self, *names: str) -> str:
        """The first test that fails, or "" if all pass; of an endless one the first name."""
        command = [sys.executable, "-m", "pytest", "-n0", "-x", "-q", "-p", "no:cacheprovider", "--no-header"]
        command += ["--hypothesis-seed=0", "-m", "not slow and not spark", *names]
        process = subprocess.Popen(
            command,
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env=_ENVIRONMENT,
        )
        try:
            said, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return names[0]
        if process.returncode in (0, _NOTHING):
            return ""
        lines = [line for line in said.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        failed = [line.partition(" ")[2].partition(" - ")[0] for line in lines]
        return failed[0] if failed else names[0]
