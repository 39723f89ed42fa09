"""`advise delta`: the patent's numbers, the method step by step, the answer from a folder, what it refuses to say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cklog.advise.delta.answer import DeltaAdvice, DeltaQuestion, SubtaskDelta
from cklog.advise.delta.costs import ALWAYS_BASE, BEST, METHOD, RECORDED, DeltaOutcome
from cklog.advise.delta.history import records_of_pieces
from cklog.engine.scan import Engine
from cklog.errors import NotFound, UsageError
from cklog.inputs.pieces import PIECES
from cklog.model.verdict import Answer
from cklog.policies.delta_number import (
    REASONS,
    UNLIMITED,
    BenefitMeasure,
    DeltaLimits,
    Prices,
    pays,
    ratio_cap,
    restore_cap,
    scheduled,
)
from cklog.run import Options, Run, open_run
from tests.builders.native import checkpoint, write
from tests.conftest import SAMPLES
from tests.program import cklog


def array(*values: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array(values, np.float64)


def prices(base: list[float], delta: list[float]) -> Prices:
    """One subtask whose sizes in bytes are its times in ms."""
    columns = [np.array(values, np.float64)[:, None] for values in (base, delta)]
    recorded = np.array([[i > 0] for i in range(len(base))])
    return Prices(np.array([len(base)]), recorded, *columns, *columns)


def followed(
    base: list[float], delta: list[float], limits: DeltaLimits = DeltaLimits(), by: BenefitMeasure = "size"
) -> str:
    """The method's checkpoints as a word: B4 a base with D = 4 after it, d a delta."""
    found = scheduled(prices(base, delta), limits, by)
    return "".join("d" if found.delta[k, 0] else f"B{found.number[k, 0]}" for k in range(len(base)))


def test_the_patents_example_of_the_ratio() -> None:
    """Base 400 bytes, deltas of 100 on average, ratio 1.5: 600 bytes of deltas, so D is at most 6."""
    assert 1.5 * 400 == 600
    assert ratio_cap(array(400), array(100), 1.5).tolist() == [6]
    assert ratio_cap(array(400), array(101), 1.5).tolist() == [5]


def test_the_patents_hard_cap_is_the_smaller_of_the_two() -> None:
    """At most 5 consecutive deltas: D rises by one at every base, to 6 by the ratio alone, and to 5 with the cap."""
    base, delta = [400.0] * 60, [100.0] * 60
    free = scheduled(prices(base, delta), DeltaLimits(ratio=1.5), "size").number.max()
    capped = scheduled(prices(base, delta), DeltaLimits(ratio=1.5, max_delta=5), "size").number.max()
    assert (free, capped) == (6, 5)


def test_the_patents_benefit_test() -> None:
    """T_base > T_delta + T_log, T_log = 10 % of T_delta; by size the base against 1.1 times the average delta."""
    assert pays(array(110.1, 110.0, 100.0), array(100.0, 100.0, 100.0)).tolist() == [True, False, False]


def test_the_patents_bound_on_the_time_to_restore() -> None:
    """1.2 * 0.4 s + D * 1.2 * 0.05 s <= 1.0 s: D = 8."""
    assert restore_cap(array(0.4), array(0.05), 1.0).tolist() == [8]
    assert 1.2 * 0.4 + 8 * 1.2 * 0.05 <= 1.0 < 1.2 * 0.4 + 9 * 1.2 * 0.05


def test_a_bound_that_is_met_exactly_is_kept() -> None:
    """0.3 / 0.1 is 2.9999999999999996 in floating point, and is 3."""
    assert restore_cap(array(0.5), array(0.25), 0.9).tolist() == [1]
    assert ratio_cap(array(0.3), array(0.1), 1.0).tolist() == [3]
    assert restore_cap(array(0.5, 0.6), array(0.0, np.nan), 0.6).tolist() == [UNLIMITED, -1]


def test_d_starts_at_one_and_rises_by_one_while_deltas_pay() -> None:
    assert followed([100] * 12, [10] * 12) == "B1dB2ddB3dddB4dd"


def test_d_falls_by_one_while_they_do_not_and_is_at_most_what_the_ratio_allows() -> None:
    base, delta = [100.0] * 16, [1.0] * 6 + [200.0] * 10
    assert followed(base, delta, DeltaLimits(ratio=100)) == "B1dB2ddB3dddB2ddB1dB0B0"


def test_at_zero_every_checkpoint_is_full_until_the_probe_which_turns_tracking_on_again() -> None:
    """Three full checkpoints in a row, then one delta; it is as large as before, so the next base sets D to 0."""
    limits = DeltaLimits(probe_after=3)
    assert followed([100] * 12, [100] * 12, limits) == "B1dB0B0B1dB0B0B1dB0B0"
    changed = [100.0] * 5 + [10.0] * 7
    assert followed([100] * 12, changed, limits) == "B1dB0B0B1dB2ddB3dd"


def test_the_average_weighs_recent_deltas_more() -> None:
    """After deltas of 10, 10 and 40 it is 25: a base of 28 pays, one of 27 does not (1.1 * 25 = 27.5)."""
    for last, number in ((28.0, 3), (27.0, 1)):
        found = scheduled(prices([100, 0, 100, 0, 0, last], [0, 10, 0, 10, 40, 0]), DeltaLimits(ratio=9), "size")
        assert found.number[5, 0] == number


def test_the_restore_bound_holds_for_the_start_and_the_probe_as_far_as_the_base_tells() -> None:
    assert followed([100] * 6, [10] * 6, DeltaLimits(max_restore_ms=100), "time") == "B0" * 6
    found = scheduled(prices([100] * 6, [10] * 6), DeltaLimits(max_restore_ms=132), "time")
    assert [REASONS[why] for why in found.reason[[0, 2, 4], 0]] == ["start", "max-restore-time", "max-restore-time"]
    assert found.number[[0, 2, 4], 0].tolist() == [1, 1, 1]


@pytest.mark.parametrize("limits", [DeltaLimits(ratio=0), DeltaLimits(max_delta=0)])
def test_no_deltas_at_all_may_be_asked_for(limits: DeltaLimits) -> None:
    assert followed([100] * 14, [1] * 14, limits) == "B0" * 14


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"ratio": -1.0}, "--ratio -1"),
        ({"ratio": float("nan")}, "--ratio nan"),
        ({"ratio": 1e300}, "--ratio 1e[+]300"),
        ({"max_delta": -1}, "--max-delta -1"),
        ({"max_restore_ms": 0.0}, "--max-restore-time 0"),
        ({"probe_after": 1}, "--probe-after 1"),
    ],
)
def test_bounds_that_make_no_sense(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        DeltaLimits(**wrong)


def records(name: str, forms: str, **more: Any) -> list[dict[str, Any]]:
    """A subtask's checkpoints from a word of B and d: bases of 1000 bytes in 100 ms, deltas of 100 in 10."""
    return [
        checkpoint(name, n, form="base" if form == "B" else "delta", **cost(form), **more)
        | ({} if form == "B" else {"parent": n - 1})
        for n, form in enumerate(forms, 1)
    ]


def cost(form: str) -> dict[str, Any]:
    return {"bytes": 1000, "duration_ms": 100.0} if form == "B" else {"bytes": 100, "duration_ms": 10.0}


def ask(folder: Path, *rows: dict[str, Any], **asked: Any) -> tuple[DeltaAdvice, Answer[Any]]:
    write(folder, "checkpoints", list(rows))
    with open_run(str(folder), Options(engine="local")) as run:
        answer = run.advise_delta(DeltaQuestion(**{"limits": DeltaLimits(), **asked}))
    return answer.result, answer


def of(row: SubtaskDelta, schedule: str) -> DeltaOutcome:
    return next(outcome for outcome in row.outcomes if outcome.schedule == schedule)


def test_what_was_done_costs_what_the_records_say_and_is_no_estimate(tmp_path: Path) -> None:
    found, answer = ask(tmp_path, *records("a/0", "BdBdBd"))
    row = found.subtasks[0]
    done = of(row, RECORDED)
    assert (done.bases, done.deltas, done.estimated, done.bytes, done.checkpoint_ms) == (3, 3, 0, 3300, 330.0)
    assert (done.logging_ms, done.worst_restore_ms) == (3.0, 132.0)  # 10 % of 30 ms; 1.2 * (100 + 10)
    own = of(row, METHOD)  # B1 d B2 d d B3
    assert (own.bases, own.deltas, own.estimated, own.bytes, own.worst_restore_ms) == (3, 3, 2, 3300, 144.0)
    every = of(row, ALWAYS_BASE)
    assert (every.number, every.bytes, every.checkpoint_ms, every.estimated) == (0, 6000, 600.0, 3)
    best = of(row, BEST)
    assert (best.number, best.bytes, best.checkpoint_ms) == (5, 1500, 150.0)
    assert [(s.against, s.bytes) for s in row.saved] == [(RECORDED, 0), (ALWAYS_BASE, 2700), (BEST, -1800)]
    assert (row.number, row.tracking, answer.exit_code) == (3, True, 0)
    assert [(c.checkpoint, c.number, c.reason) for c in row.over_time] == [
        (1, 1, "start"),
        (3, 2, "pays"),
        (6, 3, "pays"),
    ]


def test_sums_are_by_operator_and_in_all(tmp_path: Path) -> None:
    found, _ = ask(tmp_path, *records("a/0", "BdBd"), *records("a/1", "Bddd"), *records("b/0", "BBBd"))
    assert [(row.name, row.subtasks, row.checkpoints) for row in found.operators] == [("a", 2, 8), ("b", 1, 4)]
    assert [row.outcomes[0].bytes for row in (*found.operators, found.total)] == [2200 + 1300, 3100, 6600]
    assert found.total.outcomes[0].worst_restore_ms == pytest.approx(1.2 * 130)
    only, _ = ask(tmp_path, *records("a/0", "BdBd"), *records("b/0", "BBBd"), operator="b")
    assert [row.operator for row in only.subtasks] == ["b"]


@pytest.mark.parametrize(
    ("rows", "asked", "missing"),
    [
        (records("a/0", "BBBB"), {}, "delta checkpoints"),
        (records("a/0", "dddd"), {}, "base checkpoints"),
        ([checkpoint("a/0", 1, form="base"), checkpoint("a/0", 2, form="delta")], {}, "checkpoints with a size or"),
        ([{**r, "duration_ms": None} for r in records("a/0", "BdBd")], {"by": "time"}, "durations"),
        ([{**r, "bytes": None} for r in records("a/0", "BdBd")], {"by": "size"}, "sizes"),
        (
            [{**r, "duration_ms": None} for r in records("a/0", "BdBd")],
            {"by": "size", "limits": DeltaLimits(max_restore_ms=50.0)},
            "durations",
        ),
        ([checkpoint("a/0", n, bytes=10, duration_ms=1.0) for n in (1, 2)], {}, "delta checkpoints"),
    ],
)
def test_where_the_history_lacks_something_it_is_named_and_nothing_is_guessed(
    rows: list[dict[str, Any]], asked: dict[str, Any], missing: str, tmp_path: Path
) -> None:
    found, answer = ask(tmp_path, *rows, **asked)
    row = found.subtasks[0]
    assert row.missing
    assert row.missing[0].startswith(missing)
    assert (row.number, row.outcomes, row.saved, row.over_time) == (None, (), (), ())
    assert (found.total.subtasks, found.total.outcomes) == (0, ())
    assert answer.exit_code == 5
    assert [f.id for f in answer.findings if f.id == "incomplete-delta-history"]


def test_by_size_where_a_history_has_no_durations_and_by_time_otherwise(tmp_path: Path) -> None:
    timed = records("a/0", "BdBd")
    assert ask(tmp_path, *timed)[0].by == "time"
    found, answer = ask(tmp_path, *timed, *({**r, "duration_ms": None} for r in records("b/0", "BdBd")))
    assert found.by == "size"
    assert [of(row, METHOD).checkpoint_ms is None for row in found.subtasks] == [False, True]
    assert found.total.outcomes[1].checkpoint_ms is None  # of one of two: no sum
    assert answer.exit_code == 0


def test_checkpoints_that_cannot_be_priced_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = records("a/0", "dBdBddd")
    rows[4] |= {"bytes": None}
    rows[5] |= {"parent": 4}  # two checkpoints of changes
    rows += [checkpoint("a/0", 8, status="incomplete", bytes=1, duration_ms=1.0)]
    rows += [checkpoint("a/0", 9, kind="volatile", bytes=1, duration_ms=1.0)]
    rows += [checkpoint("a/0", 0, bytes=1, duration_ms=1.0)]
    found, answer = ask(tmp_path, *rows)
    assert (found.subtasks[0].checkpoints, found.subtasks[0].left_out) == (4, 3)
    assert of(found.subtasks[0], RECORDED).bytes == 2200
    told = next(f for f in answer.findings if f.id == "unpriced-checkpoints")
    assert "a/0: 3 checkpoints left out" in told.message
    assert answer.exit_code == 0


def test_a_delta_after_one_that_failed_is_on_the_last_that_was_stored(tmp_path: Path) -> None:
    rows = records("a/0", "Bdd")
    rows[1] |= {"status": "incomplete"}
    rows[2] |= {"parent": 1}
    found, _ = ask(tmp_path, *rows)
    assert (found.subtasks[0].checkpoints, found.subtasks[0].left_out) == (2, 0)


def test_a_bound_that_no_d_keeps_is_a_finding_of_its_own(tmp_path: Path) -> None:
    found, answer = ask(tmp_path, *records("a/0", "BdBd"), limits=DeltaLimits(max_restore_ms=119.0))
    assert [outcome.schedule for outcome in found.subtasks[0].outcomes] == [RECORDED, METHOD, ALWAYS_BASE]
    assert (found.subtasks[0].number, found.subtasks[0].tracking) == (0, False)
    assert answer.exit_code == 3
    assert [f.id for f in answer.findings] == ["no-setting"]


def test_deltas_that_grow_break_the_bound_and_it_is_said(tmp_path: Path) -> None:
    rows = records("a/0", "BdBdd")
    rows[4] |= {"duration_ms": 90.0}
    _, answer = ask(tmp_path, *rows, limits=DeltaLimits(max_restore_ms=150.0))
    told = next(f for f in answer.findings if f.id == "restore-bound-broken")
    assert "up to 0.240 s, more than 0.15 s" in told.message  # 1.2 * (100 + 10 + 90)
    assert (told.severity, answer.exit_code) == ("warning", 0)


def test_huge_sizes_do_not_overflow(tmp_path: Path) -> None:
    rows = [{**r, "bytes": 1 << 53} for r in records("a/0", "Bd" * 40)]
    found, _ = ask(tmp_path, *rows)
    assert of(found.subtasks[0], RECORDED).bytes == 80 << 53
    beyond = [{**r, "bytes": 1 << 62} for r in rows]
    found, _ = ask(tmp_path, *beyond)
    assert of(found.subtasks[0], RECORDED).bytes is None


def test_folders_without_checkpoint_records() -> None:
    for sample in ("spark-wordcount", "flink-orders", "kafka-broker"):
        with open_run(str(SAMPLES / sample)) as run, pytest.raises(NotFound, match="no records of base and delta"):
            run.advise_delta(DeltaQuestion(DeltaLimits()))


def test_records_that_occur_twice_count_once(tmp_path: Path) -> None:
    rows = records("a/0", "BdBd")
    once, _ = ask(tmp_path / "once", *rows)
    assert ask(tmp_path / "twice", *rows, *rows)[0] == once


def test_records_that_disagree_are_not_used_and_it_is_an_error(tmp_path: Path) -> None:
    rows = records("a/0", "BdBd")
    found, answer = ask(tmp_path, *rows, {**rows[3], "bytes": 7})
    assert (found.subtasks[0].checkpoints, answer.exit_code) == (3, 3)
    told = next(f for f in answer.findings if f.id == "conflicting-checkpoint")
    assert told.where


def test_damage_is_told_beside_the_answer(tmp_path: Path) -> None:
    write(tmp_path, "checkpoints", records("a/0", "BdBd"))
    (file,) = (tmp_path / "checkpoints").iterdir()
    file.write_bytes(file.read_bytes() + b"nonsense\n")
    assert cklog("advise", "delta", tmp_path).code == 3
    assert cklog("advise", "delta", tmp_path, "--strict").code == 65


@pytest.mark.parametrize("word", ["max-delta", "probe-after"])
def test_huge_bounds_are_none(word: str) -> None:
    plain = json.loads(cklog("advise", "delta", SAMPLES / "incremental", "--operator", "count", "--json").out)
    huge = cklog("advise", "delta", SAMPLES / "incremental", "--operator", "count", f"--{word}", "9" * 30, "--json")
    assert json.loads(huge.out)["result"]["subtasks"] == plain["result"]["subtasks"]


@pytest.mark.spark
def test_spark_gives_the_same_bytes(spark: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Records in any order, one that disagrees, damage, and splits of a few records."""
    rows = records("a/0", "BddBdBd") + records("b/1", "BdBBd")
    write(tmp_path, "checkpoints", [*rows[::-1], {**rows[3], "bytes": 7}])
    (file,) = (tmp_path / "checkpoints").iterdir()
    file.write_bytes(file.read_bytes() + b"nonsense\n")
    command = ("advise", "delta", tmp_path, "--json", "--split-size", "300")
    local = cklog(*command)
    monkeypatch.setattr(Run, "engine_for", lambda _run, _size: spark)
    assert (cklog(*command).out, local.code) == (local.out, 3)


def test_sizes_that_no_double_holds_are_rounded() -> None:
    """A wrong bit in a size of some bytes: the fuzzing harness met it after 712,416 cases."""
    size = (1 << 58) + 8
    rows = [{"operator": "a", "subtask": 0, "store": "s", "version": 1, "form": "base", "bytes": size, "path": "p"}]
    records = records_of_pieces(pa.Table.from_pylist(rows, PIECES))
    assert records.table["bytes"].to_pylist() == [float(size)]


def test_a_store_by_key_has_sizes_and_no_times() -> None:
    """Bytes of `1 NON` and all of `1 INCR`, and so on; what lacks a part is left out."""
    with open_run(str(SAMPLES / "patent-store"), Options(engine="local")) as run:
        answer = run.advise_delta(DeltaQuestion(DeltaLimits(ratio=9)))
    figure, totals = answer.result.subtasks
    assert answer.result.by == "size"
    assert (figure.checkpoints, figure.left_out) == (3, 0)
    assert of(figure, RECORDED).bytes == (31 + 12) + (56 + 12 + 13) + (72 + 13 + 13)
    assert (of(figure, RECORDED).bases, of(figure, RECORDED).deltas) == (1, 2)
    assert (totals.checkpoints, totals.left_out) == (6, 2)  # 2 lacks its NON, 5 a part of its INCR
    assert of(totals, RECORDED).checkpoint_ms is None


def test_the_command_on_the_sample(tmp_path: Path) -> None:
    ended = cklog("advise", "delta", SAMPLES / "incremental", "--json")
    assert ended.code == 0
    result = json.loads(ended.out)["result"]
    assert [(row["operator"], row["number"]) for row in result["subtasks"]] == [
        ("count", 9),
        ("count", 9),
        ("join", 5),
        ("total", None),
        ("window", 0),
    ]
    for form, words in {"table": "join/0", "md": "join/0", "csv": "join,0,48,0,5,", "jsonl": '"best_d": 1'}.items():
        assert words in cklog("advise", "delta", SAMPLES / "incremental", "--format", form, "-q").out
    assert cklog("advise", "delta", SAMPLES / "incremental", "--operator", "nobody").code == 66
    assert cklog("advise", "delta", SAMPLES / "incremental", "--ratio", "-1").code == 2
