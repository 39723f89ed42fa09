"""Clusters whose workers are on other hosts: two network namespaces, one for the driver, one for master and worker."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.integration.spark.cluster import PATIENCE_SECONDS, Networks, cluster, two_networks

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.usefixtures("spark")]

SAMPLE = "sample_logs/uncoordinated-join"


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Networks, str]]:
    """A cluster on another host than the driver, and its master's URL."""
    folder = tmp_path_factory.mktemp("cluster")
    with two_networks(folder) as networks, cluster(folder, 1, networks.cluster_address, networks.cluster) as url:
        yield networks, url


def asked(far: tuple[Networks, str], *options: str, env: dict[str, str] | None = None) -> tuple[int, str, str]:
    """Ask for a line of the sample in the driver's network."""
    networks, url = far
    command = [*networks.driver, sys.executable, "-m", "cklog", "recovery-line", SAMPLE, "--explain", "--json"]
    ended = subprocess.run(
        [*command, "--engine", "spark", "--master", url, *options],
        cwd=REPOSITORY,
        env={**os.environ, "SPARK_LOCAL_IP": networks.driver_address, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    return ended.returncode, ended.stdout, ended.stderr


def test_workers_on_another_host_give_the_same_bytes(far: tuple[Networks, str]) -> None:
    code, out, err = asked(far)
    assert (code, err) == (0, "")
    assert out == (REPOSITORY / SAMPLE / "expected.json").read_text(encoding="utf-8")


def test_a_driver_on_a_loopback_address_is_not_found_and_that_is_told(far: tuple[Networks, str]) -> None:
    """What the test above would be worth if the two networks were one."""
    at = "127.0.0.1"
    bound = ["--spark-conf", f"spark.driver.host={at}", "--spark-conf", f"spark.driver.bindAddress={at}"]
    code, _, err = asked(far, *bound, "--engine-timeout", "20")
    assert code == 69
    assert "no executor took a task within 20 s" in err
    assert "spark.driver.host" in err


FLAGS = "spark.executor.defaultJavaOptions"
TELL_FLAGS = f"""
import sys
from cklog.engine.spark_session import SparkOptions, StartedSession
started = StartedSession(SparkOptions(master=sys.argv[1], conf=tuple(tuple(one.split("=", 1)) for one in sys.argv[2:])))
print(started.session.conf.get("{FLAGS}"))
started.close()
"""


def test_flags_that_a_cluster_gives_its_executors_stand_behind_ours(tmp_path: Path) -> None:
    """So they win where both say something; and what `--spark-conf` says is all that is said."""
    defaults = tmp_path / "conf"
    defaults.mkdir()
    (defaults / "spark-defaults.conf").write_text(f"{FLAGS} -Dtheirs=1 -XX:TieredStopAtLevel=4\n")

    def told(url: str, conf_dir: Path, *options: str) -> str:
        ended = subprocess.run(
            [sys.executable, "-c", TELL_FLAGS, url, *options],
            cwd=REPOSITORY,
            env={**os.environ, "SPARK_CONF_DIR": str(conf_dir)},
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE_SECONDS,
        )
        return ended.stdout.strip()

    with cluster(tmp_path) as url:
        assert told(url, tmp_path / "none") == "-XX:TieredStopAtLevel=1"
        assert told(url, defaults) == "-XX:TieredStopAtLevel=1 -Dtheirs=1 -XX:TieredStopAtLevel=4"
        assert told(url, defaults, f"{FLAGS}=-Dmine=1") == "-Dmine=1"
