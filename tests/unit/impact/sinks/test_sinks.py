"""Which results of sinks a restart doubles or loses: native runs, groups of a broker, and the command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from cklog.impact.sinks.model import SinkImpact
from cklog.model.lines import LineEntry, RecoveryLine, ReplayRange
from cklog.model.names import CheckpointId
from cklog.runs.records.impact import Reached, impact_of
from tests.conftest import SAMPLES
from tests.program import cklog
from tests.reading.impact import impact, kept

# Kafka


def test_groups_of_a_crashed_broker() -> None:
    found = impact(SAMPLES / "kafka-broker", exit=3)
    rows = {(row["sink"], row["of"], row["fate"]): (row["from"], row["to"], row["count"]) for row in found["intervals"]}
    assert rows["billing", "orders-0", "may-be-doubled"] == (12, None, 17)
    assert rows["audit", "orders-0", "missing"] == (2, 3, 1)
    assert rows["audit", "orders-1", "missing"] == (10, 50, 30)
    assert kept(found) == {"audit": "none", "billing": "none"}
    (open_one,) = found["transactions"]
    assert (open_one["log"], open_one["from"], open_one["to"], open_one["records"]) == ("orders-0", 29, 37, 3)


# Native


def line_of(channels: Sequence[ReplayRange], entries: Sequence[LineEntry]) -> RecoveryLine:
    past: tuple[CheckpointId, ...] = ()
    return RecoveryLine(True, "uncoordinated", tuple(entries), tuple(channels), (), past, (), (), False)


def entry(name: str, state: Any = "stored") -> LineEntry:
    return LineEntry(name, 0, 3, None, None, False, state)


AB = ReplayRange("a/0->b/0", 4, 9, 5, 50, True, 9, 12)


def of_line(line: RecoveryLine, received: dict[str, int], logged: bool = True, **sink: Any) -> SinkImpact:
    manifest = {"operators": [{"name": "b", **sink}]}
    names = {row.channel for row in line.channels} if logged else set()
    return impact_of(line, Reached(received, {}), manifest, names, None)


def test_a_sink_puts_out_again_what_it_took_after_its_checkpoint() -> None:
    found = of_line(line_of([AB], [entry("a"), entry("b")]), {"a/0->b/0": 7})
    (row,) = found.intervals
    assert (row.sink, row.fate, row.from_, row.to, row.most, row.count) == ("b/0", "doubled", 4, 7, 12, 3)
    assert [(g.sink, g.guarantee, g.at_best) for g in found.guarantees] == [("b", "none", "exactly-once")]
    found = of_line(line_of([AB], [entry("a", "current"), entry("b")]), {"a/0->b/0": 7})
    assert [(g.sink, g.guarantee, g.at_best) for g in found.guarantees] == [("b", "at-least-once", "exactly-once")]


@pytest.mark.parametrize(("logged", "most"), [(True, 12), (False, None)])
def test_what_is_not_known_is_bounded_by_the_log(logged: bool, most: int | None) -> None:
    (row,) = of_line(line_of([AB], [entry("a"), entry("b")]), {}, logged).intervals
    assert (row.fate, row.from_, row.to, row.most, row.count) == ("may-be-doubled", 4, None, most, None)


def test_the_log_of_one_channel_tells_nothing_of_another() -> None:
    quiet = ReplayRange("c/0->b/0", 0, 0, 0, 0, True, None, None)
    line = line_of([AB, quiet], [entry("a"), entry("b"), entry("c")])
    found = impact_of(line, Reached({}, {}), {"operators": [{"name": "b"}]}, {"a/0->b/0"}, None)
    assert [(row.of, row.fate, row.most) for row in found.intervals] == [
        ("a/0->b/0", "may-be-doubled", 12),
        ("c/0->b/0", "may-be-doubled", None),
    ]
    found = impact_of(line, Reached({}, {}), {"operators": [{"name": "b"}]}, {"a/0->b/0", "c/0->b/0"}, None)
    assert [row.of for row in found.intervals] == ["a/0->b/0"]


def test_a_sink_that_keeps_running_takes_nothing_again() -> None:
    found = of_line(line_of([AB], [entry("a", "current"), entry("b", "current")]), {"a/0->b/0": 7})
    assert found.intervals == ()
    assert found.guarantees[0].guarantee == "exactly-once"


@pytest.mark.parametrize("delivery", ["transactional", "deduplicates"])
def test_a_sink_that_takes_nothing_twice(delivery: str) -> None:
    found = of_line(line_of([AB], [entry("a", "current"), entry("b")]), {"a/0->b/0": 7}, delivery=delivery)
    assert found.guarantees[0].guarantee == "exactly-once"
    found = of_line(line_of([AB], [entry("a"), entry("b")]), {"a/0->b/0": 7}, delivery=delivery)
    assert [(g.guarantee, g.at_best) for g in found.guarantees] == [("at-most-once", "exactly-once")]


def test_what_a_channel_has_lost_reaches_no_sink_below_it() -> None:
    gone = ReplayRange("a/0->b/0", 4, 9, 2, 20, False, 9, 12)
    onward = ReplayRange("b/0->c/0", 7, 7, 0, 0, True)
    found = of_line(line_of([gone, onward], [entry("a"), entry("b"), entry("c")]), {"b/0->c/0": 8})
    assert [(r.sink, r.fate, r.of, r.from_, r.to, r.count) for r in found.intervals] == [
        ("c/0", "doubled", "b/0->c/0", 7, 8, 1),
        ("c", "missing", "a/0->b/0", 4, 9, 3),
    ]
    assert [(g.guarantee, g.at_best) for g in found.guarantees] == [("none", "at-most-once")]


def test_a_ring_has_no_sink() -> None:
    back = ReplayRange("b/0->a/0", 1, 1, 0, 0, True)
    found = of_line(line_of([AB, back], [entry("a"), entry("b")]), {})
    assert (found.intervals, found.guarantees, found.notes) == ((), (), ("no-sinks",))
    assert of_line(line_of([AB, back], [entry("a"), entry("b")]), {"a/0->b/0": 5}, kind="sink").intervals


def test_queues_hold_what_was_put_out() -> None:
    found = impact(SAMPLES / "cec-aggregate")
    assert [row["fate"] for row in found["intervals"] if row["of"] == "filter1/0->agg1/0"] == ["once"]


# The command


@pytest.mark.parametrize(
    "options", [("--recovery", "gap"), ("--restart", "9"), ("--group", "g"), ("--results", "x"), ("--annotate", "x")]
)
def test_options_of_another_kind_of_run_are_refused(options: tuple[str, str]) -> None:
    assert cklog("impact", SAMPLES / "uncoordinated-join", *options).code == 2


def test_a_log_of_tokens_is_no_log_of_crashes() -> None:
    found = impact(SAMPLES / "token-rounds")
    assert {row["sink"].partition("/")[0] for row in found["intervals"]} == {row["sink"] for row in found["guarantees"]}
