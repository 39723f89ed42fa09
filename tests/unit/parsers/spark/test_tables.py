"""RocksDB's tables in Spark's state without checksum files, as on an object store: damaged ones cost their snapshot."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SAMPLES
from tests.program import cklog


@pytest.fixture
def query(tmp_path: Path) -> Path:
    """A copy of the sample in which no state file has its checksum file."""
    root = tmp_path / "rocksdb"
    shutil.copytree(SAMPLES / "spark-state-rocksdb", root)
    for side in (root / "ck/state").rglob(".*.crc"):
        side.unlink()
    return root


def asked(root: Path, *more: str) -> tuple[int, dict[str, Any]]:
    ended = cklog("recovery-line", root / "ck", "--json", *more)
    return ended.code, json.loads(ended.out)


def tables(root: Path) -> list[Path]:
    return sorted((root / "ck/state").rglob("*.sst"))


def damaged(answer: dict[str, Any]) -> set[str]:
    """The tables that findings speak of."""
    words = " ".join(f["message"] for f in answer["findings"] if f["id"] == "corrupt-file").split()
    return {word.rstrip(":").rpartition("/")[2] for word in words if ".sst" in word}


def test_sound_tables_and_what_was_not_read_of_them(query: Path) -> None:
    code, answer = asked(query)
    before = cklog("recovery-line", SAMPLES / "spark-state-rocksdb" / "ck", "--json")
    assert damaged(answer) == set()
    assert code == before.code
    assert answer["result"]["line"] == json.loads(before.out)["result"]["line"]
    assert [f["severity"] for f in answer["findings"] if f["id"] == "contents-not-checked"] == ["info"]
    assert "contents-not-checked" not in {f["id"] for f in asked(query, "--check-contents")[1]["findings"]}
    assert "contents-not-checked" not in {f["id"] for f in json.loads(before.out)["findings"]}


def test_zeros_are_found_in_each_table_that_is_read(query: Path) -> None:
    """A table that a restart reads, and so was looked into: those of the newest snapshots."""
    found = 0
    for table in tables(query):
        data = table.read_bytes()
        table.write_bytes(bytes(len(data)))
        _, answer = asked(query)
        assert damaged(answer) <= {table.name}
        found += damaged(answer) == {table.name}
        table.write_bytes(data)
    assert found


def test_a_flipped_bit_in_data_is_found_where_every_block_is_checked(query: Path) -> None:
    for table in tables(query):
        data = table.read_bytes()
        table.write_bytes(data[:20] + bytes([data[20] ^ 1]) + data[21:])
    assert damaged(asked(query)[1]) == set()
    assert damaged(asked(query, "--check-contents")[1])


def test_with_all_tables_zeroed_and_no_changelog_before_them_the_restart_fails(query: Path) -> None:
    """As Spark does, says tests/integration/spark/test_state_restarts.py."""
    for table in tables(query):
        table.write_bytes(bytes(table.stat().st_size))
    for zipped in (query / "ck/state/0").rglob("*.zip"):
        for version in range(1, int(zipped.stem.partition("_")[0]) + 1):
            (zipped.parent / f"{version}.changelog").unlink(missing_ok=True)
    code, answer = asked(query)
    assert answer["result"]["details"]["restart_fails"] is True
    assert code in (3, 4)
    assert damaged(answer)
