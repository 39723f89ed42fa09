"""Runs of operators that checkpoint when they like, with one between them that has an output queue instead."""

from __future__ import annotations

import random
from typing import Any

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
