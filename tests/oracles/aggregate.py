"""The simulated aggregate and its check records, one tuple after the other, in the words of the paper."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cklog.policies.check_records import CheckPolicy, CostBenefit, Targets
from cklog.simulate.cec.operator import WARM, Statistics
from cklog.simulate.cec.tuples import Workload, draw

Row = dict[str, Any]


class Loop:
    """The simulated operator, one tuple and one check at a time, in the words of the paper."""

    def __init__(self, workload: Workload, policy: CheckPolicy) -> None:
        self.w, self.policy = workload, policy
        self.log: list[Row] = []
        self.open: dict[int, Row] = {}  # per key, the window's id, state and opening
        self.closed = [0] * workload.keys
        self.samples: list[tuple[int, int, int]] = []
        self.checks: list[int] = []  # per counted period
        self.responses: list[int] = []
        self.spent_ms, self.period, self.input, self.ts = 0.0, 1, -1, 0

    def run(self) -> None:
        keys, prices = (values.tolist() for values in draw(self.w, 0, self.w.tuples))
        for i in range(self.w.tuples):
            while i >= self.due():
                self.end_of_period()
            self.input, self.ts = i, self.w.start_ms + math.floor(i * (1000 / self.w.rate) + self.spent_ms)
            self.process(keys[i], prices[i])
        if self.due() <= self.w.tuples:
            self.end_of_period()

    def due(self) -> int:
        return math.ceil((self.period * self.policy.period_ms - self.spent_ms) * self.w.rate / 1000)

    def process(self, key: int, price: int) -> None:
        start = self.ts if self.w.window_ms is None else self.ts // self.w.window_ms * self.w.window_ms
        if self.w.window_ms is not None:
            for old in sorted(k for k, window in self.open.items() if window["start"] < start):
                self.close(old)
        opens = key not in self.open
        if opens:
            name = f"k{key}#{self.closed[key]}" if self.w.count else f"k{key}@{start}"
            self.open[key] = {"id": name, "start": start, "sum": 0, "count": 0, "opened": self.ts}
        window = self.open[key]
        window["sum"] += price
        window["count"] += 1
        if opens:
            self.record("open", window)
        if window["count"] == self.w.count:
            self.close(key)

    def close(self, key: int) -> None:
        window = self.open.pop(key)
        self.closed[key] += 1
        self.record("result", window)
        if self.input >= WARM * self.w.tuples:
            self.responses.append(self.ts - window["opened"])

    def record(self, kind: str, window: Row) -> None:
        state = {"sum": window["sum"], "count": window["count"]}
        row = {"type": kind, "window": window["id"], "ts": self.ts, "open_windows": len(self.open), "state": state}
        self.log.append(row | {"input": self.input, "pos": len(self.log), "bytes": 100})
        if kind != "result":
            window["footprint"] = self.log[-1]

    def oldest(self) -> Row:
        """The open window with the oldest footprint."""
        return min(self.open.values(), key=lambda window: int(window["footprint"]["pos"]))

    def figures(self) -> tuple[int, int, int]:
        if not self.open:
            return 0, 0, 0
        oldest = self.oldest()["footprint"]
        return len(self.open), len(self.log) - oldest["pos"], self.input - oldest["input"]

    def end_of_period(self) -> None:
        before, at = self.figures(), len(self.log)
        if isinstance(self.policy, CostBenefit):
            self.check_while_it_pays(self.policy)
        else:
            for _ in range(min(self.policy.budget, len(self.open))):
                _, q, u = self.figures()
                most_q = min(x for x in (self.policy.q, self.scaled(), math.inf) if x is not None)
                if q <= most_q and u <= (math.inf if self.policy.u is None else self.policy.u):
                    break
                self.record("check", self.oldest())
        self.spent_ms += (len(self.log) - at) * self.policy.cost_us / 1000
        self.period += 1
        if self.input + 1 >= WARM * self.w.tuples:
            self.samples += [before, self.figures()]
            self.checks.append(len(self.log) - at)

    def scaled(self) -> float | None:
        assert isinstance(self.policy, Targets)
        return None if self.policy.q_windows is None else self.policy.q_windows * len(self.open)

    def check_while_it_pays(self, policy: CostBenefit) -> None:
        ages = sorted(self.open.values(), key=lambda window: int(window["footprint"]["pos"]))
        if not ages:
            return
        age_s = (self.ts - ages[0]["footprint"]["ts"]) / 1000
        _, q0, u0 = self.figures()
        left = [(window["footprint"]["pos"], window["footprint"]["input"]) for window in ages]
        left.append((len(self.log), self.input))
        saved = []
        for i, (pos, input) in enumerate(left[: policy.budget + 1]):
            q, u = len(self.log) + i - pos, self.input - input
            gain = float(policy.load.seconds(q0) - policy.load.seconds(q)) + policy.replay_s_per_tuple * (u0 - u)
            saved.append(age_s / policy.mtbf_s * gain - policy.cost_us / 1e6 * i)
        for window in ages[: saved.index(max(saved))]:
            self.record("check", window)

    def statistics(self) -> Statistics:
        kinds = [row["type"] for row in self.log]
        means = np.mean(self.samples, axis=0).tolist() if self.samples else [None] * 3
        return Statistics(
            tuples=self.w.tuples,
            seconds=self.w.tuples / self.w.rate + self.spent_ms / 1000,
            opens=kinds.count("open"),
            checks=kinds.count("check"),
            results=kinds.count("result"),
            bytes=100 * len(kinds),
            periods=len(self.checks),
            open_windows=means[0],
            extent=means[1],
            extent_max=max((q for _, q, _ in self.samples), default=None),
            replay=means[2],
            checks_per_second=float(np.mean(self.checks)) / self.policy.period_ms * 1000 if self.checks else None,
            response_s=sum(self.responses) / 1000 / len(self.responses) if self.responses else None,
        )
