"""`advise extent`: against the simulator, its scales, its choice, its exit codes, what it says."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cklog.advise.extent.answer import ExtentAdvice, Outcome
from cklog.advise.extent.grid import ExtentQuestion, own_u
from cklog.advise.extent.scan import FirstLook, first_look
from cklog.errors import NotFound, UsageError
from cklog.model.verdict import Answer
from cklog.parsers.native.parser import Native
from cklog.policies.check_records import CheckPolicy, CostBenefit, Targets
from cklog.policies.load_time import LoadTime, published
from cklog.render.formats import render
from cklog.run import Options, open_run
from cklog.simulate.cec.operator import Simulation, simulate
from cklog.simulate.cec.tuples import Workload
from cklog.simulate.cec.write import write
from cklog.storage import Root
from tests.conftest import SAMPLES
from tests.program import cklog

EVERY_TUPLE_LEAVES_A_RECORD = Workload(keys=300, count=2, rate=10_000, tuples=20_050)
"""Windows of two tuples: each opens one or closes one, so the log knows the time and number of every tuple."""

PACE: dict[str, float] = {"period_ms": 20.0, "interval_ms": 1e-3, "cost_us": 1e-5}
"""100 checks at most, in 1 ns in all: they shift no tuple into another millisecond."""

ASKED = ExtentQuestion(ci_ms=(1e-3,), cp_ms=(20.0,), cost_us=1e-5, load_rate=35_714.0, replay_rate=10_000.0)


def ask(folder: Path, asked: ExtentQuestion, **options: Any) -> tuple[ExtentAdvice, Answer[Any]]:
    with open_run(str(folder), Options(**options)) as run:
        answer = run.advise_extent("agg1", asked)
    return answer.result, answer


def row(found: ExtentAdvice, name: str) -> Outcome:
    return next(o for o in found.settings if o.setting.name == name)


@pytest.fixture(scope="module")
def unchecked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated log without checks."""
    folder = tmp_path_factory.mktemp("unchecked")
    write(folder, EVERY_TUPLE_LEAVES_A_RECORD, Targets())
    return folder


@pytest.mark.parametrize(
    ("name", "policy", "asked"),
    [
        ("no checks", Targets(**PACE), ASKED),
        ("Q=150", Targets(q=150, **PACE), replace(ASKED, q=("150",))),
        ("Q=320", Targets(q=320, **PACE), replace(ASKED, q=("320",))),
        ("U=400", Targets(u=400, **PACE), replace(ASKED, u=("400",))),
        ("Q=400 U=300", Targets(q=400, u=300, **PACE), replace(ASKED, q=("400",), u=("300",))),
        ("MTBF=1h", CostBenefit(3600, LoadTime.per_record(1 / 35_714), 1e-4, **PACE), ASKED),
    ],
)
def test_a_log_without_checks_shows_what_the_simulator_gives_with_them(
    name: str, policy: CheckPolicy, asked: ExtentQuestion, unchecked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal, not close: checks cost next to nothing here, so the recorded time is that of the simulated run."""
    found, _ = ask(unchecked, asked)
    assert found.warm_up_ms is not None
    first_period = round(found.warm_up_ms / 20)
    warm = (first_period * 200 - 1) / EVERY_TUPLE_LEAVES_A_RECORD.tuples  # the simulator averages from here, too
    monkeypatch.setattr("cklog.simulate.cec.operator.WARM", warm)
    figures = simulate(EVERY_TUPLE_LEAVES_A_RECORD, policy)
    outcome = row(found, name)
    assert outcome.replay is not None
    assert (outcome.extent.mean, outcome.extent.max) == (figures.extent, figures.extent_max)
    assert outcome.replay.mean == figures.replay
    assert outcome.checks_per_second == figures.checks_per_second
    assert (outcome.checks > 0) == (name != "no checks")


def test_what_was_recorded_is_what_the_simulator_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = Targets(q=150, **PACE)
    write(tmp_path, EVERY_TUPLE_LEAVES_A_RECORD, policy)
    found, _ = ask(tmp_path, replace(ASKED, q=("150",)))
    recorded, replayed = row(found, "as recorded"), row(found, "Q=150")
    assert recorded.checks > 0
    assert (recorded.checks, recorded.extent, recorded.replay) == (replayed.checks, replayed.extent, replayed.replay)


def test_an_idle_log_is_passed_without_counting_its_periods_one_by_one(tmp_path: Path) -> None:
    """Ten years between two tuples; a target that cannot be met is tried to the end, as the paper's policy does."""
    rows = [record("open", f"w{i}", 1000 + i, i, i + 1) for i in range(5)]
    rows.append(record("result", "w0", 1000 + 10 * 365 * 86_400_000, 5, 4))
    queue(tmp_path, rows)
    found, _ = ask(tmp_path, replace(ASKED, q=("1", "6"), ci_ms=(5.0,), cost_us=2500.0))  # two checks a round
    periods = 10 * 365 * 86_400_000 // 20
    assert row(found, "Q=6").checks == 0
    assert row(found, "Q=1").checks == 2 * periods
    assert row(found, "Q=1").extent.max == 5


def record(kind: str, window: str, ts: int, number: int | None, n: int) -> dict[str, Any]:
    found = {"type": kind, "window": window, "ts": ts, "open_windows": n, "state": {}, "bytes": 50}
    return found if number is None else found | {"input": number}


def queue(folder: Path, rows: list[dict[str, Any]], operator: str = "agg1") -> None:
    place = folder / "outputs" / operator
    place.mkdir(parents=True)
    (place / "part-0.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_the_scales_of_a_log(tmp_path: Path) -> None:
    """Ten tuples in the first second, thirty in the second, then a second without a record, and the rest of one."""
    stamps = [*range(0, 1000, 100), *range(1000, 2000, 34)[:30], 3000, 3500]
    queue(tmp_path, [record("open", f"w{i}", 5000 + t, i, 1 + i % 2) for i, t in enumerate(stamps)])
    [queued] = Native(Root(str(tmp_path))).queues().values()
    look = first_look(queued, 500)
    assert (look.records, look.opens, look.tuples, look.tuples_per_s) == (42, 42, 41, 30.0)
    assert (look.open_windows, look.record_bytes, look.first_ms, look.last_ms) == (1.5, 50.0, 5000, 8500)


def test_targets_u_surround_the_tuples_that_pass_while_a_window_is_open() -> None:
    assert own_u(FirstLook(tuples=1_000_000, opens=100_000, open_windows=90_000)) == [
        110_000,
        220_000,
        450_000,
        900_000,
    ]
    assert own_u(FirstLook(tuples=None, opens=5, open_windows=3)) == []


def test_rates_and_sizes_say_where_they_are_from(unchecked: Path) -> None:
    found, _ = ask(unchecked, replace(ASKED, load_rate=None, replay_rate=None))
    assert (found.load_rate.value, found.replay_rate.value, found.tuple_bytes.value) == (None, 10_000.0, 100.0)
    assert "Figures 6 and 7" in found.load_rate.source
    assert found.load_points == published().points
    given, _ = ask(unchecked, ASKED)
    assert (given.load_rate.value, given.load_points) == (35_714.0, ())
    found, _ = ask(unchecked, replace(ASKED, tuple_bytes=7.0))
    outcome = row(found, "no checks")
    assert outcome.replay is not None
    assert outcome.replay_bytes is not None
    assert outcome.replay_bytes.max == 7 * outcome.replay.max


def test_an_upstream_that_is_there_tells_the_size_of_a_tuple(tmp_path: Path) -> None:
    queue(tmp_path, [record("open", f"w{i}", 1000 + 50 * i, i, 1) for i in range(20)])
    queue(tmp_path, [{"type": "emit", "ts": i, "bytes": 30 + 2 * (i % 2)} for i in range(20)], "filter1")
    (tmp_path / "job.json").write_text(json.dumps({"channels": [{"channel": "filter1/0->agg1/0"}]}))
    found, _ = ask(tmp_path, ASKED)
    assert found.tuple_bytes.value == 31.0


def test_without_input_numbers_the_replay_is_unknown(tmp_path: Path) -> None:
    queue(tmp_path, [record("open", f"w{i}", 1000 + 50 * i, None, i + 1) for i in range(20)])
    found, answer = ask(tmp_path, ASKED)
    assert not [o for o in found.settings if o.setting.u is not None]
    assert {(o.replay, o.recovery_max) for o in found.settings} == {(None, None)}
    assert any("no input numbers" in note for note in found.notes)
    assert (found.comparisons, answer.exit_code) == ((), 0)
    found, answer = ask(tmp_path, replace(ASKED, max_recovery_s=1e6))
    assert (found.chosen, answer.exit_code) == (None, 3)  # unknown is not short enough


def test_inputs_of_several_channels_count_together(tmp_path: Path) -> None:
    rows = [record("open", f"w{i}", 1000 + 50 * i, None, i + 1) for i in range(20)]
    for i, made in enumerate(rows):
        made["input"] = {"a/0->agg1/0": i // 2, **({"b/0->agg1/0": (i - 1) // 2} if i else {})}
    queue(tmp_path / "two", rows)
    queue(tmp_path / "one", [made | {"input": i} for i, made in enumerate(rows)])
    assert ask(tmp_path / "two", ASKED)[0] == ask(tmp_path / "one", ASKED)[0]


def test_the_choice_and_its_exit_codes(unchecked: Path) -> None:
    asked = replace(ASKED, q=("100", "200", "400"), cost_us=10.0)
    found, answer = ask(unchecked, asked)
    assert (found.chosen, answer.exit_code) == (None, 0)
    marked = [o for o in found.settings if o.pareto]
    assert marked == [
        o
        for o in found.settings
        if o.setting.kind != "recorded"
        and not any(
            (p.checkpointing_ms, p.recovery_max) != (o.checkpointing_ms, o.recovery_max)
            and p.checkpointing_ms <= o.checkpointing_ms
            and (p.recovery_max or 0) <= (o.recovery_max or 0)
            for p in found.settings
            if p.setting.kind != "recorded"
        )
    ]
    worst = row(found, "no checks").recovery_max
    found, answer = ask(unchecked, replace(asked, max_recovery_s=worst))
    assert (row(found, found.chosen or "").checks, answer.exit_code) == (0, 0)
    found, answer = ask(unchecked, replace(asked, max_recovery_s=1e-3))
    assert (found.chosen, answer.exit_code) == (None, 3)
    assert [f.id for f in answer.findings] == ["no-setting"]
    fastest = min(o.recovery_max or 0 for o in found.settings)
    assert f"{fastest:.1f} s" in answer.findings[0].message


def test_the_expected_cost_is_checking_and_crashes(unchecked: Path) -> None:
    found, _ = ask(unchecked, replace(ASKED, q=("200",), mtbf_h=(0.5, 8.0)))
    for outcome in found.settings:
        assert outcome.recovery_mean is not None
        for name, hours in (("0.5h", 0.5), ("8h", 8.0)):
            cost = 3600 * outcome.checkpointing_share + outcome.recovery_mean / hours
            assert outcome.cost_s_per_hour[name] == pytest.approx(cost)
    assert [c.setting for c in found.comparisons] == ["MTBF=0.5h", "MTBF=8h"]
    for compared in found.comparisons:
        assert compared.wins == (compared.cost < compared.other_cost)


def test_damage_is_told_and_refused_under_strict(tmp_path: Path) -> None:
    queue(tmp_path, [record("open", f"w{i}", 1000 + 50 * i, i, i + 1) for i in range(20)])
    path = tmp_path / "outputs" / "agg1" / "part-0.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:5], b"{broken\n", *lines[6:]]))
    found, answer = ask(tmp_path, ASKED)
    assert ({f.id for f in answer.findings}, answer.exit_code) == ({"bad-record"}, 3)
    assert any("cannot be read" in note for note in found.notes)


@pytest.mark.parametrize("field", ["open_windows", "window"])
def test_both_looks_at_a_log_see_the_same_records(field: str, tmp_path: Path) -> None:
    """A record that lacks what only one of them needs, and its input number, is a record to neither, and told."""
    rows = [record("open", f"w{i}", 1000 + 50 * i, i, i + 1) for i in range(20)]
    del rows[0][field], rows[0]["input"]
    queue(tmp_path, rows)
    _, answer = ask(tmp_path, ASKED)
    assert ([f.id for f in answer.findings], answer.exit_code) == (["bad-record"], 3)


@pytest.mark.parametrize(
    "wrong",
    [{"q": ("x",)}, {"u": ("2x",)}, {"q": ("-1",)}, {"cp_ms": (1e9,)}, {"ci_ms": (20.0,)}],
    ids=str,
)
def test_what_cannot_be_tried_is_wrong_usage(wrong: dict[str, Any], unchecked: Path) -> None:
    with pytest.raises(UsageError):
        ask(unchecked, replace(ASKED, **wrong))


def test_questions_that_make_no_sense() -> None:
    for wrong in ({"load_rate": 0.0}, {"replay_rate": -1.0}, {"max_recovery_s": 0.0}, {"mtbf_h": (0.0,)}):
        with pytest.raises(UsageError):
            replace(ASKED, **wrong)


def test_a_queue_that_is_not_there(unchecked: Path) -> None:
    with pytest.raises(NotFound), open_run(str(unchecked)) as run:
        run.advise_extent("agg2", ASKED)


def test_the_table_fits_80_columns(unchecked: Path) -> None:
    _, answer = ask(unchecked, ASKED)
    shown = render(answer, "table")
    rows = [
        line for line in shown.splitlines() if line.startswith(("Q=", "U=", "MTBF=", "no checks", "as rec", "sett"))
    ]
    assert len(rows) > 14
    assert max(map(len, rows)) <= 80


def test_the_command(unchecked: Path) -> None:
    run = cklog(
        "advise", "extent", unchecked, "--operator", "agg1", "--q", "1x,2x", "--q", "500", "--cp", "20", "--ci", "1"
    )
    assert run.code == 0
    assert "Q=500" in run.out
    assert cklog("advise", "extent", unchecked, "--operator", "agg1", "--max-recovery-time", "0.001").code == 3
    found = json.loads(cklog("advise", "extent", unchecked, "--json", "-q").out)
    assert found["schema"] == "cklog.advise-extent/1"
    assert cklog("advise", "extent", unchecked, "--ci", "many").code == 2
    assert cklog("advise", "extent", unchecked / "none").code == 66


def test_the_simulation_is_run_as_the_test_says() -> None:
    """Guards the first test: its checks shift no tuple into another millisecond."""
    steps = list(Simulation(EVERY_TUPLE_LEAVES_A_RECORD, Targets(q=150, **PACE)).steps())
    last = next(step for step in reversed(steps) if len(step.ts))
    tuples, start = EVERY_TUPLE_LEAVES_A_RECORD.tuples, EVERY_TUPLE_LEAVES_A_RECORD.start_ms
    assert int(last.ts[-1]) == start + (tuples - 1) // 10


def test_damage_of_the_upstreams_queue_is_told_wherever_its_last_record_begins(tmp_path: Path) -> None:
    """A size comes from records at its end: a queue that became zeros has none there, and no line feed either."""
    folder = tmp_path / "run"
    shutil.copytree(SAMPLES / "cec-aggregate", folder)
    upstream = folder / "outputs" / "filter1" / "part-00000.jsonl"
    upstream.write_bytes(bytes(upstream.stat().st_size))
    answer = json.loads(cklog("advise", "extent", folder, "--operator", "agg1", "--json").out)
    assert [f["id"] for f in answer["findings"] if f["subject"].startswith("outputs/filter1")] == ["corrupt-file"]
