"""Run the `cklog` program in this process, as its entry point does.

The program switches Python's garbage collector off, since its process ends with the answer. This process goes on: left
off, everything that tests make in cycles stays, Hypothesis' examples above all, and a worker grows by gigabytes.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from cklog.commands.app import main
from tests.conftest import REPOSITORY

_PROGRAM = [sys.executable, "-c", "import sys; sys.argv = ['cklog']; from cklog.commands import main; main()"]


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


def cklog(*args: str | Path) -> Ended:
    """`cklog ARGS…` from the current folder."""
    out, err = io.StringIO(), io.StringIO()
    before, collects = sys.argv, gc.isenabled()
    sys.argv = ["cklog", *map(str, args)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
            main()
    finally:
        sys.argv = before
        if collects:
            gc.enable()
    code = ended.value.code
    return Ended(code if isinstance(code, int) else 0 if code is None else 1, out.getvalue(), err.getvalue())


def hide_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be no Java, and no session that other tests of this process have started."""
    monkeypatch.setenv("JAVA_HOME", "/no/such/java")
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)


def asked(**environment: str) -> subprocess.CompletedProcess[str]:
    """What `cklog`, in a process of its own, tells a shell that asks by variables what to complete."""
    environment = {**os.environ, "CKLOG_PATH": "", **environment}
    return subprocess.run(_PROGRAM, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
