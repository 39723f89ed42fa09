"""Progress: what is told of a stage, against the sizes of the files that lie there."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cklog.engine.local import LocalEngine
from cklog.engine.scan import Scan
from cklog.inputs.tables import as_it_is
from cklog.model.schemas import MESSAGES
from cklog.parsers.native.parser import Native
from cklog.progress import Stage, stage, watched_by
from cklog.storage import Root
from tests.builders.native import zstd
from tests.golden.cases import CASES
from tests.program import cklog


class Watch:
    """Remembers stages, as they were when they ended."""

    def __init__(self) -> None:
        self.open: list[Stage] = []
        self.ended: list[Stage] = []

    def begin(self, stage: Stage) -> None:
        self.open.append(stage)

    def end(self, stage: Stage) -> None:
        assert self.open.pop() is stage
        self.ended.append(stage)


ROWS = 300_000


def write(folder: Path, form: str) -> int:
    """Write a log of some 20 MB when plain, in the form of a suffix; return the bytes that reading it costs."""
    path = folder / "channels" / f"a{form}"
    path.parent.mkdir()
    rows = [{"channel": "a/0->b/0", "seq": n, "time": 1_767_225_600_000 + n, "bytes": 100} for n in range(ROWS)]
    if form == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=ROWS // 10)
        metadata = pq.read_metadata(path)
        return sum(metadata.row_group(k).total_byte_size for k in range(metadata.num_row_groups))
    plain = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(plain) if form == ".jsonl.gz" else zstd(plain) if form == ".jsonl.zst" else plain)
    return path.stat().st_size


@pytest.mark.quarter
@pytest.mark.parametrize("split_bytes", [1 << 20, 1 << 30])
@pytest.mark.parametrize("form", [".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet"])
def test_a_scan_counts_the_bytes_of_its_files_once(tmp_path: Path, form: str, split_bytes: int) -> None:
    """And it does while a split is read, not only when it is done."""
    size = write(tmp_path, form)
    splits = tuple(Native(Root(str(tmp_path))).splits("channels", split_bytes))
    watch, seen = Watch(), []

    def kernel(batch: pa.RecordBatch) -> pa.RecordBatch:
        seen.append(watch.open[-1].done)
        return batch.slice(0, 0)

    scan = Scan(splits, "channels", ("channel", "seq"), kernel, MESSAGES.empty_table().select([0, 1]).schema, None)
    with watched_by(watch):
        found = LocalEngine().run(scan)
    assert sum(found.records.values()) == ROWS
    (told,) = watch.ended
    assert (told.total, told.done, told.splits, told.by) == (size, size, len(splits), "local")
    assert any(0 < done < size for done in seen)
    assert len(splits) > 1 or seen == sorted(seen)


def test_every_stage_of_every_answer_ends_within_its_total() -> None:
    for case in CASES.values():
        watch = Watch()
        with watched_by(watch):
            cklog(*case.split())
        assert not watch.open
        for told in watch.ended:
            assert told.total is None or 0 <= told.done <= told.total, (case, told.what)
            assert not told.what.startswith("scanning") or told.total in (None, told.done), (case, told.what)


def test_a_stage_that_fails_has_ended() -> None:
    watch = Watch()
    with pytest.raises(OSError, match="gone"), watched_by(watch), stage("reading", "bytes", 9):
        raise OSError("gone")
    assert [told.what for told in watch.ended] == ["reading"]


def test_nobody_is_told_who_does_not_watch(tmp_path: Path) -> None:
    write(tmp_path, ".jsonl")
    watch = Watch()
    with watched_by(watch):
        pass
    splits = tuple(Native(Root(str(tmp_path))).splits("channels", 1 << 20))
    columns = ("channel", "seq")
    LocalEngine().run(
        Scan(splits, "channels", columns, as_it_is, pa.schema([MESSAGES.field(n) for n in columns]), None)
    )
    assert not watch.ended


def test_a_stage_inside_another_is_told_inside() -> None:
    order: list[str] = []

    class Order:
        def begin(self, stage: Stage) -> None:
            order.append(f"+{stage.what}")

        def end(self, stage: Stage) -> None:
            order.append(f"-{stage.what}")

    def steps() -> Iterator[str]:
        with stage("outer"):
            with stage("inner"):
                yield "x"
            yield "y"

    with watched_by(Order()):
        assert [*steps()] == ["x", "y"]
    assert order == ["+outer", "+inner", "-inner", "-outer"]
