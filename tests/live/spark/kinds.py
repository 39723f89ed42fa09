"""The kinds of query of a campaign: what each reads, keeps and writes, for every version of Spark that runs it.

Every record has a number. File `i` of the input holds records `4 i` to `4 i + 3`; what an unbroken run gives does not
depend on where batches begin and end. Nothing here imports cklog or pyspark.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

FILES = 40
"""More batches than a query runs before it is killed."""
PER_FILE = 4
_BASE_S = 1_700_000_000
_SCHEMA = "n LONG, d LONG, k STRING, b LONG, t LONG, dt LONG"

Truth = Literal["append", "latest", "numbers"]
"""Every row once; the last row of each key; the numbers from 0 on, each once."""


def rows_of(file: int) -> list[dict[str, Any]]:
    """Return the records of one input file; its second half has the ids `d` of the file before."""
    rows = []
    for j in range(PER_FILE):
        n, half = file * PER_FILE + j, PER_FILE // 2
        d = n if j < half else n - PER_FILE - half
        first = file if j < half else file - 1
        at = _BASE_S + 10 * file + j
        row = {"n": n, "d": d, "k": f"k{n % 7}", "b": file // 3, "t": at, "dt": _BASE_S + 10 * first + j % half}
        rows.append(row)
    return rows


def write_inputs(folder: Path, files: Iterable[int] = range(FILES)) -> None:
    """Write those input files that are not there; their times give Spark the order."""
    folder.mkdir(parents=True, exist_ok=True)
    for i in files:
        path = folder / f"f{i:05d}.json"
        if not path.exists():
            path.with_name(f".{path.name}").write_text("".join(json.dumps(row) + "\n" for row in rows_of(i)))
            os.utime(path.with_name(f".{path.name}"), (_BASE_S + i, _BASE_S + i))
            path.with_name(f".{path.name}").rename(path)


_STATE = "spark.sql.streaming.stateStore."
_CLASSES = "org.apache.spark.sql.execution.streaming.state."
_HDFS = {_STATE + "providerClass": _CLASSES + "HDFSBackedStateStoreProvider"}
_ROCKSDB = {_STATE + "providerClass": _CLASSES + "RocksDBStateStoreProvider"}
_LOGS = {**_ROCKSDB, _STATE + "rocksdb.changelogCheckpointing.enabled": "true"}
STATES: dict[str, dict[str, str]] = {
    "none": {},
    "hdfs": _HDFS,
    "rocksdb": {**_ROCKSDB, _STATE + "rocksdb.changelogCheckpointing.enabled": "false"},
    "changelogs": _LOGS,
    "ids": {**_LOGS, _STATE + "checkpointFormatVersion": "2"},
    "ids-whole": {**_ROCKSDB, _STATE + "checkpointFormatVersion": "2"},
}
"""How state is stored: `ids` is state checkpoint format 2."""
_LITTLE = {
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.streaming.fileSource.log.compactInterval": "3",
    "spark.sql.streaming.fileSource.log.cleanupDelay": "0s",
    "spark.sql.streaming.fileSink.log.compactInterval": "3",
    "spark.sql.streaming.fileSink.log.cleanupDelay": "0s",
}
_NAMED_SOURCES = {
    "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
    "spark.sql.streaming.offsetLog.formatVersion": "2",
}
_NAMED_SINK = {"spark.sql.streaming.queryEvolution.enableSinkEvolution": "true"}


def _join(version: int) -> dict[str, str]:
    return {"spark.sql.streaming.join.stateFormatVersion": str(version)}


def _codec(name: str) -> dict[str, str]:
    return {_STATE + "compression.codec": name}


@dataclass(frozen=True)
class Kind:
    """A kind of query.

    Attributes
    ----------
    query, state, sink : what it does (in `streams`), how state is stored, what it writes to; `noop` keeps no results
    conf : further settings
    since, until : the first version of Spark that runs it, and the first that does not
    how : how it is run until it is killed
    """

    query: str
    state: str = "none"
    sink: str = "each"
    conf: dict[str, str] = field(default_factory=dict)
    since: tuple[int, int] = (3, 5)
    until: tuple[int, int] = (9, 0)
    how: Literal["stream", "available", "timed", "async", "continuous", "repartition"] = "stream"

    @property
    def truth(self) -> Truth:
        """Return what its results are compared with."""
        if self.query in ("rate", "rate_per_batch", "mixed"):
            return "numbers"
        return "latest" if self.mode != "append" else "append"

    @property
    def mode(self) -> str:
        """Return the output mode."""
        if self.query in ("counts", "total", "pandas", "tws"):
            return "update"
        return "complete" if self.query == "everything" else "append"

    @property
    def settings(self) -> dict[str, str]:
        """Return all settings of the session."""
        return {**STATES[self.state], **self.conf}


KINDS: dict[str, Kind] = {
    "map": Kind("map"),
    "map-file": Kind("map", sink="json"),
    "map-partitioned": Kind("map", sink="parquet"),
    "map-little-kept": Kind("map", sink="json", conf=_LITTLE),
    "map-available": Kind("map", how="available"),
    "file-available": Kind("map", sink="json", how="available"),
    "union": Kind("union"),
    "dedup-hdfs": Kind("dedup", "hdfs"),
    "dedup-rocksdb-file": Kind("dedup", "rocksdb", sink="json"),
    "within-changelogs": Kind("within", "changelogs"),
    "counts-hdfs": Kind("counts", "hdfs"),
    "counts-snappy": Kind("counts", "hdfs", conf=_codec("snappy")),
    "counts-rocksdb": Kind("counts", "rocksdb"),
    "counts-available": Kind("counts", "changelogs", how="available"),
    "total-hdfs": Kind("total", "hdfs"),
    "everything-hdfs": Kind("everything", "hdfs"),
    "windows-zstd-file": Kind("windows", "hdfs", sink="json", conf=_codec("zstd")),
    "windows-changelogs-zstd": Kind("windows", "changelogs", conf=_codec("zstd")),
    "windows-little-kept": Kind("windows", "rocksdb", sink="json", conf=_LITTLE),
    "counts-little-kept": Kind("counts", "hdfs", conf=_LITTLE),
    "chain-hdfs": Kind("chain", "hdfs"),
    "sessions-hdfs": Kind("sessions", "hdfs"),
    "sessions-changelogs-file": Kind("sessions", "changelogs", sink="json"),
    "join-2": Kind("join", "hdfs", conf=_join(2)),
    "join-2-rocksdb": Kind("join", "rocksdb", conf=_join(2), until=(4, 0)),
    "outer-join": Kind("outer", "changelogs", conf=_join(2)),
    "pandas-hdfs": Kind("pandas", "hdfs"),
    "rate": Kind("rate", how="timed"),
    "rate-per-batch": Kind("rate_per_batch"),
    "mixed": Kind("mixed", how="timed"),
    "async": Kind("rate", sink="foreach", how="async", since=(4, 0)),
    "async-noop": Kind("rate", sink="noop", how="async", until=(4, 0)),
    # no foreach in Python: 3.5 commits epochs whose rows it has not been given yet, 4.3 ends such a query
    "continuous": Kind("rate", sink="noop", how="continuous"),
    # of Spark 3.5 alone, in place of those that follow
    "join-1": Kind("join", "hdfs", conf=_join(1), until=(4, 0)),
    "chain-changelogs": Kind("chain", "changelogs", until=(4, 0)),
    # of Spark 4
    "counts-ids": Kind("counts", "ids", since=(4, 0)),
    "windows-ids-file": Kind("windows", "ids", sink="json", since=(4, 0)),
    "dedup-ids-whole": Kind("dedup", "ids-whole", since=(4, 0)),
    "chain-ids": Kind("chain", "ids", since=(4, 0)),
    "join-3": Kind("join", "rocksdb", conf=_join(3), since=(4, 1)),
    "join-4": Kind("join", "changelogs", conf=_join(4), since=(4, 2)),
    "outer-join-ids": Kind("outer", "ids", conf=_join(3), since=(4, 1)),
    "tws": Kind("tws", "changelogs", since=(4, 0)),
    "tws-timers-ids": Kind("timers", "ids", since=(4, 0)),
    "named-sources": Kind("named", "hdfs", conf=_NAMED_SOURCES, since=(4, 2)),
    "named-sink": Kind("dedup", "hdfs", conf=_NAMED_SINK, since=(4, 3)),
    "named-sink-file": Kind("map", sink="json", conf=_NAMED_SINK, since=(4, 3)),
    "repartition": Kind("counts", "changelogs", how="repartition", since=(4, 3)),
    "repartition-ids": Kind("dedup", "ids", how="repartition", since=(4, 3)),
}


def kinds_of(version: str) -> list[str]:
    """Return the kinds that a version of Spark runs.

    >>> "join-1" in kinds_of("3.5.9"), "tws" in kinds_of("3.5.9"), "tws" in kinds_of("4.3.0")
    (True, False, True)
    """
    major, minor = (int(part) for part in version.split(".")[:2])
    return [name for name, kind in KINDS.items() if kind.since <= (major, minor) < kind.until]
