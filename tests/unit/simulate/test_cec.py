"""The simulated aggregate against a loop over tuples, and the run folders it writes."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import sys
from dataclasses import asdict, replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import crc32c
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cklog.commands.simulate.group import simulate as simulate_group
from cklog.commands.simulate.options import PrintOptions
from cklog.errors import OutputError, UsageError
from cklog.model.schemas import OUTPUTS
from cklog.model.verdict import Answer
from cklog.policies.check_records import CheckPolicy, CostBenefit, Targets
from cklog.policies.load_time import LoadTime, published
from cklog.simulate.cec.operator import Statistics, simulate
from cklog.simulate.cec.tuples import MOST_PRICE, Workload, draw, splitmix64
from cklog.simulate.cec.write import Encoding, simulation_answer, write
from cklog.simulate.view import simulate_view
from tests.oracles.aggregate import Loop, Row

PACE: dict[str, float] = {"period_ms": 20.0, "interval_ms": 5.0, "cost_us": 100.0}
CHECKED = Targets(q_windows=1.5, **PACE)

COUNTED = Workload(keys=40, count=5, rate=10_000, tuples=4_000)
TIMED = Workload(keys=40, count=None, window_ms=25, rate=10_000, tuples=4_000)
RUNS: list[tuple[Workload, CheckPolicy]] = [
    (COUNTED, CHECKED),
    (TIMED, Targets(q_windows=1.5, u=60, **PACE)),  # tumbling windows alone never exceed their own number
    (replace(COUNTED, distribution="zipf", seed=7), Targets(q=50, u=300, **PACE)),
    (replace(COUNTED, count=1), CHECKED),
    (replace(COUNTED, count=2, keys=3), Targets(q=0, **PACE)),
    (replace(COUNTED, count=1000), Targets()),
    (replace(TIMED, window_ms=1, tuples=500), Targets(u=3, **PACE)),
    (replace(TIMED, distribution="zipf", window_ms=33, rate=3_333.3, start_ms=0), Targets(u=20, **PACE)),
    (replace(COUNTED, keys=1, count=3, tuples=300), Targets(q=0, **PACE)),
    (replace(COUNTED, rate=20.0, tuples=100), Targets(q_windows=1, u=5, **PACE)),
    (
        replace(COUNTED, tuples=2_000),
        CostBenefit(30.0, LoadTime.per_record(1e-3), 1e-4, period_ms=20.0, interval_ms=5.0, cost_us=10.0),
    ),
]


def rows_of(folder: Path, operator: str = "agg1") -> list[Row]:
    """The records of a written queue, whatever its encoding."""
    rows: list[Row] = []
    for part in sorted((folder / "outputs" / operator).iterdir()):
        if part.suffix == ".parquet":
            rows += pq.read_table(part).to_pylist()
            continue
        data = part.read_bytes()
        if part.suffix == ".gz":
            data = gzip.decompress(data)
        if part.suffix == ".zst":
            data = pa.CompressedInputStream(pa.BufferReader(data), "zstd").read()
        rows += [json.loads(line) for line in data.decode().splitlines()]
    return rows


@pytest.mark.parametrize(("workload", "policy"), RUNS, ids=range(len(RUNS)))
def test_the_log_and_the_figures_are_those_of_the_loop(workload: Workload, policy: CheckPolicy, tmp_path: Path) -> None:
    loop = Loop(workload, policy)
    loop.run()
    got = write(tmp_path, workload, policy)
    assert rows_of(tmp_path) == loop.log
    expected = loop.statistics()
    for name in Statistics.__slots__:
        value = getattr(expected, name)
        assert getattr(got, name) == (value if value is None else pytest.approx(value, rel=1e-12)), name
    assert got == simulate(workload, policy)


@pytest.mark.parametrize(("workload", "policy"), RUNS, ids=range(len(RUNS)))
def test_a_log_obeys_its_grammar(workload: Workload, policy: CheckPolicy, tmp_path: Path) -> None:
    """N goes up and down with the records, windows open before all else, positions are dense, time never decreases."""
    write(tmp_path, workload, policy)
    rows = rows_of(tmp_path)
    steps = {"open": 1, "check": 0, "result": -1}
    n = 0
    for row in rows:
        n += steps[row["type"]]
        assert row["open_windows"] == n
    assert [row["pos"] for row in rows] == list(range(len(rows)))
    assert all(a["ts"] <= b["ts"] and a["input"] <= b["input"] for a, b in pairwise(rows))
    for _, group in groupby(sorted(rows, key=lambda row: (row["window"], row["pos"])), key=lambda row: row["window"]):
        kinds = [row["type"] for row in group]
        assert kinds[0] == "open"
        assert set(kinds[1:-1]) <= {"check"}
        assert kinds[-1] != "open" or len(kinds) == 1


def test_every_policy_above_writes_checks_or_none() -> None:
    """The runs above mean nothing if their policies never act."""
    checks = [simulate(workload, policy).checks for workload, policy in RUNS]
    assert [i for i, n in enumerate(checks) if not n] == [3, 5]  # windows of one tuple, and no targets


def test_a_key_has_a_window_per_tumbling_interval(tmp_path: Path) -> None:
    """Two intervals, and a key that comes in both: two physical windows, the first closed by the second's tuple."""
    workload = Workload(keys=1, count=None, window_ms=10, rate=250, tuples=5, start_ms=1_000)
    write(tmp_path, workload, Targets())
    rows = [(row["type"], row["window"], row["ts"], row["state"]["count"]) for row in rows_of(tmp_path)]
    assert rows == [
        ("open", "k0@1000", 1_000, 1),
        ("result", "k0@1000", 1_012, 3),
        ("open", "k0@1010", 1_012, 1),
    ]


def test_windows_of_an_interval_close_in_the_order_of_their_keys(tmp_path: Path) -> None:
    write(tmp_path, TIMED, Targets())
    closed = [row for row in rows_of(tmp_path) if row["type"] == "result"]
    by_start = groupby(closed, key=lambda row: row["window"].partition("@")[2])
    closings = [[int(row["window"][1:].partition("@")[0]) for row in group] for _, group in by_start]
    assert len(closings) > 10
    assert all(keys == sorted(set(keys)) for keys in closings)


def test_the_same_arguments_write_the_same_bytes(tmp_path: Path) -> None:
    encodings: tuple[Encoding, ...] = ("jsonl", "jsonl.gz", "jsonl.zst", "parquet")
    for encoding in encodings:
        for name in ("a", "b"):
            write(tmp_path / name / encoding, COUNTED, CHECKED, encoding=encoding, upstream=True, part_bytes=50_000)
    files = [p.relative_to(tmp_path / "a") for p in sorted((tmp_path / "a").rglob("*")) if p.is_file()]
    assert len(files) > 10
    for path in files:
        assert (tmp_path / "a" / path).read_bytes() == (tmp_path / "b" / path).read_bytes()
    assert simulate(replace(COUNTED, seed=2), CHECKED) != simulate(COUNTED, CHECKED)


def test_a_run_is_the_same_for_ever(tmp_path: Path) -> None:
    """A change of these digests changes every history that anyone has made."""
    digests = []
    for i, (workload, policy) in enumerate(RUNS[:3]):
        write(tmp_path / str(i), workload, policy)
        written = (tmp_path / str(i) / "outputs" / "agg1" / "part-00000.jsonl").read_bytes()
        digests.append(hashlib.sha256(written).hexdigest()[:16])
    assert digests == DIGESTS


DIGESTS = ["7234044261f54509", "6733c2f31f5d97da", "6bab6c1712146254"]


@pytest.mark.parametrize("encoding", ["jsonl.gz", "jsonl.zst", "parquet"])
def test_every_encoding_holds_the_same_records(encoding: Encoding, tmp_path: Path) -> None:
    write(tmp_path / "plain", COUNTED, CHECKED, upstream=True)
    write(tmp_path / "other", COUNTED, CHECKED, upstream=True, encoding=encoding)
    plain, other = rows_of(tmp_path / "plain"), rows_of(tmp_path / "other")
    emitted = rows_of(tmp_path / "other", "filter1")
    if encoding == "parquet":
        for row in other:
            row["state"] = json.loads(row["state"])
        emitted = [{name: value for name, value in row.items() if value is not None} for row in emitted]
    assert other == plain
    assert emitted == rows_of(tmp_path / "plain", "filter1")


def test_parquet_has_the_columns_of_the_model_in_large_row_groups(tmp_path: Path) -> None:
    write(tmp_path, replace(COUNTED, tuples=400_000, keys=1000, count=3), Targets(), encoding="parquet")
    file = pq.ParquetFile(tmp_path / "outputs" / "agg1" / "part-00000.parquet")
    groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    assert len(groups) > 2
    assert all(65_536 <= rows < 80_000 for rows in groups[:-1])
    for field in file.schema_arrow:
        assert field.type == OUTPUTS.field(field.name).type


def test_the_queue_in_front_has_one_record_per_tuple(tmp_path: Path) -> None:
    write(tmp_path, COUNTED, CHECKED, upstream=True)
    emitted, own = rows_of(tmp_path, "filter1"), rows_of(tmp_path)
    assert [row["input"] for row in emitted] == [row["pos"] for row in emitted] == list(range(COUNTED.tuples))
    assert set(map(tuple, emitted)) == {("type", "ts", "open_windows", "input", "pos", "bytes")}
    assert all(emitted[row["input"]]["ts"] == row["ts"] for row in own)


def test_full_parts_are_followed_by_new_ones(tmp_path: Path) -> None:
    write(tmp_path / "one", COUNTED, CHECKED)
    write(tmp_path / "many", COUNTED, CHECKED, part_bytes=20_000)
    parts = sorted((tmp_path / "many" / "outputs" / "agg1").iterdir())
    assert [p.name for p in parts[:2]] == ["part-00000.jsonl", "part-00001.jsonl"]
    assert all(p.stat().st_size >= 20_000 for p in parts[:-1])
    assert rows_of(tmp_path / "one") == rows_of(tmp_path / "many")


def test_a_checksum_covers_the_line_before_it(tmp_path: Path) -> None:
    write(tmp_path, COUNTED, CHECKED, checksums=True)
    for line in (tmp_path / "outputs" / "agg1" / "part-00000.jsonl").read_bytes().splitlines():
        body, _, rest = line.partition(b',"crc32c":"')
        assert rest == f'{crc32c.crc32c(body):08x}"}}'.encode()
        assert json.loads(line)["bytes"] == 100


def test_a_crash_tears_the_last_record_and_nothing_else(tmp_path: Path) -> None:
    write(tmp_path / "whole", replace(COUNTED, tuples=1234), CHECKED, upstream=True)
    statistics = write(tmp_path / "torn", COUNTED, CHECKED, crash_at=1234, upstream=True)
    name = "outputs/agg1/part-00000.jsonl"
    whole, torn = (tmp_path / "whole" / name).read_bytes(), (tmp_path / "torn" / name).read_bytes()
    *before, last = whole.splitlines(keepends=True)
    assert torn == b"".join(before) + last[: (len(last) - 1) // 2]
    assert rows_of(tmp_path / "whole", "filter1") == rows_of(tmp_path / "torn", "filter1")
    assert statistics.tuples == 1234


def test_the_manifest_says_what_was_simulated(tmp_path: Path) -> None:
    write(tmp_path, TIMED, CHECKED, crash_at=7)
    job = json.loads((tmp_path / "job.json").read_text())
    assert job["operators"][2] == {
        "name": "agg1",
        "parallelism": 1,
        "kind": "aggregate",
        "window": {"ms": 25},
        "recovery": "eventual",
    }
    assert job["channels"] == [{"channel": "source/0->filter1/0"}, {"channel": "filter1/0->agg1/0"}]
    assert job["simulation"]["workload"]["tuples"] == 4_000
    assert job["simulation"]["policy"]["name"] == "targets"
    assert job["simulation"]["crash_at"] == 7


def test_a_run_too_short_has_no_averages() -> None:
    statistics = simulate(replace(COUNTED, tuples=3), CHECKED)
    assert (statistics.extent, statistics.response_s, statistics.periods, statistics.opens) == (None, None, 0, 3)
    assert simulate(replace(COUNTED, tuples=0), CHECKED).seconds == 0


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for folder, options in (
        (tmp_path, {}),
        (tmp_path / "file", {}),
        (tmp_path / "new", {"encoding": "csv"}),
        (tmp_path / "new", {"encoding": "parquet", "checksums": True}),
        (tmp_path / "new", {"encoding": "jsonl.gz", "crash_at": 5}),
        (tmp_path / "new", {"crash_at": 0}),
        (tmp_path / "new", {"crash_at": COUNTED.tuples + 1}),
        (tmp_path / "new", {"part_bytes": 0}),
    ):
        with pytest.raises(UsageError):
            write(folder, COUNTED, CHECKED, **options)
    assert not (tmp_path / "new").exists()
    with pytest.raises(OutputError, match="file"):
        write(tmp_path / "file" / "below", COUNTED, CHECKED)


@pytest.mark.parametrize(
    "wrong",
    [
        {"keys": 0},
        {"count": 0},
        {"count": None},
        {"window_ms": 5},
        {"rate": 0.0},
        {"rate": math.inf},
        {"tuples": -1},
        {"distribution": "normal"},
        {"zipf_exponent": -1.0},
        {"start_ms": -1},
    ],
)
def test_a_workload_without_meaning_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        replace(Workload(), **wrong)


def test_splitmix64_is_the_published_generator() -> None:
    """Its first outputs from 1234567, as in the generator's reference tests; ours begins where the seed is mixed to."""
    mask, golden = 2**64 - 1, 0x9E3779B97F4A7C15

    def mixed(x: int) -> int:
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & mask
        x = (x ^ x >> 27) * 0x94D049BB133111EB & mask
        return x ^ x >> 31

    assert [mixed(1234567 + i * golden & mask) for i in (1, 2)] == [6457827717110365317, 3203168211198807973]
    for seed in (0, 1, 2**64 - 1, -3):
        begin = mixed(seed % 2**64)
        expected = [mixed(begin + i * golden & mask) for i in range(6, 11)]
        assert splitmix64(seed, 5, 10).tolist() == expected


def test_keys_come_as_often_as_their_distribution_says() -> None:
    n = 400_000
    keys, prices = draw(Workload(keys=50), 0, n)
    assert np.abs(np.bincount(keys, minlength=50) / n * 50 - 1).max() < 0.05
    assert np.bincount(prices).nonzero()[0].tolist() == list(range(1, MOST_PRICE + 1))
    keys, _ = draw(Workload(keys=50, distribution="zipf", zipf_exponent=1.5), 0, n)
    weights = np.arange(1, 51) ** -1.5
    assert np.abs(np.bincount(keys, minlength=50) / n - weights / weights.sum()).max() < 0.005


def test_the_view_says_what_the_result_holds() -> None:
    for policy, words in (
        (CHECKED, "with the targets Q = 1.5 × open windows"),
        (Targets(), "with no checks"),
        (CostBenefit(1, LoadTime.per_record(1), 1), "with checks as long as they pay"),
    ):
        answer = simulation_answer("", COUNTED, policy, simulate(COUNTED, policy))
        view = simulate_view(answer)
        assert words in view.headline
        assert [section.title for section in view.sections] == [
            "Averages after the first 40% of the tuples",
            "The whole run",
        ]
        assert (
            "too short"
            in simulate_view(simulation_answer("", TIMED, policy, simulate(replace(TIMED, tuples=1), policy))).headline
        )


def cec(*args: str | Path, monkeypatch: pytest.MonkeyPatch) -> Answer[Any]:
    """`cklog simulate cec ARGS…`, up to its answer."""
    answers: list[Answer[Any]] = []
    monkeypatch.setattr(PrintOptions, "show", lambda self, answer: answers.append(answer))
    monkeypatch.setattr(sys, "argv", ["simulate", "cec", *map(str, args)])
    simulate_group(standalone_mode=False)
    return answers[0]


def test_the_command_writes_a_run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = ("--keys", "40", "--count", "5", "--rate", "10000", "--tuples", "4000", "--q-windows", "1.5")
    pace = ("--cp", "20", "--ci", "5", "--check-cost", "100")
    answer = cec(tmp_path / "run", *small, *pace, monkeypatch=monkeypatch)
    write(tmp_path / "same", COUNTED, CHECKED)
    assert rows_of(tmp_path / "run") == rows_of(tmp_path / "same")
    assert [file["path"] for file in answer.result["files"]] == ["job.json", "outputs/agg1/part-00000.jsonl"]
    assert (answer.command, answer.exit_code, answer.result["policy"]["name"]) == ("simulate", 0, "targets")


def test_the_command_takes_every_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    short = ("--no-log", "--tuples", "1000")
    asked = cec(*short, "--policy", "cost-benefit", "--rate", "1000", "--mtbf-hours", "2", monkeypatch=monkeypatch)
    policy = asked.result["policy"]
    assert (policy["mtbf_s"], policy["replay_s_per_tuple"]) == (7200, 1e-3)
    assert policy["load"] == asdict(published())
    given = cec(*short, "--policy", "cost-benefit", "--load-us", "28", monkeypatch=monkeypatch).result["policy"]
    assert given["load"] == asdict(LoadTime.per_record(28e-6))
    assert cec(*short, "--policy", "none", monkeypatch=monkeypatch).result["policy"]["name"] == "none"
    whole = cec(*short, "--policy", "rollback", "--cp", "7", monkeypatch=monkeypatch).result
    assert (whole["policy"]["name"], whole["policy"]["period_ms"]) == ("rollback", 7)
    assert (
        "all open windows saved every 7 ms"
        in simulate_view(cec(*short, "--policy", "rollback", "--cp", "7", monkeypatch=monkeypatch)).headline
    )
    paper = cec(*short, "--window-ms", "7", monkeypatch=monkeypatch).result
    assert (paper["policy"]["q"], paper["policy"]["u"], paper["workload"]["count"]) == (1_000, 1_000_000, None)


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("folder", "--policy", "rollback"),
        ("--no-log", "--policy", "rollback", "--ci", "3"),
        ("--no-log", "folder"),
        ("--no-log", "--upstream"),
        ("--no-log", "--policy", "none", "--q", "5"),
        ("--no-log", "--format", "yaml"),
        ("--no-log", "--count", "3", "--window-ms", "4"),
        ("folder", "--part-size", "many"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    args: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError):
        cec(*args, monkeypatch=monkeypatch)
    assert not list(tmp_path.iterdir())
