"""Eventual checkpoints beside uncoordinated ones, against the same run with a checkpoint at every output record."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklog.model.lines import RecoveryLine
from cklog.model.question import Question
from cklog.run import Options, open_run
from tests.oracles.mixed_runs import RING, ROW, Execution, Records


def line_of(checkpoints: Records, queue: Records, channels: tuple[str, ...]) -> RecoveryLine:
    with tempfile.TemporaryDirectory() as folder:
        for place, rows in (("checkpoints", checkpoints), ("outputs/e", queue)):
            if rows:
                (Path(folder) / place).mkdir(parents=True)
                text = "".join(json.dumps(row) + "\n" for row in rows)
                (Path(folder) / place / "a.jsonl").write_text(text)
        names = [{"channel": name} for name in channels]
        operators = [{"name": name} for name in "ude"]
        (Path(folder) / "job.json").write_text(json.dumps({"channels": names, "operators": operators}))
        with open_run(folder, Options()) as run:
            found: RecoveryLine = run.recovery_line(Question()).result
    return found


@pytest.mark.parametrize("channels", [ROW, RING], ids=["row", "ring"])
@given(rng=st.randoms(use_true_random=False), steps=st.integers(5, 80))
def test_the_line_is_that_of_a_checkpoint_at_every_record(
    rng: random.Random, steps: int, channels: tuple[str, ...]
) -> None:
    run = Execution(rng, steps, channels)
    if not (run.queue and {r["operator"] for r in run.checkpoints} == {"u", "d"}):
        return
    found = line_of(run.checkpoints, run.queue, channels)
    expected = line_of([*run.checkpoints, *run.of_every_record()], [], channels)
    chosen = {e.operator: e.checkpoint for e in expected.line}
    mine = {e.operator: e for e in found.line}
    assert found.protocol == "mixed"
    assert {name: mine[name].checkpoint for name in "ud"} == {name: chosen[name] for name in "ud"}
    kept = [r for r in run.queue if r["pos"] < (chosen["e"] or 0)]
    assert mine["e"].state == "eventual"
    assert mine["e"].time == (kept[-1]["ts"] if kept else None)
    assert mine["e"].rolled_back == (len(kept) < len(run.queue))
