"""Eventual checkpoints beside uncoordinated ones, against the same run with a checkpoint at every output record."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklog.model.lines import RecoveryLine
from cklog.model.question import Question
from cklog.run import Options, open_run

RING = ("u/0->e/0", "e/0->d/0", "d/0->u/0")
ROW = ("u/0->e/0", "e/0->d/0")
Records = list[dict[str, Any]]


class Execution:
    """u and d checkpoint when they like; e persists a record for each tuple, sometimes two, and d gets them all."""

    def __init__(self, rng: random.Random, steps: int, channels: tuple[str, ...]) -> None:
        self.sent = dict.fromkeys(channels, 0)
        self.received = dict.fromkeys(channels, 0)
        self.numbers = {"u": 0, "d": 0}
        self.checkpoints: Records = []
        self.queue: Records = []
        for _ in range(steps):
            self._step(rng, channels)

    def _step(self, rng: random.Random, channels: tuple[str, ...]) -> None:
        what = rng.randrange(7)
        if what < 2:
            self._checkpoint("ud"[what])
        elif what == 2:
            self.sent["u/0->e/0"] += 1
        elif what == 3 and RING[2] in channels:
            self.sent["d/0->u/0"] += 1
        else:
            name = rng.choice(channels)
            if self.received[name] < self.sent[name]:
                self.received[name] += 1
                if name == "u/0->e/0":
                    self._emit(1 + (rng.random() < 0.3))

    def _emit(self, count: int) -> None:
        number = self.received["u/0->e/0"] - 1
        for _ in range(count):
            record = {"type": "emit", "ts": number, "open_windows": 0, "input": number, "pos": len(self.queue)}
            self.queue.append(record)
        self.sent["e/0->d/0"] = len(self.queue)

    def _checkpoint(self, operator: str) -> None:
        self.numbers[operator] += 1
        row = {"operator": operator, "checkpoint": self.numbers[operator]}
        self.checkpoints.append(row | self._watermarks(operator))

    def _watermarks(self, operator: str) -> dict[str, Any]:
        sent = {c: n for c, n in self.sent.items() if c.startswith(f"{operator}/")}
        received = {c: n for c, n in self.received.items() if c.endswith(f"->{operator}/0")}
        return {"sent": sent, "received": received}

    def of_every_record(self) -> Records:
        """The queue of e as ordinary checkpoints, one after each record."""
        return [
            {
                "operator": "e",
                "checkpoint": r["pos"] + 1,
                "sent": {"e/0->d/0": r["pos"] + 1},
                "received": {"u/0->e/0": r["input"] + 1},
            }
            for r in self.queue
        ]


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
