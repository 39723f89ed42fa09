"""A LevelDB that becomes more than it may: refused before all of it is held."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bombs import MIB
from tests.measured import measured


def test_a_store_that_snappy_made_small(tmp_path: Path) -> None:
    """3 MB of files that hold 60 MB."""
    plyvel = pytest.importorskip("plyvel", reason="plyvel is not installed: no LevelDB can be made or read")
    database = plyvel.DB(str(tmp_path / "window"), create_if_missing=True)
    for number in range(1, 61):
        database.put(b"%d NON" % number, bytes(MIB))
    database.compact_range()
    database.close()
    assert sum(file.stat().st_size for file in (tmp_path / "window").iterdir()) < 4 * MIB
    ended = measured("chain", tmp_path, "--max-memory", "64MiB")
    assert (ended.code, ended.out) == (65, "")
    assert ended.err.startswith("cklog: window: what its ")
    assert "bytes of files become is over the budget of 16777216" in ended.err
    assert ended.peak < 200
