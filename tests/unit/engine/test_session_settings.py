"""Settings of a session: relative paths mean the directory in which cklog was started."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from cklog.engine import spark_session
from cklog.engine.spark_driver import absolute_paths
from cklog.engine.spark_session import SparkOptions, StartedSession

pyspark = pytest.importorskip("pyspark")

GIVEN = (
    ("spark.jars", "a.jar,s3://b/c.jar,/d.jar"),
    ("spark.driver.extraClassPath", "lib:/e"),
    ("spark.kubernetes.executor.podTemplateFile", "pod.yaml"),
    ("spark.x", "rel"),
)


class Builder:
    """A builder of sessions that keeps what it is given."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}

    def remote(self, url: str) -> Builder:
        return self

    def config(self, key: str, value: str) -> Builder:
        self.settings[key] = value
        return self

    def getOrCreate(self) -> Any:
        return object()


def test_relative_paths_reach_spark_as_absolute_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    builder, launched = Builder(), dict[str, str]()
    monkeypatch.setattr("pyspark.sql.SparkSession.builder", builder)
    monkeypatch.setattr(spark_session, "_require_java", lambda: None)
    monkeypatch.setattr(StartedSession, "_launch", lambda self, conf: launched.update(conf))
    StartedSession(SparkOptions(conf=GIVEN))
    wanted = {
        "spark.jars": f"{tmp_path}/a.jar,s3://b/c.jar,/d.jar",
        "spark.driver.extraClassPath": os.pathsep.join((f"{tmp_path}/lib", "/e")),
        "spark.kubernetes.executor.podTemplateFile": f"{tmp_path}/pod.yaml",
        "spark.x": "rel",
    }
    assert absolute_paths(dict(GIVEN)) == wanted
    assert wanted.items() <= builder.settings.items()
    assert wanted.items() <= launched.items()


@pytest.mark.parametrize(
    ("master", "python", "wanted"),
    [
        ("", "env/bin/python", "{here}/env/bin/python"),
        ("local[2]", "./python", "{here}/python"),
        ("", "python3", "python3"),
        ("", "", sys.executable),
        ("yarn", "./env/bin/python", "./env/bin/python"),
    ],
)
def test_a_relative_python_of_local_workers_is_where_cklog_was_started(
    master: str, python: str, wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYSPARK_PYTHON", python)
    monkeypatch.setattr(StartedSession, "_launched", lambda self: object())
    StartedSession(SparkOptions(master=master))
    assert os.environ["PYSPARK_PYTHON"] == wanted.format(here=tmp_path)
