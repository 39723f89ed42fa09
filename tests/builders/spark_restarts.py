"""Real restarts of real queries: on copies of samples that are damaged first, or after queries were killed."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cklog.parsers.codecs.hadoop_crc import sidecar_of
from cklog.parsers.spark.parser import SparkCheckpoint
from cklog.runs.batches.plan import BatchPlan, plan_of
from cklog.storage import Root
from tests.builders.spark import load
from tests.builders.spark_queries import write_inputs
from tests.conftest import SAMPLES, sample_script

MAKE = sample_script("make_spark_state")
WITH_IDS = {**MAKE.PROVIDERS["rocksdb"], "spark.sql.streaming.stateStore.checkpointFormatVersion": "2"}
JOIN = {**MAKE.PROVIDERS["rocksdb"], "spark.sql.streaming.join.stateFormatVersion": "3"}
SETTINGS = {**MAKE.PROVIDERS, "rocksdb-ids": WITH_IDS, "rocksdb-join": JOIN}


SPARKS_OWN = {"spark.sql.streaming.minBatchesToRetain": "100"}
"""Its default: settings of the first session of a JVM are the defaults of every later one, a killed query's too."""


def state_files(sample: Path) -> list[str]:
    """Every delta, snapshot, changelog, zip and SST file of a sample."""
    files = load(sample, "").files
    suffixes = (".delta", ".snapshot", ".changelog", ".zip", ".sst")
    return sorted(path for path in files if path.startswith("ck/state/") and path.endswith(suffixes))


class Restarts:
    """Copies of one sample, damaged and restarted in one Spark session."""

    def __init__(self, spark: Any, provider: str, folder: Path) -> None:
        self.spark, self.folder, self.joins = spark, folder, provider.endswith("join")
        spark.conf.unset("spark.sql.streaming.stateStore.checkpointFormatVersion")
        for key, value in (*SPARKS_OWN.items(), *SETTINGS[provider].items()):
            spark.conf.set(key, value)
        self.sample = SAMPLES / f"spark-state-{provider}"
        self.stored = f"{MAKE.HOME}/{provider}"
        self._count = 0
        if not self.sample.exists():
            self.sample = folder / "made"
            self.stored = str(self.sample)
            self._make(self.sample)

    def _make(self, home: Path) -> None:
        """Run a batch for each input file but the last; the newest one has lost its commit."""
        MAKE.write_inputs(home / "in")
        (home / "in" / f"line-{MAKE.LAST}.json").unlink()
        assert self.starts(home)
        delete(home / "ck/commits" / str(MAKE.LAST - 1))

    def copy(self) -> Path:
        """A copy whose source log names the copy's own input files; one more of them waits to be read."""
        self._count += 1
        home = self.folder / f"copy-{self._count}"
        shutil.copytree(self.sample, home)
        for path in (home / "ck/sources").glob("*/*"):
            if path.name.endswith(".crc"):
                path.unlink()
            else:
                path.write_text(path.read_text().replace(f"file://{self.stored}/", f"file://{home}/"))
        (home / "in" / "line-9.json").write_text('{"line": "more words"}\n')
        return home

    def starts(self, home: Path) -> bool:
        """Whether the query starts, completes the batch in flight and one more."""
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import StreamingQueryException
        from pyspark.sql import functions as F

        stream, mode = MAKE.counts(self.spark, home, lambda column: F.split(column, " ")), "update"
        if self.joins:
            lines = self.spark.readStream.schema("line STRING").option("maxFilesPerTrigger", 1).json(str(home / "in"))
            stream, mode = lines.alias("a").join(lines.alias("b"), F.expr("a.line = b.line")).select("a.line"), "append"
        sink = stream.writeStream.format("noop").outputMode(mode).trigger(availableNow=True)
        before = self.commits(home)
        try:
            query = sink.option("checkpointLocation", str(home / "ck")).start()
        except Py4JJavaError:  # what a query reads before its first batch
            return False
        try:
            query.awaitTermination(120)
        except StreamingQueryException:
            return False
        finally:
            query.stop()
        return self.commits(home) > before

    def disproved(self, paths: list[str], damage: Callable[[Path], None]) -> str:
        """Why a restart with these files damaged is not what was said, "" if it is."""
        homes = [self.copy(), self.copy()]
        for home in homes:
            for path in paths:
                damage(home / path)
        plan = plan_of(SparkCheckpoint(Root(str(homes[0]))))
        if plan.fails == self.starts(homes[0]):
            return f"{paths}: fails {plan.fails}, line {plan.committed}"
        if plan.committed < 0 or not plan.rolled_back:
            return ""
        for gone in plan.remove:
            (homes[1] / gone).unlink()
        return "" if self.starts(homes[1]) else f"{paths}: not after going back to {plan.committed}"

    @staticmethod
    def commits(home: Path) -> int:
        """How many batches are done."""
        return len(list((home / "ck/commits").glob("[0-9]*")))


def delete(path: Path) -> None:
    """A file of the copy, with its checksum."""
    path.unlink()
    Path(sidecar_of(str(path))).unlink(missing_ok=True)


MOMENTS = ("offsets", "state", "sink", "commits")
"""What a batch writes, in its order; a query is killed as soon as it is there."""
WAIT_S = 600.0
"""Seconds for a batch on a busy machine."""
_ROOT = Path(__file__).resolve().parents[2]


def kill(folder: Path, which: list[str], chance: random.Random) -> None:
    """Run queries in a process of their own until each has committed two batches and one has written a certain file."""
    for name in which:
        write_inputs(folder / name / "in")
    command = [sys.executable, "-m", "tests.builders.spark_queries", str(folder), *which]
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen(command, cwd=_ROOT, stdout=log, stderr=log, start_new_session=True)

    def wait(what: Callable[[], bool], every: float) -> None:
        """A busy machine may take its time, but batches have to be committed."""
        size, since = -1, time.monotonic()
        while not what():
            assert running.poll() is None, (folder / "log").read_text()[-2000:]
            now, written = time.monotonic(), sum(written_at("commits", folder / name) for name in which)
            if written != size:
                size, since = written, now
            assert now - since < WAIT_S, (folder / "log").read_text()[-2000:]
            time.sleep(every)

    try:
        wait(lambda: all(written_at("commits", folder / name) >= 2 for name in which), 0.1)
        moment, home = chance.choice(MOMENTS), folder / chance.choice(which)
        before = written_at(moment, home)
        wait(lambda: written_at(moment, home) > before, 0.001)
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def written_at(moment: str, home: Path) -> int:
    """The newest batch, or version, of which there is what is written at a moment of it; -1 for none."""
    if moment == "sink":
        return max([newest(home / "out/_spark_metadata"), *ledger(home)])
    return newest(home / "ck" / moment)


def newest(folder: Path) -> int:
    """The highest number that a file begins with, in a folder and all below it."""
    numbers = (re.match(r"\d+", name) for _, _, names in os.walk(folder) for name in names)
    return max((int(found[0]) for found in numbers if found), default=-1)


def ledger(home: Path) -> list[int]:
    """The batches that a foreachBatch sink got."""
    path = home / "out" / "ledger.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line)["batch"] for line in lines if line.endswith("\n")]


def keep_few_inputs(home: Path, plan: BatchPlan) -> None:
    """Leave the input files that were read or planned, and two more: a restart that ends soon."""
    logged = {path.rpartition("/")[2] for source in (home / "ck/sources").iterdir() for path in _paths_of(source)}
    later = [path for path in sorted((home / "in").iterdir()) if path.name not in logged]
    for path in later[2:]:
        path.unlink()


def _paths_of(source: Path) -> Iterator[str]:
    for log in source.iterdir():
        if not log.name.startswith("."):
            for line in log.read_text().splitlines()[1:]:
                yield json.loads(line)["path"]
