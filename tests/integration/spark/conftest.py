"""A Spark session of its own for real restarts: with the settings that made the samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.builders.spark_restarts import MAKE


@pytest.fixture(scope="module")
def restarting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """As `sample_logs/make_spark_state.py` starts it, and quiet."""
    session = MAKE.session("hdfs", tmp_path_factory.mktemp("spark"))
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
