"""A cluster of Spark's own standalone master and workers, in the network that a test wants them in."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

PATIENCE_SECONDS = 300
"""After which a test gives up: what is told by then would have been told in seconds."""

_DRIVER, _CLUSTER = "10.213.77.1", "10.213.77.2"
"""The two ends of the cable. Nobody else sees them."""


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


@contextmanager
def ended_after(
    command: list[str], log: Path, env: dict[str, str] | None = None, cwd: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs meanwhile, and what it prints in a file."""
    with log.open("wb") as file:
        process = subprocess.Popen(command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_for(said: str, log: Path, process: subprocess.Popen[bytes]) -> re.Match[str]:
    """Wait until a log says it."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found = re.search(said, log.read_text(encoding="utf-8", errors="replace"))
        if found:
            return found
        assert process.poll() is None, log.read_text(encoding="utf-8", errors="replace")
        time.sleep(0.2)
    raise AssertionError(f"{said} is not said: {log.read_text(encoding='utf-8', errors='replace')}")


@contextmanager
def cluster(
    folder: Path,
    workers: int = 1,
    host: str = "127.0.0.1",
    into: tuple[str, ...] = (),
    started: list[subprocess.Popen[bytes]] | None = None,
) -> Iterator[str]:
    """A master and so many workers of one core; yields the master's URL.

    `into` is what their commands begin with; `started` gets the master, then the workers.
    """
    import pyspark

    home = os.path.dirname(pyspark.__file__)
    scratch = folder / "scratch"
    scratch.mkdir()
    env = {
        **os.environ,
        "SPARK_HOME": home,
        "SPARK_LOCAL_IP": host,
        "SPARK_LOCAL_DIRS": str(scratch),
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_NO_DAEMONIZE": "1",
    }
    start = [*into, f"{home}/bin/spark-class"]
    with ExitStack() as held:
        where = ["--host", host, "--port", "0", "--webui-port", "0"]
        log = folder / "master.log"
        master = held.enter_context(ended_after([*start, "org.apache.spark.deploy.master.Master", *where], log, env))
        url = wait_for(r"Starting Spark master at (spark://\S+)", log, master)[1]
        wait_for("New state: ALIVE", log, master)
        if started is not None:
            started.append(master)
        for number in range(workers):
            log = folder / f"worker-{number}.log"
            room = ["--cores", "1", "--memory", "1g", "--host", host, "--webui-port", "0", url]
            worker = held.enter_context(ended_after([*start, "org.apache.spark.deploy.worker.Worker", *room], log, env))
            wait_for("Successfully registered with master", log, worker)
            if started is not None:
                started.append(worker)
        yield url


@contextmanager
def connect_server(
    folder: Path,
    python: object = sys.executable,
    path: str = "",
    started: list[subprocess.Popen[bytes]] | None = None,
) -> Iterator[str]:
    """A Spark Connect server with two local cores, whose workers run a Python; yields its URL.

    `path` is where they find modules; `started` gets the server.
    """
    import pyspark

    home = os.path.dirname(pyspark.__file__)
    scratch = folder / "scratch"
    scratch.mkdir()
    port = free_port()
    env = {**os.environ, "SPARK_HOME": home, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": str(scratch)}
    env |= {"PYSPARK_PYTHON": str(python), "PYTHONPATH": os.pathsep.join(filter(None, [os.path.dirname(home), path]))}
    settings = {"spark.master": "local[2]", "spark.ui.enabled": "false", "spark.connect.grpc.binding.port": str(port)}
    settings |= {
        "spark.sql.warehouse.dir": str(scratch),
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={scratch}",
    }
    words = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    log = folder / "connect.log"
    command = [f"{home}/bin/spark-submit", *words, "--class", server, "spark-internal"]
    with ended_after(command, log, env, folder) as process:
        wait_for("Spark Connect server started", log, process)
        if started is not None:
            started.append(process)
        yield f"sc://127.0.0.1:{port}"


@dataclass(frozen=True, slots=True)
class Networks:
    """Two networks joined by a cable; what a command begins with to run in each, and its address there."""

    driver: tuple[str, ...]
    cluster: tuple[str, ...]
    driver_address: str = _DRIVER
    cluster_address: str = _CLUSTER


@contextmanager
def two_networks(folder: Path) -> Iterator[Networks]:
    """Make network namespaces for a driver and for a cluster; they are gone with the processes that hold them."""
    if sys.platform != "linux" or any(shutil.which(tool) is None for tool in ("ip", "unshare", "nsenter")):
        pytest.skip("network namespaces need Linux, and ip, unshare and nsenter")
    own = ["--net"] if os.geteuid() == 0 else ["--user", "--map-root-user", "--net"]
    command = ["unshare", *own, "ip", "link", "add", "cable", "type", "veth"]
    able = subprocess.run(command, capture_output=True, check=False)
    if able.returncode:
        pytest.skip(f"network namespaces are not permitted here: {able.stderr.decode().strip()}")
    with ExitStack() as held:
        first = held.enter_context(ended_after(["unshare", *own, "sleep", "inf"], folder / "driver-net.log"))
        enter: tuple[str, ...] = ("nsenter", "--preserve-credentials", "--target", str(_asleep(first.pid)), own[-1])
        if os.geteuid() != 0:
            enter = (*enter, "--user")
        command = [*enter, "unshare", "--net", "sleep", "inf"]
        second = held.enter_context(ended_after(command, folder / "cluster-net.log"))
        other = (*enter[:3], str(_asleep(second.pid)), *enter[4:])
        for line in (
            f"ip link add name cable type veth peer name cable netns {second.pid}",
            f"ip addr add {_DRIVER}/30 dev cable",
            "ip link set lo up",
            "ip link set cable up",
        ):
            subprocess.run([*enter, *line.split()], check=True)
        for line in (f"ip addr add {_CLUSTER}/30 dev cable", "ip link set lo up", "ip link set cable up"):
            subprocess.run([*other, *line.split()], check=True)
        yield Networks(enter, other)


def _asleep(pid: int) -> int:
    """Wait until a process has become the `sleep` that it is to be, in its own network, and return its number."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() != "sleep" and time.monotonic() < deadline:
        time.sleep(0.01)
    return pid
