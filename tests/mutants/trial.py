"""A fault put into a copy of the tree, and the tests that mirror its room, run there."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType

from tests.conftest import REPOSITORY, SHARED
from tests.mutants.faults import Fault
from tests.mutants.rooms import tests

SECONDS = 600
"""A trial that takes longer is ended: a fault that makes a loop endless is noticed by anybody."""


_NOTHING = 5
"""pytest's exit code where there is no test."""


class Copy:
    """A copy of the tree, links and all, beside a link to the shared data."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="cklog-mutants-"))
        self.root = self.folder / "main"
        self._passing: set[str] = set()

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
        shutil.rmtree(self.folder, ignore_errors=True)

    def survives(self, room: str, fault: Fault) -> tuple[bool, str]:
        """Whether no test of a room notices a fault; and the test that does, which passes without it."""
        doctests = fault.path if fault.path.startswith("cklog/") else f"cklog/{fault.path}"
        file = self.root / fault.path
        whole = file.read_text()
        file.write_text(fault.text)
        try:
            failed = self._failing(doctests, *tests(room))
        finally:
            file.write_text(whole)
        if failed and failed not in self._passing:
            assert not self._failing(failed), f"{failed} fails without any fault"
            self._passing.add(failed)
        return not failed, failed

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
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
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
