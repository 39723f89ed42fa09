"""A Spark session in a process of its own, that restarts queries for a campaign; it is started again if it dies."""

from __future__ import annotations

import json
import selectors
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.live.spark.ask import ROOT, environment

_WAIT_S = 300


class Worker:
    """Requests to one Spark session."""

    def __init__(self) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="cklog-live-")
        self._process: subprocess.Popen[str] | None = None
        self.version = ""

    def _start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.live.spark.engine", "serve", self._scratch.name]
        with (Path(self._scratch.name) / "log").open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment(),
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self._process = process
        self.version = json.loads(self._line(process))["version"]
        return process

    @staticmethod
    def _line(process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        with selectors.DefaultSelector() as ready:
            ready.register(process.stdout, selectors.EVENT_READ)
            return process.stdout.readline() if ready.select(_WAIT_S) else ""

    def open(self) -> str:
        """Start the session, and return the version of Spark."""
        if self._process is None:
            self._start()
        return self.version

    def ask(self, do: str, home: Path, kind: str) -> dict[str, Any]:
        """Return the answer to a request; a session that dies of it has failed."""
        process = self._process or self._start()
        assert process.stdin is not None
        process.stdin.write(json.dumps({"do": do, "home": str(home), "kind": kind}) + "\n")
        process.stdin.flush()
        line = self._line(process)
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        self.close()
        return {"failed": "Spark's process died, or did not answer", "batches": [], "rows": []}

    def close(self) -> None:
        """End the session."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
