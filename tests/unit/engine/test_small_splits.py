"""Many small files: read in few tasks, their rows shown to the kernel together; counted file by file all the same."""

from __future__ import annotations

import json
import pickle
import tempfile
import threading
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklog.engine.local import LocalEngine
from cklog.engine.scan import Reduce, Scan, Split
from cklog.engine.spark import rows_of_tasks
from cklog.parsers.jsonl.reader import READER
from cklog.parsers.jsonl.small import MOST_BYTES, TOGETHER

_PARTIAL = pa.schema([("channel", pa.string()), ("rows", pa.int64())])
_FILES = 3000


def _splits(folder: Path) -> tuple[Split, ...]:
    """Write one record a file, every tenth without its newline's end: a torn tail; return the files as splits."""
    splits = []
    for number in range(_FILES):
        path = folder / f"{number:04}.jsonl"
        line = json.dumps({"channel": f"a/{number % 3}->b/0", "seq": number})
        path.write_text(line if number % 10 == 9 else line + "\n")
        size = path.stat().st_size
        splits.append(Split(uri=str(path), path=path.name, reader=READER, start=0, end=size, size=size))
    return tuple(splits)


def _scan(splits: tuple[Split, ...], columns: tuple[str, ...], seen: list[pa.RecordBatch]) -> Scan:
    def kernel(batch: pa.RecordBatch) -> pa.RecordBatch:
        seen.append(batch)
        names = batch["channel"].cast(pa.string())
        return pa.RecordBatch.from_arrays([names, pa.array([1] * len(names))], schema=_PARTIAL)

    reduce = Reduce(("channel",), {"rows": "sum"})
    return Scan(splits=splits, table="channels", columns=columns, kernel=kernel, partial=_PARTIAL, reduce=reduce)


def test_the_kernel_sees_the_rows_of_many_small_files_at_once(tmp_path: Path) -> None:
    """Three thousand files are a handful of batches; each file has its own count and its own damage."""
    seen: list[pa.RecordBatch] = []
    found = LocalEngine().run(_scan(_splits(tmp_path), ("channel", "seq"), seen))
    assert len(seen) <= 12
    counted = {row["channel"]: row["rows"] for row in found.table.to_pylist()}
    whole = [number for number in range(_FILES) if number % 10 != 9]
    assert counted == {f"a/{k}->b/0": sum(number % 3 == k for number in whole) for k in range(3)}
    assert found.records == {f"{number:04}.jsonl": 1 for number in whole}
    assert [damage.path for damage in found.damage] == [f"{n:04}.jsonl" for n in range(9, _FILES, 10)]


def test_a_kernel_that_asks_for_places_sees_one_file_at_a_time(tmp_path: Path) -> None:
    """Kernels over events take the file of a batch's first row for that of all."""
    seen: list[pa.RecordBatch] = []
    LocalEngine().run(_scan(_splits(tmp_path)[:40], ("channel", "seq", "_path"), seen))
    assert sorted(sorted(set(batch["_path"].to_pylist())) for batch in seen) == [
        [f"{number:04}.jsonl"] for number in range(40) if number % 10 != 9
    ]


def test_what_fits_one_task_is_read_without_another_thread(tmp_path: Path) -> None:
    """Starting a thread costs more than most of what is read of a small run; of many tasks each has its thread."""
    splits = _splits(tmp_path)

    def readers(few: tuple[Split, ...]) -> set[int]:
        ran: set[int] = set()
        scan = _scan(few, ("channel", "seq"), [])

        def kernel(batch: pa.RecordBatch) -> pa.RecordBatch:
            ran.add(threading.get_ident())
            return scan.kernel(batch)

        assert sum(LocalEngine().run(replace(scan, kernel=kernel)).records.values()) == len(few) * 9 // 10
        return ran

    assert readers(splits[:100]) == {threading.get_ident()}
    assert threading.get_ident() not in readers(splits)


_RECORD = b'{"channel": "a/%d->b/0", "seq": %d}\n'

BROKEN = (
    b"",
    b"\n",
    b"{}\n",
    b'{"channel": "a/0->b/0"}\n',
    b"\xff\xfe\n",
    b"\0" * 40,
    b'{"seq": 1',
    b"[1]\n\n",
    b"\r\n",
)
"""What a file may hold that is no record, or not one alone."""


@given(st.lists(st.lists(st.integers(0, 11), max_size=4), min_size=2, max_size=30))
def test_files_that_are_read_together_give_what_each_gives_alone(contents: list[list[int]]) -> None:
    """Rows, counts by file, and damage with its places, whatever the files hold."""
    with tempfile.TemporaryDirectory() as folder:
        splits = []
        for number, pieces in enumerate(contents):
            path = Path(folder, f"{number:02}.jsonl")
            lines = [BROKEN[piece] if piece < len(BROKEN) else _RECORD % (number % 3, piece) for piece in pieces]
            path.write_bytes(b"".join(lines))
            size = path.stat().st_size
            splits.append(Split(str(path), path.name, READER, 0, size, size, together=TOGETHER))
        alone = [replace(split, together="") for split in splits]
        found, expected = (LocalEngine().run(_scan(tuple(some), ("channel", "seq"), [])) for some in (splits, alone))
        assert sorted(map(str, found.table.to_pylist())) == sorted(map(str, expected.table.to_pylist()))
        assert found.records == expected.records
        assert sorted(map(repr, found.damage)) == sorted(map(repr, expected.damage))


def test_a_task_of_spark_gets_its_own_splits_and_no_others(tmp_path: Path) -> None:
    """Of 100,000 files the rest would be most of what a task has to read."""
    large = [Split(str(tmp_path / str(n)), str(n), READER, 0, 1 << 21, 1 << 21) for n in range(9000)]
    rows = rows_of_tasks(_scan((*_splits(tmp_path), *large), ("channel",), []))
    assert rows.num_rows <= 4096
    got = [split for row in rows["splits"].to_pylist() for task in pickle.loads(row) for split in task]
    assert [split.path for split in got] == [f"{n:04}.jsonl" for n in range(_FILES)] + [str(n) for n in range(9000)]
    sizes = [len(row) for row in rows["splits"].to_pylist()]
    assert max(sizes) < sum(sizes) / 4


def test_many_tasks_take_two_splits_each() -> None:
    """Few are not put together: each may have a core of its own."""
    for count, expected in ((64, 64), (65, 33), (4096, 2048), (8194, 2732)):
        large = tuple(Split(str(n), str(n), READER, 0, 1 << 26, 1 << 26) for n in range(count))
        assert rows_of_tasks(_scan(large, ("channel",), [])).num_rows == expected


@pytest.mark.parametrize("lines", [4, 4000])
@pytest.mark.parametrize("files", [1, 3])
@pytest.mark.parametrize("reduced", [True, False])
@pytest.mark.parametrize("wrong", [{}, {"seq": -1}, {"seq": "2"}, {"seq": None}])
def test_what_a_record_has_to_have_is_looked_at_though_nobody_asks(
    tmp_path: Path, lines: int, files: int, reduced: bool, wrong: dict[str, object]
) -> None:
    """However large the file is, and whether others lie beside it: of each its third line is no record."""
    splits = []
    for number in range(files):
        rows: list[dict[str, object]] = [{"channel": "a/0->b/0", "seq": n} for n in range(lines)]
        rows[2] = {"channel": "a/0->b/0", **wrong}
        path = tmp_path / f"{number}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        size = path.stat().st_size
        together = TOGETHER if size <= MOST_BYTES else ""
        splits.append(Split(str(path), path.name, READER, 0, size, size, together=together))
    scan = _scan(tuple(splits), ("channel",), [])
    found = LocalEngine().run(scan if reduced else replace(scan, reduce=None))
    assert [damage.id for damage in found.damage] == ["bad-record"] * files
    assert sum(found.records.values()) == files * (lines - 1)
