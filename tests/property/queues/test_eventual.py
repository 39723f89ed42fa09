"""What cklog prints recovers: run an operator, tear or damage its queue, load, replay, and compare."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cklog.engine.local import LocalEngine
from cklog.engine.scan import Engine
from cklog.model.names import Subtask
from cklog.parsers.native import output_queues
from cklog.parsers.native.parser import Native
from cklog.queues import holes, judge
from cklog.queues.full_scans import forward_scan
from cklog.render.formats import plain
from cklog.run import Options, open_run
from cklog.storage import Root
from tests.examples import examples
from tests.oracles.operators import Choose
from tests.oracles.queue_damage import damage, to_jsonl
from tests.oracles.recovery import SCENARIOS, Plan, Scenario, choices, essence, plan_by_definition

each_operator = pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)


def eventual_checkpoint(data: bytes, forward: bool = False) -> dict[str, Any]:
    """The result that `cklog eventual-checkpoint --json` prints for a queue of these bytes."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "outputs" / "op"
        place.mkdir(parents=True)
        (place / "part-0.jsonl").write_bytes(data)
        with open_run(folder, Options()) as run:
            answer = run.eventual_checkpoint("op", forward)
    found: dict[str, Any] = json.loads(json.dumps(plain(answer.result)))
    found["findings"] = [finding.id for finding in answer.findings]
    return found


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small logs are to be read in several steps too."""
    monkeypatch.setattr(output_queues, "FIRST_STEP_BYTES", 200)


@pytest.mark.quarter
@each_operator
@given(choose=choices, torn=st.booleans())
def test_a_torn_queue_recovers_exactly(scenario: Scenario, choose: Choose, torn: bool) -> None:
    tuples, log = scenario.generate(choose)
    size = choose(len(log) + 1)
    survived = log[:size]
    torn = torn and size < len(log)
    data = to_jsonl(log[: size + 1], torn=choose(1000)) if torn else to_jsonl(survived)
    if not data:
        return
    found = eventual_checkpoint(data, forward=True)
    assert found["proof"] == ("proven" if survived else "after-replay")
    assert set(found["findings"]) <= {"torn-tail"} | (set() if survived else {"empty-queue"})
    scenario.check(found, tuples, survived, choose)
    if survived:
        assert agreed(found) == agreed(plan_by_definition(survived))


@pytest.mark.quarter
@each_operator
@given(choose=choices, with_pos=st.booleans(), broken=st.booleans())
def test_a_damaged_queue_is_exact_after_the_replay(
    scenario: Scenario, choose: Choose, with_pos: bool, broken: bool
) -> None:
    tuples, log = scenario.generate(choose)
    if len(log) < 3:
        return
    survived, lost = damage(log, choose)
    data = to_jsonl(log, broken=lost, with_pos=with_pos) if broken else to_jsonl(survived)
    found = eventual_checkpoint(data)
    if found["proof"] == "proven":
        found["proof"] = "after-replay"  # the state is; data that was lost before T stays lost
    scenario.check(found, tuples, survived, choose)


@pytest.mark.quarter
@each_operator
@pytest.mark.parametrize("limits", [(1000, 64), (2, 1)], ids=["as-is", "at-the-limits"])
@settings(max_examples=examples(50))
@given(choose=choices, with_pos=st.booleans())
def test_a_queue_full_of_holes_is_exact_after_the_replay(
    scenario: Scenario, limits: tuple[int, int], choose: Choose, with_pos: bool
) -> None:
    tuples, log = scenario.generate(choose)
    if len(log) < 3:
        return
    lost = sorted({1 + choose(len(log) - 2) for _ in range(1 + choose(8))})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(holes, "_HOLES", limits[0])
        patch.setattr(judge, "_ROUNDS", limits[1])
        found = eventual_checkpoint(to_jsonl(log, broken=lost, with_pos=with_pos))
    if found["proof"] == "proven":
        found["proof"] = "after-replay"  # the state is; data that was lost before T stays lost
    survived = [r for i, r in enumerate(log) if i not in lost]
    scenario.check(found, tuples, survived, choose, several_holes=True)


@pytest.mark.quarter
@each_operator
@given(choose=choices)
def test_a_queue_without_its_head_is_never_wrong(scenario: Scenario, choose: Choose) -> None:
    """What retention cut off is lost if it is needed, and the answer says so."""
    tuples, log = scenario.generate(choose)
    if not log:
        return
    survived = log[choose(len(log)) :]
    found = eventual_checkpoint(to_jsonl(survived))
    if found["proof"] != "lost":
        scenario.check({**found, "proof": "after-replay"}, tuples, survived, choose)


def agreed(plan: Plan) -> dict[str, Any]:
    """`essence`, with the two ways to say that an input is replayed from its first tuple made one."""
    found = essence(plan)
    if isinstance(found["T_input"], dict):
        found["T_input"] = {name: number for name, number in found["T_input"].items() if number}
    return found


@pytest.mark.spark
@settings(max_examples=examples(15))
@given(choose=choices, damaged=st.booleans())
def test_both_engines_find_the_same_windows_forward(spark: Engine, choose: Choose, damaged: bool) -> None:
    """Logs with and without damage, read in splits of 100 bytes."""
    name = sorted(SCENARIOS)[choose(len(SCENARIOS))]
    _, log = SCENARIOS[name].generate(choose)
    lost = damage(log, choose).lost if damaged and len(log) > 2 else []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "outputs" / "op"
        place.mkdir(parents=True)
        (place / "part-0.jsonl").write_bytes(to_jsonl(log, broken=lost))
        queue = Native(Root(folder)).queues()[Subtask("op", 0)]
        found = [
            sorted(engine.run(forward_scan(queue, 100)).table.to_pylist(), key=str) for engine in (LocalEngine(), spark)
        ]
    assert found[0] == found[1]


@given(choose=choices)
def test_as_of_a_moment_is_the_queue_cut_there(choose: Choose) -> None:
    _, log = SCENARIOS["time"].generate(choose)
    if not log:
        return
    moment = log[choose(len(log))]["ts"]
    before = [record for record in log if record["ts"] <= moment]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "outputs" / "op"
        place.mkdir(parents=True)
        (place / "part-0.jsonl").write_bytes(to_jsonl(log))
        with open_run(folder, Options()) as run:
            found = run.eventual_checkpoint("op", as_of=moment).result
        (place / "part-0.jsonl").write_bytes(to_jsonl(before))
        with open_run(folder, Options()) as run:
            assert run.eventual_checkpoint("op").result == found
