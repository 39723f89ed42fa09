"""Hostile histories under all that looks at checkpoint graphs: the documented exit codes, and no wrong line."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cklog.model.question import Question
from cklog.model.verdict import Answer
from cklog.run import open_run
from tests.builders.native import checkpoint, line, write
from tests.oracles.graph_damage import AB, hold_up
from tests.program import cklog

BIGGEST = 2**63 - 2
"""The largest number that a record may hold."""

NAMES = [
    "b->c",
    "q\"'<&>",
    "new\nline\x1b[31m",
    "#x",
    "a/b",
    "é\u202e",
    "x" * 4000,
    "9" * 5000,
    "=1",
    "-- 1. m_x",
    "end",
]


def history(folder: Path, records: list[dict[str, Any]], manifest: dict[str, Any] | None = None) -> Path:
    write(folder, "checkpoints", records)
    if manifest is not None:
        (folder / "job.json").write_bytes(line(manifest))
    return folder


def line_of(folder: Path, **question: Any) -> Answer[Any]:
    with open_run(str(folder)) as run:
        found = run.recovery_line(Question(**question))
    return found


# --- names


@pytest.mark.parametrize("name", NAMES, ids=[repr(name[:9]) for name in NAMES])
def test_a_hostile_name_on_every_command(name: str, tmp_path: Path) -> None:
    """The receiver's number is written `00` on the channel: another text, the same subtask."""
    there, back = f"a/0->{name}/00", f"{name}/0->a/0#p"
    sender = [checkpoint("a/0", n, sent={there: 5 * n}, received={back: n}, index=n) for n in (1, 2)]
    other = [{**checkpoint("", n, sent={back: 2 * n}, received={there: 3 * n}, index=n)} for n in (1, 2)]
    history(tmp_path, sender + [{**record, "operator": name} for record in other])
    codes = hold_up(tmp_path, name[:9], name=f"{name}/0", number=1)
    assert set(codes.values()) <= ({0, 3} if name not in ("#x", "b->c") else {3, 4, 66})  # they name no sender


# --- numbers and times


TIMES: list[list[int | None]] = [
    [None] * 6,
    [9, 8, 7, 5, 5, 5],
    [1, BIGGEST - 1, BIGGEST, 0, BIGGEST, BIGGEST],
    [-BIGGEST, 0, BIGGEST] * 2,
    [-5, -4, -3, -2, -1, 0],
    [1, None, 3, None, None, 2],
]

FIELDS: list[dict[str, Any]] = [
    {"kind": "coordinated", "round": BIGGEST, "bytes": BIGGEST, "duration_ms": 10**18},
    {"kind": "coordinated", "round": None, "duration_ms": -1.5},
    {"kind": "forced", "index": BIGGEST},
]


@pytest.mark.parametrize("times", TIMES, ids=str)
def test_hostile_times_and_numbers(times: list[int | None], tmp_path: Path) -> None:
    for i, fields in enumerate(FIELDS):
        a = [checkpoint("a/0", n, **fields, sent={AB: BIGGEST if n == 3 else n}) for n in (1, 2, 3)]
        b = [checkpoint("b/0", n, **fields, received={AB: BIGGEST - 1 if n == 3 else n}) for n in (1, 2, 3)]
        told = [{**record, "time": time} for record, time in zip(a + b, times, strict=True)]
        folder = history(tmp_path / str(i), told)
        assert set(hold_up(folder, fields).values()) <= {0, 3, 4, 66}
        given = cklog("recovery-line", folder, "--failed-at", f"{10**18 - 1},-{10**18 - 1},4,4,2026-01-01", "--json")
        moments = json.loads(given.out)["result"]["moments"]
        assert [m["time"] for m in moments] == sorted({m["time"] for m in moments})


@pytest.mark.parametrize("word", ["--5", "²", "-", "1e5", "9" * 19, "0001-01-01T00:00:00+14:00"])
def test_a_time_or_number_that_is_none_is_wrong_usage(word: str, tmp_path: Path) -> None:
    history(tmp_path, [checkpoint("a/0", 1)])
    for option in ("--failed-at", "--as-of"):
        assert cklog("recovery-line", tmp_path, f"{option}={word}").code in ({0, 4} if word[0] == "0" else {2})
    for command, option in (("recovery-line", "--at"), ("graph", "--around"), ("z-cycles", "--witness")):
        assert cklog(command, tmp_path, f"{option}=a/0={word}").code == 2


# --- initial states


def contradicting(**more: Any) -> list[dict[str, Any]]:
    """b/0 has received at its start what a/0 has sent by its checkpoint 2 only."""
    a = [checkpoint("a/0", n, sent={AB: 5 * (n - 1)}, **more) for n in (1, 2)]
    return [*a, checkpoint("b/0", 0, received={AB: 5}, **more)]


def test_initial_states_that_contradict_each_other_leave_no_line(tmp_path: Path) -> None:
    for kind in ("local", "coordinated"):
        folder = history(tmp_path / kind, [*contradicting(kind=kind)[::2], checkpoint("b/0", 1, kind=kind)])
        assert set(hold_up(folder, kind).values()) <= {3, 4, 66}
        ended = cklog("recovery-line", folder, "--at", "b/0=1", "--earliest", "--json")
        assert (ended.code, [f["id"] for f in json.loads(ended.out)["findings"]]) == (4, ["no-consistent-line"])
        assert not line_of(folder).result.consistent
        assert "no-consistent-line" in cklog("recovery-line", folder, "--failed-at", "all").out


def test_a_round_is_held_against_initial_states_too(tmp_path: Path) -> None:
    first = [checkpoint("a/0", 1, sent={AB: 0}), checkpoint("b/0", 0, received={AB: 5})]
    history(tmp_path, [{**record, "kind": "coordinated", "round": 1} for record in first])
    assert {f.id for f in line_of(tmp_path).findings} == {"no-consistent-line"}


def test_survivors_have_a_line_where_the_failure_of_all_has_none(tmp_path: Path) -> None:
    now = checkpoint("a/0", 2, sent={AB: 5}, kind="volatile")
    folder = history(tmp_path, [*contradicting()[::2], now, checkpoint("b/0", 1)], {"failed": ["b"]})
    assert line_of(folder).result.consistent
    assert hold_up(folder)["z-cycles"] == 0
    counts = json.loads(cklog("z-cycles", folder, "--json").out)["result"]["counts"]
    assert (counts["rolled_past"], counts["unusable"]) == (0, 2)  # a/0=1, b/0=1: no stored b/0 goes with any stored a/0


def test_a_path_through_an_initial_state_is_a_breach_with_a_path(tmp_path: Path) -> None:
    bc = "b/0->c/0"
    a = [checkpoint("a/0", n, sent={AB: 5 * (n - 1)}, index=9 + n) for n in (1, 2)]
    b = [checkpoint("b/0", n, sent={bc: 3 * n}, received={AB: 5}, index=20 * n) for n in (0, 1)]
    d = [checkpoint("d/0", n, index=1) for n in (1, 2)]
    history(tmp_path, [*a, *b, checkpoint("c/0", 1, received={bc: 2}, index=1), *d])
    found = json.loads(cklog("z-cycles", tmp_path, "--audit-cic", "--json").out)["result"]
    paths = [(b["end"]["operator"], [m["seq"] for m in b["path"]]) for b in found["breaches"]]
    assert paths == [("c", [4, 1]), ("d", [])]  # d/0 has received nothing, whatever initial states contradict


@pytest.mark.parametrize("fields", [{"status": "incomplete"}, {"kind": "volatile"}, {"form": "delta", "parent": 7}])
def test_the_initial_state_exists_whatever_its_record_says(fields: dict[str, Any], tmp_path: Path) -> None:
    a = checkpoint("a/0", 0, sent={AB: 9}, uri="nowhere", **fields)
    history(tmp_path, [a, checkpoint("b/0", 1, received={AB: 3})])
    hold_up(tmp_path)
    found = [(e.checkpoint, e.state, e.uri) for e in line_of(tmp_path).result.line]
    assert found == [(0, "initial", None)] * 2  # what a record without a checkpoint has sent need not be sent again


def test_a_volatile_record_from_before_a_checkpoint_tells_nothing_of_now(tmp_path: Path) -> None:
    a = [checkpoint("a/0", 1, kind="volatile", received={}), checkpoint("a/0", 2, sent={AB: 2})]
    history(tmp_path, [*a, checkpoint("b/0", 1, received={AB: 1})], {"failed": ["b"]})
    assert line_of(tmp_path).exit_code == 5


# --- nothing, and much of it


def test_a_run_without_a_single_usable_record(tmp_path: Path) -> None:
    conflict = history(tmp_path / "conflict", [checkpoint("a/0", 1, bytes=n) for n in (1, 2)])
    assert set(hold_up(conflict, name="a/0").values()) <= {3, 4, 66}
    early = history(tmp_path / "early", [checkpoint("a/0", 1)])
    for command in (["z-cycles"], ["graph"], ["graph", "--format", "svg"], ["recovery-line", "--failed-at", "all"]):
        assert cklog(command[0], early, *command[1:], "--as-of", "0").code in (4, 66)


def test_many_rounds_that_one_subtask_has_never_taken_part_in(tmp_path: Path) -> None:
    rounds = [checkpoint(f"a/{i}", n, kind="coordinated", round=n) for n in range(1, 3000) for i in range(2)]
    history(tmp_path, rounds, {"operators": [{"name": "never", "parallelism": 500}]})
    answer = line_of(tmp_path)
    assert (answer.exit_code, len(answer.result.notes)) == (4, 4)


def test_of_several_checkpoints_in_one_round_the_first_counts(tmp_path: Path) -> None:
    a = [checkpoint("a/0", n, kind="coordinated", round=1, sent={AB: n}) for n in (1, 2, 3)]
    history(tmp_path, [*a, checkpoint("b/0", 1, kind="coordinated", round=1, received={AB: 1})])
    assert [e.checkpoint for e in line_of(tmp_path).result.line] == [1, 1]


def test_a_round_that_lost_records_make_doubtful_is_not_used(tmp_path: Path) -> None:
    """b/0=2 is lost: by b/0=3 it may have received anything, which the log does not tell."""
    a = [checkpoint("a/0", n, kind="coordinated", sent={AB: n}) for n in (1, 2, 3)]
    b = [checkpoint("b/0", n, kind="coordinated", received={AB: 1} if n == 1 else {}) for n in (1, 3)]
    write(tmp_path, "checkpoints", [*a, *b]).open("ab").write(b"{garbled\n")
    wrong = next(f for f in line_of(tmp_path).findings if f.id == "inconsistent-round")
    assert "may have received more of a/0->b/0 than a/0 had sent, as records are lost" in wrong.message
    moments = json.loads(cklog("recovery-line", tmp_path, "--failed-at", "all", "--json").out)["result"]["moments"]
    assert moments[-1]["rolled_past"] == 3  # a/0=2, a/0=3, b/0=3


def test_compare_is_in_doubt_if_any_of_the_runs_is(tmp_path: Path) -> None:
    whole = [checkpoint("a/0", 1, sent={AB: 1}), checkpoint("b/0", 1, received={AB: 1})]
    doubtful = history(tmp_path / "doubtful", whole, {"failed": ["b"]})
    certain = history(tmp_path / "certain", whole)
    assert [cklog("compare", *pair).code for pair in ((doubtful, certain), (certain, doubtful))] == [5, 5]


# --- anything


def test_anything_ends_as_documented(tmp_path: Path) -> None:
    soups(tmp_path, range(12))


@pytest.mark.slow
def test_much_more_of_anything(tmp_path: Path) -> None:
    soups(tmp_path, range(12, 400))


def soups(tmp_path: Path, seeds: range) -> None:
    for seed in seeds:
        rng = random.Random(seed)
        subtasks, records, manifest = soup(rng)
        folder = history(tmp_path / str(seed), records, manifest)
        operator, number = rng.choice(subtasks)
        hold_up(folder, seed, name=f"{operator}/{number}", number=rng.randrange(3))


Subtasks = list[tuple[str, int]]


def soup(rng: random.Random) -> tuple[Subtasks, list[dict[str, Any]], dict[str, Any] | None]:
    """Records that fit together more or less; half of the time with a manifest."""
    names = rng.sample(NAMES, rng.randint(1, 3))
    subtasks = [(name, i) for name in names for i in range(rng.randint(1, 2))]
    pairs = [(rng.choice(subtasks), rng.choice(subtasks)) for _ in range(rng.randint(0, 5))]
    channels = {
        f"{a}/{i}->{b}/{rng.choice(['', '0'])}{j}{rng.choice(['', '#p'])}": ((a, i), (b, j)) for (a, i), (b, j) in pairs
    }
    mixed: list[str | None] = ["local", "forced", "coordinated", "volatile"]
    kinds: list[str | None] = rng.choice([[None], mixed[2:3], mixed[:3:2], mixed])
    records = [record for subtask in subtasks for record in _records(rng, subtask, channels, kinds)]
    failed = {"failed": [rng.choice(names)]} if rng.random() < 0.5 else {}
    operators = [{"name": name, "parallelism": rng.randint(1, 3)} for name in names]
    time = rng.choice([0, -5, 10**19, True, "x"])
    manifest = {"operators": operators, **failed, "failure_time": time, "channels": [{"channel": c} for c in channels]}
    return subtasks, records, manifest if rng.random() < 0.5 else None


def _records(
    rng: random.Random, subtask: tuple[str, int], channels: dict[str, tuple[Any, Any]], kinds: list[str | None]
) -> Iterator[dict[str, Any]]:
    seen = {("sent", c): 0 for c, (a, _) in channels.items() if a == subtask}
    seen |= {("received", c): 0 for c, (_, b) in channels.items() if b == subtask}
    first = rng.choice([0, 1, 1])
    for n in range(first, first + rng.randint(0, 5)):
        for key in seen:
            seen[key] = seen[key] + rng.choice([0, 1, 2, 5]) if rng.random() < 0.95 else rng.choice([0, 3, BIGGEST])
        marks = {key: min(value, BIGGEST) for key, value in seen.items() if rng.random() < 0.8}
        drawn = {
            "kind": rng.choice(kinds),
            "time": rng.choice([None, n * 1000, n * 1000, 5, -1, BIGGEST]),
            "round": rng.choice([None, n, n, n + 1, BIGGEST]),
            "index": rng.choice([None, n, n, 0, BIGGEST]),
            "status": rng.choice([None] * 9 + ["incomplete"]),
            "form": rng.choice([None] * 5 + ["base", "delta"]),
            "parent": rng.choice([None] * 5 + [0, n, BIGGEST]),
            "bytes": rng.choice([None, 10, BIGGEST]),
            "duration_ms": rng.choice([None, 1.5, -3, 1e300]),
        }
        sides = {side: {c: v for (s, c), v in marks.items() if s == side} for side in ("sent", "received")}
        told = {name: value for name, value in {**drawn, **sides}.items() if value is not None}
        yield {"operator": subtask[0], "subtask": subtask[1], "checkpoint": rng.choice([n] * 9 + [BIGGEST])} | told
