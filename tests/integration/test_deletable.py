"""Damage never makes more deletable: every sample, the real folders of Flink, Spark and CheckMate, at random."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import crc32c
import pytest

from cklog.retention.policy import RetentionPolicy
from tests.conftest import SAMPLES, SHARED
from tests.oracles.deletable import POLICIES, STOPPED, Folder, damages, injured, planned, violations

MANY = int(os.environ.get("CKLOG_DAMAGES", "150"))
"""Damages of each folder in the slow test; 5,000 of each take about three hours."""

ORDERS = Folder(SAMPLES / "flink-orders", {"file:///srv/cklog-sample/flink-orders": ""}, STOPPED)
SAMPLED = {
    **{
        name: Folder(SAMPLES / name, {}, POLICIES)
        for name in (
            *("checkmate-uncoordinated", "domino-cycle", "incremental", "patent-store", "q3-coordinated"),
            *("raw-events", "reachability-cic", "token-rounds", "uncoordinated-join", "uncoordinated-join-parquet"),
            "spark-wordcount",
        )
    },
    "flink-orders": ORDERS,
    "spark-state-hdfs": Folder(SAMPLES / "spark-state-hdfs", {"file:///srv/cklog-words/hdfs": ""}, POLICIES),
    "spark-state-rocksdb": Folder(SAMPLES / "spark-state-rocksdb", {"file:///srv/cklog-words/rocksdb": ""}, POLICIES),
}
FLINK, SPARK, VERIFIED = SHARED / "flink-checkpoints", SHARED / "spark-checkpoints", SHARED / "engine-verified"
REAL = {
    **{
        name: Folder(FLINK / name, {f"file:/mnt/flink/prod/checkpts/{name}": ""}, STOPPED)
        for name in (
            *("aligned-bp", "changelog", "f39964", "filemerge", "finished", "kafka", "rocksdb-incr"),
            *("rocksdb-restored", "hashmap-files", "unaligned", "f120-unaligned", "sp-native-39964"),
        )
    },
    **{
        name: Folder(VERIFIED / name, {f"file:/srv/stream/{name}": ""}, STOPPED)
        for name in ("flink-generations", "flink-zeroed-sst", "flink-changelog-noclaim", "flink-filemerge")
    },
    **{
        name: Folder(SPARK / name / "ck", {}, POLICIES)
        for name in ("A_file_hdfs_parquetsink", "B_rate_rocksdb_changelog", "R_rocksdb_nochangelog_retain3")
    },
    **{
        name: Folder(VERIFIED / name / "ck", {}, POLICIES)
        for name in ("spark-back-to-initial", "spark-previous-offsets-purged", "spark-v2-sink-ahead")
    },
    **{name: Folder(VERIFIED / name, {}, POLICIES) for name in ("checkmate-q1", "checkmate-q3")},
}
WINDOW = {**POLICIES, "window": RetentionPolicy(window=45_000, now=1_767_225_645_000)}


def with_state_files(source: Path, target: Path, sealed: bool) -> Folder:
    """A run of records of which each has a state file of its own; `sealed`: and each line its checksum."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(".*.crc"))
    for path in (target / "checkpoints").rglob("*.jsonl"):
        made = []
        for text in path.read_text().splitlines():
            record = json.loads(text)
            record.pop("crc32c", None)
            record["uri"] = f"ck/{record['operator']}/{record.get('subtask', 0)}/{record['checkpoint']}"
            state = target / record["uri"]
            state.parent.mkdir(parents=True, exist_ok=True)
            state.write_bytes(b"state")
            line = json.dumps(record)[:-1]
            made.append(line + (f',"crc32c":"{crc32c.crc32c(line.encode()):08x}"}}\n' if sealed else "}\n"))
        path.write_text("".join(made))
    return Folder(target, {}, WINDOW)


def found(folder: Folder, tmp_path: Path, seed: int, count: int) -> list[tuple[object, ...]]:
    if not folder.source.is_dir():
        pytest.skip("no shared/data beside the repository: tests on real files need it")
    return list(violations(folder, tmp_path / "copy", seed, count))


@pytest.mark.quarter
@pytest.mark.parametrize("name", ["flink-orders", "q3-coordinated", "uncoordinated-join", "patent-store"])
def test_damage_of_samples_lets_nothing_more_go(name: str, tmp_path: Path) -> None:
    assert not found(SAMPLED[name], tmp_path, 1, 20)


@pytest.mark.parametrize("name", ["kafka", "f39964"])
def test_damage_of_real_folders_lets_nothing_more_go(name: str, tmp_path: Path) -> None:
    assert not found(REAL[name], tmp_path, 1, 8)


@pytest.mark.parametrize("sealed", [True, False])
def test_damage_of_records_or_of_their_state_lets_nothing_more_go(sealed: bool, tmp_path: Path) -> None:
    folder = with_state_files(SAMPLES / "uncoordinated-join", tmp_path / "run", sealed)
    assert not found(folder, tmp_path, 1, 25)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SAMPLED, *REAL])
def test_much_more_damage_lets_nothing_more_go(name: str, tmp_path: Path) -> None:
    assert not found((SAMPLED | REAL)[name], tmp_path, 2, MANY)


@pytest.mark.slow
@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize("name", ["uncoordinated-join", "incremental", "domino-cycle", "q3-coordinated"])
def test_much_more_damage_of_records_or_of_their_state(name: str, sealed: bool, tmp_path: Path) -> None:
    assert not found(with_state_files(SAMPLES / name, tmp_path / "run", sealed), tmp_path, 2, MANY)


def names_of_members(data: bytes) -> Iterator[int]:
    """The places of the letters of `kind` in lines of checkpoint records."""
    at = -1
    while (at := data.find(b'"kind"', at + 1)) >= 0:
        yield from range(at + 1, at + 5)


def test_no_bit_of_a_members_name_lets_anything_go(tmp_path: Path) -> None:
    """What let five checkpoints go: a record without its `kind`, so that the job counted as not coordinated."""
    folder, copy = SAMPLED["q3-coordinated"], tmp_path / "copy"
    shutil.copytree(folder.source, copy)
    path = copy / "checkpoints" / "part-00000.jsonl"
    data = path.read_bytes()
    allowed = planned(copy, folder, POLICIES["none"])
    assert allowed.names
    for at, bit in itertools.islice(itertools.product(names_of_members(data), range(8)), 0, None, 41):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])
        assert not planned(copy, folder, POLICIES["none"]).beyond(allowed)


def test_broken_flink_snapshots_go_when_that_is_asked_alone(tmp_path: Path) -> None:
    """A missing file of the newest checkpoint: the rest of it stays, and with `--drop-broken` it goes."""
    copy = tmp_path / "copy"
    shutil.copytree(ORDERS.source, copy)
    newest = "125c88b9401f9252baa1b39e412cc4b8/chk-13"
    dropping = RetentionPolicy(drop_broken=True)
    assert not [path for path in planned(copy, ORDERS, dropping).files if path.startswith(newest)]
    for damage in itertools.islice(damages(copy, random.Random(3)), 400):
        if damage.path.startswith(newest) and damage.how in ("delete", "cut", "empty"):
            with injured(copy, damage):
                assert not [p for p in planned(copy, ORDERS, POLICIES["none"]).files if p.startswith(newest)]
                dropped = planned(copy, ORDERS, dropping).files
            assert [path for path in dropped if path.startswith(newest)], damage.path


def test_snapshots_that_are_broken_by_contents_go_as_those_that_lack_files(tmp_path: Path) -> None:
    """Zeros at the right size, as after a power cut: what goes is what would go if the file were gone, and no more."""
    copy = tmp_path / "copy"
    shutil.copytree(ORDERS.source, copy)
    job, dropping = "125c88b9401f9252baa1b39e412cc4b8", RetentionPolicy(drop_broken=True, jobs_stopped=True)
    whole = planned(copy, ORDERS, dropping).files
    tried = 0
    for path in sorted([*(copy / job / "shared").iterdir(), *(copy / job).glob("chk-1[123]/*-*")]):
        name, data = path.relative_to(copy).as_posix(), path.read_bytes()
        if data.startswith(b"# This is a RocksDB option file") or name in whole:
            continue  # a restore does not read it; or no snapshot that can be restored names it
        path.write_bytes(bytes(len(data)))
        zeroed, held = (planned(copy, ORDERS, policy).files for policy in (dropping, POLICIES["none"]))
        path.unlink()
        gone = planned(copy, ORDERS, dropping).files
        path.write_bytes(data)
        assert not {*held} - {*whole}, name
        assert {*zeroed} - {name} == {*gone} - {name}, name
        tried += 1
    assert tried > 9
