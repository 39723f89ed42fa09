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


@pytest.mark.quarter
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


def files_of(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


@pytest.mark.quarter
@pytest.mark.parametrize("why", ["damaged", "over budget", "unwritable"])
@pytest.mark.parametrize("there", ["nothing", "a folder above", "an empty folder"])
def test_what_is_refused_leaves_nothing_behind(
    tmp_path: Path, why: str, there: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the parts, and of the folders none that was not there."""
    run, results, target = simulated(tmp_path / "run", "gap"), tmp_path / "results", tmp_path / "above" / "out"
    results.mkdir()
    line = b'{"ts":0,"text":"x"}\n'
    text = {"damaged": line * 50 + b"{" + line, "over budget": line + b'{"x":"' + b"x" * (70 << 20)}
    (results / "a.jsonl").write_bytes(line * 1000)
    (results / "b.jsonl").write_bytes(text.get(why, line))
    made = {"nothing": None, "a folder above": target.parent, "an empty folder": target}[there]
    if made is not None:
        made.mkdir(parents=True)
    if why == "unwritable":
        monkeypatch.setattr("cklog.inputs.annotate_files.DONE", "no/such/folder")
    before = files_of(tmp_path)
    options = ["--results", results, "--operator", "count", *(("--strict",) if why == "damaged" else ())]
    ended = cklog("impact", run, "--annotate", target, "--time", "ts", *options)
    assert (ended.code, ended.out) == (73 if why == "unwritable" else 65, "")
    assert files_of(tmp_path) == before


def test_results_behind_a_link_are_not_read_unless_it_is_followed(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", "gap")
    (run / "outputs" / "count").rename(tmp_path / "elsewhere")
    (run / "outputs" / "count").symlink_to(tmp_path / "elsewhere")
    ended = cklog("impact", run, "--annotate", tmp_path / "out")
    assert (ended.code, ended.out, "--follow-links" in ended.err) == (5, "", True)
    assert not (tmp_path / "out").exists()
    assert cklog("impact", run, "--annotate", tmp_path / "out", "--follow-links").code == 0
    assert len(rows_of(tmp_path / "out")) == 39_000
