"""Progress on Spark: splits are counted as they come back, in a session of this process and over Spark Connect."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("mode", ["classic", "connect"])
def test_splits_are_counted_as_they_come_back(mode: str, tmp_path: Path) -> None:
    """Each split is read only when all before it were counted, so that what is seen does not hang on time."""
    missing = [name for name in ("grpc", "grpc_status", "zstandard") if importlib.util.find_spec(name) is None]
    if mode == "connect" and missing:
        pytest.skip(f"Spark Connect needs {', '.join(missing)}, which the extra `connect` installs")
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-m", "tests.integration.spark.gates", mode, str(tmp_path)]
    told = subprocess.run(command, cwd=REPOSITORY, env=env, capture_output=True, text=True, check=True)
    assert told.stdout == "0 1 2 3 of 4\n"
