"""`--ship`: workers whose Python has the libraries and no cklog, of a cluster and of a Connect server."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.integration.spark.cluster import PATIENCE_SECONDS, cluster, connect_server

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.usefixtures("spark")]

SAMPLE = "sample_logs/uncoordinated-join"
EXPECTED = REPOSITORY / SAMPLE / "expected.json"


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with all that this one has, but for cklog."""
    folder = tmp_path_factory.mktemp("python")
    venv.create(folder, with_pip=False, symlinks=True)
    libraries = folder / "libraries"
    libraries.mkdir()
    import pyspark

    for place in {Path(pyspark.__file__).parent.parent, *map(Path, filter(os.path.isdir, sys.path))}:
        if place.name in ("site-packages", "dist-packages"):
            for entry in place.iterdir():
                if "cklog" not in entry.name and not (libraries / entry.name).exists():
                    (libraries / entry.name).symlink_to(entry)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "libraries.pth").write_text(f"{libraries}\n", encoding="utf-8")
    python = folder / "bin" / "python"
    found = [str(python), "-c", "import pyspark, pyarrow; import cklog"]
    missing = subprocess.run(found, cwd=folder, capture_output=True, check=False)
    assert b"No module named 'cklog'" in missing.stderr
    return python


def asked(python: Path, command: str, path: object, *options: object) -> tuple[int, str, str]:
    """Ask a command, with a Python for the workers; the test's own may be another."""
    engine = () if "--engine" in options else ("--engine", "spark")
    words = [sys.executable, "-m", "cklog", command, str(path), "--json", *engine, *map(str, options)]
    env = {**os.environ, "PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": sys.executable}
    ended = subprocess.run(
        words, cwd=REPOSITORY, env=env, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )
    return ended.returncode, ended.stdout, ended.stderr


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with cluster(tmp_path_factory.mktemp("cluster")) as url:
        yield url


def test_a_cluster_without_cklog_is_told_of_the_cure(master: str, bare_python: Path) -> None:
    code, _, err = asked(bare_python, "recovery-line", SAMPLE, "--master", master)
    assert code == 69
    assert err == (
        f"cklog: {master}: executors have no Python module cklog\n"
        "hint: --ship puts it there; or install cklog on every worker\n"
    )


def test_a_cluster_gets_cklog_and_gives_the_same_bytes(master: str, bare_python: Path) -> None:
    code, out, err = asked(bare_python, "recovery-line", SAMPLE, "--explain", "--master", master, "--ship")
    assert (code, err) == (0, "")
    assert out == EXPECTED.read_text(encoding="utf-8")


def test_whole_runs_are_asked_by_what_was_shipped(master: str, bare_python: Path) -> None:
    """A task of `scan` opens runs by itself: parsers are found in the zip, too."""
    local = asked(bare_python, "scan", "sample_logs", "--engine", "local")
    shipped = asked(bare_python, "scan", "sample_logs", "--master", master, "--ship")
    assert shipped == local
    assert local[0] in (0, 3)


@pytest.mark.parametrize("there", [True, False])
def test_a_connect_server_gets_cklog(there: bool, bare_python: Path, tmp_path: Path) -> None:
    missing = [name for name in ("grpc", "grpc_status", "zstandard") if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"Spark Connect needs {', '.join(missing)}, which the extra `connect` installs")
    setting = ("--spark-conf", "spark.executor.memory=7g")
    with connect_server(tmp_path, bare_python) as url:
        options = ("--explain", "--remote", url, *setting, *(("--ship",) if there else ()))
        code, out, err = asked(bare_python, "recovery-line", SAMPLE, *options)
    if there:
        assert (code, out) == (0, EXPECTED.read_text(encoding="utf-8"))
        assert err.startswith("--spark-conf spark.executor.memory: ")
        assert len(err.splitlines()) == 1
    else:
        assert code == 69
        assert err.startswith(f"cklog: {url}: executors have no Python module cklog\nhint: --ship puts it there")
