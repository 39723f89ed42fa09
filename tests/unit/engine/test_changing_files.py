"""Files that change between being listed and being read: what was listed is what is read, and what is gone is told."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from cklog.engine.scan import Damage, Split, reader_of
from cklog.parsers.jsonl.reader import READER

LINES = [json.dumps({"channel": "a/0->b/0", "seq": number}).encode() + b"\n" for number in range(500)]
WRITTEN = b"".join(LINES)
LATER = {"whole lines": b"".join(LINES[:100]), "a line's beginning": b'{"channel": "a/0->b/0', "a newline": b"\n"}
PACKED: dict[str, Callable[[bytes], bytes]] = {
    ".jsonl": bytes,
    ".jsonl.gz": lambda data: gzip.compress(data, mtime=0),
    ".jsonl.zst": lambda data: bytes(pa.compress(data, "zstd", asbytes=True)),
}


def read(path: Path, size: int, parts: int) -> tuple[list[int], list[Damage]]:
    """Read a file that had `size` bytes when it was listed, in so many splits."""
    bounds = [size * part // parts for part in range(parts + 1)]
    rows: list[int] = []
    damage: list[Damage] = []
    for start, end in itertools.pairwise(bounds):
        split = Split(str(path), path.name, READER, start, end, size)
        for item in reader_of(split)(split, "channels", ("channel", "seq")):
            if isinstance(item, Damage):
                damage.append(item)
            else:
                rows += item["seq"].to_pylist()
    return rows, damage


@pytest.mark.parametrize("later", LATER)
@pytest.mark.parametrize("parts", [1, 2, 7])
def test_what_is_written_after_the_listing_is_read_by_no_split(later: str, parts: int, tmp_path: Path) -> None:
    path = tmp_path / "part.jsonl"
    path.write_bytes(WRITTEN + LATER[later])
    assert read(path, len(WRITTEN), parts) == ([*range(500)], [])


@pytest.mark.parametrize("suffix", PACKED)
@pytest.mark.parametrize("later", LATER)
def test_neither_is_what_is_appended_to_a_compressed_file(suffix: str, later: str, tmp_path: Path) -> None:
    path = tmp_path / f"part{suffix}"
    stored = PACKED[suffix](WRITTEN)
    path.write_bytes(stored + PACKED[suffix](LATER[later]))
    rows, damage = read(path, len(stored), 1)
    assert rows == [*range(500)]
    assert {item.id for item in damage} <= {"unchecked-file"}  # what Arrow writes of Zstandard has no checksum


@pytest.mark.parametrize("parts", [1, 3])
def test_a_line_that_was_being_written_is_torn_though_it_is_whole_by_now(parts: int, tmp_path: Path) -> None:
    """Else the answer would hang on who was faster."""
    path = tmp_path / "part.jsonl"
    path.write_bytes(WRITTEN)
    rows, damage = read(path, len(WRITTEN) - 3, parts)
    assert rows == [*range(499)]
    assert [item.id for item in damage] == ["torn-tail"]


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("left", [250, 0])
def test_records_that_are_gone_when_it_is_read_are_told(parts: int, left: int, tmp_path: Path) -> None:
    """A file that is cut between two lines looks whole by itself."""
    path = tmp_path / "part.jsonl"
    path.write_bytes(b"".join(LINES[:left]))
    rows, damage = read(path, len(WRITTEN), parts)
    assert rows == [*range(left)]
    assert {item.id for item in damage} == {"unreadable-file"}
    assert "when it was listed" in damage[-1].detail
