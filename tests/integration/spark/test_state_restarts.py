"""Real restarts: each state file of a real checkpoint deleted in turn, and the query started on the copy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from cklog.parsers.codecs.hadoop_crc import sidecar_of
from tests.builders.spark_restarts import Restarts, delete, state_files

pytestmark = [pytest.mark.slow, pytest.mark.spark]


PROVIDERS = ["hdfs", "rocksdb", "rocksdb-ids"]


def cut(path: Path) -> None:
    """Half of a file, and no checksum beside it, as on an object store."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    Path(sidecar_of(str(path))).unlink(missing_ok=True)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_with_any_file_gone_a_restart_does_what_was_said(provider: str, restarting: Any, tmp_path: Path) -> None:
    """It fails if so said, else starts; and it starts after going back as told."""
    restarts = Restarts(restarting, provider, tmp_path)
    assert restarts.starts(restarts.copy())
    files = state_files(restarts.sample)
    assert [said for path in files if (said := restarts.disproved([path], delete))] == []


@pytest.mark.parametrize("provider", PROVIDERS)
def test_with_files_cut_or_all_snapshots_gone_likewise(provider: str, restarting: Any, tmp_path: Path) -> None:
    restarts = Restarts(restarting, provider, tmp_path)
    files = [path for path in state_files(restarts.sample) if path.startswith("ck/state/0/1/")]
    newest = [path for path in files if re.match("[67][._]", path.rpartition("/")[2])]
    snapshots = [path for path in files if path.endswith((".snapshot", ".zip"))]
    trials = [([path], cut) for path in newest] + [(snapshots, cut), (snapshots, delete)]
    trials += [(snapshots[:1] + newest[:1], delete)]
    assert [said for paths, damage in trials if (said := restarts.disproved(paths, damage))] == []


def test_a_join_with_column_families_needs_its_first_zip(restarting: Any, tmp_path: Path) -> None:
    restarts = Restarts(restarting, "rocksdb-join", tmp_path)
    files = state_files(restarts.sample)
    zips = [path for path in files if path.endswith(".zip")]
    firsts = [path for path in zips if path.endswith("/1.zip")]
    assert firsts
    trials = [(zips, delete), (firsts, delete), (zips, cut), (["ck/state/0/_metadata/v2/0"], delete)]
    assert [said for paths, damage in trials if (said := restarts.disproved(paths, damage))] == []


def zero(path: Path) -> None:
    """As many zeros, and no checksum beside them, as a power cut leaves it on an object store's gateway."""
    path.write_bytes(bytes(path.stat().st_size))
    Path(sidecar_of(str(path))).unlink(missing_ok=True)


@pytest.mark.parametrize("provider", ["rocksdb", "rocksdb-ids"])
def test_with_tables_full_of_zeros_likewise(provider: str, restarting: Any, tmp_path: Path) -> None:
    restarts = Restarts(restarting, provider, tmp_path)
    tables = [path for path in state_files(restarts.sample) if path.endswith(".sst")]
    mine = [path for path in tables if path.startswith("ck/state/0/1/")]
    assert mine
    trials = [([path], zero) for path in mine] + [(tables, zero)]
    stored = [path for path in state_files(restarts.sample) if path.startswith("ck/state/0/1/")]
    last = max(version_of(path) for path in stored if path.endswith(".zip"))
    stands = [path for path in stored if path.endswith(".changelog") and version_of(path) <= last]
    assert stands  # without them the newest snapshot is needed, and nothing else can stand for it
    trials.append(([*stands, *mine], lambda path: (zero if path.suffix == ".sst" else delete)(path)))
    assert [said for paths, damage in trials if (said := restarts.disproved(paths, damage))] == []


def version_of(path: str) -> int:
    """The version in the name of a state file."""
    return int(re.split("[._]", path.rpartition("/")[2])[0])
