"""Settings of Numba, wherever they come from, change how fast rows are read and nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

_READ_ROWS = """
from cklog.runs.records import channel_logs
from cklog.arrays import loops
loops.FEW_ROWS = -1
import pyarrow as pa
batch = pa.RecordBatch.from_pydict({"channel": ["a", "b"] * 9, "seq": list(range(18)), "bytes": [1] * 18})
print(channel_logs.runs(batch).to_pydict())
"""

_LOAD_COMPILER = """
from cklog.arrays import loops
loops._numba()
from numba.core import config
config.reload_config()  # as each compilation does
print(config.DISABLE_JIT, config.DEBUG)
"""


def printed_by(program: str, cache: Path, directory: Path | None = None, environment: Mapping[str, str] = {}) -> str:
    """What a process prints that has nothing of this one's environment."""
    ended = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env={"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "XDG_CACHE_HOME": str(cache), **environment},
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert not ended.stderr
    return ended.stdout


@pytest.mark.quarter
@pytest.mark.parametrize(
    "setting", ["NUMBA_DISABLE_JIT=1", "NUMBA_NUM_THREADS=0", "NUMBA_NUM_THREADS=many", "NUMBA_CACHE_DIR=here"]
)
def test_settings_in_the_environment_do_not_change_the_rows(tmp_path: Path, setting: str) -> None:
    name, _, value = setting.partition("=")
    plain = printed_by("import sys; sys.modules['numba'] = None\n" + _READ_ROWS, tmp_path)
    assert plain.startswith("{")
    assert printed_by(_READ_ROWS, tmp_path, tmp_path, {name: value}) == plain
    assert not (tmp_path / "here").exists()


@pytest.mark.parametrize("text", ["disable_jit: [", "disable_jit: 1\ndebug: 1", "num_threads: 0"])
def test_settings_in_the_working_directory_are_not_read(tmp_path: Path, text: str) -> None:
    pytest.importorskip("yaml")
    (tmp_path / ".numba_config.yaml").write_text(text)
    assert printed_by(_LOAD_COMPILER, tmp_path / "cache", tmp_path) == "0 0\n"


@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "HOME"])
def test_no_machine_code_is_kept_in_the_working_directory(tmp_path: Path, variable: str) -> None:
    printed_by(_READ_ROWS, Path(), tmp_path, {"XDG_CACHE_HOME": "", variable: "here"})
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(("value", "reason"), [("1", "NUMBA_DISABLE_JIT is set\n"), ("0", "\n")])
def test_the_reason_for_loops_without_machine_code_is_known(tmp_path: Path, value: str, reason: str) -> None:
    program = "from cklog.arrays import loops; loops._numba(); print(loops.why_not_compiled())"
    assert printed_by(program, tmp_path, environment={"NUMBA_DISABLE_JIT": value}) == reason
