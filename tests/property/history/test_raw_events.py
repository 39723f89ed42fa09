"""Raw events alone, written to disk and read back, against the definitions and against checkpoint records."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cklog.engine.scan import Engine
from cklog.errors import CorruptInput
from cklog.model.question import Question
from cklog.model.schemas import EVENTS
from cklog.model.verdict import Answer
from cklog.render.formats import render
from cklog.run import Run, open_run
from tests.builders.executions import manifest, write, write_file
from tests.examples import examples
from tests.oracles.lines import (
    EPOCH,
    Execution,
    Line,
    checkpoint_records,
    event_records,
    executions,
    failures,
    latest_line,
    message_records,
    useless_by_zigzag,
)
from tests.reading.lines import ask, labels

Case = tuple[Execution, frozenset[str], random.Random]
Message = tuple[str, int]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """An execution and who failed in it; a subtask without any event has, as nothing else tells that it is there."""
    execution = draw(executions())
    silent = set(execution.subtasks) - {event.subtask for event in execution.events}
    return execution, draw(failures(execution)) | silent, random.Random(draw(st.integers(0, 1 << 30)))


def write_events(folder: Path, execution: Execution, rng: random.Random, events: list[dict[str, Any]]) -> None:
    """Events with numbers in any order and any files; without, a file per subtask or one log cut in pieces."""
    place = folder / "events"
    place.mkdir(parents=True)
    if rng.random() < 0.5:
        shuffled = rng.sample(events, len(events))
        files = min(rng.randint(1, 3), len(events))
        parts = {f"part-{i}": shuffled[i::files] for i in range(files)}
    else:
        events = [{name: value for name, value in event.items() if name != "lsn"} for event in events]
        cuts = sorted(rng.randrange(len(events) + 1) for _ in range(rng.randint(0, 2)))
        pieces = [events[a:b] for a, b in zip([0, *cuts], [*cuts, len(events)], strict=True)]
        parts = {f"part-{i}": piece for i, piece in enumerate(pieces)}
        if rng.random() < 0.5:
            owners = {(e["operator"], e["subtask"]) for e in events}
            parts = {f"{a}-{i}": [e for e in events if (e["operator"], e["subtask"]) == (a, i)] for a, i in owners}
    for name, records in parts.items():
        if records:
            write_file(place / name, records, EVENTS, rng)


def question(failed: Iterable[str], **more: Any) -> Question:
    return Question(failed=tuple(sorted(failed)), **more)


def in_flight(execution: Execution, line: Line, failed: Iterable[str]) -> set[Message]:
    """Messages that a sender's part of `line` has sent and the receiver's has not received; none if both run on."""
    sent: set[Message] = set()
    received: set[Message] = set()
    interval = dict.fromkeys(execution.subtasks, 0)
    for kind, subtask, channel, seq in execution.events:
        if kind == "ckpt":
            interval[subtask] += 1
        elif interval[subtask] < line[subtask]:
            (sent if kind == "send" else received).add((channel, seq))
    running = {s for s in execution.subtasks if s not in set(failed) and line[s] == execution.checkpoints(s) + 1}
    lost = {c for c, ends in execution.channels.items() if not running.issuperset(ends)}
    return {(channel, seq) for channel, seq in sent - received if channel in lost}


def to_replay(answer: Answer[Any]) -> set[Message]:
    return {(r.channel, seq) for r in answer.result.channels for seq in range(r.replay_from, r.replay_to)}


@settings(max_examples=examples(200))
@given(cases())
def test_the_line_of_raw_events_is_the_exhaustive_maximum_and_replays_what_is_in_flight(case: Case) -> None:
    execution, failed, rng = case
    with tempfile.TemporaryDirectory() as name:
        manifest(Path(name), execution)
        write_events(Path(name), execution, rng, event_records(execution))
        found = ask(Path(name), question(failed), split=rng.choice([97, 1 << 20]))
    line = latest_line(execution, failed)
    assert labels(found, execution) == line
    assert to_replay(found) == in_flight(execution, line, failed)
    assert {(f"{c.operator}/{c.subtask}", c.checkpoint) for c in found.result.useless} == useless_by_zigzag(execution)
    assert not [f for f in found.findings if f.severity == "error"]
    holes = {r.channel for r in found.result.channels if r.replay_from > 0} & out_of_order(execution)
    assert not holes or "out-of-order-channel" in {f.id for f in found.findings}


def out_of_order(execution: Execution) -> set[str]:
    """Channels with a checkpoint of the receiver at which some message had overtaken another."""
    received: dict[str, set[int]] = {channel: set() for channel in execution.channels}
    found = set()
    for kind, subtask, channel, seq in execution.events:
        if kind == "recv":
            received[channel].add(seq)
        elif kind == "ckpt":
            mine = [c for c, ends in execution.channels.items() if ends[1] == subtask]
            found |= {c for c in mine if received[c] and max(received[c]) >= len(received[c])}
    return found


@settings(max_examples=examples(100))
@given(cases())
def test_raw_events_and_checkpoint_records_give_the_same_answer(case: Case) -> None:
    execution, failed, rng = case
    answers = []
    for raw in (True, False):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            manifest(folder, execution)
            write(folder, {"channels": message_records(execution)}, rng)
            if raw:
                write_events(folder, execution, rng, event_records(execution))
            else:
                write(folder, {"checkpoints": checkpoint_records(execution, execution.subtasks)}, rng)
            answers.append(ask(folder, question(failed, explain=True)).result)
    raw, stored = answers
    for part in ("line", "rolled_back", "useless", "steps", "domino"):
        assert getattr(raw, part) == getattr(stored, part)
    for r in raw.channels:
        assert (r.messages, r.retained) == (r.replay_to - r.replay_from, True)
        assert r.bytes == sum(100 + seq for seq in range(r.replay_from, r.replay_to))
    disordered = out_of_order(execution) | {c for c in execution.channels if overtaken_at_the_end(execution, c)}
    rows = [[r for r in result.channels if r.channel not in disordered] for result in answers]
    assert rows[0] == rows[1]
    resent = [{r.channel: r.resent_to for r in result.channels if r.resent_to} for result in answers]
    assert resent[0] == resent[1]


def overtaken_at_the_end(execution: Execution, channel: str) -> bool:
    got = {seq for kind, _, c, seq in execution.events if kind == "recv" and c == channel}
    return bool(got) and max(got) >= len(got)


@settings(max_examples=examples(100))
@given(cases(), st.booleans())
def test_records_without_watermarks_are_placed_by_their_events(case: Case, whole: bool) -> None:
    execution, failed, rng = case
    rows = checkpoint_records(execution)
    rows = [
        {n: v for n, v in r.items() if n not in ("sent", "received")} | {"uri": f"ck/{i}"} for i, r in enumerate(rows)
    ]
    kept = [row for row in rows if whole or rng.random() < 0.7]
    with tempfile.TemporaryDirectory() as name:
        manifest(Path(name), execution)
        write_events(Path(name), execution, rng, event_records(execution))
        if kept:
            write(Path(name), {"checkpoints": kept}, rng)
        found = ask(Path(name), question(failed))
    line, truth = labels(found, execution), latest_line(execution, failed)
    if len(kept) == len(rows):
        assert line == truth
    if not kept:
        return
    assert all(line[s] <= truth[s] for s in truth)
    uris = {(r["operator"], r["subtask"], r["checkpoint"]): r["uri"] for r in kept}
    for e in found.result.line:
        if e.state == "stored":
            assert e.uri == uris[e.operator, e.subtask, e.checkpoint]
    told = {f.id: f.message for f in found.findings}
    assert ("unrecorded-checkpoint" in told) == (len(kept) < len(rows))
    assert "unplaced-checkpoint" not in told


@settings(max_examples=examples(60))
@given(cases())
def test_verify_proves_the_line_of_raw_events(case: Case) -> None:
    execution, failed, rng = case
    with tempfile.TemporaryDirectory() as name:
        manifest(Path(name), execution)
        write_events(Path(name), execution, rng, event_records(execution))
        write(Path(name), {"channels": message_records(execution)}, rng)
        line = {f"{e.operator}/{e.subtask}": e.checkpoint for e in ask(Path(name), question(failed)).result.line}
        with open_run(name) as run:
            checks = run.verify(line, True, question(failed)).result.checks
    assert {c.check: c.holds for c in checks} == dict.fromkeys(
        ("complete", "restorable", "consistent", "maximal", "replayable"), True
    )


@settings(max_examples=examples(100))
@given(cases(), st.integers(0, 400))
def test_what_happens_later_changes_nothing_as_of_then(case: Case, moment: int) -> None:
    execution, failed, rng = case
    state = rng.getstate()
    answers = []
    for limit in (EPOCH + moment, EPOCH + 10_000):
        rng.setstate(state)
        with tempfile.TemporaryDirectory() as name:
            manifest(Path(name), execution)
            write_events(Path(name), execution, rng, [e for e in event_records(execution) if e["time"] <= limit])
            answers.append(ask(Path(name), question(failed, as_of=EPOCH + moment, explain=True)))
    early = {e["operator"] + f"/{e['subtask']}" for e in event_records(execution) if e["time"] <= EPOCH + moment}
    if early == set(execution.subtasks):
        assert answers[0].result == answers[1].result
    else:  # its checkpoints may be missing of whom nothing is here; what it did later shows its log
        said, told = (replace(answer.result, action="restart", runs=()) for answer in answers)
        assert said == told
    assert answers[0].exit_code == answers[1].exit_code


# --- damage


def injured(records: list[dict[str, Any]], lost: set[int]) -> bytes:
    """Lines, some of them garbled."""
    lines = [json.dumps(record).encode() for record in records]
    return b"".join((b"#" * len(line) if i in lost else line) + b"\n" for i, line in enumerate(lines))


def write_injured(folder: Path, execution: Execution, rng: random.Random) -> bool:
    """Events in JSON lines, some of which are garbled, or a whole file gone; False if the damage cannot be seen."""
    place = folder / "events"
    place.mkdir(parents=True)
    records = event_records(execution)
    numbered = rng.random() < 0.5
    if numbered:
        records = rng.sample(records, len(records))
    else:
        records = [{name: value for name, value in record.items() if name != "lsn"} for record in records]
    keys = {(r["operator"], r["subtask"]) for r in records} if rng.random() < 0.5 else {()}
    files = [[r for r in records if key in ((), (r["operator"], r["subtask"]))] for key in sorted(keys)]
    seen = False
    for i, mine in enumerate(files):
        lost = {k for k in range(len(mine)) if rng.random() < rng.choice([0.0, 0.1, 0.4])}
        (place / f"log-{i}.jsonl").write_bytes(injured(mine, lost))
        seen |= bool(lost)
    return seen


@settings(max_examples=examples(400))
@given(cases())
def test_lost_events_never_make_the_line_newer(case: Case) -> None:
    execution, failed, rng = case
    with tempfile.TemporaryDirectory() as name:
        manifest(Path(name), execution)
        if not write_injured(Path(name), execution, rng):
            return
        try:
            found = ask(Path(name), question(failed))
        except CorruptInput:  # no event is left
            return
    truth = latest_line(execution, failed)
    line = labels(found, execution)
    assert all(line[s] <= truth[s] for s in truth), (line, truth)
    assert "bad-record" in {f.id for f in found.findings}


@settings(max_examples=examples(200))
@given(cases())
def test_numbers_show_that_events_are_missing_where_nothing_else_does(case: Case) -> None:
    execution, failed, rng = case
    events = event_records(execution)
    with tempfile.TemporaryDirectory() as name:
        manifest(Path(name), execution)
        (Path(name) / "events").mkdir()
        kept = [e for e in events if rng.random() < 0.8 or e["lsn"] == 0]
        (Path(name) / "events" / "log.jsonl").write_bytes(injured(kept, set()))
        found = ask(Path(name), question(failed))
    line = labels(found, execution)
    heard = {f"{e['operator']}/{e['subtask']}" for e in kept}
    last = {s: max(e["lsn"] for e in kept if f"{e['operator']}/{e['subtask']}" == s) for s in heard}
    holes = {s for s in heard if sum(f"{e['operator']}/{e['subtask']}" == s for e in kept) <= last[s]}
    assert {f.subject for f in found.findings if f.id == "missing-events"} == holes
    if failed == set(execution.subtasks):  # what is cut off at the end of a survivor's log leaves no trace
        truth = latest_line(execution, failed)
        assert all(line[s] <= truth[s] for s in truth)


@pytest.mark.slow
@pytest.mark.spark
@settings(max_examples=examples(10), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(case=cases())
def test_both_engines_give_the_same_bytes(case: Case, spark: Engine) -> None:
    execution, failed, rng = case
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        manifest(Path(name), execution)
        write_events(Path(name), execution, rng, event_records(execution))
        write(Path(name), {"channels": message_records(execution)}, rng)
        local = render(ask(Path(name), question(failed, explain=True)), "json")
        patch.setattr(Run, "engine_for", lambda _run, _size: spark)
        assert render(ask(Path(name), question(failed, explain=True), split=131), "json") == local
