"""The budgets are shares of one number, which is in front of every command, and both engines keep to them."""

from __future__ import annotations

import gzip
import json
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cklog import budgets
from cklog.budgets import Budgets, check_nesting
from cklog.engine import local
from cklog.engine.local import LocalEngine
from cklog.engine.scan import Engine, Scan
from cklog.errors import OverBudget
from cklog.inputs.tables import WITH_PLACES, as_it_is
from cklog.parsers.native.parser import Native
from cklog.storage import Root
from tests.bombs import RECORD, run_with
from tests.measured import measured
from tests.program import cklog


def _few_texts(path: Path) -> None:
    """4 MB of text in a dictionary."""
    index, number = pa.array(np.zeros(20_000, np.int32)), pa.array(np.arange(2, 20_002))
    uri = pa.DictionaryArray.from_arrays(index, pa.array(["x" * 200]))
    table = pa.table({"operator": ["a"] * 20_000, "subtask": [0] * 20_000, "checkpoint": number, "uri": uri})
    pq.write_table(table, path / "x.parquet", compression="zstd")


SMALL: dict[str, Callable[[Path], object]] = {
    "Parquet, texts": _few_texts,
    "gzip": lambda path: (path / "x.jsonl.gz").write_bytes(gzip.compress(RECORD * 100_000)),
    "JSON, line": lambda path: (path / "x.jsonl").write_bytes(RECORD[:-2] + b" " * (20 << 20) + b"}\n"),
}


@pytest.mark.quarter
@pytest.mark.parametrize("case", SMALL)
def test_budgets_are_shares_of_max_memory(tmp_path: Path, case: str) -> None:
    """What is nothing by default is too much for a process that may take 64 MiB."""
    folder = run_with(tmp_path, SMALL[case])
    assert cklog("recovery-line", folder).code == 0
    assert cklog("recovery-line", folder, "--max-memory", "64MiB").code == 65
    assert cklog("recovery-line", folder).code == 0, "the budget of one call is not that of the next"


def test_too_little_memory_to_begin_with_is_wrong_usage(tmp_path: Path) -> None:
    assert cklog("recovery-line", run_with(tmp_path), "--max-memory", "1MiB").code == 2


def test_more_files_than_may_be_listed(tmp_path: Path) -> None:
    """64 MiB are enough for 16,384."""
    folder = run_with(tmp_path)
    (folder / "channels").mkdir()
    for number in range(16_400):
        (folder / f"channels/{number}").touch()
    ended = cklog("recovery-line", folder, "--max-memory", "64MiB")
    assert ended.code == 65
    assert "the number of files and folders below it is over the budget of 16384" in ended.err
    assert cklog("recovery-line", folder).code == 0


def test_a_run_of_zeros_is_damage_and_no_long_line(tmp_path: Path) -> None:
    """A crash leaves zeros where a file was made longer and not written: the rest is answered from."""
    folder = run_with(tmp_path)
    (folder / "checkpoints/x.jsonl").write_bytes(bytes(70 << 20) + b"\n" + RECORD.replace(b"1}", b"2}"))
    ended = measured("recovery-line", folder, "--json")
    assert ended.code == 3
    assert [f["id"] for f in json.loads(ended.out)["findings"]] == ["bad-record"]
    assert ended.peak < 350


@pytest.mark.slow
@pytest.mark.spark
def test_tasks_of_spark_have_the_same_budgets(tmp_path: Path, spark: Engine) -> None:
    """The budget in force travels with the scan, and what a task says comes back as the same error."""
    folder = run_with(tmp_path, SMALL["gzip"])
    path = folder / "checkpoints/x.jsonl.gz"
    parser = Native(Root(str(folder)))
    columns = tuple(WITH_PLACES.names)
    splits = tuple(parser.splits("checkpoints", 1 << 20))
    scan = Scan(splits=splits, table="checkpoints", columns=columns, kernel=as_it_is, partial=WITH_PLACES, reduce=None)
    said = set()
    for engine in (spark, LocalEngine()):
        budgets.use(Budgets(64 << 20))
        try:
            with pytest.raises(OverBudget) as error:
                engine.run(scan)
            said.add(error.value.message)
        finally:
            budgets.use(Budgets())
        assert engine.run(scan).records["checkpoints/x.jsonl.gz"] == 100_000
    size = path.stat().st_size
    assert said == {
        f"checkpoints/x.jsonl.gz: what its {size} compressed bytes become is over the budget of "
        f"{(1 << 20) + 256 * size} (--max-memory 64MiB)"
    }


@pytest.mark.parametrize("filled", ["x", '\\"'])
def test_how_deep_json_nests_is_told_in_the_memory_of_the_text(filled: str) -> None:
    """A text of megabytes among brackets: 100 bytes were kept for each of its characters."""
    text = '{"a":[' + "[]," * 600 + f'"{filled * 2_000_000}"]}}'
    tracemalloc.start()
    try:
        check_nesting(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * len(text)


def test_a_text_that_does_not_end_is_looked_at_once() -> None:
    """It was, from each quotation mark in it on, to the end."""
    before = time.process_time()
    check_nesting('"' + '\\"[' * 200_000)
    assert time.process_time() - before < 2
    with pytest.raises(OverBudget, match="nests"):
        check_nesting("[" * 501 + '"')


def test_a_refusal_says_what_would_be_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are kept and not merged: refused in the middle, and what all of them take is told from those so far."""
    table = pa.table({"operator": ["a"] * 800_000, "subtask": [0] * 800_000, "checkpoint": range(1, 800_001)})
    folder = run_with(tmp_path, lambda path: pq.write_table(table, path / "x.parquet", row_group_size=25_000))
    splits = tuple(Native(Root(str(folder))).splits("checkpoints", 1))
    columns = tuple(WITH_PLACES.names)
    scan = Scan(splits=splits, table="checkpoints", columns=columns, kernel=as_it_is, partial=WITH_PLACES, reduce=None)
    whole = LocalEngine().run(scan).table.nbytes
    told = []

    def noted(table: str, kept: int, share: float) -> OverBudget:
        told.append((kept, share))
        return budgets.too_much_kept(table, kept, share)

    monkeypatch.setattr(local, "too_much_kept", noted)
    budgets.use(Budgets(64 << 20))
    try:
        with pytest.raises(OverBudget, match=r"--max-memory 64MiB; some \d+GiB would do"):
            LocalEngine().run(scan)
    finally:
        budgets.use(Budgets())
    [(kept, share)] = told
    assert kept > 16 << 20
    assert share < 1
    assert 0.8 < kept / share / whole < 1.25
