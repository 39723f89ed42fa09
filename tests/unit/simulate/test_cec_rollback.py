"""Checkpoint roll-backward, simulated: against a loop over tuples."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from cklog.errors import UsageError
from cklog.policies.check_records import WholeState
from cklog.simulate.cec.operator import simulate
from cklog.simulate.cec.tuples import Workload, draw

COUNTED = Workload(keys=40, count=5, rate=10_000, tuples=4_000)


@pytest.mark.parametrize(
    ("workload", "period_ms"), [(COUNTED, 20.0), (COUNTED, 7.3), (replace(COUNTED, distribution="zipf", seed=3), 11.0)]
)
def test_whole_checkpoints_are_those_of_a_loop_over_tuples(workload: Workload, period_ms: float) -> None:
    """Every window saved at the end of a period, while tuples wait; a recovery loads them and replays from there."""
    found = simulate(workload, WholeState(period_ms=period_ms, interval_ms=0, cost_us=30.0))
    keys, _ = draw(workload, 0, workload.tuples)
    seen, opened, spent, due, saved, since = Counter[int](), dict[int, float](), 0.0, 1, 0, 0
    moments, responses, checks = list[tuple[int, int, int]](), list[float](), 0
    warm = math.ceil(0.4 * workload.tuples)
    for i, key in enumerate([*keys.tolist(), -1]):
        while i * 1000 / workload.rate + spent >= due * period_ms:
            around = [(len(opened), saved, i - since)]
            spent, saved, since, due = spent + len(opened) * 0.030, len(opened), i, due + 1
            around += [(len(opened), saved, 0)]
            if i >= warm:
                moments += around
                checks += saved
        if key < 0:
            break
        at = math.floor(i * 1000 / workload.rate + spent)
        seen[key] += 1
        if seen[key] % 5 == 1:
            opened[key] = at
        if seen[key] % 5 == 0:
            since_opening = at - opened.pop(key)
            responses += [since_opening] if i >= warm else []
    means = np.mean(moments, axis=0).tolist()
    assert [found.open_windows, found.extent, found.replay] == pytest.approx(means)
    assert found.response_s == pytest.approx(np.mean(responses) / 1000)
    assert found.bytes == 100 * (found.checks + found.results)
    assert found.periods == len(moments) // 2


def test_a_checkpoint_that_takes_its_whole_period_is_refused() -> None:
    with pytest.raises(UsageError, match="to save 30 windows takes 30 ms of every 20 ms"):
        simulate(COUNTED, WholeState(period_ms=20.0, interval_ms=0, cost_us=1000.0))
