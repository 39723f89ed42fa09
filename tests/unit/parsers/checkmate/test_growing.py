"""A snapshot that grows once the dump was listed is read as it was then, by every task."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import pytest

from cklog.engine.local import LocalEngine
from cklog.engine.scan import Scan
from cklog.inputs.tables import as_it_is
from cklog.model.schemas import CHECKPOINTS
from cklog.parsers.checkmate.parser import CheckMate
from cklog.storage import Root
from tests.conftest import SAMPLES


@pytest.mark.parametrize("split_bytes", [1, 1 << 30])
def test_what_is_written_after_the_listing_is_read_by_no_task(split_bytes: int, tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    shutil.copytree(SAMPLES / "checkmate-uncoordinated", dump)
    listed = pickle.loads(pickle.dumps([*CheckMate(Root(str(dump))).splits("checkpoints", split_bytes)]))
    snapshots = sorted((dump / "universalis-snapshots").iterdir())
    for path in snapshots:
        path.write_bytes(path.read_bytes() + b"\n")
    shutil.copy(snapshots[-1], snapshots[-1].with_name("snapshot_1_join_1767225699999.bin"))
    columns = ("operator", "subtask", "checkpoint")
    schema = CHECKPOINTS.empty_table().select(list(columns)).schema
    found = LocalEngine().run(Scan(tuple(listed), "checkpoints", columns, as_it_is, schema, None))
    assert not found.damage
    assert found.table.num_rows == len(snapshots)
