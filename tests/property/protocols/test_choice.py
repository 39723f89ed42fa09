"""`advise protocol` against brute force from the definitions, and against simulations of each protocol."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import crc32c
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cklog.errors import NotFound, UsageError
from cklog.protocols.choice.model import ProtocolAdvice, ProtocolCost, ProtocolQuestion
from cklog.run import Options, open_run
from cklog.simulate.dataflow.queries import NEXMARK
from cklog.simulate.dataflow.run import write as write_run
from tests.builders.dataflow_runs import START, setting
from tests.builders.executions import manifest, write
from tests.conftest import SAMPLES
from tests.examples import examples
from tests.oracles.induced import forced_by_bcs, forced_by_hmnr
from tests.oracles.lines import Execution, event_records, executions, latest_line, useless_by_zigzag

STEP = 10
"""Milliseconds between two events of an execution."""


def advised(folder: Path, **asked: Any) -> ProtocolAdvice:
    with open_run(str(folder), Options()) as run:
        return run.advise_protocol(ProtocolQuestion(**asked)).result


def costs(found: ProtocolAdvice) -> dict[str, ProtocolCost]:
    return {cost.protocol: cost for cost in found.costs}


def until(execution: Execution, time: int) -> Execution:
    return replace(execution, events=execution.events[: time // STEP + 1])


def moments(execution: Execution) -> Iterator[tuple[int, dict[str, int]]]:
    """The latest line of a failure of everything between two events, and the middle of that time."""
    for i in range(len(execution.events) - 1):
        yield STEP * i, latest_line(until(execution, STEP * i), execution.subtasks)


def taken_at(execution: Execution) -> dict[tuple[str, int], int]:
    """When each checkpoint was taken, the initial states with the first event."""
    found = {(s, 0): 0 for s in execution.subtasks}
    for i, event in enumerate(execution.events):
        if event.kind == "ckpt":
            found[event.subtask, until(execution, STEP * i).checkpoints(event.subtask)] = STEP * i
    return found


@settings(max_examples=examples(60), deadline=None)
@given(executions(24), st.randoms(use_true_random=False))
def test_what_each_protocol_costs_is_what_brute_force_counts(execution: Execution, rng: Any) -> None:
    with tempfile.TemporaryDirectory() as name:
        manifest(Path(name), execution)
        write(Path(name), {"events": event_records(execution)}, rng)
        try:
            found = costs(advised(Path(name)))
        except NotFound:
            kinds = {event.kind for event in execution.events}
            assert "ckpt" not in kinds or "send" not in kinds
            return
    stored = sum(event.kind == "ckpt" for event in execution.events)
    unc, bcs, hmnr = found["unc"], found["cic-bcs"], found["cic-hmnr"]
    assert (unc.timers, unc.forced, bcs.timers, hmnr.timers) == (stored, 0, stored, stored)
    assert unc.useless == sum(x > 0 for _, x in useless_by_zigzag(execution))
    assert (bcs.useless, hmnr.useless) == (0, 0)
    for cost, (forced, with_forced) in ((bcs, forced_by_bcs(execution)), (hmnr, forced_by_hmnr(execution))):
        assert cost.forced == forced
        assert not {(s, x) for s, x in useless_by_zigzag(with_forced) if x}
    assert unc.rollback is not None
    when = taken_at(execution)
    back, past, kept = [], [], []
    for time, line in moments(execution):
        kept.append(sum(until(execution, time).checkpoints(s) - line[s] + (line[s] > 0) for s in line))
        back.append(time + STEP / 2 - min(when[s, line[s]] for s in line))
        past.append(sum(until(execution, time).checkpoints(s) - line[s] for s in line))
    if back:
        assert unc.rollback.lost_ms == pytest.approx(sum(back) / len(back))
        assert unc.rollback.rolled_past == pytest.approx(sum(past) / len(past))
        assert unc.rollback.worst_rolled_past == max(past)
        assert unc.rollback.kept == max(kept)
        assert unc.rollback.worst_lost_ms == pytest.approx(max(back) + STEP / 2)


Record = dict[str, Any]

INTERVAL_S = 5.0


def simulated(folder: Path, protocol: str, hot: float, seed: int) -> list[Record]:
    """Simulate a job with a shuffle for a minute, and return the records of its checkpoints."""
    asked = setting(
        NEXMARK["q3"],
        protocol,
        workers=4,
        rate=50.0,
        failure_s=60.0,
        first_round_s=INTERVAL_S,
        interval_s=INTERVAL_S,
        spread_s=1.0,
        hot_items=hot,
        seed=seed,
    )
    write_run(folder, asked, events=True)
    return [json.loads(line) for path in (folder / "checkpoints").iterdir() for line in path.read_text().splitlines()]


def line_at(records: list[Record], time: int, coordinated: bool) -> dict[tuple[str, int], int]:
    """When the checkpoints of the line at a moment were taken: of the last whole round, or after naive rollback."""
    stored: dict[tuple[str, int], list[Record]] = {}
    for record in sorted(records, key=lambda r: r["checkpoint"]):
        mine = stored.setdefault((record["operator"], record["subtask"]), [])
        if record["time"] <= time:
            mine.append(record)
    tops = {s: len(mine) for s, mine in stored.items()}
    if coordinated:
        tops = dict.fromkeys(tops, min(tops.values()))
    owner = {channel: s for s, mine in stored.items() for r in records_of(records, s) for channel in r.get("sent", {})}
    moved = not coordinated
    while moved:
        moved = False
        for s, top in tops.items():
            for channel, number in (stored[s][top - 1].get("received", {}) if top else {}).items():
                sender = owner[channel]
                below = tops[sender]
                if number > (stored[sender][below - 1].get("sent", {}).get(channel, 0) if below else 0):
                    tops[s] -= 1
                    moved = True
                    break
    return {s: stored[s][top - 1]["time"] if top else START for s, top in tops.items()}


def records_of(records: list[Record], subtask: tuple[str, int]) -> list[Record]:
    return [r for r in records if (r["operator"], r["subtask"]) == subtask]


def mean_lost_ms(records: list[Record], coordinated: bool) -> float:
    """How far the last subtask goes back, on average over moments a quarter of a second apart."""
    moments = range(START + 250, START + 60_000, 250)
    return sum(t - min(line_at(records, t, coordinated).values()) for t in moments) / len(moments)


def most_kept(records: list[Record]) -> float:
    """The bytes of the checkpoints from the line on, at the worst moment; each as large as its subtask's on average."""
    owners = {(r["operator"], r["subtask"]) for r in records}
    size = {s: mean(r["bytes"] for r in records_of(records, s)) for s in owners}
    most: float = max(
        sum(size[s] * sum(line[s] <= r["time"] <= now for r in records_of(records, s)) for s in owners)
        for now in {r["time"] for r in records}
        for line in (line_at(records, now, coordinated=False),)
    )
    return most


@pytest.mark.parametrize(("hot", "best"), [(0.0, "coor"), (0.3, "unc")])
def test_what_is_recommended_is_what_simulations_of_each_protocol_confirm(
    hot: float, best: str, tmp_path: Path
) -> None:
    """CheckMate, section VII: coordinated checkpoints do best under even load, uncoordinated ones under skew.

    The advice sees an uncoordinated run alone. A simulation of each protocol on the same seed says what would have
    happened: a checkpoint more delays what comes after it, so that numbers agree to some per cent and not exactly.
    A failure comes every hour; with rarer ones the log of every message outweighs what skew costs.
    """
    truth = {
        protocol: simulated(tmp_path / protocol, protocol, hot, seed=1)
        for protocol in ("unc", "coor", "cic-bcs", "cic-hmnr")
    }
    found = advised(tmp_path / "unc", between_failures_h=1.0)
    by_name = costs(found)
    assert found.certainty == "exact"
    assert found.recommended == best
    lost = {protocol: mean_lost_ms(records, protocol == "coor") for protocol, records in truth.items()}
    for protocol, tolerance in (("unc", 0.03), ("coor", 0.15), ("cic-bcs", 0.1), ("cic-hmnr", 0.1)):
        rollback = by_name[protocol].rollback
        assert rollback is not None
        assert rollback.lost_ms == pytest.approx(lost[protocol], rel=tolerance), protocol
    assert by_name["unc"].rollback is not None
    assert by_name["unc"].rollback.kept_bytes == pytest.approx(most_kept(truth["unc"]))
    assert (lost["coor"] < lost["unc"]) == (best == "coor")
    for protocol in ("cic-bcs", "cic-hmnr"):
        forced = sum(record["kind"] == "forced" for record in truth[protocol])
        assert by_name[protocol].forced == pytest.approx(forced, rel=0.25, abs=3), protocol
        assert by_name[protocol].useless == 0


def test_a_watermark_that_promises_endless_messages_is_refused_and_not_replayed(tmp_path: Path) -> None:
    record = {"operator": "b", "subtask": 0, "time": START, "received": {"a/0->b/0": (1 << 63) - 2}}
    place = tmp_path / "checkpoints"
    place.mkdir()
    (place / "part.jsonl").write_text(json.dumps(record | {"checkpoint": 1}) + "\n")
    with pytest.raises(UsageError, match="more than"):
        advised(tmp_path)


def test_on_a_cycle_markers_deadlock(tmp_path: Path) -> None:
    coordinated = costs(advised(SAMPLES / "domino-cycle"))["coor"]
    assert not coordinated.usable
    assert "op1/0 -> op2/0 -> op3/0 -> op1/0" in coordinated.because


def test_one_wrong_time_does_not_make_rounds_of_decades(tmp_path: Path) -> None:
    """Rounds are followed one by one; from 1970 to now there would be hundreds of millions."""
    shutil.copytree(SAMPLES / "uncoordinated-join", tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "events")
    place = tmp_path / "run" / "checkpoints" / "sink.jsonl"
    records: list[Record] = [json.loads(line) for line in place.read_text().splitlines()]
    records[2]["time"] = 0
    bare = [json.dumps({k: v for k, v in r.items() if k != "crc32c"}, separators=(",", ":"))[:-1] for r in records]
    place.write_text("".join(f'{line},"crc32c":"{crc32c.crc32c(line.encode()):08x}"}}\n' for line in bare))
    found = costs(advised(tmp_path / "run"))
    assert not found["coor"].usable
    assert "not tried: over 200,000 checkpoints" in found["coor"].because
    assert "from 1970-01-01" in found["coor"].because
    assert found["unc"].usable
