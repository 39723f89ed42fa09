"""How long a run of records takes to recover, counted again from its files by hand."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import native
from tests.conftest import REPOSITORY
from tests.program import cklog

JOIN = REPOSITORY / "sample_logs/uncoordinated-join"


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in sorted(folder.glob("*.jsonl")) for line in file.read_text().splitlines()]


def line_of(run: Path, *options: str, code: int = 0, command: str = "recovery-line") -> dict[str, Any]:
    ended = cklog(command, run, "--json", *options)
    assert ended.code == code, ended.err
    answer: dict[str, Any] = json.loads(ended.out)
    return answer


def test_each_subtask_restores_and_replays_what_its_files_tell() -> None:
    result = line_of(JOIN)["result"]
    records = {(f"{r['operator']}/{r['subtask']}", r["checkpoint"]): r for r in rows(JOIN / "checkpoints")}
    parts = {part["name"]: part for part in result["recovery_time"]["parts"]}
    for entry in result["line"]:
        name = f"{entry['operator']}/{entry['subtask']}"
        record, part = records[name, entry["checkpoint"]], parts[name]
        assert part["bytes"] == record["bytes"]
        assert part["restore_ms"] == {"low": record["duration_ms"], "high": pytest.approx(1.2 * record["duration_ms"])}
        into = [c for c in result["channels"] if c["channel"].endswith(f"->{name}")]
        out_of = [c for c in result["channels"] if c["channel"].startswith(f"{name}->")]
        again = sum(c["resent_to"] - c["resent_from"] for c in into or out_of if c["resent_from"] is not None)
        count = sum(c["messages"] for c in into) + again
        assert part["messages"] == {"low": count, "high": count}
        history = sorted((r["time"], r) for (owner, _), r in records.items() if owner == name)
        marks = "received" if into else "sent"
        seen: dict[str, int] = {}
        done = []
        for time, row in history:
            seen |= row.get(marks, {})
            done.append((time, sum(seen.values())))
        paces = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.pairwise(done)]
        assert part["replay_ms"] == {"low": 0.0, "high": pytest.approx(count / max(paces), abs=0.001)}


def test_rates_that_are_given_leave_no_guess() -> None:
    told = line_of(JOIN, "--read-rate", "2", "--replay-rate", "100", "--input-rate", "20")["result"]["recovery_time"]
    assert {rate["source"] for rate in told["rates"]} == {"given"}
    for part in told["parts"]:
        time = pytest.approx(part["bytes"] / 2 / 1000, abs=0.001)
        assert part["restore_ms"] == {"low": time, "high": time}
        assert part["replay_ms"] == {"low": 10 * part["messages"]["low"], "high": 10 * part["messages"]["low"]}
    ready, catch_up = told["ready_ms"], told["catch_up_ms"]
    assert catch_up["high"] == pytest.approx(ready["high"] * 20 / (100 - 20), abs=0.001)
    assert told["total_ms"]["high"] == pytest.approx(ready["high"] + catch_up["high"], abs=0.002)


def test_more_than_is_processed_is_never_caught_up() -> None:
    answer = line_of(JOIN, "--replay-rate", "10", "--input-rate", "10", "--max-recovery-time", "9e9", code=3)
    assert answer["result"]["recovery_time"]["catches_up"] is False
    assert answer["result"]["recovery_time"]["total_ms"] is None
    (finding,) = [f for f in answer["findings"] if f["id"] == "over-recovery-time"]
    assert (finding["severity"], "never catches up" in finding["message"]) == ("error", True)
    shown = cklog("recovery-line", JOIN, "--replay-rate", "10", "--input-rate", "11").out
    assert "never" in shown[shown.index("Time to recover") :]


@pytest.mark.parametrize(
    ("bound", "code", "severity"),
    [("0.01", 3, ["error"]), ("10", 0, ["warning"]), ("1e6", 0, [])],
)
@pytest.mark.parametrize("command", ["recovery-line", "replay"])
def test_a_bound_is_an_error_only_where_the_low_end_is_over_it(
    bound: str, code: int, severity: list[str], command: str
) -> None:
    answer = line_of(JOIN, "--max-recovery-time", bound, code=code, command=command)
    assert [f["severity"] for f in answer["findings"] if f["id"] == "over-recovery-time"] == severity


def test_what_nothing_tells_is_null_with_the_reason(tmp_path: Path) -> None:
    native.write(
        tmp_path,
        "checkpoints",
        [
            {"operator": "a", "checkpoint": 1, "sent": {"a/0->b/0": 5}},
            {"operator": "b", "checkpoint": 1, "received": {"a/0->b/0": 2}},
        ],
    )
    answer = line_of(tmp_path, "--max-recovery-time", "1")
    told = answer["result"]["recovery_time"]
    assert [told[name] for name in ("total_ms", "restore_ms", "ready_ms", "catches_up")] == [None] * 4
    assert any(reason.startswith("how many bytes are restored") for reason in told["unknown"])
    assert any(
        reason.startswith("how fast messages are processed, of b/0") or "replay-rate" in reason
        for reason in told["unknown"]
    )
    assert [f["severity"] for f in answer["findings"] if f["id"] == "over-recovery-time"] == ["warning"]
    assert "Time to recover" not in cklog("recovery-line", tmp_path).out


def test_a_delta_is_restored_with_all_that_it_stands_on(tmp_path: Path) -> None:
    states = [("base", 1000, 10), ("delta", 300, 4), ("delta", 50, 1)]
    native.write(
        tmp_path,
        "checkpoints",
        [
            {"operator": "a", "checkpoint": n, "form": form, "bytes": size, "duration_ms": ms, "time": 1000 * n}
            for n, (form, size, ms) in enumerate(states, 1)
        ],
    )
    (part,) = line_of(tmp_path)["result"]["recovery_time"]["parts"]
    assert (part["bytes"], part["restore_ms"]) == (1350, {"low": 15.0, "high": 18.0})


def test_a_state_without_a_duration_is_read_as_others_were_stored(tmp_path: Path) -> None:
    native.write(
        tmp_path,
        "checkpoints",
        [
            {"operator": "a", "checkpoint": 1, "bytes": 4000, "duration_ms": 10},
            {"operator": "a", "checkpoint": 2, "bytes": 1000, "duration_ms": 10},
            {"operator": "a", "checkpoint": 3, "bytes": 2000},
        ],
    )
    (part,) = line_of(tmp_path)["result"]["recovery_time"]["parts"]
    assert part["restore_ms"] == {"low": 5.0, "high": 24.0}  # at 400 bytes a ms, and 1.2 times at 100


@pytest.mark.parametrize("value", [(1 << 63) - 2, 1 << 61, 0])
def test_numbers_that_cannot_be_are_no_crash(tmp_path: Path, value: int) -> None:
    native.write(
        tmp_path,
        "checkpoints",
        [
            {
                "operator": "a",
                "checkpoint": n,
                "sent": {"a/0->b/0": value - value // 2 * (2 - n), "a/0->c/0": value},
                "bytes": value,
                "duration_ms": value / 8,
                "time": n if n == 1 else value,
            }
            for n in (1, 2)
        ],
    )
    ended = cklog("recovery-line", tmp_path, "--json", "--read-rate", "1e-6", "--max-recovery-time", "1")
    assert ended.code in (0, 3, 4, 5), ended.err
    assert "Infinity" not in ended.out
    assert "NaN" not in ended.out


@pytest.mark.parametrize(
    "wrong",
    [
        ["--read-rate", "0"],
        ["--replay-rate", "-1"],
        ["--input-rate", "nan"],
        ["--max-recovery-time", "inf"],
        ["--failed-at", "all", "--read-rate", "1"],
    ],
)
def test_rates_that_are_none_are_wrong_usage(wrong: list[str]) -> None:
    assert cklog("recovery-line", JOIN, *wrong).code == 2
