"""`cklog impact --annotate` on the paper's experiment: which results of the log get which trust."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.program import cklog


def simulated(folder: Path, recovery: str) -> Path:
    assert cklog("simulate", "odysseus", folder, "--recovery", recovery).code == 0
    return folder


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(folder.glob("part-*")) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("recovery", "counts"),
    [
        ("gap", {"trustworthy": 33_000, "untrustworthy": 6_000}),
        ("rollback", {"trustworthy": 39_000, "indefinite": 12_000}),
        ("precise", {"trustworthy": 48_000}),
    ],
)
def test_the_60_s_window_experiment(tmp_path: Path, recovery: str, counts: dict[str, int]) -> None:
    """Brand et al., section 6.2: 6000 marked untrustworthy by the min-merge; 240 to 360 s indefinite; all trustworthy.

    Of a rollback, both copies of 240 to 270 s are there: trustworthy before the crash, indefinite after it (Figure 6b).
    """
    run = simulated(tmp_path / "run", recovery)
    ended = cklog("impact", run, "--annotate", tmp_path / "out", "--json")
    assert ended.code == 0, ended.err
    rows = rows_of(tmp_path / "out")
    assert Counter(row["trust"] for row in rows) == counts
    told = json.loads(ended.out)["result"]["details"]["annotated"]
    assert told["rows"] == len(rows)
    if recovery == "rollback":
        twice = [row["trust"] for row in rows if 240_000 <= row["ts"] < 270_000]
        assert twice == ["trustworthy"] * 3000 + ["indefinite"] * 3000
    original = [json.loads(line) for line in (run / "outputs" / "count" / "part-00000.jsonl").read_text().splitlines()]
    assert [{key: row[key] for key in row if key != "trust"} for row in rows] == original


def test_results_from_elsewhere_as_parquet(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", "gap")
    (run / "outputs" / "count").rename(tmp_path / "results")
    ended = cklog("impact", run, "--annotate", tmp_path / "out")
    assert ended.code == 66
    options = ("--results", tmp_path / "results", "--time", "ts", "--operator", "count")
    ended = cklog("impact", run, "--annotate", tmp_path / "out.parquet", *options)
    assert ended.code == 0, ended.err
    found = pq.read_table(tmp_path / "out.parquet" / "part-00000.parquet")
    assert Counter(found["trust"].to_pylist()) == {"trustworthy": 33_000, "untrustworthy": 6_000}
    assert cklog("impact", run, "--annotate", tmp_path / "out.parquet", *options).code == 73
    assert cklog("impact", run, "--annotate", tmp_path / "x", "--operator", "sum").code == 66
