"""Extent and replay at every record, against their definition; and no answer depends on how the log was cut."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklog.parsers.native.parser import Native
from cklog.queues.over_time import folds as over_time_folds
from cklog.queues.over_time import timeline as over_time
from cklog.queues.over_time.timeline import Timeline
from cklog.storage import Root
from tests.oracles.operators import Choose, Record
from tests.oracles.queue_damage import damage, to_jsonl
from tests.oracles.recovery import SCENARIOS, Scenario, choices

each_operator = pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
SOME = ("sliding-count", "join", "reusing")
some_operators = pytest.mark.parametrize("scenario", [SCENARIOS[name] for name in SOME], ids=SOME)
targets = st.none() | st.integers(0, 12)
steps = st.integers(60, 3000)
pieces = st.integers(1, 40)


def evaluate(
    data: bytes, step: int = 1 << 20, piece: int = 1 << 18, q: int | None = None, u: int | None = None
) -> Timeline:
    """The pass over a queue of these bytes, in splits of `step` bytes and pieces of `piece` records."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(over_time, "PIECE_RECORDS", piece)
        place = Path(folder) / "outputs" / "op"
        place.mkdir(parents=True)
        (place / "part-0.jsonl").write_bytes(data)
        [queue] = Native(Root(folder)).queues().values()
        return over_time.over_time(queue, step, q, u)


def by_definition(log: Sequence[Record]) -> list[dict[str, Any]]:
    """Per record: its extent, its replay, the number of open windows, and the oldest footprint of one."""
    found = []
    for r, record in enumerate(log):
        newest = {other["window"]: i for i, other in enumerate(log[: r + 1]) if other["type"] != "emit"}
        footprints = sorted(i for i in newest.values() if log[i]["type"] != "result")
        start = footprints[0] if footprints else None
        found.append(
            {
                "record": r,
                "pos": record.get("pos"),
                "ts": record["ts"],
                "extent": 0 if start is None else r - start + 1,
                "replay": 0 if start is None else taken(record) - taken(log[start]),
                "replay_ms": 0 if start is None else record["ts"] - log[start]["ts"],
                "open_windows": len(footprints),
                "oldest": None if start is None else log[start]["window"],
            }
        )
    return found


def taken(record: Record) -> int:
    """Tuples that the operator has taken from all its inputs."""
    numbers = record["input"]
    return sum(n + 1 for n in numbers.values()) if isinstance(numbers, Mapping) else int(numbers) + 1


def stretches(flags: Sequence[Any]) -> list[tuple[int, int]]:
    """Runs of equal flags that are not None or False, as [from, to)."""
    found = []
    begin = 0
    for i in range(1, len(flags) + 1):
        if i == len(flags) or flags[i] != flags[begin]:
            if flags[begin] is not None and flags[begin] is not False:
                found.append((begin, i))
            begin = i
    return found


def slow_by_definition(log: Sequence[Record], rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    oldest = [None if not row["extent"] else row["record"] - row["extent"] + 1 for row in rows]
    found = []
    for begin, end in stretches(oldest):
        at = oldest[begin]
        assert at is not None
        freed = log[min(end, len(log) - 1)]["ts"]
        told = {"window": log[at]["window"], "ts": log[at]["ts"], "record": at}
        held = {"held_records": end - begin, "held_ms": freed - log[begin]["ts"], "extent": end - at}
        found.append(told | held)
    return sorted(found, key=lambda row: (-row["held_records"], row["record"]))


def breaches_by_definition(rows: Sequence[dict[str, Any]], q: int | None, u: int | None) -> list[dict[str, Any]]:
    over = [(q is not None and row["extent"] > q) or (u is not None and row["replay"] > u) for row in rows]
    found = []
    for begin, end in stretches(over):
        part = rows[begin:end]
        worst = max(part, key=lambda row: row["extent"])  # the first of equal ones
        ends = {"from_record": begin, "to_record": end - 1, "from_ts": part[0]["ts"], "to_ts": part[-1]["ts"]}
        largest = {"extent": worst["extent"], "replay": max(row["replay"] for row in part)}
        found.append({**ends, **largest, "oldest": worst["oldest"]})
    return found


def check(found: Timeline, log: Sequence[Record], q: int | None, u: int | None) -> None:
    """Everything that the pass says of a log that it has read whole; the log is short enough to sample every record."""
    result, rows = found.result, by_definition(log)
    assert (list(result.samples), result.stride, result.records) == (rows, 1, len(log))
    assert list(result.slow) == slow_by_definition(log, rows)[:10]
    for name in ("extent", "replay", "replay_ms"):
        values = [row[name] for row in rows]
        mean = {"mean": sum(values) / len(values), "max": max(values), "last": values[-1]}
        assert getattr(result, name) == mean
    broken = breaches_by_definition(rows, q, u)
    assert list(result.breaches) == broken
    assert result.breached == {
        "stretches": len(broken),
        "records": sum(row["to_record"] - row["from_record"] + 1 for row in broken),
        "ms": sum(row["to_ts"] - row["from_ts"] for row in broken),
    }
    said = [(row["record"], r["open_windows"], row["open_windows"]) for row, r in zip(rows, log, strict=True)]
    wrong = [one for one in said if one[1] not in (None, one[2])]
    met = found.mismatch
    assert (met is None) == (not wrong)
    assert met is None or (met.records, (met.record, met.said, met.found)) == (len(wrong), wrong[0])


@pytest.mark.quarter
@each_operator
@given(choose=choices, step=steps, piece=pieces, q=targets, u=targets)
def test_extent_and_replay_are_what_they_are_defined_to_be(
    scenario: Scenario, choose: Choose, step: int, piece: int, q: int | None, u: int | None
) -> None:
    _, log = scenario.generate(choose)
    if log:
        found = evaluate(to_jsonl(log), step, piece, q, u)
        check(found, log, q, u)
        assert found.mismatch is None


@some_operators
@given(choose=choices, step=steps, piece=pieces, q=targets, u=targets, broken=st.booleans())
def test_of_a_damaged_queue_the_intact_records_count(
    scenario: Scenario, choose: Choose, step: int, piece: int, q: int | None, u: int | None, broken: bool
) -> None:
    _, log = scenario.generate(choose)
    if len(log) > 2:
        survived, lost = damage(log, choose)
        found = evaluate(to_jsonl(log, broken=lost) if broken else to_jsonl(survived), step, piece, q, u)
        check(found, survived, q, u)
        assert sum(item.count for item in found.damage) == (len(lost) if broken else 0)


odd_logs = st.lists(
    st.tuples(
        st.sampled_from(("open", "check", "result", "emit")), st.sampled_from("abcd"), st.none() | st.integers(0, 4)
    ),
    min_size=1,
    max_size=40,
)


@given(odd=odd_logs, step=steps, piece=pieces, q=targets, u=targets)
def test_windows_out_of_order_are_taken_as_they_stand(
    odd: list[tuple[str, str, int | None]], step: int, piece: int, q: int | None, u: int | None
) -> None:
    """Opens of open windows, checks and results of closed ones, an N that is wrong or not there."""
    log: list[Record] = [
        {"type": kind, "window": window, "ts": 100 + 3 * i, "open_windows": n, "input": 2 * i, "state": {}, "pos": i}
        | ({"open_windows": n or 0} if kind in ("open", "check") else {})  # these must have it
        for i, (kind, window, n) in enumerate(odd)
    ]
    check(evaluate(to_jsonl(log), step, piece, q, u), log, q, u)


@some_operators
@given(choose=choices, step=steps, piece=pieces, q=targets, u=targets)
def test_a_short_answer_is_part_of_the_long_one_however_the_log_is_cut(
    scenario: Scenario, choose: Choose, step: int, piece: int, q: int | None, u: int | None
) -> None:
    """With room for 4 samples, 3 slow windows and 2 stretches."""
    _, log = scenario.generate(choose)
    if not log:
        return
    rows = by_definition(log)
    with pytest.MonkeyPatch.context() as patch:
        for name, room in (("SAMPLES", 4), ("SLOW_LISTED", 3), ("BREACHES_LISTED", 2)):
            patch.setattr(over_time_folds, name, room)
        found = evaluate(to_jsonl(log), step, piece, q, u).result
    stride = next(2**k for k in range(20) if -(-len(log) // 2**k) <= 4)
    best = [max(rows[i : i + stride], key=lambda row: row["extent"]) for i in range(0, len(rows), stride)]
    assert (found.stride, list(found.samples)) == (stride, best)
    assert list(found.slow) == slow_by_definition(log, rows)[:3]
    broken = breaches_by_definition(rows, q, u)
    assert (list(found.breaches), found.breached["stretches"]) == (broken[:2], len(broken))


@some_operators
@given(choose=choices, step=steps, piece=pieces, q=targets, u=targets)
def test_without_input_numbers_only_milliseconds_are_told(
    scenario: Scenario, choose: Choose, step: int, piece: int, q: int | None, u: int | None
) -> None:
    _, log = scenario.generate(choose)
    if not log:
        return
    found = evaluate(to_jsonl(log, with_input=False), step, piece, q, u).result
    rows = by_definition(log)
    assert found.replay is None
    assert list(found.samples) == [row | {"replay": None} for row in rows]
    assert list(found.breaches) == [row | {"replay": None} for row in breaches_by_definition(rows, q, None)]
