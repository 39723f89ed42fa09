"""Loops: the same numbers from either form, also where 64 bits are too few, and whatever happens to the cache."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklog.arrays import loops
from cklog.arrays.loops import Loop, only_read
from cklog.arrays.types import Ints
from tests.loop_forms import FORMS, forced

BIGGEST = 2**63 - 1


@pytest.fixture(params=FORMS, scope="module", autouse=True)
def form(request: pytest.FixtureRequest) -> Iterator[str]:
    yield from forced(request.param)


def _sums(number: Ints, total: Ints) -> int:
    for i in range(len(number)):
        total[0] += number[i]
        total[i + 1] = number[i]
    return len(number)


SUMS = Loop(_sums)


@given(st.lists(st.integers(-BIGGEST - 1, BIGGEST), max_size=20))
def test_sums_are_those_of_64_bits(numbers: list[int]) -> None:
    total = np.zeros(len(numbers) + 1, np.int64)
    assert SUMS(len(numbers), only_read(np.array(numbers, np.int64)), total) == len(numbers)
    assert total[1:].tolist() == numbers
    assert (int(total[0]) - sum(numbers)) % 2**64 == 0


def _half(number: int) -> int:
    return number >> 1


def _halves(number: Ints, found: Ints) -> int:
    for i in range(len(number)):
        found[i] = _half(number[i])
    return len(number)


@given(st.lists(st.integers(-BIGGEST - 1, BIGGEST), max_size=20))
def test_a_loop_calls_its_parts(numbers: list[int]) -> None:
    found = np.zeros(len(numbers), np.int64)
    HALVES(len(numbers), only_read(np.array(numbers, np.int64)), found)
    assert found.tolist() == [number // 2 for number in numbers]


HALVES = Loop(_halves, (_half,))


def test_the_form_is_the_one_that_was_asked_for(form: str) -> None:
    loop = Loop(_sums)
    loop(1, only_read(np.array([1])), np.zeros(2, np.int64))
    assert bool(loop._machine) == (form == "compiled")


_CHILD = """
import sys, numpy as np
from cklog.runs.records import channel_logs
from cklog.arrays import loops
loops.FEW_ROWS = {few}
{before}
import pyarrow as pa
batch = pa.RecordBatch.from_pydict({{"channel": ["a", "b"] * 9, "seq": list(range(18)), "bytes": [1] * 18}})
print(channel_logs.runs(batch).to_pydict(), "numba" in sys.modules)
"""


def _child(cache: Path, few: int = -1, before: str = "") -> str:
    told = subprocess.run(
        [sys.executable, "-c", _CHILD.format(few=few, before=before)],
        env={"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "XDG_CACHE_HOME": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    return told.stdout


def test_few_rows_load_no_compiler(tmp_path: Path) -> None:
    assert _child(tmp_path, few=100).endswith("False\n")
    assert not [*tmp_path.iterdir()]


def test_without_a_compiler_the_rows_are_the_same(tmp_path: Path) -> None:
    without = _child(tmp_path, before="sys.modules['numba'] = None")
    assert without == _child(tmp_path)


def test_a_cache_that_is_damaged_or_cannot_be_made_costs_time_only(tmp_path: Path) -> None:
    good = _child(tmp_path)
    made = [path for path in tmp_path.rglob("*") if path.suffix in (".nbi", ".nbc")]
    assert len(made) == 2
    for path in made:
        path.write_bytes(b"no pickle")
    assert _child(tmp_path) == good
    blocked = tmp_path / "file"
    blocked.touch()
    assert _child(blocked) == good


def test_a_cache_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / "cklog" / "loops"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert _child(tmp_path)
    assert not [*folder.iterdir()]


def test_the_cache_is_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = Path(loops._cache_folder())
    assert folder.stat().st_mode & 0o777 == 0o700


def test_where_one_loop_has_loaded_the_compiler_others_are_compiled_sooner(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if form == "plain":
        pytest.skip("what is asked here says itself how many rows are few")
    monkeypatch.setattr(loops, "FEW_ROWS", 1280)
    loops._numba()
    loop, found = Loop(_halves, (_half,)), np.zeros(1, np.int64)
    for rows, compiled in ((10, False), (10, False), (11, True)):
        loop(rows, only_read(np.array([4])), found)
        assert bool(loop._machine) == compiled
