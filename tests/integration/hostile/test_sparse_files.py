"""Files that claim a terabyte and hold next to nothing: answered in seconds, as if a few of their zeros were all."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from cklog.holes import MOST_HOLES, size_before_holes
from tests.conftest import SAMPLES
from tests.program import Ended, cklog

TERABYTE = 1 << 40
FILES = {
    "channel in JSON lines": ("uncoordinated-join", "channels/*.jsonl"),
    "checkpoints in JSON lines": ("domino-cycle", "checkpoints/*.jsonl"),
    "channel in Parquet": ("uncoordinated-join-parquet", "channels/*.parquet"),
    "manifest": ("domino-cycle", "job.json"),
    "Flink's metadata": ("flink-orders", "*/chk-*/_metadata"),
    "Flink's state": ("flink-orders", "*/shared/*"),
    "Spark's offsets": ("spark-wordcount", "ck/offsets/6"),
    "Spark's commits": ("spark-wordcount", "ck/commits/5"),
    "Spark's state": ("spark-state-hdfs", "ck/state/**/*.delta"),
    "RocksDB's tables": ("spark-state-rocksdb", "ck/state/**/*.sst"),
    "Kafka's segments": ("kafka-broker", "orders-0/*.log"),
    "Kafka's checkpoint files": ("kafka-broker", "replication-offset-checkpoint"),
    "output queue in JSON lines": ("cec-aggregate", "outputs/*/*.jsonl*"),
    "output queue in Kafka": ("cec-aggregate-kafka", "outputs/*/*/*.log"),
    "output queue in Parquet": ("cec-aggregate-parquet", "outputs/*/*.parquet"),
    "CheckMate's snapshots": ("checkmate-uncoordinated", "universalis-snapshots/**/*.bin"),
    "Connect's offsets": ("connect-offsets", "**/*.log"),
    "stores by key": ("patent-store", "*.jsonl"),
    "incremental checkpoints": ("incremental", "**/*.jsonl"),
    "Kafka Streams' stores": ("kafka-streams-state", "state/**/.checkpoint"),
    "system log": ("odysseus-gap", "system/*"),
}
FEW = ("channel in JSON lines", "Flink's metadata", "Spark's commits", "Kafka's segments", "output queue in Parquet")


def without_bytes(value: dict[str, Any]) -> dict[str, Any]:
    return {key: inner for key, inner in value.items() if "bytes" not in key}


def answer(ended: Ended) -> Any:
    """What is said, without how many bytes there are."""
    found = json.loads(ended.out, object_hook=without_bytes)
    return {key: found.get(key) for key in ("error", "verdict", "findings", "result")}


def hold(what: str, command: str, home: Path) -> None:
    """A file that ends in a terabyte of holes is answered as one that ends in a block of zeros."""
    sample, pattern = FILES[what]
    shutil.copytree(SAMPLES / sample, home)
    path = sorted(found for found in home.glob(pattern) if found.is_file())[0]
    data = path.read_bytes()
    path.write_bytes(data + bytes(4096 - len(data) % 4096 + 4096))
    few = cklog(command, home, "--json", "--engine", "local")
    path.write_bytes(data)
    os.truncate(path, TERABYTE)
    many = cklog(command, home, "--json", "--engine", "local")
    assert (many.code, answer(many)) == (few.code, answer(few))


@pytest.mark.parametrize("what", FEW)
def test_a_terabyte_of_zeros_at_the_end_is_as_a_block_of_them(what: str, tmp_path: Path) -> None:
    hold(what, "recovery-line", tmp_path / "run")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["recovery-line", "retention"])
@pytest.mark.parametrize("what", FILES)
def test_in_every_format(what: str, command: str, tmp_path: Path) -> None:
    hold(what, command, tmp_path / "run")


def test_a_scan_over_one_has_every_row(tmp_path: Path) -> None:
    for name in ("domino-cycle", "kafka-broker", "flink-orders"):
        shutil.copytree(SAMPLES / name, tmp_path / name)
    whole = json.loads(cklog("scan", tmp_path, "--json").out)["result"]["runs"]
    os.truncate(sorted((tmp_path / "kafka-broker" / "orders-0").glob("*.log"))[0], TERABYTE)
    found = json.loads(cklog("scan", tmp_path, "--json").out)["result"]["runs"]
    assert [row["path"] for row in found] == [row["path"] for row in whole]


def test_data_after_a_terabyte_of_holes_is_unread_and_not_damaged(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "domino-cycle", tmp_path / "run")
    path = sorted((tmp_path / "run" / "checkpoints").glob("*.jsonl"))[0]
    line = path.read_bytes().splitlines(keepends=True)[-1]
    with path.open("r+b") as file:
        file.seek(TERABYTE)
        file.write(line)
    ended = cklog("recovery-line", tmp_path / "run", "--json")
    error = json.loads(ended.out)["error"]
    assert (ended.code, error["id"]) == (5, "unreadable-file")
    assert f"checkpoints/{path.name} cannot be read: it has " in error["message"]
    assert "bytes of holes before byte 1099511627776" in error["message"]


def test_a_file_that_an_option_names_is_bounded_as_well(tmp_path: Path) -> None:
    log = tmp_path / "jobmanager.log"
    shutil.copy(SAMPLES / "flink-orders" / "jobmanager.log", log)
    words = ("verify", SAMPLES / "flink-orders", "--from-log", log, "--json")
    whole = cklog(*words)
    os.truncate(log, TERABYTE)
    assert cklog(*words) == whole


def test_holes_are_counted_together(tmp_path: Path) -> None:
    path, step = tmp_path / "file", 1 << 30
    with path.open("wb") as file:
        for at in range(0, 8 * step, step):
            file.seek(at)
            file.write(b"x" * 4096)
    size, why = size_before_holes(str(path), path.stat())
    assert 2 * step < size <= MOST_HOLES + step
    assert "holes" in why


@pytest.mark.parametrize("size", [MOST_HOLES, 1 << 20])
def test_what_engines_allocate_in_advance_is_read_as_it_is(size: int, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 5000)
    os.truncate(path, size)
    assert size_before_holes(str(path), path.stat()) == (size, "")
