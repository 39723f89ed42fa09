"""The folders that a simulated dataflow writes, and the commands that write them."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from cklog.errors import OutputError, UsageError
from cklog.model.schemas import CHECKPOINTS, EVENTS, MESSAGES
from cklog.simulate.dataflow.queries import CYCLIC, NEXMARK
from cklog.simulate.dataflow.run import described, simulate, write
from cklog.simulate.dataflow.setting import DataflowSetting
from cklog.simulate.dataflow.wire import hmnr_bytes
from tests.builders.dataflow_runs import RUNS, START, rows_of, setting
from tests.program import cklog


def test_the_same_arguments_write_the_same_bytes(tmp_path: Path) -> None:
    for encoding in ("jsonl", "jsonl.gz", "jsonl.zst", "parquet"):
        for name in ("a", "b"):
            write(tmp_path / name / encoding, RUNS[1], encoding=encoding, events=True, part_bytes=100_000)
    files = [p.relative_to(tmp_path / "a") for p in sorted((tmp_path / "a").rglob("*")) if p.is_file()]
    assert len(files) == 16
    for path in files:
        assert (tmp_path / "a" / path).read_bytes() == (tmp_path / "b" / path).read_bytes()
    assert simulate(replace(RUNS[1], seed=9)) != simulate(RUNS[1])


def test_a_run_is_the_same_for_ever(tmp_path: Path) -> None:
    """A change of these digests changes every history that anyone has made."""
    digests = []
    for i in (0, 4, 9):
        write(tmp_path / str(i), RUNS[i], events=True)
        written = b"".join(p.read_bytes() for p in sorted((tmp_path / str(i)).rglob("*.jsonl")))
        digests.append(hashlib.sha256(written).hexdigest()[:16])
    assert digests == DIGESTS


DIGESTS = ["6c8dfcad9b429a9b", "6b5be22af6f93981", "302c45897ecdf73e"]


def test_parquet_holds_the_same_records(tmp_path: Path) -> None:
    write(tmp_path / "plain", RUNS[1], events=True)
    write(tmp_path / "other", RUNS[1], events=True, encoding="parquet")
    for place, model in (("checkpoints", CHECKPOINTS), ("channels", MESSAGES), ("events", EVENTS)):
        assert rows_of(tmp_path / "other", place) == rows_of(tmp_path / "plain", place)
        for part in (tmp_path / "other" / place).iterdir():
            assert all(field.type == model.field(field.name).type for field in pq.read_schema(part))


def test_full_parts_are_followed_by_new_ones(tmp_path: Path) -> None:
    write(tmp_path / "one", replace(RUNS[0], rate=400.0))
    write(tmp_path / "many", replace(RUNS[0], rate=400.0), part_bytes=100_000)
    parts = sorted((tmp_path / "many" / "channels").iterdir())
    assert [p.name for p in parts[:2]] == ["part-00000.jsonl", "part-00001.jsonl"]
    assert rows_of(tmp_path / "one", "channels") == rows_of(tmp_path / "many", "channels")


def test_logs_are_left_out_on_request(tmp_path: Path) -> None:
    write(tmp_path, RUNS[0], channels=False)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["checkpoints", "job.json"]


def test_the_manifest_says_what_was_simulated(tmp_path: Path) -> None:
    write(tmp_path, RUNS[1])
    job = json.loads((tmp_path / "job.json").read_text())
    assert job["operators"][3] == {"name": "join", "parallelism": 3, "kind": "join"}
    assert {"channel": "persons/0->filter/2"} in job["channels"]
    assert len(job["channels"]) == 9 + 9 + 3 + 3
    assert job["failure_time"] == START + 12_000
    assert job["simulation"] == json.loads(json.dumps(described(RUNS[1])))
    names = ("personsSource", "auctionsSource", "personsFilter", "join", "sink")
    assert job["simulation"]["message_bytes"]["carried"] == hmnr_bytes(names, 3)
    assert job["simulation"]["protocol"] == "cic-hmnr"


def test_nothing_happens_in_no_time() -> None:
    for protocol in ("unc", "coor"):
        figures = simulate(setting(protocol=protocol, failure_s=0.0))
        assert (figures.checkpoints, figures.messages, figures.ratio, figures.checkpointing_ms) == (0, 0, None, None)


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for folder, options in (
        (tmp_path, {}),
        (tmp_path / "file", {}),
        (tmp_path / "new", {"encoding": "csv"}),
        (tmp_path / "new", {"part_bytes": 0}),
    ):
        with pytest.raises(UsageError):
            write(folder, RUNS[0], **options)
    assert not (tmp_path / "new").exists()
    with pytest.raises(OutputError, match="file"):
        write(tmp_path / "file" / "below", RUNS[0])


@pytest.mark.parametrize(
    "wrong",
    [
        {"protocol": "2pc"},
        {"workers": 0},
        {"workers": 1001},
        {"rate": 0.0},
        {"rate": math.nan},
        {"load": -1.0},
        {"interval_s": 0.0},
        {"spread_s": 2.0},
        {"failure_s": math.inf},
        {"first_round_s": -1.0},
        {"hot_items": 1.5},
        {"delay_ms": -1.0},
        {"jitter_ms": -1.0},
        {"snapshot_ms": -1.0},
        {"start_ms": -1},
        {"query": CYCLIC, "protocol": "coor"},
    ],
)
def test_a_setting_without_meaning_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        replace(RUNS[0], **wrong)


# --- the commands


SHORT = ["--workers", "2", "--rate", "20", "--failure-at", "15"]


def test_nexmark_prints_the_figures_of_the_folder_it_writes(tmp_path: Path) -> None:
    ended = cklog("simulate", "nexmark", tmp_path / "run", "--query", "q8", "--protocol", "cic-bcs", *SHORT, "--json")
    told = json.loads(ended.out)
    assert (ended.code, told["schema"]) == (0, "cklog.simulate-dataflow/1")
    asked = DataflowSetting(NEXMARK["q8"], "cic-bcs", 2, rate=20.0, failure_s=15.0, first_round_s=5.0)
    figures = simulate(asked)
    assert told["result"]["figures"] == json.loads(json.dumps(asdict(figures)))
    assert told["result"]["simulation"] == json.loads(json.dumps(described(asked)))
    files = {p.relative_to(tmp_path / "run").as_posix(): p.stat().st_size for p in (tmp_path / "run").rglob("*.*")}
    assert {f["path"]: f["bytes"] for f in told["result"]["files"]} == files
    line = json.loads(cklog("recovery-line", tmp_path / "run", "--json").out)["result"]
    assert len(line["rolled_back"]) == figures.rolled_past


def test_nexmark_prints_a_table() -> None:
    ended = cklog("simulate", "nexmark", "--no-log", "--query", "q3", "--protocol", "coor", *SHORT)
    assert ended.code == 0
    assert ended.out.startswith("Simulated q3 on 2 workers for 15 s with coordinated checkpoints: 10 checkpoints,")
    for words in ("Checkpoints\noperator", "complete rounds", "average checkpointing time", "all bytes to those of"):
        assert words in ended.out


def test_hot_items_are_percent() -> None:
    ended = cklog("simulate", "nexmark", "--no-log", *SHORT, "--hot-items", "30", "--json")
    assert json.loads(ended.out)["result"]["simulation"]["hot_items"] == 0.3


def test_cyclic_uses_the_defaults_of_its_query() -> None:
    ended = cklog("simulate", "cyclic", "--no-log", "--workers", "2", "--protocol", "cic-hmnr", "--json")
    asked = json.loads(ended.out)["result"]["simulation"]
    assert (asked["failure_s"], asked["rate"], asked["query"]["nodes"]) == (48.0, 20.0, 1_000_000)


def test_coordinated_checkpoints_on_a_cycle_are_a_deadlock(tmp_path: Path) -> None:
    """CheckMate, section VII: at least one operator would be waiting for a marker that originates from itself."""
    ended = cklog("simulate", "cyclic", tmp_path / "run", "--protocol", "coor", "--json")
    assert ended.code == 2
    assert "deadlock on reachability: join waits for a marker on its feedback channel project->join" in ended.err
    assert "join -> select -> project -> join" in ended.err
    assert json.loads(ended.out)["error"]["id"] == "usage"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        ["--no-log", "folder"],
        ["--no-log", "--events"],
        ["--no-log", "--no-channels"],
        ["--no-log", "--format", "xml"],
        ["--no-log", "--workers", "0"],
        ["--no-log", "--spread", "6"],
        ["folder", "--part-size", "much"],
    ],
)
@pytest.mark.parametrize("command", ["nexmark", "cyclic"])
def test_wrong_options_are_refused(
    command: str, wrong: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = cklog("simulate", command, *wrong)
    assert ended.code == 2
    assert ended.err.startswith("cklog: ")
    assert not list(tmp_path.iterdir())
