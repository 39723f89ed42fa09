"""Splits of CDC sources that read a database's log."""

from __future__ import annotations

import json

import pytest

from cklog.parsers.flink.cdc import cdc_split
from cklog.parsers.flink.java import Cursor, UnknownVersion
from cklog.parsers.flink.layouts import Cells, fitting
from tests.builders import flink as fb

POSITION = {"kind": "SPECIFIC", "file": "mysql-bin.000007", "pos": "154", "gtids": ""}


def position(found: object | None) -> bytes:
    return b"\0" if found is None else b"\1" + fb.blob(json.dumps(found).encode())


def split(
    version: int, start: object | None = POSITION, kind: int = 2, finished: int = 0, schemas: int = 0, tail: bytes = b""
) -> bytes:
    data = fb.i32(kind) + fb.utf("binlog-split") + fb.utf("") + position(start) + position(None) + fb.i32(finished)
    data += (fb.utf("db.t") + fb.utf("db.t:0") + fb.utf("[]") + fb.utf("[]") + position(POSITION)) * finished
    data += fb.i32(schemas) + (fb.utf("db.t") + fb.blob(b"{}")) * schemas
    data += fb.i32(finished) if version > 2 else b""
    data += b"\0" if version > 3 else b""
    return data + tail


def read(version: int, data: bytes) -> list[Cells] | None:
    found = fitting((cdc_split,), version, Cursor(data))
    return None if found is None else [cells for _, _, cells in found]


@pytest.mark.parametrize("version", [2, 3, 4, 5])
@pytest.mark.parametrize(("finished", "schemas"), [(0, 0), (2, 1)])
def test_the_position_of_a_split(version: int, finished: int, schemas: int) -> None:
    found = read(version, split(version, finished=finished, schemas=schemas))
    assert found == [{"name": "binlog-split", "kind": "cdc", "detail": json.dumps(POSITION, sort_keys=True)}]


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (1, split(4)),
        (4, split(3)),
        (4, split(4, kind=1)),
        (4, split(4, start=None)),
        (4, split(4, start=[1])),
        (4, split(4, start={"a": {"b": 1}})),
        (4, split(4, tail=b"\0")),
        (4, split(4)[:-3]),
        (4, split(4).replace(b"SPECIFIC", b"\xff" * 8)),
    ],
)
def test_what_is_laid_out_otherwise_is_not_read(version: int, data: bytes) -> None:
    assert read(version, data) is None


def test_what_fits_an_earlier_version_is_of_a_later_one() -> None:
    with pytest.raises(UnknownVersion, match="serializer version 6, though the bytes fit version 4"):
        read(6, split(4))


def test_a_position_that_nests_without_end_is_not_read() -> None:
    deep = fb.blob(b"[" * 100_000)
    assert read(4, split(4).replace(position(POSITION), b"\1" + deep, 1)) is None
