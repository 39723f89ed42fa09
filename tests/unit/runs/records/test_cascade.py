"""recovery-line over output queues: who is planned first, what is replayed, who keeps running."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cklog.model.lines import RecoveryLine
from cklog.model.question import Question
from cklog.model.verdict import Answer
from cklog.run import Options, open_run
from tests.builders.kafka import Log, Row, batch
from tests.builders.native import checkpoint, write
from tests.builders.queues import chain, emits


def ask(folder: Path, question: Question = Question()) -> tuple[RecoveryLine, Answer[Any]]:
    with open_run(str(folder), Options()) as run:
        answer = run.recovery_line(question)
    return answer.result, answer


def states(found: RecoveryLine) -> dict[str, str]:
    return {f"{e.operator}/{e.subtask}": e.state for e in found.line}


def steps(found: RecoveryLine) -> list[str]:
    return [row["operator"] for row in found.details["eventual"]]


def test_the_upstream_is_planned_first(tmp_path: Path) -> None:
    for name, count in (("a", 9), ("z", 12), ("m", 10)):
        emits(tmp_path, name, count)
    chain(tmp_path, "src", "z", "m", "a")
    found, answer = ask(tmp_path)
    assert steps(found) == ["z", "m", "a"]
    assert states(found) == {"a/0": "eventual", "m/0": "eventual", "z/0": "eventual"}
    ranges = {c.channel: (c.replay_from, c.replay_to, c.messages, c.retained) for c in found.channels}
    assert ranges == {
        "src/0->z/0": (11, 12, None, None),
        "z/0->m/0": (9, 12, 3, True),
        "m/0->a/0": (8, 10, 2, True),
    }
    assert (answer.exit_code, found.protocol) == (0, "eventual")


def test_only_the_failed_ones_are_planned(tmp_path: Path) -> None:
    emits(tmp_path, "a", 9)
    emits(tmp_path, "b", 7)
    chain(tmp_path, "src", "a", "b")
    found, _ = ask(tmp_path, Question(failed=("b",)))
    assert (steps(found), states(found)) == (["b"], {"a/0": "current", "b/0": "eventual"})
    chain(tmp_path, "src", "a", "b", failed=["a"])
    assert steps(ask(tmp_path)[0]) == ["a"]


def test_as_of_an_earlier_time(tmp_path: Path) -> None:
    emits(tmp_path, "a", 9)
    chain(tmp_path, "src", "a")
    found, _ = ask(tmp_path, Question(as_of=4))
    assert [(e.operator, e.time) for e in found.line] == [("a", 4)]


def test_a_queue_that_has_forgotten_what_is_needed(tmp_path: Path) -> None:
    emits(tmp_path, "a", 9, first=6)
    emits(tmp_path, "b", 4)
    chain(tmp_path, "src", "a", "b")
    found, answer = ask(tmp_path)
    assert (answer.exit_code, [f.id for f in answer.findings]) == (5, ["retention-hole"])
    assert next(c.retained for c in found.channels if c.channel == "a/0->b/0") is False


def test_beside_uncoordinated_operators(tmp_path: Path) -> None:
    """u comes back to where it had sent 3; e had taken 5, so it comes back as of record 2; d had received 5 of e."""
    channels = ("u/0->e/0", "e/0->d/0")
    write(tmp_path, "checkpoints", [
        checkpoint("u/0", 1, sent={channels[0]: 3}),
        checkpoint("d/0", 1, received={channels[1]: 2}),
        checkpoint("d/0", 2, received={channels[1]: 5}),
    ])  # fmt: skip
    emits(tmp_path, "e", 5)
    chain(tmp_path, "u", "e", "d")
    found, answer = ask(tmp_path)
    assert found.protocol == "mixed"
    assert {(e.operator, e.checkpoint, e.time, e.rolled_back) for e in found.line} == {
        ("d", 1, 1000, True),
        ("e", None, 2, True),
        ("u", 1, 1000, False),
    }
    assert found.details["eventual"][0]["cut"] == {"": 3}
    assert "truncate its queue after it" in found.notes[0]
    assert answer.exit_code == 0


def test_a_survivor_with_a_queue_keeps_running(tmp_path: Path) -> None:
    channels = ("u/0->e/0", "e/0->d/0")
    write(tmp_path, "checkpoints", [
        checkpoint("u/0", 1, sent={channels[0]: 9}),
        checkpoint("d/0", 1, received={channels[1]: 2}),
    ])  # fmt: skip
    emits(tmp_path, "e", 5)
    chain(tmp_path, "u", "e", "d")
    found, _ = ask(tmp_path, Question(failed=("d", "u")))
    assert states(found) == {"d/0": "stored", "e/0": "current", "u/0": "stored"}


def test_an_upstream_in_kafka_is_looked_up_by_its_time_index(tmp_path: Path) -> None:
    """Its records need not be cklog's: a topic that a source reads is enough."""
    log = Log(interval=100)
    for base in range(0, 60, 3):
        log.add(batch(base, [Row(b"anything", time=base + i) for i in range(3)]))
    log.write(tmp_path / "outputs" / "src" / "topic-0")
    emits(tmp_path, "a", 41)
    chain(tmp_path, "src", "a", operators=[{"name": "src", "kind": "source"}, {"name": "a"}])
    assert states(ask(tmp_path)[0]) == {"a/0": "eventual"}
    with open_run(str(tmp_path), Options()) as run:
        found = run.extent("a").result
    offset = found.replay.upstream[0]
    assert (offset.pos, offset.end, offset.by, offset.tuples) == (40, 60, "input", 20)
    assert offset.offset == log.starts[13]
    assert offset.bytes == len(log.data) - log.starts[13]


def test_an_upstream_in_kafka_that_ends_before_what_was_taken(tmp_path: Path) -> None:
    """Its last batch was torn; the tuple taken last has the timestamp of one that is still there."""
    log = Log()
    log.add(batch(0, [Row(b"anything", time=min(i, 2)) for i in range(4)]))
    log.write(tmp_path / "outputs" / "src" / "topic-0")
    row = {"type": "open", "window": "w", "ts": 2, "open_windows": 1, "state": 1, "input": 7, "pos": 0}
    write(tmp_path, "outputs/a", [row])
    chain(tmp_path, "src", "a")
    with open_run(str(tmp_path), Options()) as run:
        answer = run.extent("a")
    offset = answer.result.replay.upstream[0]
    assert (offset.pos, offset.end, offset.by) == (2, 4, "time")
    assert [f.id for f in answer.findings] == ["upstream-behind"]


def test_an_upstream_without_a_record_that_is_needed_is_told(tmp_path: Path) -> None:
    log = Log()
    log.add(batch(0, [Row(b"anything", time=1)]))
    log.write(tmp_path / "outputs" / "src" / "topic-0")
    emits(tmp_path, "a", 9)
    chain(tmp_path, "src", "a")
    with open_run(str(tmp_path), Options()) as run:
        answer = run.extent("a")
    assert answer.result.replay.upstream == ()
    assert [f.id for f in answer.findings] == ["bad-record", "upstream-behind"]


def test_an_operator_with_checkpoints_and_a_queue_restarts_from_its_checkpoints(tmp_path: Path) -> None:
    """As a system on one machine that logs what it puts out: the queue tells nothing of the operator's state."""
    emits(tmp_path, "count", 9)
    chain(tmp_path, "in", "count")
    write(tmp_path, "checkpoints", [checkpoint("in", 1, time=5), checkpoint("count", 1, time=5)])
    found, answer = ask(tmp_path)
    assert answer.exit_code == 0
    assert states(found) == {"count/0": "stored", "in/0": "stored"}
    assert found.protocol == "uncoordinated"
    assert steps(found) == []
    assert "count/0 restarts from its checkpoint" in found.notes[-1]


def test_what_a_survivor_holds_is_no_checkpoint_beside_its_queue(tmp_path: Path) -> None:
    emits(tmp_path, "count", 9)
    chain(tmp_path, "in", "count")
    write(tmp_path, "checkpoints", [checkpoint("in", 1, time=5), checkpoint("count", 1, kind="volatile", time=9)])
    found, answer = ask(tmp_path)
    assert answer.exit_code == 0
    assert states(found) == {"count/0": "eventual", "in/0": "stored"}
    assert found.protocol == "mixed"
