"""The simulated dataflow: what its logs must say, whatever the query and the protocol."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from cklog.model.question import Question
from cklog.run import open_run
from cklog.simulate.dataflow.journal import Figures
from cklog.simulate.dataflow.queries import NEXMARK, DataflowQuery, SimulatedOperator
from cklog.simulate.dataflow.run import simulate, write
from cklog.simulate.dataflow.setting import DataflowSetting
from tests.builders.dataflow_runs import NAMES, RUNS, START, Row, rows_of, setting
from tests.oracles.lines import Event, Execution, latest_line, useless_by_zigzag


@pytest.fixture(scope="module", params=RUNS, ids=NAMES)
def written(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, DataflowSetting, Figures]:
    """A run with everything it can leave behind."""
    folder = tmp_path_factory.mktemp("run")
    return folder, request.param, write(folder, request.param, events=True)


def by_subtask(rows: list[Row]) -> dict[str, list[Row]]:
    found = defaultdict(list)
    for row in rows:
        found[f"{row['operator']}/{row['subtask']}"].append(row)
    return found


def test_checkpoints_hold_what_the_events_before_them_say(written: tuple[Path, DataflowSetting, Figures]) -> None:
    """Watermarks of every channel, from the events alone; channels are FIFO and nothing is received twice."""
    folder, asked, _ = written
    events, checkpoints = by_subtask(rows_of(folder, "events")), by_subtask(rows_of(folder, "checkpoints"))
    assert set(checkpoints) <= set(events)
    for name, own in events.items():
        assert [row["lsn"] for row in own] == list(range(len(own)))
        assert all(a["time"] <= b["time"] for a, b in pairwise(own) if b["event"] != "checkpoint")
        marks: dict[str, Counter[str]] = {"send": Counter(), "receive": Counter()}
        taken = iter(checkpoints[name])
        number = 0
        for row in own:
            if row["event"] != "checkpoint":
                assert row["seq"] == marks[row["event"]][row["channel"]]
                marks[row["event"]][row["channel"]] += 1
                continue
            record, number = next(taken), number + 1
            assert (row["checkpoint"], record["checkpoint"], record["time"]) == (number, number, row["time"])
            for word, member in (("send", "sent"), ("receive", "received")):
                assert {c: n for c, n in record.get(member, {}).items() if n} == dict(marks[word])
        assert next(taken, None) is None
    assert len(events) == asked.workers * len(asked.query.operators)


def test_no_message_is_received_before_it_is_sent(written: tuple[Path, DataflowSetting, Figures]) -> None:
    """Nor sooner than the network lets it; nothing happens at the failure or later."""
    folder, asked, _ = written
    sent: dict[tuple[str, int], int] = {}
    rows = rows_of(folder, "events")
    for row in rows:
        assert row["time"] < START + asked.failure_s * 1000
        if row["event"] == "send":
            sent[row["channel"], row["seq"]] = row["time"]
    for row in rows:
        if row["event"] == "receive":
            sender, receiver = (end.partition("/")[2] for end in row["channel"].split("->"))
            delay = 0.0 if sender == receiver else asked.delay_ms
            assert row["time"] + 1 > sent[row["channel"], row["seq"]] + delay  # times are cut to milliseconds


def test_the_message_log_is_what_was_sent(written: tuple[Path, DataflowSetting, Figures]) -> None:
    folder, asked, figures = written
    sends = sorted((r["channel"], r["seq"], r["time"]) for r in rows_of(folder, "events") if r["event"] == "send")
    assert len(sends) == figures.messages
    if asked.protocol == "coor":
        assert not (folder / "channels").exists()
        return
    logged = rows_of(folder, "channels")
    assert sorted((r["channel"], r["seq"], r["time"]) for r in logged) == sends
    assert sum(r["bytes"] for r in logged) == figures.payload_bytes + figures.carried_bytes
    assert sum(r["protocol_bytes"] for r in logged) == figures.carried_bytes
    sizes = {operator.name: operator.message_bytes for operator in asked.query.operators}
    assert figures.payload_bytes == sum(sizes[edge.sender] * edge.messages for edge in figures.edges)
    assert min(sizes[edge.sender] for edge in figures.edges) > 0


def test_the_figures_are_those_of_the_folder(written: tuple[Path, DataflowSetting, Figures]) -> None:
    """Of the analyses that read the folder, and counted in its records."""
    folder, asked, figures = written
    with open_run(str(folder)) as run:
        line = run.recovery_line(Question()).result
    assert (len(line.rolled_back), len(line.useless), line.domino) == (
        figures.rolled_past,
        figures.useless,
        figures.domino,
    )
    rows = rows_of(folder, "checkpoints")
    kinds = Counter(row["kind"] for row in rows)
    assert (kinds["local"], kinds["forced"], kinds["coordinated"]) == (
        figures.local,
        figures.forced,
        figures.coordinated,
    )
    for operator in figures.operators:
        assert sum(c.operator == operator.operator for c in line.rolled_back) == operator.rolled_past
        assert sum(r["operator"] == operator.operator for r in rows) == (
            operator.local + operator.forced + operator.coordinated
        )
    assert sum(edge.messages for edge in figures.edges) == figures.messages
    assert figures == simulate(asked)


def test_kinds_rounds_and_indices_are_those_of_the_protocol(written: tuple[Path, DataflowSetting, Figures]) -> None:
    folder, asked, _ = written
    allowed = {"unc": {"local"}, "coor": {"coordinated"}}.get(asked.protocol, {"local", "forced"})
    for rows in by_subtask(rows_of(folder, "checkpoints")).values():
        assert {row["kind"] for row in rows} <= allowed
        assert all(("round" in row) == (asked.protocol == "coor") for row in rows)
        assert all(("index" in row) == asked.protocol.startswith("cic") for row in rows)
        if asked.protocol == "coor":
            assert [row["round"] for row in rows] == list(range(1, len(rows) + 1))
        if asked.protocol.startswith("cic"):
            assert all(a["index"] < b["index"] for a, b in pairwise(rows))


def test_instances_of_a_worker_checkpoint_together(written: tuple[Path, DataflowSetting, Figures]) -> None:
    """At one moment, an interval after the last time, as soon as the record in process is done."""
    folder, asked, _ = written
    local = [row for row in rows_of(folder, "checkpoints") if row["kind"] == "local"]
    for worker in range(asked.workers):
        moments = Counter(row["time"] for row in local if row["subtask"] == worker)
        assert set(moments.values()) <= {len(asked.query.operators)}
        slack = (asked.processing_us / 1000 + asked.snapshot_ms * (len(asked.query.operators) + 1)) + 2
        for a, b in pairwise(sorted(moments)):
            assert 1500 - slack <= b - a <= 2500 + slack
        assert not moments or min(moments) <= START + 2000 + slack


def test_nothing_is_in_flight_across_a_complete_round(written: tuple[Path, DataflowSetting, Figures]) -> None:
    """Aligned markers: at the checkpoints of a round every channel's watermarks are equal."""
    folder, asked, figures = written
    if asked.protocol != "coor":
        return
    rounds: dict[int, list[Row]] = defaultdict(list)
    for row in rows_of(folder, "checkpoints"):
        rounds[row["round"]].append(row)
    instances = asked.workers * len(asked.query.operators)
    complete = [rows for rows in rounds.values() if len(rows) == instances]
    assert figures.rounds_complete >= 1
    assert len(rounds) in (figures.rounds_complete, figures.rounds_complete + 1)
    assert len(complete) >= figures.rounds_complete  # the last one may end at the failure, unknown to the coordinator
    for rows in complete:
        sent = {channel: seq for row in rows for channel, seq in row.get("sent", {}).items()}
        received = {channel: seq for row in rows for channel, seq in row.get("received", {}).items()}
        assert sent == received
        assert figures.edges[-1].messages == 0 or sum(sent.values()) > 0


def test_under_bcs_no_message_comes_from_a_later_index(written: tuple[Path, DataflowSetting, Figures]) -> None:
    """The index of an interval is that of the checkpoint that begins it, and 0 before the first."""
    folder, asked, _ = written
    if asked.protocol != "cic-bcs":
        return
    taken = by_subtask(rows_of(folder, "checkpoints"))
    sent: dict[tuple[str, int], int] = {}
    for word in ("send", "receive"):
        for name, rows in by_subtask(rows_of(folder, "events")).items():
            index, indices = 0, iter(row["index"] for row in taken[name])
            for row in rows:
                if row["event"] == "checkpoint":
                    index = next(indices)
                elif row["event"] == word == "send":
                    sent[row["channel"], row["seq"]] = index
                elif row["event"] == word:
                    assert sent[row["channel"], row["seq"]] <= index


def test_the_order_to_checkpoint_waits_its_turn_or_goes_first(tmp_path: Path) -> None:
    """A worker that is behind: its sources checkpoint after what came before the order, or at once if asked to."""
    asked = setting(NEXMARK["q1"], "coor", load=1.3, first_round_s=5.0)
    for name, chosen in (("turn", asked), ("first", replace(asked, orders_first=True))):
        write(tmp_path / name, chosen)
        rows = [row for row in rows_of(tmp_path / name, "checkpoints") if row["round"] == 1]
        first = {(row["operator"], row["subtask"]): row["time"] - START for row in rows}
        for worker in range(3):
            if name == "first":
                assert 5001 <= first["bids", worker] <= 5002 + asked.processing_us / 1000 + asked.snapshot_ms + 1
            else:
                assert first["bids", worker] > 5500
            assert first["sink", worker] > 6000


def test_latency_is_the_time_from_the_record_to_the_last_operator() -> None:
    """Of an idle worker: the processing of three operators; of one with more records than it can take: a growing wait.

    In one queue that all three operators' messages pass, what enters at time t leaves at g t: by t there have entered
    as many as came by t, by t/g and by t/g², and at 1.5 times the load it can take half their number is g t.
    """
    idle = simulate(setting(NEXMARK["q1"], load=0.03, rate=10.0, protocol="coor", first_round_s=1e4))
    assert idle.latency_p50_ms == pytest.approx(3.0, abs=0.1)
    late = simulate(setting(NEXMARK["q1"], load=1.5, rate=100.0, protocol="coor", first_round_s=1e4, failure_s=24.0))
    g = 1.0
    for _ in range(100):
        g = (1 + 1 / g + 1 / g**2) / 2
    assert late.latency_p50_ms == pytest.approx(18_000 * (1 - g**-3), rel=0.03)  # the second half is 12 s to 24 s
    assert late.latency_p99_ms == pytest.approx(24_000 * (1 - g**-3), rel=0.03)


def test_sources_count_the_records_they_read(written: tuple[Path, DataflowSetting, Figures]) -> None:
    """A source sends one message for each, in all queries."""
    folder, asked, _ = written
    rows = [row for row in rows_of(folder, "checkpoints") if "sources" in row]
    for row in rows:
        assert row["sources"] == {f"{row['operator']}-{row['subtask']}": sum(row["sent"].values())}
        assert "received" not in row
    assert {row["operator"] for row in rows} == {o.name for o in asked.query.operators if o.share}


def test_the_runs_above_have_something_to_show() -> None:
    """Useless checkpoints and forced ones, rollbacks over several checkpoints, incomplete rounds."""
    found = dict(zip(NAMES, map(simulate, RUNS), strict=True))
    assert found["8-reachability-unc"].useless > 0
    assert found["8-reachability-unc"].deepest > 1
    assert not any(f.useless for name, f in found.items() if "unc" not in name)
    assert all(f.forced > 0 for name, f in found.items() if "cic" in name and "q1-" not in name)
    assert any(f.rounds_incomplete for f in found.values())
    assert found["12-q12-cic-bcs"].edges[0].per_interval < 0.5  # so rare that indices jump
    assert found["5-q1-cic-hmnr"].rolled_past == 0


LOOP = DataflowQuery(
    "loop",
    (
        SimulatedOperator("a", "source", "a", to="b", share=1.0, message_bytes=10),
        SimulatedOperator("b", "join", "b", to="b", shuffled=True, passes=0.3, message_bytes=10),
    ),
    rate=2.0,
)
"""Two operators, the second of which sends to itself: on two workers small enough to enumerate every line."""


@pytest.mark.parametrize("protocol", ["unc", "cic-hmnr", "cic-bcs"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_rolled_past_and_useless_are_those_of_the_definitions(protocol: str, seed: int, tmp_path: Path) -> None:
    asked = setting(LOOP, protocol, workers=2, rate=3.0, failure_s=7.0, interval_s=1.5, seed=seed)
    figures = write(tmp_path, asked, events=True)
    line = latest_line(execution := _execution(tmp_path), execution.subtasks)
    assert figures.rolled_past == sum(execution.checkpoints(s) - line[s] for s in execution.subtasks)
    assert figures.useless == len(useless_by_zigzag(execution))
    inside = {c for c in execution.channels if len({end.partition("/")[2] for end in c.split("->")}) == 1}
    between = latest_line(_execution(tmp_path, without=inside), execution.subtasks)
    assert figures.rolled_past_between_workers == sum(execution.checkpoints(s) - between[s] for s in execution.subtasks)
    assert inside
    assert figures.deepest == max(execution.checkpoints(s) - line[s] for s in execution.subtasks)


def _execution(folder: Path, without: Collection[str] = ()) -> Execution:
    """A written run, message by message, and `without` some of its channels."""
    job = json.loads((folder / "job.json").read_text())
    subtasks = tuple(f"{o['name']}/{i}" for o in job["operators"] for i in range(o["parallelism"]))
    ends = [c["channel"].split("->") for c in job["channels"]]
    events = []
    for row in rows_of(folder, "events"):
        subtask = f"{row['operator']}/{row['subtask']}"
        if row.get("channel") in without:
            continue
        if row["event"] == "checkpoint":
            events.append(Event("ckpt", subtask, "", row["checkpoint"]))
        elif row["event"] == "send":
            events.append(Event("send", subtask, row["channel"], row["seq"]))
        else:
            events.append(Event("recv", subtask, row["channel"], row["seq"]))
    kept = [(a, b) for a, b in ends if f"{a}->{b}" not in without]
    return Execution(subtasks, {f"{a}->{b}": (a, b) for a, b in kept}, tuple(events))
