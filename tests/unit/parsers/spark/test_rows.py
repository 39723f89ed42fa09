"""The batches of a Spark checkpoint as rows, and state files in pieces."""

from __future__ import annotations

from pathlib import Path

import pytest

from cklog.parsers.spark.metadata_log import Damaged
from cklog.parsers.spark.parser import SparkCheckpoint
from cklog.parsers.spark.state import checksums
from cklog.storage import FileEntry, Root
from tests.builders.spark import SAMPLE, load


@pytest.mark.parametrize("time", [1795236748474, 0, 10**30])
def test_a_batch_has_the_times_of_its_plan_as_far_as_a_column_holds_them(time: int) -> None:
    files = load(SAMPLE, "")
    plan = files.files["ck/offsets/5"].replace(b"1795236748474", b"%d" % time)
    files.write("ck/offsets/5", plan)
    row = SparkCheckpoint(files).rows()[5]
    assert (row["batch"], row["time"], row["watermark"]) == (5, time if time < 2**63 else None, 1700000180000)


def test_a_large_file_is_read_in_pieces_to_its_listed_end(tmp_path: Path) -> None:
    data = bytes(range(256)) * (checksums.CHUNK_BYTES // 256) + b"the rest"
    (tmp_path / "state").write_bytes(data)
    root = Root(str(tmp_path))
    assert b"".join(checksums.read_chunks(root, FileEntry("state", len(data)))) == data
    with pytest.raises(Damaged):
        list(checksums.read_chunks(root, FileEntry("state", len(data) + 1)))
