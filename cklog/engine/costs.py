"""Estimate how long a scan takes in this process and on Spark: what `--engine auto` decides by.

Every number is a measurement of `docs/speed.md`, which `tests/unit/engine/test_costs.py` compares with the page, or an
assumption that its comment names. The model counts CPU seconds and divides them by cores: it assumes that reading is no
slower than decoding, as on a page cache or a fast disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Form = Literal["text", "parquet", "batches"]
"""What is decoded: lines of JSON, columns of Parquet, record batches of Kafka."""

BYTES_PER_CPU_SECOND: Mapping[Form, float] = {"text": 218 * 2**20, "parquet": 50 * 2**20, "batches": 417e6}
"""Of one core in this process: the forward pass over a queue as JSON lines and as Parquet, and records of Kafka."""

CPU_SECONDS_PER_FILE = 7.6 / 100_000
"""The table of many small files."""

CPU_SECONDS_PER_RUN = 8.5e-3
"""`scan`: the table of many folders."""

REQUESTS_PER_RUN = 27
"""`scan` of an object store: the files that it opens of a run, in the same table; a listing serves all runs."""

SECONDS_PER_REQUEST = 0.1
"""Assumed: the time until an object store in the same region answers."""

RUNS_PER_TASK = 50
"""Runs of `scan` that a task of Spark reads at most; a task for fewer would cost more than they do."""

SPARK_START_SECONDS = 9.0
"""Until a session answers its first query: the difference of both engines in the table of many small files."""

SPARK_CPU_PER_LOCAL = 1.8
"""CPU seconds of a scan on a warm Spark, to those in this process: the forward pass over JSON lines."""

MACHINES_ASSUMED = 4
"""Assumed of a cluster that does not say how large it is: so many machines like this one."""


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be read: bytes by form, files, runs (of `scan`), and in how many tasks at most.

    `requests`: what an object store is asked, one request after another in each task.
    """

    bytes: Mapping[Form, int] = field(default_factory=dict)
    files: int = 0
    runs: int = 0
    requests: int = 0
    tasks: int = 1

    def cpu_seconds(self) -> float:
        """Return the CPU seconds that it takes in this process.

        >>> Work({"text": 436 << 20}).cpu_seconds()
        2.0
        """
        decoding = sum(size / BYTES_PER_CPU_SECOND[form] for form, size in self.bytes.items())
        return decoding + self.files * CPU_SECONDS_PER_FILE + self.runs * CPU_SECONDS_PER_RUN


class Estimate(NamedTuple):
    """Seconds until the answer, in this process and on Spark."""

    local: float
    spark: float

    @property
    def prefers_spark(self) -> bool:
        """Whether Spark is expected to finish first."""
        return self.spark < self.local


def estimate(work: Work, cores: int, spark_cores: int, is_running: bool = False) -> Estimate:
    """Estimate the seconds that `work` takes on so many cores of this machine, and on so many of Spark.

    `is_running`: a session is there already. With the same cores for both, Spark never finishes first: it has to start,
    and takes more CPU. It needs a cluster.

    >>> estimate(Work({"text": 1100 << 20}, tasks=18), cores=2, spark_cores=2).prefers_spark
    False
    >>> estimate(Work({"text": 40 << 30}, tasks=640), cores=2, spark_cores=8).prefers_spark
    True
    """
    working, waiting = work.cpu_seconds(), work.requests * SECONDS_PER_REQUEST
    local = (working + waiting) / max(min(cores, work.tasks), 1)
    on_spark = (working * SPARK_CPU_PER_LOCAL + waiting) / max(min(spark_cores, work.tasks), 1)
    return Estimate(local, on_spark + (0.0 if is_running else SPARK_START_SECONDS))
