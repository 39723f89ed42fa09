"""Footers of Parquet files: read as pyarrow reads whole ones; damaged ones are told, and never end the process."""

from __future__ import annotations

import io
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cklog.parsers.tables.compact import Compact
from cklog.parsers.tables.footers import bounds_of, footer_in, read_footer
from cklog.parsers.tables.parquet import row_groups
from cklog.parsers.tables.parquet_versions import require_known_footer
from tests.conftest import REPOSITORY
from tests.fuzz.corpus import join_parquet
from tests.program import cklog

FILES = join_parquet()


def by_pyarrow(data: bytes) -> list[dict[str, tuple[int, int]]]:
    """The bounds of plain 64-bit integers, as pyarrow tells them of a file that is whole."""
    found = []
    footer = pq.read_metadata(pa.BufferReader(data))
    for at in range(footer.num_row_groups):
        group = footer.row_group(at)
        columns = [group.column(k) for k in range(group.num_columns)]
        noted = [c for c in columns if c.physical_type == "INT64" and "." not in c.path_in_schema and c.is_stats_set]
        found.append(
            {c.path_in_schema: (c.statistics.min, c.statistics.max) for c in noted if c.statistics.has_min_max}
        )
    return found


def written(table: pa.Table, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file.getvalue()


def tables() -> list[tuple[pa.Table, dict[str, Any]]]:
    dice = random.Random(4)
    numbers = [dice.choice((None, -(2**63), 2**63 - 1, 0, dice.randrange(10**9))) for _ in range(200)]
    texts = [dice.choice((None, "", "a->b", "ü" * 40)) for _ in range(200)]
    wide = pa.table({f"column {k}": numbers for k in range(40)})
    kinds = {"seq": numbers, "text": texts, "real": [0.5] * 200, "yes": [True, None] * 100, "nothing": [None] * 200}
    nested = {"list": [[1, 2], None] * 100, "object": [{"seq": 1, "deep": {"x": [{"y": 1}]}}] * 200}
    return [
        (pa.table(kinds | nested), {"row_group_size": 30}),
        (pa.table(kinds), {"write_statistics": False}),
        (pa.table(kinds), {"version": "1.0", "compression": "none", "write_page_index": True}),
        (wide, {"row_group_size": 7}),
        (wide.slice(0, 0), {}),
        (wide.replace_schema_metadata({"key": "value" * 5000}), {"store_schema": False}),
    ]


@pytest.mark.parametrize("case", range(6))
def test_what_a_footer_notes_is_what_pyarrow_reads_there(case: int) -> None:
    table, options = tables()[case]
    data = written(table, **options)
    found = read_footer(pa.BufferReader(data))
    assert found is not None
    chunks = found.chunks
    assert [bounds_of(row) for row in chunks] == by_pyarrow(data)
    about = pq.read_metadata(pa.BufferReader(data))
    groups = [about.row_group(i) for i in range(about.num_row_groups)]
    columns = [[group.column(k) for k in range(about.num_columns)] for group in groups]
    assert [[(b".".join(c.path).decode(), c.start, c.size, c.dictionary) for c in row] for row in chunks] == [
        [
            (
                c.path_in_schema,
                min(at for at in (c.data_page_offset, c.dictionary_page_offset) if at),
                c.total_compressed_size,
                c.has_dictionary_page,
            )
            for c in row
        ]
        for row in columns
    ]


def test_row_groups_that_are_not_wanted_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    path.write_bytes(written(pa.table({"seq": range(100), "size": range(100)}), row_group_size=10))
    found = row_groups(
        str(path), "log.parquet", path.stat().st_size, 1, lambda noted: noted["seq"][1] >= 35 and noted["size"][0] < 70
    )
    assert [(split.start, split.end) for split in found] == [(3, 4), (4, 5), (5, 6), (6, 7)]


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.uint64(), pa.duration("ms"), pa.decimal128(38, 2)])
def test_integers_that_stand_for_something_else_refuse_nothing(kind: pa.DataType, tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    path.write_bytes(written(pa.table({"seq": pa.array([1, 2], pa.int64()).cast(kind, safe=False)})))
    assert len([*row_groups(str(path), "log.parquet", path.stat().st_size, 1, lambda noted: noted == {})]) == 1


def test_a_name_that_is_no_utf8_is_a_fault_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints" / "a.parquet"
    path.parent.mkdir()
    whole = written(pa.table({"operator": ["a"], "checkpoint": [1], "colour": [1]}), store_schema=False)
    path.write_bytes(whole.replace(b"colour", b"col\xffur"))
    (path.parent / "b.jsonl").write_bytes(b'{"operator":"b","checkpoint":1}\n')
    ended = cklog("inspect", tmp_path, "--json")
    assert ended.code == 3, ended.err
    assert [(f["id"], f["subject"]) for f in json.loads(ended.out)["findings"]] == [
        ("corrupt-file", "checkpoints/a.parquet")
    ]


def test_any_bytes_are_a_footer_or_none() -> None:
    """No bytes make the reader of footers fail, or take long: lengths and counts are held against what is there."""
    dice = random.Random(1)
    whole = written(tables()[0][0])
    for _ in range(3000):
        data = bytearray(whole[-2000:-8])
        for _ in range(dice.randrange(1, 6)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        footer_in(bytes(data))
    assert footer_in(b"\x1c" * 100_000) is None, "structs in structs"
    assert footer_in(b"\x19" + b"\x19" * 100_000) is None, "lists in lists"
    assert footer_in(b"\x19\xf1\xff\xff\xff\xff\x0f\0") is None, "a list of more than there is"
    assert footer_in(b"\x1b\xff\xff\xff\xff\x0f\x11\0") is None, "a map of more than there is"


_TRIED = """
import sys
from pathlib import Path
from cklog.parsers.tables import parquet
from tests.unit.parsers.tables.test_footers import FILES
path, whole = Path(sys.argv[1]), FILES["checkpoints/sink.parquet"]
first = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
told = 0
for at in range(first, len(whole) - 8):
    for value in {whole[at] ^ 2, whole[at] ^ 0x80}:
        path.write_bytes(whole[:at] + bytes([value]) + whole[at + 1:])
        try:
            splits = [*parquet.row_groups(str(path), path.name, path.stat().st_size, 1 << 30, lambda noted: True)]
        except parquet.UNREADABLE:
            continue
        for split in splits if at % 2 == 0 else []:
            told += len([*parquet.read(split, "checkpoints", ("operator", "sent", "_path"))])
print(told)
"""


@pytest.mark.slow
def test_a_wrong_byte_in_a_footer_never_ends_the_process(tmp_path: Path) -> None:
    """What pyarrow throws of an entry of a column nobody catches; its names need be no UTF-8."""
    command = [sys.executable, "-c", _TRIED, str(tmp_path / "log.parquet")]
    ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-500:]
    assert int(ended.stdout) > 300


def test_a_footer_is_looked_at_once_for_all_splits_of_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    data = written(pa.table({f"decoded once {i}": [i] for i in range(9)}))
    decoded: list[Compact] = []
    leading = Compact.leading

    def counted(self: Compact, fields: Any) -> Any:
        decoded.append(self)
        return leading(self, fields)

    monkeypatch.setattr(Compact, "leading", counted)
    for _ in range(3):
        require_known_footer(pa.BufferReader(data))
    assert len(decoded) == 1
    later = data.replace(b"decoded once 3", b"decoded once x")  # another file of the same size
    require_known_footer(pa.BufferReader(later))
    assert len(decoded) == 2
