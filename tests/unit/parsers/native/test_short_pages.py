"""A page that holds less, or more, than its header states is damage of its file, however its rows are decoded.

Before loops decode a file, Arrow reads its first row, or it has read one of a file with the same footer. So the page
that is wrong is the last one of a column, or the dictionary of a file that comes after an intact one.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cklog.engine.scan import Damage, Split
from cklog.parsers.tables.parquet import READER, read
from tests.builders.compressed.short_pages import CODECS, Size, file_with_page
from tests.conftest import SAMPLES
from tests.loop_forms import forced
from tests.program import cklog

ROWS = 3_000
WAYS = ["plain", "as it stands"]
"""Decoded by Arrow, and by loops."""

SIZES: list[Size] = ["shorter", "longer"]
COLUMNS = ("channel", "seq", "bytes")


def log(first: int = 0) -> pa.Table:
    seq = np.arange(first, first + ROWS)
    return pa.table({"channel": ["payments/0->join/0"] * ROWS, "seq": seq, "bytes": 300 + (seq * 7919) % 1_000})


def rows_and_damage(path: Path, form: str) -> tuple[int, list[Damage]]:
    """How many rows a file has, and what is wrong with it, read after an intact file with the same footer."""
    rows, damage = 0, []
    for _ in forced(form):
        split = Split(str(path), path.name, READER, 0, 1, path.stat().st_size)
        for item in read(split, "channels", COLUMNS):
            if isinstance(item, Damage):
                damage.append(item)
            else:
                rows += item.num_rows
                assert item.to_pydict() == log().slice(item["seq"][0].as_py(), item.num_rows).to_pydict()
    return rows, damage


@pytest.mark.parametrize("form", WAYS)
@pytest.mark.parametrize("dictionary", [False, True], ids=["values", "dictionary"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("codec", CODECS)
def test_every_row_is_right_or_the_file_is_damaged(
    codec: str, size: Size, dictionary: bool, form: str, tmp_path: Path
) -> None:
    intact, wrong = tmp_path / "intact.parquet", tmp_path / "wrong.parquet"
    intact.write_bytes(file_with_page(log(), codec, "bytes", None, dictionary))
    wrong.write_bytes(file_with_page(log(), codec, "bytes", size, dictionary))
    assert rows_and_damage(intact, form) == (ROWS, [])
    rows, damage = rows_and_damage(wrong, form)
    assert rows < ROWS
    assert [one.id for one in damage] == ["corrupt-file"]


@pytest.mark.parametrize("column", ["seq", "bytes"])
@pytest.mark.parametrize("codec", CODECS)
def test_an_answer_names_the_damaged_file_and_is_the_same_by_loops(codec: str, column: str, tmp_path: Path) -> None:
    """Numbers of memory that was not set once stood for sequence numbers: a hole in a log, or none, by chance."""
    run = tmp_path / "run"
    shutil.copytree(SAMPLES / "uncoordinated-join-parquet", run)
    path = run / "channels" / "big.parquet"
    answers: list[Any] = []
    for form in WAYS:
        for _ in forced(form):
            path.write_bytes(file_with_page(log(22), codec, column, None))
            assert cklog("recovery-line", run, "--json").code == 0
            path.write_bytes(file_with_page(log(22), codec, column, "shorter"))
            ended = cklog("recovery-line", run, "--json")
            answers.append((ended.code, json.loads(ended.out)))
    named = [f for f in answers[0][1]["findings"] if "channels/big.parquet" in json.dumps(f)]
    assert [f["id"] for f in named] == ["corrupt-file"]
    assert all(answer == answers[0] for answer in answers)
