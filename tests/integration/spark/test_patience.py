"""Masters and servers that are not there, say nothing, or have nobody to work: one line with the cause, in time."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.integration.spark.cluster import PATIENCE_SECONDS, cluster, free_port, listening

SAMPLE = "sample_logs/uncoordinated-join"


def asked(*options: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "cklog", "recovery-line", SAMPLE, *options]
    ended = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize(("option", "scheme"), [("--master", "spark"), ("--remote", "sc")])
def test_where_nobody_listens_is_told_at_once(option: str, scheme: str) -> None:
    if scheme == "sc" and importlib.util.find_spec("grpc") is None:
        pytest.skip("Spark Connect needs grpc, which the extra `connect` installs")
    url = f"{scheme}://127.0.0.1:{free_port()}"
    code, out, err = asked(option, url)
    assert (code, out) == (2, "")
    assert err.startswith(f"cklog: {url}: Connection refused\nhint: ")


def test_a_server_that_says_nothing_is_given_up() -> None:
    """And the process ends: the client's own last words to the server are not waited for either."""
    if any(importlib.util.find_spec(name) is None for name in ("grpc", "grpc_status", "zstandard")):
        pytest.skip("Spark Connect needs grpc, grpc_status and zstandard, which the extra `connect` installs")
    with listening() as port:
        code, out, err = asked("--remote", f"sc://127.0.0.1:{port}", "--engine-timeout", "2")
    assert (code, out) == (2, "")
    assert err == f"cklog: sc://127.0.0.1:{port}: nothing within 2 s\nhint: --engine-timeout waits longer\n"


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_cluster_without_workers_is_given_up(tmp_path: Path) -> None:
    with cluster(tmp_path, workers=0) as url:
        code, out, err = asked("--master", url, "--engine-timeout", "30")
    assert (code, out) == (2, "")
    assert err.startswith(f"cklog: {url}: no executor took a task within 30 s\nhint: has the cluster")
