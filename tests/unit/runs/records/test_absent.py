"""What something names and of whose state nothing is here: no answer calls such a run ready for a plain restart."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cklog.model.question import Question
from cklog.model.verdict import Answer
from cklog.retention.policy import RetentionPolicy
from cklog.run import Options, open_run
from tests.builders.native import checkpoint, write
from tests.builders.queues import chain, emits
from tests.conftest import SAMPLES


def asked(folder: Path, question: Question = Question()) -> Answer[Any]:
    with open_run(str(folder), Options()) as run:
        return run.recovery_line(question)


def errors(answer: Answer[Any]) -> list[tuple[str, str]]:
    """What is missed, and what is wrong."""
    told = [f for f in answer.findings if f.severity == "error" or f.id == "missing-checkpoints"]
    return [(f.id, f.subject) for f in told]


def line(answer: Answer[Any]) -> dict[str, int | None]:
    return {f"{e.operator}/{e.subtask}": e.checkpoint for e in answer.result.line}


TABLES = [
    *(("uncoordinated-join", f"checkpoints/{name}.jsonl") for name in ("join", "orders", "payments", "sink")),
    *(("uncoordinated-join-parquet", f"checkpoints/{name}.parquet") for name in ("join", "orders", "payments", "sink")),
    *(("raw-events", f"events/{name}.jsonl") for name in ("orders", "pack", "route")),
]


@pytest.mark.parametrize(("sample", "path"), TABLES)
def test_an_operator_whose_records_are_gone_is_missed(sample: str, path: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(SAMPLES / sample, folder)
    whole = line(asked(folder))
    lost = folder / path
    lost.unlink()
    (lost.parent / f".{lost.name}.crc").unlink(missing_ok=True)
    answer = asked(folder)
    assert "missing-checkpoints" in [id for id, _ in errors(answer)]
    assert answer.result.action in ("restart-older", "start-over")
    assert answer.exit_code == (0 if answer.result.action == "restart-older" else 4)
    assert all((n or 0) <= (whole[subtask] or 0) for subtask, n in line(answer).items())


def test_who_had_no_time_for_a_checkpoint_is_not_missed(tmp_path: Path) -> None:
    channel = "a/0->b/0"
    write(tmp_path, "checkpoints", [checkpoint("a/0", 1, sent={channel: 3})])
    answer = asked(tmp_path)
    assert (errors(answer), answer.result.action, line(answer)) == ([], "restart", {"a/0": 1, "b/0": 0})
    write(tmp_path, "checkpoints", [checkpoint("a/0", n, sent={channel: 3 * n}) for n in (1, 2)])
    answer = asked(tmp_path)
    assert (errors(answer), answer.result.action) == ([("missing-checkpoints", "b/0")], "restart-older")


def test_most_of_the_others_decide_whether_there_was_time(tmp_path: Path) -> None:
    """One that took its first just before the crash does not hide who never did."""
    ends = [("a/0", 3), ("c/0", 2), ("d/0", 1)]
    rows = [checkpoint(who, n, sent={f"{who}->b/0": n}) for who, last in ends for n in range(1, last + 1)]
    write(tmp_path, "checkpoints", rows)
    assert errors(asked(tmp_path)) == [("missing-checkpoints", "b/0")]
    write(tmp_path, "checkpoints", [row for row in rows if row["checkpoint"] == 1 or row["operator"] == "a"])
    assert errors(asked(tmp_path)) == []
    write(tmp_path, "checkpoints", [row for row in rows if row["operator"] in "ad"])  # one of two is half of them
    assert errors(asked(tmp_path)) == [("missing-checkpoints", "b/0")]


def test_who_was_sent_nothing_and_sent_nothing_is_not_missed(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", [checkpoint("a/0", n, sent={"a/0->b/0": 0}) for n in (1, 2)])
    assert errors(asked(tmp_path)) == []
    write(tmp_path, "checkpoints", [checkpoint("a/0", n, received={"b/0->a/0": 0}) for n in (1, 2)])
    assert errors(asked(tmp_path)) == []
    write(
        tmp_path, "checkpoints", [checkpoint("a/0", n, received={"b/0->a/0": 0}, sent={"a/0->b/0": 1}) for n in (1, 2)]
    )
    assert errors(asked(tmp_path)) == [("missing-checkpoints", "b/0")]


def test_where_nobody_counts_messages_nobody_is_idle(tmp_path: Path) -> None:
    """A channel that `job.json` alone names says nothing of what was sent on it."""
    write(tmp_path, "checkpoints", [checkpoint("a/0", n) for n in (1, 2)])
    chain(tmp_path, "a", "b")
    assert errors(asked(tmp_path)) == [("missing-checkpoints", "b/0")]


def test_a_survivor_of_whose_state_something_tells_is_not_missed(tmp_path: Path) -> None:
    channel = "a/0->b/0"
    rows = [checkpoint("a/0", n, sent={channel: 3 * n}) for n in (1, 2)]
    volatile = {"operator": "b", "checkpoint": 1, "kind": "volatile", "received": {channel: 2}}
    write(tmp_path, "checkpoints", [*rows, volatile])
    assert errors(asked(tmp_path, Question(failed=("a",)))) == []


def test_without_any_checkpoint_starting_over_is_no_plain_answer(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(SAMPLES / "q3-coordinated", folder)
    shutil.rmtree(folder / "checkpoints")
    answer = asked(folder)
    assert (answer.exit_code, answer.result.action) == (4, "start-over")
    assert errors(answer) == [("missing-checkpoints", "checkpoints")]


def job(folder: Path, **kinds: dict[str, Any]) -> None:
    """src → map → agg, of which all but src and those that are left out have output queues."""
    chain(folder, "src", "map", "agg", operators=[{"name": name, **more} for name, more in kinds.items()])


@pytest.mark.parametrize("gone", ["map", "agg"])
@pytest.mark.parametrize("told", [{}, {"kind": "aggregate"}, {"recovery": "eventual"}, {"parallelism": 2}])
def test_an_operator_without_queue_and_checkpoint_is_missed(gone: str, told: dict[str, Any], tmp_path: Path) -> None:
    for name in ("map", "agg"):
        emits(tmp_path, name, 9)
    job(tmp_path, src={"kind": "source"}, map={}, agg={})
    assert (asked(tmp_path).exit_code, asked(tmp_path).result.action) == (0, "restart")
    shutil.rmtree(tmp_path / "outputs" / gone)
    job(tmp_path, **{"src": {"kind": "source"}, "map": {}, "agg": {}, gone: told})
    answer = asked(tmp_path)
    assert (answer.exit_code, answer.result.action, answer.verdict) == (5, "undetermined", "indeterminate")
    assert ("missing-queue", f"outputs/{gone}") in errors(answer)
    assert [run.command for run in answer.result.runs] == [None]


def test_the_second_queue_of_an_operator_and_ends_of_channels_are_missed_too(tmp_path: Path) -> None:
    emits(tmp_path, "map", 9)
    job(tmp_path, src={"kind": "source"}, map={"parallelism": 2}, agg={"kind": "sink"})
    found = [f for f in asked(tmp_path).findings if f.id == "missing-queue"]
    assert [(f.subject, "map/1" in f.message, "map/0" in f.message) for f in found] == [("outputs/map", True, False)]
    chain(tmp_path, "src", "map", "agg")  # a manifest that lists no operators
    [finding] = [f for f in asked(tmp_path).findings if f.id == "missing-queue"]
    assert (finding.subject, "agg/0 is part of the job" in finding.message) == ("outputs/agg", True)


def test_sources_and_sinks_need_no_queue(tmp_path: Path) -> None:
    emits(tmp_path, "map", 9)
    for src in ({}, {"kind": "source"}):
        job(tmp_path, src=src, map={}, agg={"kind": "sink"})
        assert (errors(asked(tmp_path)), asked(tmp_path).result.action) == ([], "restart")
    job(tmp_path, src={}, map={}, agg={"kind": "sink", "recovery": "eventual"})
    assert errors(asked(tmp_path)) == [("missing-queue", "outputs/agg")]


def test_who_did_not_fail_and_feeds_nobody_who_did_is_not_missed(tmp_path: Path) -> None:
    emits(tmp_path, "map", 9)
    job(tmp_path, src={}, map={}, agg={})
    assert errors(asked(tmp_path, Question(failed=("map",)))) == []
    assert errors(asked(tmp_path, Question(failed=("agg",)))) == [("missing-queue", "outputs/agg")]
    emits(tmp_path, "agg", 5)
    shutil.rmtree(tmp_path / "outputs" / "map")
    assert errors(asked(tmp_path, Question(failed=("agg",)))) == [("missing-queue", "outputs/map")]


@pytest.mark.parametrize("others", [False, True])
def test_a_promised_queue_is_missed_beside_checkpoints(others: bool, tmp_path: Path) -> None:
    """With the queues of others, and without any: then the folder is one of checkpoints alone."""
    channels = ("u/0->e/0", "e/0->d/0")
    write(tmp_path, "checkpoints", [
        checkpoint("u/0", 1, sent={channels[0]: 3}),
        checkpoint("d/0", 1, received={channels[1]: 0}),
    ])  # fmt: skip
    if others:
        emits(tmp_path, "x", 5)
    chain(tmp_path, "u", "e", "d", operators=[{"name": "e", "recovery": "eventual"}, {"name": "u"}, {"name": "d"}])
    answer = asked(tmp_path)
    assert (answer.exit_code, answer.result.action) == (5, "undetermined")
    [finding] = [f for f in answer.findings if f.id == "missing-queue"]
    assert (finding.subject, "e/0 restarts from its output queue" in finding.message) == ("outputs/e", True)


def test_nothing_is_deleted_for_a_reader_whose_queue_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(SAMPLES / "cec-aggregate", folder)
    shutil.rmtree(folder / "outputs" / "agg1")
    ask = json.loads((folder / "job.json").read_text())
    for row in ask["operators"]:
        row.pop("recovery", None)
    (folder / "job.json").write_text(json.dumps(ask))
    with open_run(str(folder), Options()) as run:
        answer = run.retention(RetentionPolicy())
    assert answer.exit_code == 5
    assert not any(row.fate == "OBSOLETE" for row in answer.result.rows)
    assert [t.below for t in answer.result.trimming if t.channel.startswith("filter1/0")] == [None]


def test_of_an_operator_that_is_listed_twice_all_is_believed(tmp_path: Path) -> None:
    """Whichever row is right, nobody is left out."""
    emits(tmp_path, "map", 9)
    rows: list[dict[str, Any]] = [{"name": "map", "parallelism": 3}, {"name": "map"}, {"name": "src", "kind": "source"}]
    chain(tmp_path, "src", "map", operators=rows)
    [finding] = [f for f in asked(tmp_path).findings if f.id == "missing-queue"]
    assert "map/1, map/2" in finding.message
    both = [{"name": "src", "kind": "source"}, {"name": "src", "kind": "aggregate"}, {"name": "map"}]
    for operators in (both, [both[1], both[0], both[2]]):
        chain(tmp_path, "src", "map", operators=operators)
        assert errors(asked(tmp_path)) == [("missing-queue", "outputs/src")]
    emits(tmp_path, "src", 3)
    chain(tmp_path, "src", "map", "end", operators=[{"name": "end", "kind": kind} for kind in ("source", "sink")])
    assert errors(asked(tmp_path)) == []


def test_who_has_events_of_its_own_has_told_of_its_checkpoints(tmp_path: Path) -> None:
    """It took none; of `a`, which only others' events name, nothing is known."""
    event = {"operator": "b", "event": "receive", "channel": "a/0->b/0", "seq": 0, "time": 5}
    write(tmp_path, "events", [event])
    assert errors(asked(tmp_path)) == []
    taken = [{"operator": "b", "event": "checkpoint", "checkpoint": n, "time": 5 + n} for n in (1, 2)]
    write(tmp_path, "events", [event, *taken])
    assert errors(asked(tmp_path)) == [("missing-checkpoints", "a/0")]
