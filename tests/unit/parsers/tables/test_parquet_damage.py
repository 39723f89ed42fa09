"""Damaged Parquet files of a run folder: one finding with the file's name, never an internal error."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import crc32c
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import SAMPLES
from tests.program import cklog
from tests.users import open_to_all, somebody_else

QUEUE = "outputs/agg1/part-00000.parquet"
CORRUPT_INPUT, INDETERMINATE = 65, 5


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = open_to_all(tmp_path) / "run"
    shutil.copytree(SAMPLES / "cec-aggregate-parquet", home)
    return home


def asked(
    home: Path, question: str = "eventual-checkpoint", operator: tuple[str, ...] = ("--operator", "agg1")
) -> tuple[int, str]:
    """The exit code of a question, and its findings or what the error says."""
    ran = cklog(question, home, *operator, "--json")
    found: dict[str, Any] = json.loads(ran.out or ran.err.strip().splitlines()[-1])
    return ran.code, json.dumps(found.get("findings", found))


def test_the_undamaged_folder_has_an_answer(home: Path) -> None:
    assert asked(home) == (0, "[]")


def test_json_that_is_stored_as_bytes_is_damage(home: Path) -> None:
    """A footer that lost what says that a column is text: its values are bytes then."""
    table = pq.read_table(home / QUEUE)
    at = table.column_names.index("state")
    bytes_of = pa.array([None if text is None else text.encode() for text in table["state"].to_pylist()], pa.binary())
    pq.write_table(table.set_column(at, "state", bytes_of), home / QUEUE)
    code, findings = asked(home)
    assert (code, QUEUE in findings) == (CORRUPT_INPUT, True)


def _chunk(path: Path, table: pa.Table, column: str) -> tuple[int, int]:
    """Write a table, and return where the pages of a column lie: first byte, byte behind."""
    pq.write_table(table, path, compression="none")
    found = pq.read_metadata(path).row_group(0).column(table.column_names.index(column))
    return found.dictionary_page_offset, found.dictionary_page_offset + found.total_compressed_size


def test_pages_with_more_values_than_the_footer_says_are_damage(home: Path, tmp_path: Path) -> None:
    """Pages of another file in the place of a column's: as many bytes, and each can be read, though not to its end."""
    table = pq.read_table(home / QUEUE)
    at = table.column_names.index("bytes")
    more = pa.concat_tables([table, table.slice(0, 100)])
    more = more.set_column(at, "bytes", pa.array([7] * more.num_rows, pa.int64()))
    first, end = _chunk(home / QUEUE, table, "bytes")
    start, behind = _chunk(tmp_path / "other.parquet", more, "bytes")
    assert end - first == behind - start
    assert asked(home, "extent") == (0, "[]")
    data = (home / QUEUE).read_bytes()
    (home / QUEUE).write_bytes(data[:first] + (tmp_path / "other.parquet").read_bytes()[start:behind] + data[end:])
    code, findings = asked(home, "extent")
    assert (code, QUEUE in findings) == (CORRUPT_INPUT, True)


def test_a_damaged_footer_is_told_where_the_checksums_beside_it_may_not_be_read(home: Path) -> None:
    damaged = bytearray((home / QUEUE).read_bytes())
    length = struct.unpack_from("<I", damaged, len(damaged) - 8)[0]
    damaged[-8 - length : -8] = bytes(length)
    (home / QUEUE).write_bytes(damaged)
    sums = home / "outputs/agg1/.part-00000.parquet.crc"
    pieces = (damaged[at : at + 512] for at in range(0, len(damaged), 512))
    sums.write_bytes(b"crc\0" + struct.pack(">I", 512) + b"".join(struct.pack(">I", crc32c.crc32c(p)) for p in pieces))
    sums.chmod(0)
    asked(home, "inspect", ())  # loads what inspect needs
    with somebody_else():
        code, findings = asked(home, "inspect", ())
    assert (code, QUEUE in findings, "corrupt-file" in findings) == (INDETERMINATE, True, True)


def test_a_column_that_is_there_twice_is_damage(home: Path) -> None:
    """Which of them is meant nobody can tell; mixed pages of texts are read a second time, by the name."""
    table = pq.read_table(home / QUEUE)
    pq.write_table(table.append_column("state", table["state"]), home / QUEUE)
    code, findings = asked(home)
    assert (code, QUEUE in findings) == (CORRUPT_INPUT, True)
    assert "it has 2 columns with the name state" in findings
