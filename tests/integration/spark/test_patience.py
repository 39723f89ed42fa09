"""Masters and servers that are not there, say nothing, or have nobody to work: one line with the cause, in time."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.integration.spark.cluster import PATIENCE_SECONDS, cluster, connect_server, free_port, listening

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
    code, out, err = asked("--engine", "spark", option, url)
    assert (code, out) == (69, "")
    assert err.startswith(f"cklog: {url}: Connection refused\nhint: ")


def test_a_server_that_says_nothing_is_given_up() -> None:
    """And the process ends: the client's own last words to the server are not waited for either."""
    if any(importlib.util.find_spec(name) is None for name in ("grpc", "grpc_status", "zstandard")):
        pytest.skip("Spark Connect needs grpc, grpc_status and zstandard, which the extra `connect` installs")
    with listening() as port:
        code, out, err = asked("--engine", "spark", "--remote", f"sc://127.0.0.1:{port}", "--engine-timeout", "2")
    assert (code, out) == (69, "")
    assert err == f"cklog: sc://127.0.0.1:{port}: nothing within 2 s\nhint: --engine-timeout waits longer\n"


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_cluster_without_workers_is_given_up(tmp_path: Path) -> None:
    with cluster(tmp_path, workers=0) as url:
        code, out, err = asked("--engine", "spark", "--master", url, "--engine-timeout", "30")
    assert (code, out) == (69, "")
    assert err.startswith(f"cklog: {url}: no executor took a task within 30 s\nhint: has the cluster")


def gated(url: str, folder: Path, harm: Callable[[], None]) -> str:
    """Have a scan begin whose splits never come, do harm to what reads them, and return the error."""
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-m", "tests.integration.spark.gates", url, str(folder)]
    with subprocess.Popen(command, cwd=REPOSITORY, env=env, stdout=subprocess.PIPE, text=True) as scan:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (folder / "begun").exists() and scan.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        assert (folder / "begun").exists()
        harm()
        try:
            return scan.communicate(timeout=PATIENCE_SECONDS)[0]
        finally:
            scan.kill()


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP])
def test_a_connect_server_that_goes_away_is_told(sent: signal.Signals, tmp_path: Path) -> None:
    if any(importlib.util.find_spec(name) is None for name in ("grpc", "grpc_status", "zstandard")):
        pytest.skip("Spark Connect needs grpc, grpc_status and zstandard, which the extra `connect` installs")
    started: list[subprocess.Popen[bytes]] = []
    with connect_server(tmp_path, path=str(REPOSITORY), started=started) as url:
        told = gated(url, tmp_path, lambda: started[0].send_signal(sent))
    if sent == signal.SIGKILL:
        assert told == f"{url}: the Connect server does not answer any more\n"
    else:
        assert told == f"{url}: no task has run for 15 s, and the job is not done\n"


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_cluster_that_loses_its_workers_is_given_up(tmp_path: Path) -> None:
    started: list[subprocess.Popen[bytes]] = []
    with cluster(tmp_path, started=started) as url:
        told = gated(url, tmp_path, started[1].kill)  # its executors see that, and end
    assert told == f"{url}: no task has run for 15 s, and the job is not done\n"


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_full_disk_is_told_by_its_name(tmp_path: Path) -> None:
    """Of where Spark's files go: a file system of two pages, both taken."""
    own = ["--mount"] if os.geteuid() == 0 else ["--user", "--map-root-user", "--mount"]
    place = tmp_path / "full"
    place.mkdir()
    mount = f"mount -t tmpfs -o size=8k none {place} && head -c 8192 /dev/zero > {place}/file"
    if shutil.which("unshare") is None or subprocess.run(["unshare", *own, "sh", "-c", mount], check=False).returncode:
        pytest.skip("a file system of one's own needs Linux, and mount namespaces that are permitted")
    command = [sys.executable, "-m", "cklog", "recovery-line", SAMPLE, "--engine", "spark"]
    ended = subprocess.run(
        ["unshare", *own, "sh", "-c", f'{mount} && exec "$@"', "sh", *command],
        cwd=REPOSITORY,
        env={**os.environ, "SPARK_LOCAL_DIRS": str(place)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert (ended.returncode, ended.stdout) == (69, "")
    assert ended.stderr == (
        "cklog: Spark did not start: java.io.IOException: No space left on device\nhint: -v shows Spark's log\n"
    )


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("spark.driver.memory=999999g", "Could not reserve enough space"),
        ("spark.submit.pyFiles=/no/such.zip", "File file:/no/such.zip does not exist"),
    ],
)
def test_a_spark_that_does_not_start_says_why(setting: str, why: str) -> None:
    code, out, err = asked("--engine", "spark", "--spark-conf", setting)
    assert (code, out) == (69, "")
    assert err.startswith("cklog: Spark did not start: ")
    assert why in err.splitlines()[0]
    assert err.splitlines()[1:] == ["hint: -v shows Spark's log"]
