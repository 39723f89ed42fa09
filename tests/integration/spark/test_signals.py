"""SIGINT, SIGTERM and SIGKILL at any moment of a command on Spark: no process, no folder, no word is left."""

from __future__ import annotations

import importlib.util
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.usefixtures("spark")]

SAMPLE = "sample_logs/uncoordinated-join"
PATIENCE_SECONDS = 300
SOON_SECONDS = 30
"""A busy machine may take that long to end processes that were killed."""

EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -signal.SIGKILL}


class Watched:
    """A command whose temporary files all go to one folder, by which its processes are known, too."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.began = time.monotonic()
        command = [sys.executable, "-m", "cklog", "recovery-line", SAMPLE, "--explain", "--json", *options]
        env = {**os.environ, "TMPDIR": str(folder)}
        self.process = subprocess.Popen(
            command, cwd=REPOSITORY, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )

    def ended(self) -> tuple[int, bytes, bytes]:
        """Wait for its end."""
        try:
            out, err = self.process.communicate(timeout=PATIENCE_SECONDS)
        finally:
            self.process.kill()
        return self.process.returncode, out, err

    def processes(self) -> dict[int, str]:
        """Return the processes that it has started, and those have: their numbers and names."""
        found = {}
        for place in Path("/proc").glob("[0-9]*"):
            try:
                if f"TMPDIR={self.folder}".encode() in (place / "environ").read_bytes().split(b"\0"):
                    found[int(place.name)] = (place / "comm").read_text(encoding="utf-8").strip()
            except OSError:  # it has ended, or is somebody else's
                continue
        return found

    def left(self) -> tuple[dict[int, str], list[str]]:
        """Return the processes and files that are there a while after its end."""
        deadline = time.monotonic() + SOON_SECONDS
        while time.monotonic() < deadline and (self.processes() or [*self.folder.iterdir()]):
            time.sleep(0.1)
        return self.processes(), sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*"))


def options_of(mode: str) -> tuple[str, ...]:
    if mode == "classic":
        return ("--engine", "spark")
    missing = [name for name in ("grpc", "grpc_status", "zstandard") if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"Spark Connect needs {', '.join(missing)}, which the extra `connect` installs")
    return ("--engine", "spark", "--remote", "local[2]")


pytestmark.append(pytest.mark.skipif(sys.platform != "linux", reason="processes are told apart by /proc"))


@pytest.mark.parametrize(("mode", "moments"), [("classic", 20), ("connect", 6)])
def test_nothing_is_left_of_spark_whenever_a_signal_comes(mode: str, moments: int, tmp_path: Path) -> None:
    whole = Watched(tmp_path, *options_of(mode))
    code, answer, _ = whole.ended()
    assert code == 0
    assert [*tmp_path.iterdir()] == []
    assert "java" not in whole.processes().values()
    assert whole.left() == ({}, [])
    seconds = time.monotonic() - whole.began
    chosen = random.Random(17)
    for number in range(moments):
        after, sent = chosen.uniform(0.3, seconds), [*EXIT_CODES][number % 2 if mode == "classic" else number % 3]
        running = Watched(tmp_path, *options_of(mode))
        time.sleep(after)
        running.process.send_signal(sent)
        code, out, err = running.ended()
        java = [name for name in running.processes().values() if name == "java"]
        folders = [*tmp_path.iterdir()]
        told = (mode, number, sent, after, code, err.decode())
        assert code in (0, EXIT_CODES[sent]), told
        assert out == answer if code == 0 else out in (b"", answer), (*told, out)
        assert err == b"", told
        if sent != signal.SIGKILL:
            assert (java, folders) == ([], []), told
        assert running.left() == ({}, []), told
