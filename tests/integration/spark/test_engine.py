"""The Spark engine as a program: quiet, clean, and the same over Spark Connect."""

from __future__ import annotations

import gc
import importlib.util
import subprocess
import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest

from cklog.engine.scan import Engine, Scan, Split
from tests.conftest import REPOSITORY
from tests.program import cklog

SAMPLE = "sample_logs/uncoordinated-join"


def run(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cklog", "recovery-line", SAMPLE, "--explain", "--json", *args]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_spark_says_nothing_unless_asked() -> None:
    told = run("--engine", "spark")
    assert told.stderr == ""
    assert told.stdout == (REPOSITORY / SAMPLE / "expected.json").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_spark_warns_if_asked() -> None:
    assert "WARN" in run("--engine", "spark", "-v").stderr


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_spark_connect_gives_the_same_bytes() -> None:
    missing = [name for name in ("grpc", "grpc_status", "zstandard") if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"Spark Connect needs {', '.join(missing)}, which the extra `connect` installs")
    assert run("--engine", "spark", "--remote", "local[2]").stdout == (REPOSITORY / SAMPLE / "expected.json").read_text(
        encoding="utf-8"
    )


@pytest.mark.spark
def test_a_job_that_fails_is_one_line(spark: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    from cklog.errors import EngineError
    from cklog.model.schemas import MESSAGES

    split = Split("x", "x", "cklog.no_such_module:read", 0, 1, 1)
    scan = Scan((split,), "channels", ("channel",), _same, MESSAGES, None)
    with pytest.raises(EngineError, match="the Spark job failed") as failed:
        spark.run(scan)
    assert "\n" not in failed.value.message
    assert "ModuleNotFoundError: No module named 'cklog.no_such_module'" in failed.value.message


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_session_that_was_there_before_goes_on() -> None:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false").getOrCreate()
    for _ in range(2):
        ended = cklog("recovery-line", REPOSITORY / SAMPLE, "--explain", "--json", "--engine", "spark")
        assert ended.out == (REPOSITORY / SAMPLE / "expected.json").read_text(encoding="utf-8")
    assert session.range(3).count() == 3


@pytest.mark.spark
def test_the_collector_passes_over_libraries(spark: Engine) -> None:
    """Spark calls it after each task: of a worker that has done one, what was loaded by then is left alone."""
    frozen = [_frozen(spark) for _ in range(4)]  # two workers, either of which may have been the first
    assert max(frozen) > 10_000


def _frozen(spark: Engine) -> int:
    split = Split("x", "x", f"{__name__}:told", 0, 1, 1)
    scan = Scan((split,), "channels", ("seq",), _same, pa.schema([pa.field("seq", pa.int64())]), None)
    return int(spark.run(scan).table["seq"][0].as_py())


def told(split: Split, table: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """Tell how many objects the collector passes over, as a log of one row."""
    yield pa.RecordBatch.from_pydict({"seq": [gc.get_freeze_count()]})


def _same(batch: object) -> object:
    return batch
