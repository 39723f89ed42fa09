"""Every file of a sample emptied, cut, flipped or dropped: no traceback, nothing newer, nothing silent."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import SAMPLES
from tests.oracles.folder_damage import ask, injure

NATIVE = ["domino-cycle", "uncoordinated-join", "uncoordinated-join-parquet"]


@pytest.mark.slow
@pytest.mark.parametrize("sample", NATIVE)
def test_much_damage_does_no_more(sample: str, tmp_path: Path) -> None:
    injure(sample, tmp_path, seed=11, rounds=25)


@pytest.mark.parametrize("sample", [NATIVE[0], *(pytest.param(one, marks=pytest.mark.slow) for one in NATIVE[1:])])
def test_damage_never_makes_the_line_newer_or_goes_unsaid(sample: str, tmp_path: Path) -> None:
    injure(sample, tmp_path, seed=7, rounds=4)


def test_a_dropped_file_with_a_checksum_file_is_missed(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(SAMPLES / "uncoordinated-join-parquet", copy)
    (copy / "checkpoints" / "join.parquet").unlink()
    found = ask(copy)
    assert "missing-file" in {f.id for f in found.findings}
