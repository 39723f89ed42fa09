"""What is said of simulated and of large random runs, held against another way to find the same."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest

from cklog.model.lines import RecoveryLine
from cklog.model.question import Question
from cklog.protocols.failures_over_time import FailureAt
from cklog.run import open_run
from tests.builders.native import write
from tests.program import cklog

RUNS = {
    "q3-unc": "nexmark --query q3 --workers 2 --rate 5 --protocol unc",
    "q12-hot": "nexmark --query q12 --workers 2 --rate 5 --protocol unc --hot-items 30",
    "q3-bcs": "nexmark --query q3 --workers 2 --rate 5 --protocol cic-bcs --failure-at 20",
    "q3-coor": "nexmark --query q3 --workers 2 --rate 5 --protocol coor --hot-items 30 --load 0.9 --failure-at 45.2",
    "q8-coor": "nexmark --query q8 --workers 2 --rate 5 --protocol coor --failure-at 12",
    "cyclic-unc": "cyclic --workers 2 --rate 100 --load 0.2 --protocol unc --failure-at 40",
    "cyclic-hmnr": "cyclic --workers 2 --rate 100 --load 0.2 --protocol cic-hmnr --failure-at 40",
    "cyclic-bcs": "cyclic --workers 2 --rate 100 --load 0.2 --protocol cic-bcs --failure-at 40",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    found = {}
    for name, told in RUNS.items():
        query, *options = told.split()
        found[name] = tmp_path_factory.mktemp("simulated") / name
        assert cklog("simulate", query, found[name], *options, "--no-channels").code == 0
    return found


@pytest.mark.quarter
@pytest.mark.parametrize("name", RUNS)
def test_a_failure_at_a_time_is_the_line_of_what_was_there_by_then(name: str, runs: dict[str, Path]) -> None:
    """One pass over the whole history says of every moment what a history cut there says."""
    with open_run(str(runs[name])) as run:
        moments = run.failures_over_time(Question(), None).result.moments
        assert len(moments) > 5
        for moment in moments:
            cut = run.recovery_line(Question(as_of=moment.time, everything=True)).result
            assert told(moment) == told_of(cut), moment.time


Told = tuple[int, int, int, int | None, int, int]


def told(moment: FailureAt) -> Told:
    kept = moment.stored - moment.rolled_past
    return moment.rolled_past, moment.subtasks_back, moment.distance, moment.lost_ms, kept, moment.at_initial


def told_of(found: RecoveryLine) -> Told:
    """The same of a line; simulated checkpoints are numbered from 1 without a gap."""
    back = [distance for distance in found.rollback if distance.checkpoints]
    times = [distance.time_ms for distance in found.rollback]
    lost = None if None in times else max((time for time in times if time is not None), default=0)
    distances = zip(found.line, found.rollback, strict=True)
    return (
        len(found.rolled_back),
        len(back),
        max(distance.checkpoints for distance in found.rollback),
        lost,
        sum(entry.checkpoint or 0 for entry in found.line),
        sum(entry.state == "initial" and distance.checkpoints > 0 for entry, distance in distances),
    )


@pytest.mark.parametrize("name", ["q3-bcs", "cyclic-hmnr", "cyclic-bcs"])
def test_the_index_of_a_protocol_passes_and_a_changed_one_does_not(
    name: str, runs: dict[str, Path], tmp_path: Path
) -> None:
    assert audit(runs[name])[0] == 0
    records = [json.loads(row) for p in sorted(runs[name].glob("checkpoints/*")) for row in p.read_text().splitlines()]
    newest = {(r["operator"], r["subtask"]): r["checkpoint"] for r in records}
    rng = np.random.default_rng(3)
    later = [r for r in records if 1 < r["checkpoint"] < newest[r["operator"], r["subtask"]]]
    for record in rng.choice(np.array(later, object), 5, replace=False):
        for index in (0, record["index"] + 1000):
            shutil.rmtree(tmp_path / "changed", ignore_errors=True)
            write(tmp_path / "changed", "checkpoints", [{**r, "index": index} if r is record else r for r in records])
            code, found = audit(tmp_path / "changed")
            assert (code, found["rule"]) == (3, "none"), (record, index)


def audit(folder: Path) -> tuple[int, dict[str, Any]]:
    ended = cklog("z-cycles", folder, "--audit-cic", "--json")
    return ended.code, json.loads(ended.out)["result"]


@pytest.mark.parametrize("rate", [0.05, 0.15])
def test_networkx_on_the_exported_graphs_agrees(rate: float, tmp_path: Path) -> None:
    """Useless checkpoints, line and lengths of witnesses of 50 subtasks with 50 checkpoints each."""
    random_run(tmp_path, rate)
    undone = exported(tmp_path, "rollback")
    component = {v: i for i, part in enumerate(networkx.strongly_connected_components(undone)) for v in part}
    useless = {v for v in undone if component.get(before(v)) == component[v]}
    found = json.loads(cklog("z-cycles", tmp_path, "--json", "--limit", "3").out)["result"]["useless"]
    assert {f"{u['operator']}/{u['subtask']}={u['checkpoint']}" for u in found} == useless
    messages: Any = networkx.DiGraph()
    for tail, head, row in sorted(undone.edges(data=True), key=lambda edge: edge[2]["kind"], reverse=True):
        messages.add_edge(tail, head, messages=int(row["kind"] == "message"))  # the local one last
    for u in found[:3]:
        name = f"{u['operator']}/{u['subtask']}={u['checkpoint']}"
        shortest = networkx.dijkstra_path_length(messages, name, before(name), weight="messages")
        assert len(u["witness"]) == shortest
    lost = {v for i in range(50) for v in networkx.descendants(undone, f"o/{i}=50")} | {f"o/{i}=50" for i in range(50)}
    line = {f"o/{i}": min(int(v.partition("=")[2]) for v in lost if v.startswith(f"o/{i}=")) for i in range(50)}
    told = json.loads(cklog("recovery-line", tmp_path, "--json").out)["result"]["line"]
    assert {f"{e['operator']}/{e['subtask']}": e["checkpoint"] for e in told} == line
    assert networkx.is_directed_acyclic_graph(exported(tmp_path, "checkpoint"))


def exported(folder: Path, kind: str) -> Any:
    text = cklog("graph", folder, "--kind", kind, "--format", "node-link").out
    return networkx.node_link_graph(json.loads(text), edges="edges")


def before(node: str) -> str:
    name, _, number = node.partition("=")
    return f"{name}={int(number) - 1}"


def random_run(folder: Path, rate: float, n: int = 50, checkpoints: int = 50, channels: int = 300) -> None:
    """Messages at random times, delayed at random; half of the channels are FIFO. `rate` per checkpoint interval."""
    rng = np.random.default_rng(int(rate * 1000))
    taken = np.sort(rng.uniform(0, checkpoints, (n, checkpoints)))
    marks: dict[tuple[str, int], list[dict[str, int]]] = {
        (side, i): [{} for _ in range(checkpoints)] for side in ("sent", "received") for i in range(n)
    }
    for i, j in sorted({(int(a), int(b)) for a, b in rng.integers(0, n, (channels, 2))}):
        sent = np.sort(rng.uniform(0, checkpoints, rng.poisson(rate * checkpoints)))
        received = sent + rng.exponential(1.0, len(sent))
        received = np.maximum.accumulate(received) if rng.random() < 0.5 else received
        for x in range(checkpoints):
            marks["sent", i][x][f"o/{i}->o/{j}"] = int((sent < taken[i, x]).sum())
            there = np.flatnonzero(received < taken[j, x])
            marks["received", j][x][f"o/{i}->o/{j}"] = int(there.max(initial=-1)) + 1
    rows = [
        (i, x, {side: marks[side, i][x] for side in ("sent", "received")}) for i in range(n) for x in range(checkpoints)
    ]
    records = [{"operator": "o", "subtask": i, "checkpoint": x + 1, **told} for i, x, told in rows]
    write(folder, "checkpoints", records)
