"""`latency` against lists, sorted: percentiles by definition, the way back step by step, of results and messages."""

from __future__ import annotations

import json
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cklog.engine.scan import Engine
from cklog.latency.model import Latency, LatencyQuestion
from cklog.model.verdict import Answer
from cklog.render.formats import render
from cklog.run import Options, Run, open_run
from cklog.runs.records import latency as messages
from tests.builders.native import write
from tests.examples import examples
from tests.oracles.latency import back_at, nearest_rank, normal, steps

record = st.tuples(st.integers(-3000, 9000), st.integers(-40, 60) | st.integers(-400, 4000))
"""When a record was made, and how long it took."""
records = st.lists(record.map(lambda r: (r[0], r[0] + r[1])), min_size=1, max_size=120)
questions = st.builds(
    LatencyQuestion,
    step_ms=st.sampled_from([1, 7, 250, 1000]),
    failed_at=st.integers(-2000, 9000),
    factor=st.sampled_from([1.0, 1.1, 1.5, 3.0]),
    steps=st.integers(1, 4),
)


def holds(found: Latency, of: list[tuple[int, int]], asked: LatencyQuestion) -> None:
    """The answer is what the definition says of records (made, at the sink)."""
    by_step, failed_at = steps(of, asked.step_ms), asked.failed_at
    told = [(s.time, s.records, s.p50, s.p99, s.max) for s in found.steps]
    assert told == [
        (start, len(v), nearest_rank(v, 50), nearest_rank(v, 99), max(v)) for start, v in sorted(by_step.items())
    ]
    every = [at - made for made, at in of]
    assert (found.records, found.p50, found.p99, found.max) == (
        len(every),
        nearest_rank(every, 50),
        nearest_rank(every, 99),
        max(every),
    )
    assert failed_at is not None
    assert found.failure is not None
    assert found.failure.normal_p99 == normal(by_step, asked.step_ms, failed_at)
    assert found.failure.back_at == back_at(by_step, asked.step_ms, failed_at, Fraction(str(asked.factor)), asked.steps)


def with_results(asked: LatencyQuestion, path: Path) -> LatencyQuestion:
    fields = {name: getattr(asked, name) for name in ("step_ms", "failed_at", "factor", "steps")}
    return LatencyQuestion(results=str(path), event_time="made", time="at", **fields)


def results_answer(of: list[tuple[int, int]], asked: LatencyQuestion, form: str, split: int) -> Answer[Latency]:
    rows = [{"made": made, "at": at, "value": "x" * (made % 3)} for made, at in of]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"sink.{form}"
        if form == "parquet":
            pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=7)
        else:
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        with open_run(folder, Options(split_bytes=split)) as run:
            return run.latency(with_results(asked, path))


@given(records, questions, st.sampled_from(["parquet", "jsonl"]), st.sampled_from([64, 1 << 20]))
@settings(max_examples=examples(80), deadline=None)
def test_results_have_the_latencies_of_the_definition(
    of: list[tuple[int, int]], asked: LatencyQuestion, form: str, split: int
) -> None:
    holds(results_answer(of, asked, form, split).result, of, asked)


def run_folder(folder: Path, of: list[tuple[int, int]], logged: list[bool], again: list[bool]) -> Path:
    """Events of a source, two subtasks and a sink; sends that are `logged` are in channels/ only, some come `again`."""
    sends: list[dict[str, Any]] = []
    receipts: list[dict[str, Any]] = []
    log: list[dict[str, Any]] = []
    for number, (made, at) in enumerate(of):
        of_channel = {"channel": f"src/{number % 2}->sink/0", "seq": number // 2}
        if logged[number % len(logged)]:
            log.append({**of_channel, "time": made})
        else:
            sends.append({"event": "send", "operator": "src", "subtask": number % 2, **of_channel, "time": made})
        receipts.append({"event": "receive", "operator": "sink", **of_channel, "time": at})
        if again[number % len(again)]:
            receipts.append({"event": "receive", "operator": "sink", **of_channel, "time": at + 17})
    # what is received elsewhere is no latency of the sink
    sends.append({"event": "send", "operator": "in", "channel": "in/0->src/0", "seq": 0, "time": -50_000})
    sends.append({"event": "receive", "operator": "src", "channel": "in/0->src/0", "seq": 0, "time": 90_000})
    write(folder, "events", sends, "a.jsonl")
    write(folder, "events", receipts[::-1], "b.jsonl")
    if log:
        write(folder, "channels", log)
    return folder


@given(
    records,
    questions,
    st.lists(st.booleans(), min_size=1, max_size=3),
    st.lists(st.booleans(), min_size=1, max_size=3),
    st.integers(1, 50),
)
@settings(max_examples=examples(60), deadline=None)
def test_messages_have_the_latencies_of_the_definition(
    of: list[tuple[int, int]], asked: LatencyQuestion, logged: list[bool], again: list[bool], at_once: int
) -> None:
    """However few are paired at once, wherever their sends are told of, and if they come twice."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(messages, "PAIRS_AT_ONCE", at_once)
        run_folder(Path(folder), of, logged, again)
        with open_run(folder, Options(split_bytes=500)) as run:
            answer = run.latency(asked)
    holds(answer.result, of, asked)
    assert answer.result.sinks == ("sink",)
    assert "unsent-messages" not in [finding.id for finding in answer.findings]


@pytest.mark.slow
@pytest.mark.spark
def test_both_engines_give_the_same_bytes(tmp_path: Path, spark: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    of = [(i * 37 % 5000, i * 37 % 5000 + i * i % 900) for i in range(400)]
    asked = LatencyQuestion(failed_at=2500)
    run_folder(tmp_path, of, [True, False, False], [False, True])
    monkeypatch.setattr(messages, "PAIRS_AT_ONCE", 150)
    result = tmp_path / "sink.jsonl"
    result.write_text("".join(f'{{"made":{made},"at":{at}}}\n' for made, at in of))
    questions = (asked, with_results(asked, result))
    texts = []
    for engine in (None, spark):
        if engine is not None:
            monkeypatch.setattr(Run, "engine_for", lambda _run, _size, engine=engine: engine)
        with open_run(str(tmp_path), Options(split_bytes=3000)) as run:
            texts.append([render(run.latency(question), "json", None, False) for question in questions])
    assert texts[0] == texts[1]
