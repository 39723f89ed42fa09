"""cklog's engines and Spark's own session, for work in a process of its own; both are closed, and leave nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cklog.engine.scan import Engine

PLAIN = (("spark.driver.extraJavaOptions", "-XX:+UseSerialGC"), ("spark.sql.adaptive.enabled", "true"))
"""Spark SQL works in the JVM: it gets the full compiler, and Spark's default plans."""


@contextmanager
def engine(name: str) -> Iterator[Engine]:
    """Yield cklog's engine, `local`, `spark` or a cluster by its master's URL, as the program makes it."""
    from cklog.engine.local import LocalEngine
    from cklog.engine.spark import SparkEngine
    from cklog.engine.spark_session import SparkOptions

    if name == "local":
        yield LocalEngine()
        return
    made = SparkEngine(SparkOptions(master="" if name == "spark" else name))
    try:
        yield made
    finally:
        made.close()


@contextmanager
def plain_session() -> Iterator[Any]:
    """Yield a session for Spark SQL, on as many cores as cklog's engine has."""
    from cklog.engine.spark_session import SparkOptions, StartedSession

    started = StartedSession(SparkOptions(conf=PLAIN))
    try:
        yield started.session
    finally:
        started.close()
