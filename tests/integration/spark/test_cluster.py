"""Clusters whose workers are on other hosts: two network namespaces, one for the driver, one for master and worker."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

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
    assert code == 2
    assert "no executor took a task within 20 s" in err
    assert "spark.driver.host" in err
