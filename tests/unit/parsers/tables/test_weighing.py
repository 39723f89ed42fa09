"""Rows of Parquet files are taken a few at a time where one of them may be large, and texts are weighed as written."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cklog.arrays import loops
from cklog.budgets import Budgets
from cklog.errors import OverBudget
from cklog.parsers.tables import parquet_batches
from cklog.parsers.tables.parquet_batches import ParquetRows
from tests.loop_forms import FORMS, forced


def batches_of(path: Path, most: int) -> list[pa.RecordBatch]:
    with pa.OSFile(str(path)) as handle:
        return list(ParquetRows(handle, pq.read_metadata(path), str(path)).batches(0, most))


def with_batch_budget(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    class Chosen(Budgets):
        """The usual ones, but for batches."""

        @property
        def batch(self) -> int:
            return size

    monkeypatch.setattr(parquet_batches, "budgets", Chosen)


@pytest.mark.parametrize("budget", [800, 8_000, 80_000])
def test_no_batch_is_larger_than_its_budget(budget: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """1000 rows of a number (8 bytes) and a text (100 bytes): the larger column decides."""
    path = tmp_path / "x.parquet"
    table = pa.table({"n": range(1000), "t": [f"{n:0100}" for n in range(1000)]})
    pq.write_table(table, path, use_dictionary=False)
    with_batch_budget(monkeypatch, budget)
    found = batches_of(path, 512)
    assert pa.Table.from_batches(found).equals(table)
    sizes = [batch.num_rows for batch in found]
    most = min(512, budget // 100)
    assert max(sizes) <= most
    assert max(sizes) > most // 2, "nor much smaller than need be"


@pytest.mark.parametrize("kind", ["text", "list", "map", "struct"])
def test_a_text_of_a_dictionary_weighs_as_often_as_it_is_there(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2000 bytes in each of 100 rows, stored once: 200 kB as they are written out, which is over 50 kB."""
    path = tmp_path / "x.parquet"
    text = "x" * 2000
    rows = {
        "text": pa.array([text] * 100),
        "list": pa.array([[text]] * 100, pa.list_(pa.string())),
        "map": pa.array([[("k", text)]] * 100, pa.map_(pa.string(), pa.string())),
        "struct": pa.array([{"a": 1, "t": text}] * 100, pa.struct([("a", pa.int64()), ("t", pa.string())])),
    }[kind]
    pq.write_table(pa.table({"t": rows}), path)
    assert path.stat().st_size < 10_000
    with_batch_budget(monkeypatch, 50_000)
    with pytest.raises(OverBudget):
        batches_of(path, 100)
    with_batch_budget(monkeypatch, 400_000)
    assert sum(batch.num_rows for batch in batches_of(path, 100)) == 100


@pytest.mark.parametrize("form", FORMS)
def test_texts_that_repeat_what_stands_before_them_are_weighed_in_either_form(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1000 texts of 4,000 bytes, of which all but a few bytes are the text before: a page of 20 kB holds 4 MB."""
    path = tmp_path / "x.parquet"
    texts = pa.table({"t": ["x" * 4000 + f"{n:04}" for n in range(1000)]})
    pq.write_table(texts, path, use_dictionary=False, column_encoding={"t": "DELTA_BYTE_ARRAY"})
    assert path.stat().st_size < 40_000
    with_batch_budget(monkeypatch, 400_000)
    for _ in forced(form):
        assert max(batch.num_rows for batch in batches_of(path, 1000)) <= 100


@pytest.mark.parametrize("rows", [[None, None], [None, {"app": "a"}]])
def test_members_of_a_struct_that_is_null_are_no_values(tmp_path: Path, rows: list[dict[str, str] | None]) -> None:
    """A member that may not be null itself has no text in a dictionary where its struct is null, and is no damage."""
    path = tmp_path / "x.parquet"
    kind = pa.struct([pa.field("app", pa.string(), nullable=False)])
    pq.write_table(pa.table({"txn": pa.array(rows, kind)}), path)
    (batch,) = batches_of(path, 512)
    assert batch.column("txn").to_pylist() == rows


def test_a_row_group_that_arrow_finds_empty_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pyarrow writes such files of nested columns and tiny pages, and cannot read them itself."""
    monkeypatch.setattr(loops, "FEW_ROWS", -1)
    kinds = pa.schema([("seq", pa.int64()), ("more", pa.list_(pa.int64()))])
    path = tmp_path / "0.parquet"
    rows = pa.Table.from_pylist([{"seq": 7, "more": [1]}], kinds)
    pq.write_table(rows, path, data_page_size=1, write_batch_size=1)
    with pa.OSFile(str(path)) as handle:
        read = ParquetRows(handle, pq.read_metadata(path), str(path))
        assert sum(batch.num_rows for batch in read.batches(0, 10)) == 0
