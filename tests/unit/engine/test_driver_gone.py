"""A JVM that ends at whichever call into it is an engine that failed: one line with its cause, and never a bug."""

from __future__ import annotations

import types
from pathlib import Path

import pytest

from cklog.engine.scan import Scan
from cklog.engine.spark import SparkEngine
from cklog.engine.spark_session import SparkOptions
from cklog.errors import EngineError
from cklog.model.schemas import MESSAGES
from cklog.parsers.native.parser import Native
from cklog.storage import Root


class Py4JError(Exception):
    """What py4j raises of a call that the JVM never answered, by its name."""


def _gone(*args: object) -> object:
    raise Py4JError("An error occurred while calling z:org.apache.spark.sql.api.python.PythonSQLUtils.toDataFrame")


def test_a_driver_that_is_gone_before_the_job_begins_is_no_bug(tmp_path: Path) -> None:
    (tmp_path / "channels").mkdir()
    (tmp_path / "channels" / "a.jsonl").write_text("{}\n")
    splits = tuple(Native(Root(str(tmp_path))).splits("channels", 1 << 20))
    engine = SparkEngine(SparkOptions())
    engine._session = types.SimpleNamespace(createDataFrame=_gone)
    scan = Scan(splits, "channels", ("channel",), lambda batch: batch, MESSAGES.empty_table().select([0]).schema, None)
    with pytest.raises(EngineError, match="the Spark job failed: the JVM of Spark's driver has ended"):
        engine.run(scan)
