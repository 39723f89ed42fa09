"""`extent --over-time`: the golden log by hand, targets, damage, and what people and programs get to see."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cklog.model.schemas import OUTPUTS
from cklog.model.verdict import Answer
from cklog.queues.log import COLUMNS, log_of
from cklog.queues.over_time import timeline as over_time
from cklog.queues.over_time.pieces import NOTHING, evaluated
from cklog.queues.over_time.timeline import ExtentOverTime
from cklog.render.curve import figure
from cklog.run import Options, open_run
from tests.builders.queues import GOLDEN, queue, records
from tests.program import cklog
from tests.reading.answers import ids

NUMBERED = [row | {"input": 10 * row["ts"]} for row in records(GOLDEN)]
"""The golden log with a footprint or result for every tenth tuple."""


def ask(folder: Path, q: int | None = None, u: int | None = None, **options: Any) -> tuple[ExtentOverTime, Answer[Any]]:
    with open_run(str(folder), Options(**options)) as run:
        answer = run.extent_over_time("agg1", q, u)
    return answer.result, answer


def test_the_golden_log_by_hand(tmp_path: Path) -> None:
    """w1 holds T back until its result, then w2 until its check, then w3."""
    queue(tmp_path, NUMBERED)
    found, answer = ask(tmp_path)
    assert [row["extent"] for row in found.samples] == [1, 2, 2, 3, 2, 3]
    assert [row["replay"] for row in found.samples] == [0, 10, 10, 20, 10, 20]
    assert [row["replay_ms"] for row in found.samples] == [0, 1, 1, 2, 1, 2]
    assert [row["open_windows"] for row in found.samples] == [1, 2, 1, 2, 2, 3]
    assert [row["oldest"] for row in found.samples] == ["w1", "w1", "w2", "w2", "w3", "w3"]
    assert [row["pos"] for row in found.samples] == [1, 2, 3, 4, 5, 6]
    assert (found.records, found.stride, found.from_ts, found.to_ts) == (6, 1, 1, 6)
    assert found.extent == {"mean": 13 / 6, "max": 3, "last": 3}
    assert found.replay == {"mean": 70 / 6, "max": 20, "last": 20}
    assert found.slow == (
        {"window": "w1", "ts": 1, "record": 0, "held_records": 2, "held_ms": 2, "extent": 2},
        {"window": "w2", "ts": 2, "record": 1, "held_records": 2, "held_ms": 2, "extent": 3},
        {"window": "w3", "ts": 4, "record": 3, "held_records": 2, "held_ms": 1, "extent": 3},
    )
    assert (found.breaches, found.breached["records"], answer.exit_code) == ((), 0, 0)


def test_over_the_target_is_exit_3_and_says_when(tmp_path: Path) -> None:
    path = queue(tmp_path, NUMBERED)
    found, answer = ask(tmp_path, q=2)
    assert found.breaches == (
        {"from_record": 3, "to_record": 3, "from_ts": 4, "to_ts": 4, "extent": 3, "replay": 20, "oldest": "w2"},
        {"from_record": 5, "to_record": 5, "from_ts": 6, "to_ts": 6, "extent": 3, "replay": 20, "oldest": "w3"},
    )
    assert found.breached == {"stretches": 2, "records": 2, "ms": 0}
    assert (ids(answer), answer.exit_code, answer.verdict) == ({"extent-over-target"}, 3, "findings")
    finding = answer.findings[0]
    assert "over 2 records 2 times" in finding.message
    assert "timestamp 4" in finding.message
    assert "w2 held T back" in finding.message
    assert finding.where[0].offset == sum(map(len, path.read_bytes().splitlines(keepends=True)[:3]))
    assert ask(tmp_path, q=3, u=20)[1].exit_code == 0
    assert ask(tmp_path, u=19)[0].breached["records"] == 2


def test_a_target_in_tuples_cannot_be_checked_without_input_numbers(tmp_path: Path) -> None:
    """Nothing is known about the replay; an extent over its target is known all the same."""
    queue(tmp_path, records(GOLDEN))
    found, answer = ask(tmp_path, u=1)
    assert found.replay is None
    assert (ids(answer), answer.exit_code) == ({"replay-unknown"}, 5)
    found, answer = ask(tmp_path, q=2, u=1)
    assert (ids(answer), answer.exit_code) == ({"replay-unknown", "extent-over-target"}, 3)
    assert [row["replay"] for row in found.breaches] == [None, None]


def test_a_record_without_a_number_takes_the_numbers_from_all(tmp_path: Path) -> None:
    queue(tmp_path, [*NUMBERED[:5], {k: v for k, v in NUMBERED[5].items() if k != "input"}])
    found, _ = ask(tmp_path, u=15)
    assert (found.replay, found.breaches) == (None, ())
    assert {row["replay"] for row in found.samples} == {None}


def test_files_and_encodings_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queue(tmp_path / "one", NUMBERED)
    queue(tmp_path / "two", NUMBERED[:3], "part-9.jsonl")
    queue(tmp_path / "two", NUMBERED[3:], "part-10.jsonl")
    packed = queue(tmp_path / "packed", NUMBERED)
    packed.with_name("part-0.jsonl.gz").write_bytes(gzip.compress(packed.read_bytes()))
    packed.unlink()
    whole = ask(tmp_path / "one", q=2)[0]
    assert ask(tmp_path / "two", q=2)[0] == whole
    assert ask(tmp_path / "packed", q=2)[0] == whole
    monkeypatch.setattr(over_time, "PIECE_RECORDS", 1)
    assert ask(tmp_path / "two", q=2, split_bytes=50)[0] == whole


def test_samples_are_the_worst_of_equal_strides(tmp_path: Path) -> None:
    """1000 records: a window that lasts, and one that comes and goes."""
    rows = [("open" if i % 2 else "result", "b", i, 1 + i % 2) for i in range(1, 1000)]
    queue(
        tmp_path,
        records(
            [
                ("open", "a", 0, 1),
                *rows,
            ]
        ),
    )
    found, answer = ask(tmp_path)
    assert (found.stride, len(found.samples), found.records) == (4, 250, 1000)
    assert [row["record"] for row in found.samples] == list(range(3, 1000, 4))
    assert found.extent == {"mean": 500.5, "max": 1000, "last": 1000}
    assert (found.slow[0]["window"], found.slow[0]["held_records"], answer.exit_code) == ("a", 1000, 0)


def test_damage_is_told_and_n_shows_what_it_hid(tmp_path: Path) -> None:
    """Without its result, w1 is open for good; N says that it is not."""
    path = queue(tmp_path, NUMBERED)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"x" * 20 + b"\n", *lines[3:-1], lines[-1][:-9]]))
    found, answer = ask(tmp_path)
    assert ids(answer) == {"bad-record", "torn-tail", "window-count-mismatch"}
    assert [row["extent"] for row in found.samples] == [1, 2, 3, 4]
    mismatch = next(f for f in answer.findings if f.id == "window-count-mismatch")
    assert (mismatch.severity, mismatch.where[0].offset) == ("warning", len(lines[0] + lines[1]) + 21)
    assert "at 2 of 4 records, first at record 2, where N is 2 and 3 are open" in mismatch.message


def test_queues_that_hold_little(tmp_path: Path) -> None:
    """Only a torn record; no windows at all."""
    path = queue(tmp_path / "torn", NUMBERED[:1])
    path.write_bytes(path.read_bytes()[:-5])
    found, answer = ask(tmp_path / "torn", q=1, u=1)
    assert (found.records, found.extent["max"], found.samples, answer.exit_code) == (0, None, (), 0)
    emitted = [{"type": "emit", "ts": t, "open_windows": 0, "input": t, "pos": t} for t in range(3)]
    queue(tmp_path / "flat", emitted)
    found, answer = ask(tmp_path / "flat", q=0, u=0)
    assert (found.extent["max"], found.slow, answer.exit_code) == (0, (), 0)
    for folder in ("torn", "flat"):
        for form in ("table", "md", "csv", "jsonl", "json"):
            assert cklog("extent", tmp_path / folder, "--over-time", "--format", form).code == 0
    queue(tmp_path / "bad", []).write_bytes(b"\x00" * 50 + b"\n")
    assert cklog("extent", tmp_path / "bad", "--over-time").code == 65


def test_the_command_line(tmp_path: Path) -> None:
    queue(tmp_path, NUMBERED)
    ended = cklog("extent", tmp_path, "--operator", "agg1", "--max-extent", "2", "--json")
    told = json.loads(ended.out)
    assert (ended.code, told["schema"], told["verdict"]) == (3, "cklog.extent-over-time/1", "findings")
    assert set(told["result"]["samples"][0]) == {
        "record",
        "pos",
        "ts",
        "extent",
        "replay",
        "replay_ms",
        "open_windows",
        "oldest",
    }
    assert told["result"]["max_extent"] == 2
    rows = list(csv.DictReader(io.StringIO(cklog("extent", tmp_path, "--over-time", "--format", "csv").out)))
    assert [row["extent"] for row in rows] == ["1", "2", "2", "3", "2", "3"]
    lines = cklog("extent", tmp_path, "--over-time", "--format", "jsonl").out.splitlines()
    assert [json.loads(row) for row in lines] == told["result"]["samples"]
    assert json.loads(cklog("extent", tmp_path, "--json").out)["schema"] == "cklog.extent/1"
    for option in ("--max-extent", "--max-replay"):
        ended = cklog("extent", tmp_path, option, "-1")
        assert (ended.code, ended.err.splitlines()[0].endswith(f"{option} -1: less than 0")) == (2, True)


def test_people_see_curves_and_who_is_to_blame(tmp_path: Path) -> None:
    queue(tmp_path, NUMBERED)
    shown = cklog("extent", tmp_path, "--max-extent", "2").out
    assert "The extent was over 2 records 2 times, at 33.3% of the records, first after 0.003 s." in shown
    assert "Extent in records (- - target 2)" in shown
    assert "Over the target" in shown
    assert "What held T back for longest" in shown
    document = cklog("extent", tmp_path, "--max-extent", "2", "--format", "md").out
    assert document.count("```text\nExtent in records") == 1
    assert document.count("```") == 4


def test_a_figure_is_80_columns_of_plain_text() -> None:
    seconds = [i / 10 for i in range(256)]
    drawn = figure("Extent in records", seconds, [400 * i for i in range(256)], 50_000)
    rows = drawn.splitlines()
    assert rows[0] == "Extent in records (- - target 50,000)"
    assert max(map(len, rows)) <= 80
    assert "\x1b" not in drawn
    assert any(row.startswith("    50,000 | ") and row.count("-") > 20 for row in rows)
    assert rows[-1].split() == ["|", "0", "5", "10", "15", "20", "25", "30"]
    assert "(target 900,000)" in figure("Extent", seconds, [1] * 256, 900_000)


def test_kafka_control_records_take_a_place_and_hold_nothing(tmp_path: Path) -> None:
    """Records of a transaction, in the pieces that a commit marker would begin."""

    kinds = {field.name: field.type for field in OUTPUTS} | {"_path": pa.string(), "_offset": pa.int64()}
    rows = [
        {"type": "open", "window": "a", "ts": 1, "open_windows": 1, "input": 5},
        {"type": "control", "ts": 2},
        {"type": "check", "window": "b", "ts": 3, "open_windows": 2, "input": 9},
    ]
    schema = pa.schema([(name, kinds[name]) for name in COLUMNS])
    batch = pa.RecordBatch.from_pylist([row | {"_path": "p", "_offset": i} for i, row in enumerate(rows)], schema)
    first, current = evaluated(log_of([batch.slice(0, 1)], ("p",)), 0, NOTHING)
    second, current = evaluated(log_of([batch.slice(1, 1)], ("p",)), 1, current)
    third, _ = evaluated(log_of([batch.slice(2, 1)], ("p",)), 2, current)
    assert [int(piece.extent[0]) for piece in (first, second, third)] == [1, 2, 3]
    assert [int(piece.replay[0]) for piece in (first, second, third)] == [0, 0, 4]
    together, _ = evaluated(log_of([batch.slice(0, 1), batch.slice(1)], ("p",)), 0, NOTHING)
    assert (together.extent.tolist(), together.replay.tolist()) == ([1, 2, 3], [0, 0, 4])
