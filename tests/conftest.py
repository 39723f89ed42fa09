"""Fixtures for all tests: one Spark session for the run, and the shared data where it lies beside the tree."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from cklog.engine.scan import Engine

REPOSITORY = Path(__file__).parent.parent
SAMPLES = REPOSITORY / "sample_logs"
SHARED = REPOSITORY.parent / "shared" / "data"

pytest.register_assert_rewrite("tests.builders", "tests.reading", "tests.oracles", "tests.program")

settings.register_profile("cklog", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("cklog")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--refresh-golden", action="store_true", help="write the golden files instead of comparing")


def _why_no_spark() -> str:
    java = shutil.which("java")
    if java is None:
        return "no java on the PATH; Spark tests need Java 17 or newer"
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = told.partition('version "')[2].partition(".")[0].strip('"')
    return "" if version.isdigit() and int(version) >= 17 else f"Java {version} found; Spark needs 17 or newer"


@pytest.fixture(scope="session")
def spark() -> Iterator[Engine]:
    """The Spark engine on a local session, started once for all tests that ask for it."""
    reason = _why_no_spark()
    if reason:
        if os.environ.get("CKLOG_REQUIRE_SPARK"):
            pytest.fail(reason)
        pytest.skip(reason)
    from cklog.engine.spark import SparkEngine
    from cklog.engine.spark_session import SparkOptions

    engine = SparkEngine(SparkOptions(conf=(("spark.sql.shuffle.partitions", "2"),)))
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real files of real systems; they are not part of the repository."""
    if not SHARED.is_dir():
        pytest.skip("no shared/data beside the repository: tests on real files need it")
    return SHARED
