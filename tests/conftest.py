"""Fixtures for all tests: one Spark session for the run, and the shared data where it lies beside the tree."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

from cklog.engine.scan import Engine

REPOSITORY = Path(__file__).parent.parent
SAMPLES = REPOSITORY / "sample_logs"
SHARED = REPOSITORY.parent / "shared" / "data"

sys.pycache_prefix = os.environ.setdefault("PYTHONPYCACHEPREFIX", str(REPOSITORY / ".pytest_cache" / "compiled"))
"""Nothing compiled lies beside a script: `cklog scan sample_logs` tells the bytes of all that is there."""

pytest.register_assert_rewrite("tests.builders", "tests.reading", "tests.oracles", "tests.program")

settings.register_profile(
    "all", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True, max_examples=100
)
settings.register_profile("change", settings.get_profile("all"), max_examples=25)
settings.load_profile("change")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow three of four cases of each test that is marked `quarter`; not the same ones in every test."""
    marked = [(item.nodeid.partition("[")[0], item) for item in items if item.get_closest_marker("quarter")]
    count, seen = Counter(test for test, _ in marked), Counter[str]()
    for test, item in marked:
        if seen[test] % 4 != len(test) % min(4, count[test]):
            item.add_marker("slow")
        seen[test] += 1


def sample_script(name: str) -> ModuleType:
    """Import the script `sample_logs/NAME.py`, which is in no package."""
    spec = importlib.util.spec_from_file_location(name, SAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # what it defines is found again where workers unpickle it
    spec.loader.exec_module(module)
    return module


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--refresh-golden", action="store_true", help="write the golden files instead of comparing")


def why_no_spark() -> str:
    """Return why Spark cannot run here; "" if it can."""
    java = shutil.which("java")
    if java is None:
        return "no java on the PATH; Spark tests need Java 17 or newer"
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = told.partition('version "')[2].partition(".")[0].strip('"')
    return "" if version.isdigit() and int(version) >= 17 else f"Java {version} found; Spark needs 17 or newer"


@pytest.fixture(scope="session")
def spark() -> Iterator[Engine]:
    """The Spark engine on a local session, started once for all tests that ask for it."""
    reason = why_no_spark()
    if reason:
        if os.environ.get("CKLOG_REQUIRE_SPARK"):
            pytest.fail(reason)
        pytest.skip(reason)
    from cklog.engine.spark import SparkEngine
    from cklog.engine.spark_session import SparkOptions

    tests = ("spark.executorEnv.PYTHONPATH", str(REPOSITORY))  # workers find cklog by themselves, and no tests
    engine = SparkEngine(SparkOptions(conf=(("spark.sql.shuffle.partitions", "2"), tests)))
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def tally(request: pytest.FixtureRequest) -> Iterator[Counter[str]]:
    """Counts of what a module's tests did and found, told in one line at its end."""
    counted = Counter[str]()
    yield counted
    capture = request.config.pluginmanager.get_plugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled():
        print("\n" + (", ".join(f"{count} {what}" for what, count in counted.items()) or "nothing was counted"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real files of real systems; they are not part of the repository."""
    if not SHARED.is_dir():
        pytest.skip("no shared/data beside the repository: tests on real files need it")
    return SHARED
