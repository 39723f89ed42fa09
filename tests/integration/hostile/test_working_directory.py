"""Nothing of the working directory is run or obeyed: it is full of canaries, and none of them leaves its mark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.canaries import HostileDirectory, hostile_directory
from tests.conftest import REPOSITORY, SAMPLES, why_no_spark
from tests.golden.cases import CASES
from tests.program import cklog

RUN = str(SAMPLES / "uncoordinated-join")
MORE = (
    "--help",
    "--version",
    "recovery-line -h",
    "recovery-line no/such/run",
    "recovery-line hdfs://localhost:1/run",
    "explain orphan-messages",
    "report sample_logs/domino-cycle --format html",
    "report sample_logs/domino-cycle --format md",
    "diff sample_logs/domino-cycle/expected.json sample_logs/uncoordinated-join/expected.json",
    "graph sample_logs/domino-cycle --format png",
    "simulate workload --help",
)

WORKERS_FOR_FEW_RUNS = "import cklog.sweep.workers as w; w._PER_PROCESS = 1; import os; os.cpu_count = lambda: 2"
ONE_SESSION = "from cklog.engine.spark_session import *; session = StartedSession(SparkOptions(master='local[2]'))"


@pytest.fixture
def hostile(tmp_path: Path) -> HostileDirectory:
    return hostile_directory(tmp_path)


def every_command() -> list[list[str]]:
    """The commands of the golden answers and some more, with absolute paths."""
    lines = [*CASES.values(), *MORE]
    return [re.sub(r"(?<![\w/])sample_logs/", f"{SAMPLES}/", line).split() for line in lines]


def test_commands_in_a_hostile_directory_run_no_canary(hostile: HostileDirectory) -> None:
    ran = hostile.run(every_command(), before="from cklog.arrays import loops; loops._numba()")
    assert 70 not in ran.codes
    assert hostile.canaries_run() == set()
    assert ran.loaded - hostile.module_names() <= {"cklog"}
    assert {"numba", "networkx", "pyarrow", "jinja2", "pyiceberg"} <= ran.loaded


def test_a_canary_on_the_import_path_leaves_its_mark(hostile: HostileDirectory) -> None:
    with pytest.raises(AssertionError):
        hostile.run([["recovery-line", RUN]], before="sys.path.insert(0, os.getcwd())")
    assert hostile.canaries_run()


def test_sweep_workers_in_a_hostile_directory_run_no_canary(hostile: HostileDirectory) -> None:
    for number in range(4):
        shutil.copytree(RUN, hostile.path / f"run{number}")
    ran = hostile.run([["scan", "."]], before=WORKERS_FOR_FEW_RUNS + "; w.rows_of = None")
    assert ran.codes == [0]  # by worker processes alone: this process cannot answer for a run
    assert hostile.canaries_run() == set()


def test_running_the_module_in_a_hostile_directory_imports_nothing_more(hostile: HostileDirectory) -> None:
    own = [sys.executable, "-P", "-c", "import runpy, sys; print(*sys.modules)"]
    for name in subprocess.run(own, capture_output=True, text=True, check=True).stdout.split():
        (hostile.path / f"{name}.py").unlink(missing_ok=True)  # without -P, Python itself may import it first
    command = [sys.executable, "-m", "cklog", "inspect", RUN]
    ended = subprocess.run(command, cwd=hostile.path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert hostile.canaries_run() == set()


def test_compiled_modules_of_the_working_directory_are_not_loaded(hostile: HostileDirectory) -> None:
    ran = hostile.run(
        [["recovery-line", RUN]],
        before="import sys; assert sys.pycache_prefix; from cklog.isolation import *; remove_working_directory(); "
        "assert sys.pycache_prefix is None",
        environment={"PYTHONPYCACHEPREFIX": "compiled", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert ran.codes == [0]


def test_a_deleted_working_directory_is_named(tmp_path: Path) -> None:
    run = "import os, sys; os.rmdir(os.getcwd()); sys.argv[0] = 'cklog'; from cklog.commands import main; main()"
    command = [sys.executable, "-P", "-c", run, "recovery-line", "."]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 5
    hint = "change to a directory that exists"
    assert ended.stderr == f"cklog: the working directory no longer exists\nhint: {hint}\n"


@pytest.mark.parametrize("entry", ["", ".", "../here"])
def test_a_relative_entry_of_pythonpath_is_not_searched(hostile: HostileDirectory, entry: str) -> None:
    for canary in hostile.path.glob("*.py"):
        if canary.stem not in ("pyarrow", "networkx", "numpy", "jinja2"):  # Python itself imports others when it starts
            canary.unlink()
    path = f"{entry}:{REPOSITORY}"
    ran = hostile.run([["recovery-line", RUN]], environment={"PYTHONPATH": path})
    assert ran.codes == [0]
    assert hostile.canaries_run() == set()


def test_programs_are_not_taken_from_a_relative_entry_of_path(
    hostile: HostileDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cklog.isolation import find_program

    monkeypatch.chdir(hostile.path)
    monkeypatch.setenv("PATH", f":.:{os.environ['PATH']}")
    found = find_program("python3")
    assert found is not None
    assert os.path.isabs(found)
    assert hostile.path not in Path(found).parents


def test_hadoop_library_of_the_working_directory_is_refused(hostile: HostileDirectory) -> None:
    command = [sys.executable, "-P", "-m", "cklog", "inspect", "hdfs://localhost:1/run"]
    ended = subprocess.run(command, cwd=hostile.path, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "would load libhdfs.so from the working directory" in ended.stderr


@pytest.mark.parametrize(("given", "kept"), [(":/opt/a.jar:lib/*:/opt/b", "/opt/a.jar:/opt/b"), (":.", None)])
def test_hadoop_classes_of_the_working_directory_are_not_searched(
    given: str, kept: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLASSPATH", given)
    assert cklog("inspect", "hdfs://localhost:1/run").code == 66
    assert os.environ.get("CLASSPATH") == kept


def test_iceberg_catalogs_are_not_taken_from_the_working_directory(hostile: HostileDirectory) -> None:
    (hostile.path / ".pyiceberg.yaml").write_text("catalog:\n  evil:\n    uri: http://evil.example\n")
    read = (
        "from cklog.parsers.sink_tables import iceberg; iceberg._imported()\n"
        "from pyiceberg.utils.config import Config; assert Config().get_catalog_config('evil') is None"
    )
    ended = subprocess.run([sys.executable, "-P", "-c", read], cwd=hostile.path, capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.slow
@pytest.mark.spark
def test_spark_in_a_hostile_directory_runs_no_canary(hostile: HostileDirectory) -> None:
    require_spark()
    ran = hostile.run([["recovery-line", RUN, "--engine", "spark"]])
    assert ran.codes == [0]
    assert hostile.canaries_run() == set()
    assert "pyspark" in ran.loaded


@pytest.mark.spark
@pytest.mark.slow
def test_every_command_on_spark_in_a_hostile_directory_runs_no_canary(hostile: HostileDirectory) -> None:
    require_spark()
    first = {" ".join(command[: 2 if command[0] == "advise" else 1]): command for command in reversed(every_command())}
    commands = [[*command, "--engine", "spark"] for name, command in first.items() if name != "simulate"]
    ran = hostile.run(commands, before=ONE_SESSION)
    assert 70 not in ran.codes
    assert hostile.canaries_run() == set()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_scan_of_300_runs_in_a_hostile_directory_runs_no_canary(hostile: HostileDirectory, engine: str) -> None:
    require_spark()
    for number in range(300):
        shutil.copytree(RUN, hostile.path / f"run{number}")
    ran = hostile.run([["scan", ".", "--engine", engine]])
    assert ran.codes == [0]
    assert hostile.canaries_run() == set()


@pytest.mark.spark
@pytest.mark.slow
def test_a_connect_server_started_in_a_hostile_directory_runs_no_canary(hostile: HostileDirectory) -> None:
    require_spark()
    ran = hostile.run([["recovery-line", RUN, "--engine", "spark", "--remote", "local[2]"]])
    assert ran.codes == [0]
    assert hostile.canaries_run() == set()


def require_spark() -> None:
    """Skip where Spark cannot run, unless it has to."""
    reason = why_no_spark()
    if reason and os.environ.get("CKLOG_REQUIRE_SPARK"):
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)
