"""Coordinated rounds, the line that they make, and the metrics of protocols."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.builders.native import checkpoint, write
from tests.program import cklog

AB = "a/0->b/0"


def aligned(rounds: int, **more: Any) -> list[dict[str, Any]]:
    """Rounds of a/0 and b/0; b/0 comes 100 ms later, 40 s later in round 3; 10 messages in each."""
    records = []
    for n in range(1, rounds + 1):
        late = 40_000 if n == 3 else 100
        base = {"kind": "coordinated", "round": n, "duration_ms": 5.0, "bytes": 1000, **more}
        records.append(checkpoint("a/0", n, **{**base, "time": n * 60_000, "sent": {AB: 10 * n}}))
        records.append(checkpoint("b/0", n, **{**base, "time": n * 60_000 + late, "received": {AB: 10 * n}}))
    return records


def line(folder: Path, *args: str) -> tuple[int, dict[str, Any], list[dict[str, Any]]]:
    ended = cklog("recovery-line", folder, "--json", *args)
    found = json.loads(ended.out)
    return ended.code, found["result"], found["findings"]


def numbers(result: dict[str, Any]) -> dict[str, int]:
    return {f"{e['operator']}/{e['subtask']}": e["checkpoint"] for e in result["line"]}


def test_the_line_is_the_last_complete_round_whatever_is_newer(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", aligned(4)[:-1])  # b/0 has not taken part in round 4
    code, result, _ = line(tmp_path)
    assert (code, result["protocol"]) == (0, "coordinated")
    assert numbers(result) == {"a/0": 3, "b/0": 3}
    assert result["rolled_back"] == [{"operator": "a", "subtask": 0, "checkpoint": 4}]
    assert result["notes"] == ["round 3 is used", "round 4 is incomplete: b/0 missing"]
    assert [c["messages"] or 0 for c in result["channels"]] == [0]


def test_a_round_without_a_number_is_that_of_its_checkpoints(tmp_path: Path) -> None:
    records = aligned(2)
    for record in records:
        del record["round"]
    write(tmp_path, "checkpoints", records)
    assert numbers(line(tmp_path)[1]) == {"a/0": 2, "b/0": 2}


def test_an_incomplete_checkpoint_does_not_complete_a_round(tmp_path: Path) -> None:
    records = aligned(2)
    records[-1]["status"] = "incomplete"
    write(tmp_path, "checkpoints", records)
    assert numbers(line(tmp_path)[1]) == {"a/0": 1, "b/0": 1}


def test_a_complete_round_that_is_not_consistent_is_not_used(tmp_path: Path) -> None:
    records = aligned(2)
    records[-1]["received"] = {AB: 25}
    write(tmp_path, "checkpoints", records)
    code, result, findings = line(tmp_path)
    assert code == 3
    assert numbers(result) == {"a/0": 1, "b/0": 1}
    wrong = next(f for f in findings if f["id"] == "inconsistent-round")
    assert "b/0 had received messages 20 to 24 of a/0->b/0, which a/0 had not sent" in wrong["message"]


def test_no_complete_round_is_the_initial_state(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", aligned(1)[:1])
    write(tmp_path, "channels", [{"channel": AB, "seq": n, "bytes": 10} for n in range(10)])
    code, result, _ = line(tmp_path)
    assert code == 4
    assert numbers(result) == {"a/0": 0, "b/0": 0}
    assert result["notes"][0] == "no coordinated round is complete and consistent"


def test_rounds_over_time(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", aligned(4))
    found = json.loads(cklog("recovery-line", tmp_path, "--failed-at", "all", "--json").out)["result"]
    # between a/0's checkpoint of a round and b/0's, the round is not complete and a/0's is rolled past
    assert [m["rolled_past"] for m in found["moments"]] == [1, 0] * 4


def test_metrics_of_rounds_with_the_slow_one_and_its_channel(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", aligned(5)[:-1])
    found = json.loads(cklog("inspect", tmp_path, "--metrics", "--json").out)["result"]
    metrics = found["protocol_metrics"]
    assert metrics["rounds"] == {"complete": 4, "straggling": 1, "incomplete": 1}
    assert metrics["checkpointing_time_ms"] == {"local": 5.0, "round": (3 * 100 + 40_000) / 4}
    slow, incomplete = found["rounds"]
    assert (slow["round"], slow["state"], slow["span_ms"]) == (3, "straggling", 40_000)
    assert (slow["slowest"], slow["slowest_channel"]) == ("b/0", AB)
    assert (incomplete["state"], incomplete["missing"]) == ("incomplete", "b/0 missing")
    assert metrics["restart"] == {"state_bytes": 2000, "messages": 0, "message_bytes": 0}


def test_message_overhead_where_both_sizes_are_logged(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", [checkpoint("a/0", 1, sent={AB: 2}), checkpoint("b/0", 1, received={AB: 1})])
    sized = [{"channel": AB, "seq": n, "bytes": 210, "protocol_bytes": 110} for n in range(2)]
    write(tmp_path, "channels", [*sized, {"channel": AB, "seq": 2, "bytes": 50}])
    found = json.loads(cklog("inspect", tmp_path, "--metrics", "--json").out)["result"]["protocol_metrics"]
    expected = {"messages": 3, "bytes": 420, "protocol_bytes": 220, "ratio": 2.1}
    assert found["message_overhead"] == expected
    assert found["restart"]["messages"] == 1


def test_state_to_load_goes_down_the_chain_of_deltas(tmp_path: Path) -> None:
    base = checkpoint("a/0", 1, bytes=1000, form="base")
    deltas = [checkpoint("a/0", n, bytes=10, form="delta", **({"parent": n - 1} if n == 3 else {})) for n in (2, 3)]
    write(tmp_path, "checkpoints", [base, *deltas])
    found = json.loads(cklog("inspect", tmp_path, "--metrics", "--json").out)["result"]["protocol_metrics"]
    assert found["restart"]["state_bytes"] == 1020


def test_compare_puts_runs_side_by_side(tmp_path: Path) -> None:
    write(tmp_path / "one", "checkpoints", aligned(2))
    write(tmp_path / "two", "checkpoints", [checkpoint("a/0", 1, sent={AB: 1}), checkpoint("b/0", 1, received={AB: 3})])
    ended = cklog("compare", tmp_path / "one", tmp_path / "two", "--json")
    found = json.loads(ended.out)
    assert ended.code == 0
    assert [run["protocol"] for run in found["result"]["runs"]] == ["coordinated", "uncoordinated"]
    assert [run["invalid"]["rolled_past"]["checkpoints"] for run in found["result"]["runs"]] == [0, 1]
    assert {used["path"] for used in found["inputs"]} == {f"{tmp_path}/{run}/checkpoints/" for run in ("one", "two")}
    assert cklog("compare", tmp_path / "one").code == 2
    assert cklog("compare", tmp_path / "one", tmp_path / "one").code == 2
    assert cklog("compare", tmp_path / "one", tmp_path / "none").code == 66


def test_lost_records_without_a_manifest_leave_rounds_unproven(tmp_path: Path) -> None:
    """c/0, which only its lost records named, may be missing from every round; a manifest would tell."""
    part = write(tmp_path, "checkpoints", aligned(2))
    part.write_bytes(part.read_bytes() + b"{garbled\n")
    code, result, findings = line(tmp_path)
    assert (code, numbers(result)) == (5, {"a/0": 2, "b/0": 2})
    assert "unknown-subtasks" in {f["id"] for f in findings}
    operators = [{"name": name, "parallelism": 1} for name in ("a", "b", "c")]
    (tmp_path / "job.json").write_text(json.dumps({"operators": operators}))
    code, result, findings = line(tmp_path)
    assert (code, numbers(result)) == (4, {"a/0": 0, "b/0": 0, "c/0": 0})
    assert "unknown-subtasks" not in {f["id"] for f in findings}
