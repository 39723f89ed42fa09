"""Spark's checkpoint with files that ask for much: zip archives, compressed changelogs, and JSON."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bombs import MIB, lz4_blocks, zipped, zstd
from tests.conftest import SAMPLES
from tests.measured import Measured, measured

_FILE = b'{"localFileName":"0.sst","dfsSstFileName":"a","sizeBytes":1},'

BOMBS: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "zip": ("state/**/*.zip", lambda: zipped(bytes(MIB), times=400), "what the archive unpacks to"),
    "zip, JSON": (
        "state/**/*.zip",
        lambda: zipped(b"v1\n", b'{"sstFiles":[', _FILE * 100_000, b"0]}"),
        "the number of values in the JSON",
    ),
    "zstd": ("state/**/*.changelog", lambda: zstd(bytes(MIB), 400), "compressed bytes become"),
    "JSON": ("offsets/6", lambda: b"v1\n{}\n[" + b"[]," * 300_000 + b"[]]", "the number of values in the JSON"),
}


def asked(tmp_path: Path, pattern: str, data: bytes, *options: str) -> Measured:
    """The line of the sample, some of its files being something else, and without checksum files."""
    query = tmp_path / "ck"
    shutil.copytree(SAMPLES / "spark-state-rocksdb" / "ck", query)
    for path in list(query.glob(pattern)):
        path.write_bytes(data)
        (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
    return measured("recovery-line", query, *options)


@pytest.mark.quarter
@pytest.mark.parametrize("case", BOMBS)
def test_a_small_file_that_asks_for_much_is_refused(tmp_path: Path, case: str) -> None:
    pattern, made, what = BOMBS[case]
    data = made()
    assert len(data) < 3 * MIB
    ended = asked(tmp_path, pattern, data, "--max-memory", "128MiB")
    assert (ended.code, ended.out) == (65, "")
    why, hint = ended.err.splitlines()
    assert why.startswith(f"cklog: {pattern.partition('/')[0]}/")
    assert f"{what} is over the budget of " in why
    assert "--max-memory" in hint
    assert ended.peak < 250


def test_json_that_is_deep_is_torn(tmp_path: Path) -> None:
    """Spark's own parser ends there as well."""
    ended = asked(tmp_path, "offsets/6", b"v1\n{}\n" + b"[" * 200_000)
    assert ended.code in (3, 5)
    assert "[torn-batch-file] offsets/6" in ended.out
    assert ended.peak < 250


def test_lz4_makes_no_more_of_a_byte_than_may_be(tmp_path: Path) -> None:
    """255 bytes of one, which are read block by block: 400 MB, and then that no end mark is there."""
    data = lz4_blocks(bytes(32 << 10), 12_800)
    assert len(data) < 3 * MIB
    ended = asked(tmp_path, "state/0/0/7.changelog", data, "--max-memory", "128MiB")
    assert ended.code in (3, 5)
    assert "its stream ends before its end mark" in ended.out
    assert ended.peak < 250
