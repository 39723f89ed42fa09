"""Files of results that a query goes on writing: what was listed is the file."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cklog.parsers.results.files import ResultFiles, read_times
from cklog.storage import Root


def lines(first: int, count: int) -> bytes:
    return b"".join(b'{"time": %d}\n' % number for number in range(first, first + count))


def times(found: ResultFiles, step: int = 1 << 20) -> list[int]:
    """All times that are read, in the order of the files."""
    read = []
    for split in found.splits(step):
        for batch in read_times(split, "", ("time",)):
            assert isinstance(batch, pa.RecordBatch), batch
            read += batch.column(0).to_pylist()
    return read


@pytest.mark.parametrize("name", ["part.jsonl", "part.jsonl.gz"])
@pytest.mark.parametrize("more", [1, 2000])
def test_what_is_written_after_the_listing_is_not_read(tmp_path: Path, name: str, more: int) -> None:
    """A compressed file that had grown was cut after as many bytes as were stored: most of it was left out."""
    pack = gzip.compress if name.endswith(".gz") else bytes
    (tmp_path / name).write_bytes(pack(lines(0, 2000)))
    found = ResultFiles(Root(str(tmp_path)))
    with (tmp_path / name).open("ab") as file:
        file.write(pack(lines(2000, more)))
    assert times(found) == [*range(2000)]


def test_a_parquet_file_that_was_replaced_by_a_longer_one_is_not_taken_for_the_first(tmp_path: Path) -> None:
    pq.write_table(pa.table({"time": [*range(2000)]}), tmp_path / "part.parquet")
    found = ResultFiles(Root(str(tmp_path)))
    splits = found.splits(1 << 20)
    pq.write_table(pa.table({"time": [*range(9000, 90000)]}), tmp_path / "part.parquet")
    read = [got for split in splits for got in read_times(split, "", ("time",))]
    assert not any(isinstance(got, pa.RecordBatch) and got.num_rows for got in read)


def test_a_folder_below_one_that_was_listed_is_as_it_was_then(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "part.jsonl").write_bytes(lines(0, 3))
    root = Root(str(tmp_path))
    root.list()
    (tmp_path / "results" / "part.jsonl").write_bytes(lines(0, 9))
    assert times(ResultFiles(root.below("results"))) == [0, 1, 2]
    assert times(ResultFiles(root.below("results", maps=()))) == [0, 1, 2]
