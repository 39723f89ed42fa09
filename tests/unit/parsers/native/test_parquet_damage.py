"""Parquet with a byte of a page's header wrong: every row is there, or it is told that some are not."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.fuzz.corpus import join_parquet
from tests.program import cklog

FILES = join_parquet()
NAME = "checkpoints/sink.parquet"
ROWS = 4


def chunk_starts(path: Path) -> list[int]:
    group = pq.read_metadata(path).row_group(0)
    columns = [group.column(k) for k in range(group.num_columns)]
    return [min(c.data_page_offset, c.dictionary_page_offset or c.data_page_offset) for c in columns]


@pytest.mark.quarter
@pytest.mark.parametrize("bit", range(8))
def test_no_row_gets_lost_unsaid(bit: int, tmp_path: Path) -> None:
    """A header is in no checksum: one that says of a page that it holds less makes the library stop early."""
    path = tmp_path / NAME
    path.parent.mkdir()
    path.write_bytes(FILES[NAME])
    whole, found = FILES[NAME], set()
    for start in chunk_starts(path):
        for at in range(start, start + 14):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
            ended = cklog("inspect", tmp_path, "--json")
            assert ended.code in (0, 3, 5, 65), (at, ended.err)
            answer = json.loads(ended.out) if ended.out else {"inputs": [], "findings": []}
            read = [used["records"] for used in answer["inputs"]]
            told = {f["id"] for f in answer["findings"]}
            assert read in ([ROWS], []) or told & {"corrupt-file", "bad-record", "unknown-version"}, (at, read)
            found.add((ended.code, tuple(read)))
    assert (3, (0,)) in found


@pytest.mark.parametrize("size", [1, 2])
def test_indices_that_lead_out_of_their_dictionary_are_damage(size: int, tmp_path: Path) -> None:
    """A dictionary page that says that it holds fewer values: its indices still count as many as there were."""
    path = tmp_path / NAME
    path.parent.mkdir()
    rows = [{"operator": f"a{number}", "checkpoint": number} for number in range(1, 5)]
    pq.write_table(pa.Table.from_pylist(rows), path)
    whole, ends = path.read_bytes(), set()
    for at in range(chunk_starts(path)[0], chunk_starts(path)[0] + 14):
        path.write_bytes(whole[:at] + bytes([2 * size]) + whole[at + 1 :])
        ends.add(cklog("recovery-line", tmp_path, "--json").code)
    assert ends <= {0, 3, 65}
