"""Small Parquet files that stand for much: refused by what the headers of their pages say, before it is made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.bombs import one_text_in_every_row, run_with
from tests.measured import measured


def _values(path: Path) -> None:
    """A map of four million entries in one row."""
    count = 4_000_000
    keys = pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int8)), pa.array(["a/0->b/0"]))
    sent = pa.MapArray.from_arrays(pa.array([0, count], pa.int32()), keys, pa.array(np.zeros(count, np.int64)))
    table = pa.table({"operator": ["a"], "subtask": [0], "checkpoint": [1], "sent": sent})
    pq.write_table(table, path, compression="zstd")


def _page(path: Path) -> None:
    """A page of 60 MB of zeros."""
    table = pa.table({"operator": pa.array(["\0" * 60_000_000]), "subtask": [0], "checkpoint": [1]})
    pq.write_table(table, path, compression="zstd", use_dictionary=False)


def _prefixes(path: Path) -> None:
    """Texts that each begin with the whole text before them: 60,000 bytes, 5,000 times."""
    texts = pa.array(["x" * 60_000] * 5_000, pa.large_string())
    number = pa.array(np.zeros(5_000, np.int64))
    table = pa.table({"operator": texts, "subtask": number, "checkpoint": number})
    pq.write_table(
        table, path, use_dictionary=False, compression="zstd", column_encoding={"operator": "DELTA_BYTE_ARRAY"}
    )


def _rows(path: Path) -> None:
    """10 million rows of which nothing is stored but that they are all alike."""
    count = 10_000_000
    number = pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([1]))
    pq.write_table(
        pa.table({"subtask": number}), path, compression="zstd", row_group_size=count, max_rows_per_page=count
    )


BOMBS: dict[str, tuple[Callable[[Path], None], str]] = {
    "texts": (lambda path: one_text_in_every_row(path, 120_000), "what the texts of a batch of rows take"),
    "values": (_values, "the number of values in column sent.key_value.key"),
    "page": (_page, "what the pages of a row group become"),
    "rows": (_rows, "the number of rows, 10000000 in "),
}


@pytest.mark.quarter
@pytest.mark.parametrize("case", BOMBS)
def test_a_small_file_that_asks_for_much_is_refused(tmp_path: Path, case: str) -> None:
    """Exit 65, a line with the file, what, the budget, and one with what to do; no answer at all."""
    write, what = BOMBS[case]
    folder = run_with(tmp_path, lambda path: write(path / "x.parquet"))
    assert (folder / "checkpoints/x.parquet").stat().st_size < 200_000
    ended = measured("recovery-line", folder, "--max-memory", "256MiB")
    assert (ended.code, ended.out) == (65, "")
    why, hint = ended.err.splitlines()
    assert why.startswith(f"cklog: checkpoints/x.parquet: {what}")
    assert "is over the budget of " in why
    assert "--max-memory" in hint
    assert ended.peak < 300


def test_texts_that_begin_as_the_one_before_are_read_a_few_at_a_time(tmp_path: Path) -> None:
    """300 MB of text in all, in a file of some kB."""
    folder = run_with(tmp_path, lambda path: _prefixes(path / "x.parquet"))
    assert (folder / "checkpoints/x.parquet").stat().st_size < 2_000_000
    ended = measured("recovery-line", folder, "--max-memory", "64MiB")
    assert ended.code in (0, 3, 65)
    assert ended.peak < 250


def test_2_kb_that_stand_for_1_2_gb(tmp_path: Path) -> None:
    """By default, too."""
    folder = run_with(tmp_path, lambda path: one_text_in_every_row(path / "x.parquet", 120_000, length=10_000))
    assert (folder / "checkpoints/x.parquet").stat().st_size < 3_000
    ended = measured("recovery-line", folder)
    assert (ended.code, ended.out) == (65, "")
    assert ended.peak < 300


@pytest.mark.slow
@pytest.mark.spark
def test_a_task_of_spark_refuses_it_as_well(tmp_path: Path, spark: object) -> None:
    """`spark` is asked for as it knows whether there is a Java; the program starts a session of its own."""
    folder = run_with(tmp_path, lambda path: one_text_in_every_row(path / "x.parquet", 120_000, length=10_000))
    ended = [measured("recovery-line", folder, "--engine", engine) for engine in ("local", "spark")]
    assert [one.code for one in ended] == [65, 65]
    assert ended[0].err == ended[1].err
    assert ended[1].peak < 500
