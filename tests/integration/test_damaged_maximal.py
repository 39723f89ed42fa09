"""`verify --maximal` proves nothing maximal behind which something newer cannot be read: every kind, byte by byte."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SAMPLES
from tests.program import cklog


@dataclass(frozen=True)
class Case:
    """A sample, the file in it that tells of the newest, and the stored prefix that maps to the copy."""

    sample: str
    file: str
    prefix: str = ""

    def maps(self, copy: Path) -> tuple[str, ...]:
        return ("--map", f"{self.prefix}={copy}") if self.prefix else ()


JOB = "125c88b9401f9252baa1b39e412cc4b8"
CASES = {
    "flink": Case("flink-orders", f"{JOB}/chk-13/_metadata", "file:///srv/cklog-sample/flink-orders"),
    "spark-commit": Case("spark-state-hdfs", "ck/commits/6"),
    "records": Case("uncoordinated-join", "checkpoints/join.jsonl"),
    "rounds": Case("q3-coordinated", "checkpoints/part-00000.jsonl"),
    "parquet": Case("uncoordinated-join-parquet", "checkpoints/join.parquet"),
    "checkmate": Case("checkmate-uncoordinated", "universalis-snapshots/snapshot_1_join_1767225615355.bin"),
}


def line_of(case: Case, copy: Path, to: Path) -> dict[str, int]:
    """The newest line, written to a file for `verify`."""
    ended = cklog("recovery-line", copy, *case.maps(copy), "--json")
    to.write_text(ended.out)
    found: list[dict[str, Any]] = json.loads(ended.out)["result"]["line"] if ended.out else []
    return {f"{e['operator']}/{e['subtask']}": e["checkpoint"] or 0 for e in found}


def injuries(data: bytes, rng: random.Random, count: int) -> Iterator[bytes]:
    """Cut, and with zeros, in the second half: the first bytes say what a file is."""
    for _ in range(count):
        at = rng.randrange(len(data) // 2, len(data))
        yield data[:at]
        yield data[: at // 2] + bytes(len(data) - at // 2)


@pytest.mark.quarter
@pytest.mark.parametrize("name", CASES)
def test_what_cannot_be_read_may_be_newer(name: str, tmp_path: Path) -> None:
    case, copy, line = CASES[name], tmp_path / "copy", tmp_path / "line.json"
    shutil.copytree(SAMPLES / case.sample, copy)
    whole = line_of(case, copy, line)
    asked: tuple[str | Path, ...] = ("verify", copy, *case.maps(copy), "--line", line, "--maximal", "--json")
    path = copy / case.file
    data, older = path.read_bytes(), 0
    for made in injuries(data, random.Random(name), 8):
        path.write_bytes(made)
        found = line_of(case, copy, line)
        if not found or found == whole:
            continue
        ended = cklog(*asked)
        if ended.code not in (0, 3, 4, 5):
            continue
        older += 1
        checks = {check["check"]: check["holds"] for check in json.loads(ended.out)["result"]["checks"]}
        assert checks["maximal"] is not True
        assert ended.code != 0
        if False not in checks.values():
            assert ended.code == 5
    assert older, "some damage made the line older"
