"""`--engine auto`: which engine reads, what is said of it, and that it answers whatever Spark does."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from cklog.engine import choosing, costs
from cklog.engine.choosing import Engines
from cklog.engine.clusters import named_spark, running_spark
from cklog.engine.local import LocalEngine
from cklog.engine.scan import Damage, Listing, Scan, Scanned, Split
from cklog.engine.sizes import work_of
from cklog.engine.spark import SparkEngine
from cklog.engine.spark_driver import Driver
from cklog.errors import EngineError
from cklog.inputs.tables import as_it_is
from cklog.model.options import Options
from cklog.storage import Root
from cklog.sweep import tasks
from tests.conftest import REPOSITORY, SAMPLES
from tests.program import cklog, hide_java

JOIN = SAMPLES / "uncoordinated-join"
MASTER = "spark://cluster.example:7077"
MB = 1 << 20


@pytest.fixture(autouse=True)
def _nothing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Spark in the environment, and none that other tests of this process have started."""
    for name in (
        "SPARK_REMOTE",
        "MASTER",
        "PYSPARK_SUBMIT_ARGS",
        "SPARK_CONF_DIR",
        "SPARK_HOME",
        "PYSPARK_GATEWAY_PORT",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)


def scan_of(uris: Mapping[str, int], split_bytes: int = 64 * MB) -> Scan:
    """A scan of files of some sizes, which need not exist."""
    splits = [
        Split(uri, Path(uri).name, "no:reader", start, min(start + split_bytes, size), size)
        for uri, size in uris.items()
        for start in range(0, size, split_bytes)
    ]
    return Scan(tuple(splits), "channels", (), as_it_is, pa.schema([]), None)


def prefers_spark(scan: Scan, options: Options) -> tuple[bool, list[str]]:
    said: list[str] = []
    return Engines(options, said.append).prefers_spark(scan), said


def sparse(path: Path, size: int) -> str:
    with open(path, "wb") as file:
        file.truncate(size)
    return str(path)


def test_a_sparse_file_of_a_terabyte_is_read_here(tmp_path: Path) -> None:
    """Of a store, where the listing is all there is, the same size is worth a cluster."""
    size = 1 << 40
    there = scan_of({"s3://bucket/run/channels/a.jsonl": size}, 1 << 30)
    here = scan_of({sparse(tmp_path / "a.jsonl", size): size}, 1 << 30)
    assert prefers_spark(there, Options(master=MASTER))[0]
    chosen, said = prefers_spark(here, Options(master=MASTER))
    assert not chosen
    assert said == [f"engine: local (0 MiB to read; expected to finish before {MASTER})"]


def test_allocated_bytes_are_counted_by_form_and_once_a_file(tmp_path: Path) -> None:
    dense = tmp_path / "dense.parquet"
    dense.write_bytes(os.urandom(3 * MB))
    half = tmp_path / "half.log"
    half.write_bytes(os.urandom(MB))
    os.truncate(half, 2 * MB)
    whole = scan_of({str(dense): 3 * MB})
    parts = scan_of({str(half): 2 * MB, str(tmp_path / "gone.jsonl"): MB}, MB // 2)
    work = work_of(replace(whole, splits=(*whole.splits, *parts.splits)))
    blocks = os.stat(half).st_blocks * 512
    assert blocks < 2 * MB
    assert work.bytes["parquet"] == 3 * MB
    assert work.bytes["batches"] == pytest.approx(blocks, abs=4)
    assert work.bytes["text"] == MB
    assert (work.files, work.tasks) == (3, 7)


def test_a_folder_that_is_one_split_is_measured_by_its_files(tmp_path: Path) -> None:
    sparse(tmp_path / "unit", 1 << 40)
    root = Root(str(tmp_path))
    split = Split(root.uri(""), "unit", "no:reader", 0, 1, 1 << 40, numbered=True, listing=Listing.of(root))
    assert sum(work_of(replace(scan_of({}), splits=(split,))).bytes.values()) == 0


@pytest.mark.parametrize("options", [Options(), Options(master="local[8]"), Options(remote="local")])
def test_on_one_machine_this_process_reads_and_says_so(options: Options) -> None:
    chosen, said = prefers_spark(scan_of({"s3://bucket/a.jsonl": 1 << 45}, 1 << 36), options)
    assert not chosen
    assert said == ["engine: local (33554432 MiB to read; no cluster is named, and on one machine this is faster)"]


def test_the_estimate_is_told_when_asked_for() -> None:
    chosen, said = prefers_spark(scan_of({"s3://b/a.jsonl": 1 << 40}), Options(remote="sc://h", verbose=True))
    assert chosen
    assert len(said) == 1
    assert said[0].startswith("engine: spark (sc://h, 1048576 MiB to read; expected to finish before this machine: ")
    assert f"s by sc://h on {costs.MACHINES_ASSUMED * (os.cpu_count() or 1)} cores)" in said[0]


def test_a_cluster_that_the_environment_names_reads_stores_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing says that its workers see a folder of this machine."""
    monkeypatch.setenv("SPARK_REMOTE", "sc://h")
    monkeypatch.setattr("cklog.engine.sizes._allocated_share", lambda split: 1.0)
    store, folder = ({f"{place}/a.jsonl": 1 << 40} for place in ("s3://b", str(tmp_path)))
    assert prefers_spark(scan_of(store), Options())[0]
    chosen, said = prefers_spark(scan_of(folder), Options())
    assert not chosen
    assert "nothing says that workers of sc://h (SPARK_REMOTE) see PATH" in said[0]
    assert prefers_spark(scan_of(folder), Options(remote="sc://h"))[0]


NAMES: dict[str, Callable[[Path], tuple[Mapping[str, str], Mapping[str, str]]]] = {
    "--spark-conf": lambda _: ({"spark.master": "yarn"}, {}),
    "SPARK_REMOTE": lambda _: ({}, {"SPARK_REMOTE": "sc://h"}),
    "PYSPARK_SUBMIT_ARGS": lambda _: ({}, {"PYSPARK_SUBMIT_ARGS": "--name x --master=yarn pyspark-shell"}),
    "SPARK_CONF_DIR": lambda folder: ({}, {"SPARK_CONF_DIR": str(folder)}),
    "SPARK_HOME": lambda folder: ({}, {"SPARK_HOME": str(folder.parent)}),
    "MASTER": lambda _: ({}, {"MASTER": "k8s://https://h:443"}),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_cluster_is_found_where_spark_itself_finds_it(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "conf"
    folder.mkdir()
    (folder / "spark-defaults.conf").write_text("# ours\nspark.master  spark://h:7077\nspark.cores.max=40\n")
    conf, environ = NAMES[name](folder)
    found = named_spark("", "", conf, environ)
    assert found.is_cluster
    assert found.by_option == (name == "--spark-conf")
    assert named_spark("local[2]", "", {}, environ).is_cluster is False


def test_the_order_of_names_is_sparks_own(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.master spark://file:7077\n")
    environ = {
        "SPARK_REMOTE": "sc://remote",
        "PYSPARK_SUBMIT_ARGS": "--master spark://submit:7077",
        "SPARK_CONF_DIR": str(tmp_path),
        "MASTER": "spark://master:7077",
    }
    found = []
    for gone in ("", *environ):
        environ.pop(gone, None)
        found.append(named_spark("", "", {}, environ).url)
    assert found == ["sc://remote", "spark://submit:7077", "spark://file:7077", "spark://master:7077", ""]


def test_a_jvm_of_spark_submit_is_asked_for_its_master(monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {"PYSPARK_GATEWAY_PORT": "1", "MASTER": "yarn"}
    monkeypatch.setattr("pyspark.SparkContext._ensure_initialized", lambda: None)
    monkeypatch.setattr("pyspark.SparkConf", lambda: {"spark.master": "spark://submitted:7077"})
    assert named_spark("", "", {}, environ).url == "spark://submitted:7077"
    assert named_spark("local", "", {}, environ).url == "local"


def test_a_session_or_a_jvm_that_has_ended_names_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scan on it says so, and `auto` never ends because of it."""

    def gone(*_: object) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr("pyspark.SparkContext._ensure_initialized", gone)
    assert named_spark("", "", {}, {"PYSPARK_GATEWAY_PORT": "1"}).url == ""
    ended = SimpleNamespace(conf=SimpleNamespace(get=gone))
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: ended)
    assert running_spark() is None


class FakeSpark:
    """Stands for Spark: raises, reads nothing, or reads in this process; `scans` counts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, does: str) -> None:
        self.does, self.scans = does, 0
        monkeypatch.setattr(SparkEngine, "run", lambda _engine, scan: self.run(scan))

    def run(self, scan: Scan) -> Scanned:
        self.scans += 1
        if self.does == "is lost":
            raise EngineError("the Spark job failed: the JVM of Spark's driver has ended", "-v shows Spark's log")
        if self.does == "sees nothing":
            unread = Damage(scan.splits[0].path, "unreadable-file", None, "No such file or directory")
            return Scanned(scan.partial.empty_table(), (unread,))
        return LocalEngine().run(scan)


@pytest.mark.parametrize(
    ("does", "why"),
    [
        ("is lost", "the Spark job failed: the JVM of Spark's driver has ended"),
        ("sees nothing", "its workers could not read checkpoints/"),
    ],
)
@pytest.mark.parametrize("options", [(), ("--master", MASTER)])
def test_auto_answers_though_spark_does_not(
    does: str, why: str, options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once: the scans after it do not try again, and say nothing more."""
    local = cklog("recovery-line", JOIN, "--json", "--explain", "--engine", "local")
    fake = FakeSpark(monkeypatch, does)
    auto = cklog("recovery-line", JOIN, "--json", "--explain", "--spark-above", "1", *options)
    assert (auto.code, auto.out) == (0, local.out)
    first, second = auto.err.splitlines()
    assert first.startswith("engine: spark (")
    assert second.startswith(f"engine: local (instead of Spark: {why}")
    assert fake.scans == 1


def test_a_spark_that_was_asked_for_and_is_lost_is_exit_69(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeSpark(monkeypatch, "is lost")
    ended = cklog("recovery-line", JOIN, "--engine", "spark")
    assert (ended.code, ended.out) == (69, "")
    assert ended.err.startswith("cklog: the Spark job failed: ")


def test_a_spark_that_works_gives_the_same_bytes_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    local = cklog("recovery-line", JOIN, "--json", "--explain", "--engine", "local")
    fake = FakeSpark(monkeypatch, "works")
    auto = cklog("recovery-line", JOIN, "--json", "--explain", "--spark-above", "1")
    assert auto.out == local.out
    assert auto.err.startswith("engine: spark (0 MiB to read, above --spark-above)\n")
    assert fake.scans == 2


@pytest.mark.quarter
@pytest.mark.parametrize("does", ["is lost", "works", "sees nothing"])
def test_a_sweep_answers_though_spark_does_not(does: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    local = cklog("scan", "sample_logs", "--json", "--engine", "local")
    fake = FakeSpark(monkeypatch, "is lost" if does == "is lost" else "works")
    if does == "sees nothing":
        asked = tasks.ask_by_engine
        lost = partial(replace, error_id="not-found")
        monkeypatch.setattr(tasks, "ask_by_engine", lambda *a: [lost(row) for row in asked(*a)])
    monkeypatch.setattr(costs, "SPARK_START_SECONDS", 0.0)
    monkeypatch.setattr(costs, "CPU_SECONDS_PER_RUN", 1e6)
    monkeypatch.setattr(costs, "RUNS_PER_TASK", 1)
    auto = cklog("scan", "sample_logs", "--json", "--master", MASTER)
    assert (auto.code, auto.out) == (local.code, local.out)
    assert fake.scans == 1
    lines = auto.err.splitlines()
    assert lines[0].startswith(f"engine: spark ({MASTER}, ")
    assert len(lines) == 1 + (does != "works")
    assert all(line.startswith("engine: local (instead of Spark: ") for line in lines[1:])


def test_without_java_auto_answers_what_is_above_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of 600 MB of logs; here everything is above."""
    local = cklog("inspect", JOIN, "--json", "--engine", "local")
    hide_java(monkeypatch)
    monkeypatch.setattr(choosing, "ESTIMATED_ABOVE", -1)
    for options in ((), ("--spark-above", "1")):
        ended = cklog("inspect", JOIN, "--json", *options)
        assert (ended.code, ended.out) == (0, local.out)
        assert ended.err.splitlines()[-1].startswith("engine: local (")


@pytest.mark.slow
def test_without_java_600_mb_are_answered(tmp_path: Path) -> None:
    """A process that has no PATH: what `which` would find is not there."""
    row = '{"channel": "a/0->b/0", "seq": %d, "kind": "data", "bytes": 10, "pad": "%s"}\n'
    (tmp_path / "channels").mkdir()
    numbers = itertools.count(1)
    for part in range(4):
        with open(tmp_path / "channels" / f"{part}.jsonl", "w") as file:
            for _ in range(150):
                file.write("".join(row % (next(numbers), "x" * 9_900) for _ in range(100)))
    assert sum(path.stat().st_size for path in (tmp_path / "channels").iterdir()) > choosing.ESTIMATED_ABOVE
    ended = subprocess.run(
        [sys.executable, "-m", "cklog", "inspect", str(tmp_path)],
        env={"PATH": "/nonexistent", "HOME": str(tmp_path), "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    assert "no cluster is named, and on one machine this is faster" in ended.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--master", MASTER, "--engine", "local"), "--master names a Spark, and --engine local uses none"),
        (("--remote", "sc://h", "--engine", "local"), "--remote names a Spark, and --engine local uses none"),
        (("--master", MASTER, "--remote", "sc://h"), "--master and --remote name two Sparks"),
    ],
)
def test_options_that_contradict_each_other_are_wrong_usage(options: tuple[str, ...], said: str) -> None:
    ended = cklog("recovery-line", JOIN, *options)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"cklog: {said}\n")


@pytest.mark.parametrize("remote", ["local[2]", "sc://127.0.0.1:1"])
@pytest.mark.parametrize("module", ["grpc", "no_such_package.rpc"])
def test_a_missing_connect_client_is_told_before_anything_starts(
    remote: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cklog.engine.spark_session._CONNECT_CLIENT", (module + "_that_is_not_there",))
    monkeypatch.setattr(Driver, "__init__", lambda *_: pytest.fail("a JVM is started"))
    ended = cklog("recovery-line", JOIN, "--engine", "spark", "--remote", remote)
    assert (ended.code, ended.out) == (69, "")
    assert ended.err == (
        f"cklog: {remote}: Spark Connect needs Python modules that are not installed: {module}_that_is_not_there\n"
        "hint: pip install 'cklog[connect]'\n"
    )


def test_a_connect_server_of_this_machine_needs_java(monkeypatch: pytest.MonkeyPatch) -> None:
    hide_java(monkeypatch)
    ended = cklog("recovery-line", JOIN, "--engine", "spark", "--remote", "local[2]")
    assert (ended.code, ended.err.splitlines()[0]) == (69, "cklog: Spark needs Java 17 or newer, and none was found")


def test_a_cluster_needs_java_here_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """After it was found that somebody listens there."""
    hide_java(monkeypatch)
    monkeypatch.setattr("cklog.engine.spark_session.require_listener", lambda *_: None)
    ended = cklog("recovery-line", JOIN, "--engine", "spark", "--master", MASTER)
    assert (ended.code, ended.err.splitlines()[0]) == (69, "cklog: Spark needs Java 17 or newer, and none was found")
