"""Masters and servers that are not there, say nothing, or have nobody to work: one line with the cause, in time."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

SAMPLE = "sample_logs/uncoordinated-join"
PATIENCE_SECONDS = 300
"""After which a test gives up: what is told by then would have been told in seconds."""


def asked(*options: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "cklog", "recovery-line", SAMPLE, *options]
    ended = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )
    return ended.returncode, ended.stdout, ended.stderr


@contextmanager
def listening() -> Iterator[int]:
    """A port that takes connections and says nothing."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(8)
        yield int(server.getsockname()[1])


def free_port() -> int:
    with listening() as port:
        return port


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
    import pyspark

    port = free_port()
    home = os.path.dirname(pyspark.__file__)
    command = [f"{home}/bin/spark-class", "org.apache.spark.deploy.master.Master"]
    env = {**os.environ, "SPARK_HOME": home, "SPARK_LOCAL_IP": "127.0.0.1"}
    with (tmp_path / "master.log").open("wb") as log:
        where = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(free_port())]
        master = subprocess.Popen([*command, *where], env=env, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while b"New state: ALIVE" not in (tmp_path / "master.log").read_bytes() and time.monotonic() < deadline:
            time.sleep(0.2)
        code, out, err = asked("--master", f"spark://127.0.0.1:{port}", "--engine-timeout", "30")
    finally:
        master.kill()
        master.wait()
    assert (code, out) == (2, "")
    assert err.startswith(
        f"cklog: spark://127.0.0.1:{port}: no executor took a task within 30 s\nhint: has the cluster"
    )
