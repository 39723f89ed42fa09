"""`latency`: a failure whose way back is known by construction, who says when it was, and what cannot be told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.builders.native import checkpoint, write
from tests.program import Ended, cklog

S = 1000
FAILED, BACK, CAUGHT_UP = 20 * S + 300, 24 * S, 29 * S
"""The sink is silent from the failure on, is back, and has caught up: all by construction."""


def crafted() -> list[dict[str, int]]:
    """Ten results a second, each 50 ms after its record was made; behind the silence 4 s late, and ever less."""
    found = [{"made": t, "time": t + 50} for t in range(0, 60 * S, 100) if t + 50 < FAILED or t >= CAUGHT_UP]
    for t in range(BACK, CAUGHT_UP, 20):  # five times as many a second, until nothing waits
        late = 4 * S * (CAUGHT_UP - t) // (CAUGHT_UP - BACK)
        found.append({"made": t - late - 100, "time": t})
    return found


def asked(folder: Path, results: list[dict[str, Any]], *more: str) -> Ended:
    path = folder / "results" / "sink.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(result) + "\n" for result in results))
    return cklog("latency", folder, "--results", path.parent, "--event-time", "made", *more, "--json")


def answer(ended: Ended) -> dict[str, Any]:
    assert ended.code == 0, ended.err
    found: dict[str, Any] = json.loads(ended.out)
    return found


def ids(found: dict[str, Any]) -> list[str]:
    return [finding["id"] for finding in found["findings"]]


def test_the_way_back_of_a_crafted_failure_is_found(tmp_path: Path) -> None:
    """From 29 s on every record takes 50 ms again: at 28 s the lateness was still 0.9 s."""
    failure = answer(asked(tmp_path, crafted(), "--at", str(FAILED)))["result"]["failure"]
    assert failure["known_by"] == "--at"
    assert (failure["normal_p99"], failure["limit"]) == (50, 75)
    assert failure["back_at"] == CAUGHT_UP
    assert failure["time_to_normal_ms"] == CAUGHT_UP - FAILED
    assert failure["silent_ms"] == BACK - (20 * S + 250)  # the last record before the failure
    assert (failure["worst_p99"], failure["worst_at"]) == (4 * S + 100, BACK)
    assert failure["steps_above_later"] == 0


def test_a_higher_factor_is_back_earlier(tmp_path: Path) -> None:
    """At 28 s, when a second before all is worked off, records were 800 + 100 ms late at the most."""
    failure = answer(asked(tmp_path, crafted(), "--at", str(FAILED), "--factor", "18"))["result"]["failure"]
    assert (failure["limit"], failure["back_at"]) == (900, 28 * S)


def test_normal_steps_have_to_be_in_a_row(tmp_path: Path) -> None:
    """One late record in the 31st second breaks three steps in a row, and an empty step does too."""
    late = [*crafted(), {"made": 25 * S, "time": 31 * S + 7}]
    assert answer(asked(tmp_path, late, "--at", str(FAILED)))["result"]["failure"]["back_at"] == 32 * S
    one = answer(asked(tmp_path, late, "--at", str(FAILED), "--steps", "2"))["result"]["failure"]
    assert (one["back_at"], one["steps_above_later"]) == (29 * S, 1)
    gone = [result for result in crafted() if result["time"] // S != 31]
    assert answer(asked(tmp_path, gone, "--at", str(FAILED)))["result"]["failure"]["back_at"] == 32 * S


def test_job_json_says_when_it_failed(tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text(json.dumps({"failure_time": FAILED}))
    failure = answer(asked(tmp_path, crafted()))["result"]["failure"]
    assert (failure["known_by"], failure["failed_at"], failure["back_at"]) == ("job.json", FAILED, CAUGHT_UP)


def test_else_the_longest_silence_does_if_it_stands_out(tmp_path: Path) -> None:
    found = answer(asked(tmp_path, crafted()))
    assert found["result"]["failure"]["known_by"] == "silence"
    assert found["result"]["failure"]["failed_at"] == 20 * S + 250
    assert "failure-by-silence" in ids(found)
    two = [
        result for result in crafted() if not 40 * S < result["time"] <= 43 * S
    ]  # 3 s are not less than half of 3.75
    found = answer(asked(tmp_path, two))
    assert found["result"]["failure"] is None
    assert "no-failure-time" in ids(found)


def test_what_was_never_back_is_not_said_to_be(tmp_path: Path) -> None:
    cut = [result for result in crafted() if result["time"] < CAUGHT_UP + 2 * S]  # two normal steps of three
    found = answer(asked(tmp_path, cut, "--at", str(FAILED)))
    assert found["result"]["failure"]["back_at"] is None
    assert found["result"]["failure"]["time_to_normal_ms"] is None
    assert "not-back-to-normal" in ids(found)
    found = answer(asked(tmp_path, cut, "--at", "-5000"))
    assert found["result"]["failure"]["normal_p99"] is None
    assert "no-normal-latency" in ids(found)
    found = answer(asked(tmp_path, cut, "--at", str(100 * S)))
    assert found["result"]["failure"]["back_at"] is None
    assert "no record is later" in next(f["message"] for f in found["findings"] if f["id"] == "not-back-to-normal")


def test_steps_with_checkpoints_are_told_from_others(tmp_path: Path) -> None:
    """30 ms more in the second of a checkpoint; a volatile record is none; the way back counts nowhere."""
    taken = [checkpoint("count/0", n, time=5 * n * S + 400) for n in (1, 2, 3, 5, 8)]
    write(tmp_path, "checkpoints", [*taken, checkpoint("count/0", 9, kind="volatile", time=50 * S)])
    slow = [r | {"time": r["time"] + (30 if r["time"] // S in (5, 10, 15, 40) else 0)} for r in crafted()]
    found = answer(asked(tmp_path, slow, "--at", str(FAILED)))["result"]
    groups = {group["steps_are"]: group for group in found["around_checkpoints"]}
    assert [(name, g["steps"], g["p99"], g["median_p99"]) for name, g in groups.items()] == [
        ("with a checkpoint", 4, 80, 80),  # 25 s is on the way back
        ("the step after", 4, 50, 50),
        ("others", 43, 50, 50),  # of 20 before the failure and 31 from 29 s on
    ]


def test_clocks_that_differ_are_said(tmp_path: Path) -> None:
    found = answer(asked(tmp_path, [{"made": t + 70, "time": t} for t in range(0, 9 * S, 5)]))
    assert found["result"]["p99"] == -70
    assert "negative-latencies" in ids(found)


def test_results_without_a_time_have_no_latency(tmp_path: Path) -> None:
    odd: list[object] = [None, "x", 1.5, True, 1 << 62, -(1 << 62), 1 << 63, -(1 << 63), [], {}]
    found = answer(asked(tmp_path, [*crafted(), *({"made": value, "time": 5} for value in odd), {"time": 7}]))
    assert found["result"]["records"] == len(crafted())
    assert "11 results" in next(f["message"] for f in found["findings"] if f["id"] == "untimed-results")


def test_fields_that_no_result_has_are_refused(tmp_path: Path) -> None:
    ended = asked(tmp_path, [{"time": 5}, {"time": 6}])
    assert ended.code == 66
    assert "both of its times" in ended.err


@pytest.mark.parametrize("kind", ["us", "ms", "int"])
def test_parquet_has_integers_or_timestamps(tmp_path: Path, kind: str) -> None:
    made, time = ([result[name] for result in crafted()] for name in ("made", "time"))
    if kind == "int":
        columns = [pa.array(made), pa.array(time)]
    else:
        columns = [pa.array(column, pa.timestamp("ms")).cast(pa.timestamp(kind)) for column in (made, time)]
    pq.write_table(pa.table(columns, ["born", "seen"]), tmp_path / "sink.parquet")
    fields = ("--event-time", "born", "--time", "seen", "--at", str(FAILED))
    found = answer(cklog("latency", tmp_path, "--results", tmp_path / "sink.parquet", *fields, "--json"))
    assert found["result"]["failure"]["back_at"] == CAUGHT_UP


def test_damage_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    asked(tmp_path, crafted())
    path = tmp_path / "results" / "sink.jsonl"
    path.write_bytes(path.read_bytes() + b'{"made":1,"time"\n{"made":1')
    ended = cklog("latency", tmp_path, "--results", path, "--event-time", "made", "--json")
    assert ended.code == 3
    assert {"bad-record", "torn-tail"} <= set(ids(json.loads(ended.out)))
    assert json.loads(ended.out)["result"]["records"] == len(crafted())
    assert cklog("latency", tmp_path, "--results", path, "--event-time", "made", "--strict").code == 65


def test_messages_without_times_or_sends_are_said(tmp_path: Path) -> None:
    sends = [{"event": "send", "operator": "a", "channel": "a/0->b/0", "seq": n, "time": n} for n in range(5)]
    receipts = [{"event": "receive", "operator": "b", "channel": "a/0->b/0", "seq": n, "time": n + 9} for n in range(8)]
    del receipts[0]["time"]
    write(tmp_path, "events", [*sends, *receipts])
    found = answer(cklog("latency", tmp_path, "--json"))
    assert (found["result"]["records"], found["result"]["p50"], found["result"]["end_to_end"]) == (4, 9, True)
    assert {"untimed-messages", "unsent-messages"} <= set(ids(found))
    ended = cklog("latency", tmp_path, "--operator", "a")
    assert (ended.code, "operators that receive: b" in ended.err) == (66, True)


@pytest.mark.parametrize(
    "words",
    [
        "--results X",
        "--event-time made",
        "--time made",
        "--results X --event-time made --time made",
        "--results X --event-time made --operator a",
        "--step 0",
        "--step nan",
        "--step 1e300",
        "--factor 0.5",
        "--factor inf",
        "--steps 0",
        "--at noon",
    ],
)
def test_wrong_usage_is_refused(tmp_path: Path, words: str) -> None:
    asked(tmp_path, crafted())
    given = [str(tmp_path / "results") if word == "X" else word for word in words.split()]
    assert cklog("latency", tmp_path, *given).code == 2
