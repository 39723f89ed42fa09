"""Ten tiny runs of the CheckMate testbed with their right answers, where its own code is wrong in seven of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from cklog.parsers.checkmate.names import Deployment
from cklog.parsers.checkmate.parser import CheckMate
from cklog.storage import Root
from tests.builders.checkmate import START, put_log, put_snapshot
from tests.reading.checkmate import QUESTION, line_of, opened, replayed

Taken = Sequence[tuple[Mapping[str, int], Mapping[str, int]]]
"""Of each checkpoint: the last number sent, and the highest received since the one before, by channel."""


def build(folder: Path, units: Mapping[tuple[int, str], Taken], logs: Mapping[str, int], sender: int = 1) -> None:
    """Snapshots of all units, none at one moment, and a log of so many messages for each channel."""
    for i, ((worker, operator), taken) in enumerate(units.items()):
        for k, (sent, received) in enumerate(taken):
            put_snapshot(folder, worker, operator, START + 1000 * k + i, sent, received)
    for channel, count in logs.items():
        at = next((w for (w, operator) in units if channel.startswith(f"{operator}_")), sender)
        put_log(folder, at, channel, [0] * count)


RING = ("a_b_0", "b_c_0", "c_a_0")
Case = tuple[dict[tuple[int, str], Taken], dict[str, int], dict[str, int], dict[str, tuple[int, int]]]
ONE: dict[str, Case] = {
    # the channels of these cases join worker 1 and worker 2, one operator each: (units, logs, line, replay)
    "1 consistent pipeline": (
        {(1, "a"): [({"a_b_0": 2}, {}), ({"a_b_0": 6}, {})], (2, "b"): [({}, {"a_b_0": 1}), ({}, {"a_b_0": 5})]},
        {"a_b_0": 7},
        {"a/1": 2, "b/2": 2},
        {"a/1->b/2": (6, 7)},
    ),
    "2 one orphan": (
        {(1, "a"): [({"a_b_0": 2}, {}), ({"a_b_0": 4}, {})], (2, "b"): [({}, {"a_b_0": 2}), ({}, {"a_b_0": 5})]},
        {"a_b_0": 6},
        {"a/1": 2, "b/2": 1},
        {"a/1->b/2": (3, 5)},
    ),
    "3 domino ring": (
        {
            (1, "a"): [
                ({"a_b_0": -1}, {}),
                ({"a_b_0": 0}, {"c_a_0": 0}),
                ({"a_b_0": 1}, {"c_a_0": 1}),
            ],
            (2, "b"): [({"b_c_0": -1}, {}), ({"b_c_0": 0}, {"a_b_0": 0}), ({"b_c_0": 1}, {"a_b_0": 1})],
            (3, "c"): [({"c_a_0": -1}, {}), ({"c_a_0": 0}, {"b_c_0": 1})],
        },
        dict.fromkeys(RING, 2),
        {"a/1": 1, "b/2": 1, "c/3": 1},
        {},
    ),
    "4 tail": (
        {
            (1, "a"): [({"a_b_0": 5}, {})],
            (2, "b"): [({}, {"a_b_0": 3}), ({}, {"a_b_0": 7}), ({}, {"a_b_0": 9})],
        },
        {"a_b_0": 11},
        {"a/1": 1, "b/2": 1},
        {"a/1->b/2": (4, 6)},
    ),
    "5 sender without checkpoint": (
        {(2, "b"): [({}, {"a_b_0": 3})]},
        {"a_b_0": 5},
        {"a/1": 0, "b/2": 0},
        {},
    ),
    "6 sender back at initial": (
        {
            (1, "a"): [({"a_b_0": 4}, {"b_a_0": 2})],
            (2, "b"): [({"b_a_0": -1}, {"a_b_0": 2})],
        },
        {"a_b_0": 6, "b_a_0": 4},
        {"a/1": 0, "b/2": 0},
        {},
    ),
    "7 equality": (
        {(1, "a"): [({"a_b_0": 4}, {})], (2, "b"): [({}, {"a_b_0": 4})]},
        {"a_b_0": 5},
        {"a/1": 1, "b/2": 1},
        {},
    ),
    "8 quiet channel": (
        {
            (1, "a"): [({"a_b_0": 3}, {}), ({"a_b_0": 5}, {})],
            (2, "b"): [({}, {"a_b_0": 3}), ({}, {})],
        },
        {"a_b_0": 6},
        {"a/1": 2, "b/2": 2},
        {"a/1->b/2": (4, 6)},
    ),
    "9 same worker": (
        {(1, "a"): [({"a_b_0": 2}, {})], (1, "b"): [({}, {"a_b_0": 2}), ({}, {"a_b_0": 6})]},
        {"a_b_0": 8},
        {"a/1": 1, "b/1": 1},
        {},
    ),
    "10 receiver at initial": (
        {(1, "a"): [({"a_b_0": 2}, {})], (2, "b"): []},
        {"a_b_0": 4},
        {"a/1": 1, "b/2": 0},
        {"a/1->b/2": (0, 3)},
    ),
}


def two_workers(units: Mapping[tuple[int, str], Taken], line: Mapping[str, int]) -> Deployment:
    """The host of each operator: these runs have fewer partitions than workers, which no name tells."""
    hosts = {(name.partition("/")[0], 0): int(name.partition("/")[2]) for name in line}
    operators = tuple(sorted({operator for operator, _ in hosts}))
    return Deployment(operators, tuple(sorted(set(hosts.values()))), dict.fromkeys(operators, 1), hosts)


@pytest.mark.parametrize("case", ONE)
def test_the_ten_tiny_cases(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The testbed's own code answers 4, 5, 6 and 9 with a line that has orphans, 7 too old, 8 and 10 without replay."""
    units, logs, line, replay = ONE[case]
    build(tmp_path, units, logs)
    monkeypatch.setattr("cklog.parsers.checkmate.dump.deployment_of", lambda *_: two_workers(units, line))
    answer = opened(tmp_path).recovery_line(QUESTION)
    assert line_of(answer) == line
    assert answer.result.consistent
    assert replayed(answer) == replay
    proof = opened(tmp_path).verify(dict(line_of(answer)), True, QUESTION)
    assert {check.check: check.holds for check in proof.result.checks}["consistent"] is True
    assert {check.check: check.holds for check in proof.result.checks}["maximal"] is True


def test_a_long_domino_ring_takes_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen checkpoints each took the testbed's own search seconds, and 2.4 times as long for each further one."""
    n = 200
    units: dict[tuple[int, str], Taken] = {}
    for worker, (operator, to, source) in enumerate([("a", "a_b_0", "c_a_0"), ("b", "b_c_0", "a_b_0")], 1):
        units[worker, operator] = [({to: k - 1}, {source: k - 1} if k else {}) for k in range(n)]
    units[3, "c"] = [({"c_a_0": k - 1}, {"b_c_0": k} if k else {}) for k in range(n - 1)]
    line = {"a/1": 1, "b/2": 1, "c/3": 1}
    build(tmp_path, units, dict.fromkeys(RING, n))
    monkeypatch.setattr("cklog.parsers.checkmate.dump.deployment_of", lambda *_: two_workers(units, line))
    assert line_of(opened(tmp_path).recovery_line(QUESTION)) == line


def test_other_folders_are_not_taken_for_dumps(tmp_path: Path) -> None:
    for name in ("checkpoints/snapshot_1.bin", "worker-logs/a_b_0.bin", "snapshot_x_map_1.bin", "snapshot_1_map.bin"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    assert not CheckMate.recognises(Root(str(tmp_path)))
