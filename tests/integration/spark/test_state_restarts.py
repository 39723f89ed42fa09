"""Real restarts: each state file of a real checkpoint deleted in turn, and the query started on the copy."""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cklog.parsers.codecs.hadoop_crc import sidecar_of
from cklog.parsers.spark.parser import SparkCheckpoint
from cklog.storage import Root
from tests.builders.spark import load
from tests.conftest import SAMPLES

pytestmark = [pytest.mark.slow, pytest.mark.spark]


def script() -> ModuleType:
    """The script that made the samples, for its query."""
    spec = importlib.util.spec_from_file_location("make_spark_state", SAMPLES / "make_spark_state.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MAKE = script()
WITH_IDS = {**MAKE.PROVIDERS["rocksdb"], "spark.sql.streaming.stateStore.checkpointFormatVersion": "2"}
JOIN = {**MAKE.PROVIDERS["rocksdb"], "spark.sql.streaming.join.stateFormatVersion": "3"}
SETTINGS = {**MAKE.PROVIDERS, "rocksdb-ids": WITH_IDS, "rocksdb-join": JOIN}


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
        for key, value in SETTINGS[provider].items():
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
        from pyspark.errors import StreamingQueryException
        from pyspark.sql import functions as F

        stream, mode = MAKE.counts(self.spark, home, lambda column: F.split(column, " ")), "update"
        if self.joins:
            lines = self.spark.readStream.schema("line STRING").option("maxFilesPerTrigger", 1).json(str(home / "in"))
            stream, mode = lines.alias("a").join(lines.alias("b"), F.expr("a.line = b.line")).select("a.line"), "append"
        sink = stream.writeStream.format("noop").outputMode(mode).trigger(availableNow=True)
        before = self.commits(home)
        query = sink.option("checkpointLocation", str(home / "ck")).start()
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
        plan = plan_of(homes[0])
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


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("spark")
    spark = MAKE.session("hdfs", folder)
    spark.sparkContext.setLogLevel("OFF")
    yield spark
    spark.stop()


def plan_of(home: Path) -> Any:
    return SparkCheckpoint(Root(str(home))).plan()


def delete(path: Path) -> None:
    """A file of the copy, with its checksum."""
    path.unlink()
    Path(sidecar_of(str(path))).unlink(missing_ok=True)


PROVIDERS = ["hdfs", "rocksdb", "rocksdb-ids"]


def cut(path: Path) -> None:
    """Half of a file, and no checksum beside it, as on an object store."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    Path(sidecar_of(str(path))).unlink(missing_ok=True)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_with_any_file_gone_a_restart_does_what_was_said(provider: str, session: Any, tmp_path: Path) -> None:
    """It fails if so said, else starts; and it starts after going back as told."""
    restarts = Restarts(session, provider, tmp_path)
    assert restarts.starts(restarts.copy())
    files = state_files(restarts.sample)
    assert [said for path in files if (said := restarts.disproved([path], delete))] == []


@pytest.mark.parametrize("provider", PROVIDERS)
def test_with_files_cut_or_all_snapshots_gone_likewise(provider: str, session: Any, tmp_path: Path) -> None:
    restarts = Restarts(session, provider, tmp_path)
    files = [path for path in state_files(restarts.sample) if path.startswith("ck/state/0/1/")]
    newest = [path for path in files if re.match("[67][._]", path.rpartition("/")[2])]
    snapshots = [path for path in files if path.endswith((".snapshot", ".zip"))]
    trials = [([path], cut) for path in newest] + [(snapshots, cut), (snapshots, delete)]
    trials += [(snapshots[:1] + newest[:1], delete)]
    assert [said for paths, damage in trials if (said := restarts.disproved(paths, damage))] == []


def test_a_join_with_column_families_needs_its_first_zip(session: Any, tmp_path: Path) -> None:
    restarts = Restarts(session, "rocksdb-join", tmp_path)
    files = state_files(restarts.sample)
    zips = [path for path in files if path.endswith(".zip")]
    firsts = [path for path in zips if path.endswith("/1.zip")]
    assert firsts
    trials = [(zips, delete), (firsts, delete), (zips, cut), (["ck/state/0/_metadata/v2/0"], delete)]
    assert [said for paths, damage in trials if (said := restarts.disproved(paths, damage))] == []
