"""Advice about Q and U against the definitions, record by record, on small random logs."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cklog.advise.extent import scan as advise_scan
from cklog.advise.extent import tracks as advise_tracks
from cklog.advise.extent.answer import ExtentAdvice, Outcome
from cklog.advise.extent.grid import ExtentQuestion, PolicySetting
from cklog.errors import UsageError
from cklog.policies.check_records import CHECK, EMIT, OPEN, RESULT, CheckPolicy, Targets
from cklog.policies.load_time import LoadTime
from cklog.run import Options, open_run
from tests.examples import examples
from tests.oracles.ledger import PlainLedger

WORDS = ("open", "check", "result", "emit")
LOAD, REPLAY = 500.0, 1000.0
ASKED = ExtentQuestion(
    q=("none", "2", "6"),
    u=("none", "3"),
    ci_ms=(0.005, 0.02),  # 2 and 8 checks
    cp_ms=(10.0,),
    mtbf_h=(1e-5,),
    load_rate=LOAD,
    replay_rate=REPLAY,
)
questions = st.builds(
    replace,
    st.just(ASKED),
    q=st.sampled_from([("0",), ("2", "none"), ("1x",), ("6",), ("none",)]),
    u=st.sampled_from([("none",), ("0",), ("3", "none"), ("10",)]),
    ci_ms=st.sampled_from([(0.005,), (0.02,), (0.0025, 0.0)]),
    cp_ms=st.sampled_from([(10.0,), (10.0, 35.0), (7.5,)]),
    mtbf_h=st.sampled_from([(1e-5,), (0.01,)]),
)

Record = tuple[int, str, int, int]
"""Kind, window, ms, input."""

Tuple = tuple[int, list[tuple[int, str]]]

gaps = st.sampled_from([0, 0, 1, 3, 4, 9, 10, 11, 50, 120])
actions = st.tuples(st.integers(0, 5), st.sampled_from(["touch", "touch", "close", "emit"]))
tuples = st.lists(st.tuples(gaps, st.lists(actions, max_size=4)), min_size=1, max_size=40)


@pytest.fixture(autouse=True, scope="module")
def _small_steps() -> Iterator[None]:
    """Short logs must reach the code for long ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(advise_scan, "_STRETCH", 3)
        for name in ("_FIRST_ROWS", "_FIRST_STEP", "_PULLED"):
            patch.setattr(advise_tracks, name, 2)
        patch.setattr(advise_tracks, "_SAMPLES_HELD", 5)
        yield


def log_of(history: list[Tuple]) -> list[Record]:
    """Tuples that open windows, close them, write checks of them, or emit something else."""
    log: list[Record] = []
    ms, open_windows = 1000, set()
    for number, (gap, touched) in enumerate(history):
        ms += gap
        for window, what in touched:
            name = f"w{window}"
            if what == "emit":
                log.append((EMIT, "", ms, number))
            elif name not in open_windows:
                open_windows.add(name)
                log.append((OPEN, name, ms, number))
            elif what == "touch":
                log.append((CHECK, name, ms, number))
            else:
                open_windows.discard(name)
                log.append((RESULT, name, ms, number))
    return log


def written(log: list[Record]) -> bytes:
    rows = [
        {"type": WORDS[kind], "ts": ms, "input": number, "state": 0, "open_windows": 2}
        | ({"window": window} if window else {})
        for kind, window, ms, number in log
    ]
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def advice(data: bytes, asked: ExtentQuestion = ASKED, split_bytes: int = 64 << 20) -> ExtentAdvice:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "outputs" / "op"
        place.mkdir(parents=True)
        (place / "part-0.jsonl").write_bytes(data)
        with open_run(folder, Options(split_bytes=split_bytes)) as run:
            found: ExtentAdvice = run.advise_extent("op", asked).result
    return found


class Plain:
    """A log with the checks of one policy, by the definitions; without one, the log as it was written."""

    def __init__(self, policy: CheckPolicy | None, cp_ms: float) -> None:
        self.policy, self.cp_ms = policy, cp_ms
        self.ledger = PlainLedger()
        self.codes: dict[str, int] = {}
        self.passed = 0
        self.samples: list[tuple[int, int]] = []
        self.checks = self.pending = 0
        self.before: tuple[int, int] | None = None

    def take(self, record: Record) -> None:
        kind, window, ms, number = record
        code = self.codes.setdefault(window, len(self.codes))
        is_open = code in {self.ledger.log[at][1] for at in self.ledger.footprints()}
        if kind == EMIT or (kind == RESULT and not is_open):
            kind, code = EMIT, -1
        if self.policy is None and kind == CHECK:
            self.pending += 1
            if is_open and self.before is None:
                self.before = self.figures()
            elif not is_open:
                self.before = None
        elif self.policy is None:
            self.before = None
        elif kind == CHECK and is_open:
            return
        self.ledger.input, self.ledger.time_ms = number, ms
        self.ledger.append(OPEN if kind == CHECK and not is_open else kind, code)

    def figures(self) -> tuple[int, int]:
        return self.ledger.extent(), self.ledger.replay()

    def end_period(self) -> None:
        before = self.before or self.figures()
        checks = self.pending if self.policy is None else self.round(self.policy)
        self.samples += [before, self.figures()]
        self.checks += checks
        self.before, self.pending = None, 0

    def round(self, policy: CheckPolicy) -> int:
        n = len(self.ledger.footprints())
        most = min(policy.budget, n)
        if isinstance(policy, Targets):
            return len(self.ledger.check(policy, policy.budget))
        if not most:
            return 0
        then = [self.ledger.after(checks) for checks in range(most + 1)]
        age_s = (self.ledger.time_ms - self.ledger.log[self.ledger.footprints()[0]][3]) / 1000
        extents, replays = (np.array(v) for v in zip(*((t.extent(), t.replay()) for t in then), strict=True))
        chosen = policy.choose(extents, replays, n, age_s)
        for _ in range(chosen):
            self.ledger.check_oldest()
        return chosen


def played(log: list[Record], rows: list[tuple[CheckPolicy | None, float]], lead_ms: float) -> tuple[list[Plain], bool]:
    """Every policy, with its CP, over the log; and whether the warm-up ended."""
    plain = [Plain(policy, cp_ms) for policy, cp_ms in rows]
    unchecked, warm = Plain(Targets(), lead_ms), False
    start = log[0][2]
    for record in log:
        due = sorted({cp for _, cp in rows}, key=lambda cp: (cp != lead_ms, cp))
        for cp in due:
            period = math.floor((record[2] - start) / cp)
            for p in [unchecked, *plain]:
                if p.cp_ms != cp:
                    continue
                if p is unchecked and p.passed < period and not warm:
                    size = len(unchecked.ledger.log)
                    if size and 2 * unchecked.ledger.extent() <= size:
                        warm = True
                        for other in plain:
                            other.samples, other.checks = [], 0
                while p.passed < period:
                    p.end_period()
                    p.passed += 1
        for p in [unchecked, *plain]:
            p.take(record)
    return plain, warm


def expected(plain: Plain) -> dict[str, Any]:
    q, u = ([sample[i] for sample in plain.samples] for i in (0, 1))
    cost = [a / LOAD + b / REPLAY for a, b in plain.samples]
    at = math.ceil(0.95 * len(q)) - 1
    return {
        "checks": plain.checks,
        "extent": (pytest.approx(sum(q) / len(q)), sorted(q)[at], max(q)),
        "replay": (pytest.approx(sum(u) / len(u)), sorted(u)[at], max(u)),
        "recovery": (pytest.approx(sum(cost) / len(cost)), pytest.approx(max(cost))),
    }


def shown(outcome: Outcome) -> dict[str, Any]:
    extent, replay = outcome.extent, outcome.replay
    assert replay is not None
    return {
        "checks": outcome.checks,
        "extent": (extent.mean, extent.p95, extent.max),
        "replay": (replay.mean, replay.p95, replay.max),
        "recovery": (outcome.recovery_mean, outcome.recovery_max),
    }


def policy_of(setting: PolicySetting) -> CheckPolicy | None:
    if setting.kind == "recorded":
        return None
    return (
        Targets()
        if setting.kind == "none"
        else setting.policy(ASKED.cost_us, LoadTime.per_record(1 / LOAD), 1 / REPLAY)
    )


@settings(max_examples=examples(150), deadline=None)
@given(history=tuples, asked=questions, cut=st.integers(0, 20), split_bytes=st.sampled_from([70, 300, 1 << 20]))
def test_every_row_is_what_the_policy_would_have_done_record_by_record(
    history: list[Tuple], asked: ExtentQuestion, cut: int, split_bytes: int
) -> None:
    """A cut head leaves windows that the log first shows by a check or a result."""
    log = log_of(history)
    log = log[min(cut, len(log) // 2) :]
    if not log:
        return
    try:
        found = advice(written(log), asked, split_bytes)
    except UsageError:
        plain, _ = played(log, [(Targets(), cp) for cp in asked.cp_ms], asked.cp_ms[0])
        assert not all(p.samples for p in plain)
        return
    rows = [(policy_of(o.setting), o.setting.cp_ms or 0.0) for o in found.settings]
    plain, warm = played(log, rows, asked.cp_ms[0])
    assert (found.warm_up_ms is not None) == warm
    for outcome, p in zip(found.settings, plain, strict=True):
        assert shown(outcome) == expected(p), outcome.setting.name


@settings(max_examples=examples(40), deadline=None)
@given(history=tuples, split_bytes=st.integers(1, 400))
def test_the_size_of_splits_does_not_show(history: list[Tuple], split_bytes: int) -> None:
    log = log_of(history)
    if not log or log[-1][2] - log[0][2] < 150:
        return
    assert advice(written(log)) == advice(written(log), split_bytes=split_bytes)


@settings(max_examples=examples(60), deadline=None)
@given(history=tuples, longest=st.floats(0.001, 0.2))
def test_the_chosen_setting_is_the_cheapest_of_those_that_are_fast_enough(history: list[Tuple], longest: float) -> None:
    log = log_of(history)
    if not log or log[-1][2] - log[0][2] < 150:
        return
    found = advice(written(log), replace(ASKED, max_recovery_s=longest))
    fit = sorted(
        (o.checkpointing_share, o.checks, o.setting.name)
        for o in found.settings
        if o.setting.kind != "recorded" and o.recovery_max is not None and o.recovery_max <= longest
    )
    assert found.chosen == (fit[0][2] if fit else None)
