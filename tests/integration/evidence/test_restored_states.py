"""Records of checkpoint 0: the state that a recovery restored, or the start of a new job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.program import cklog


def _answer(folder: Path, *records: dict[str, Any]) -> tuple[int, Any]:
    (folder / "checkpoints").mkdir()
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (folder / "checkpoints" / "part-0.jsonl").write_text(lines, encoding="utf-8")
    ended = cklog("recovery-line", folder, "--json")
    return ended.code, json.loads(ended.out)["result"]


def test_a_run_that_goes_on_restarts_from_the_states_that_were_restored(tmp_path: Path) -> None:
    code, found = _answer(
        tmp_path,
        {"operator": "src", "checkpoint": 0, "uri": "ck/s0", "sent": {"src/0->agg/0": 9}, "sources": {"in-0": 12}},
        {"operator": "agg", "checkpoint": 0, "uri": "ck/a0", "received": {"src/0->agg/0": 7}},
    )
    assert (code, found["action"]) == (0, "restart")
    assert [(e["operator"], e["checkpoint"], e["state"], e["uri"]) for e in found["line"]] == [
        ("agg", 0, "stored", "ck/a0"),
        ("src", 0, "stored", "ck/s0"),
    ]
    assert [(c["replay_from"], c["replay_to"]) for c in found["channels"]] == [(7, 9)]


def test_a_new_job_that_begins_behind_the_start_of_its_input_starts_over(tmp_path: Path) -> None:
    code, found = _answer(
        tmp_path,
        {"operator": "src", "checkpoint": 0, "sources": {"in-0": 1_000_000}},
        {"operator": "agg", "checkpoint": 0},
    )
    assert (code, found["action"]) == (4, "start-over")
    assert {entry["state"] for entry in found["line"]} == {"initial"}
