"""What `cklog impact` makes of the evidence in a run folder: whole, in part, contradictory, damaged."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cklog.engine.scan import Engine
from cklog.errors import NotFound
from cklog.impact.answer import ImpactQuestion
from cklog.impact.model import RECOVERIES, Count, Impact
from cklog.model.verdict import Answer
from cklog.run import Options, Run, open_run
from tests.conftest import SAMPLES
from tests.examples import examples
from tests.program import Ended, cklog

PRECISE, GAP = SAMPLES / "odysseus-precise", SAMPLES / "odysseus-gap"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of a run that left everything that precise recovery needs."""
    return Path(shutil.copytree(PRECISE, tmp_path / "run"))


def edit_job(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    path = folder / "job.json"
    job = json.loads(path.read_text())
    change(job)
    path.write_text(json.dumps(job))


def edit_lines(folder: Path, place: str, change: Callable[[list[dict[str, Any]]], Any]) -> None:
    path = folder / place / "part-00000.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    changed = change(rows)
    path.write_text("".join(json.dumps(row) + "\n" for row in (rows if changed is None else changed)))


def ask(folder: Path, **asked: Any) -> Answer[Any]:
    with open_run(str(folder), Options(engine="local")) as run:
        return run.impact(ImpactQuestion(**asked))


def impact(folder: Path, **asked: Any) -> Impact:
    found: Impact = ask(folder, **asked).result
    return found


def ids(answer: Answer[Any]) -> list[str]:
    return [finding.id for finding in answer.findings]


# The strongest class that the evidence supports, and the piece that the next one lacks


def test_everything_there_is_precise_recovery() -> None:
    found = ask(PRECISE)
    (output,) = found.result.outputs
    assert (output.recovery, output.guarantee, found.exit_code) == ("precise", "exactly-once", 0)


@pytest.mark.parametrize(
    ("without", "recovery", "lacks"),
    [
        ("system", "rollback", "the last element that count sent"),
        ("checkpoints", "stateless-rollback", "the state of count at checkpoint 4"),
        ("channels", "gap", "an input log of in"),
    ],
)
def test_without_a_piece_the_class_is_weaker_and_the_piece_is_named(
    folder: Path, without: str, recovery: str, lacks: str
) -> None:
    if without == "channels":
        shutil.rmtree(folder / "channels")
    elif without == "checkpoints":
        edit_lines(folder, "checkpoints", lambda rows: [row for row in rows if row["operator"] == "in"])
    else:
        edit_lines(folder, "system", lambda rows: [row for row in rows if row["event"] != "element-sent"])
    (output,) = impact(folder).outputs
    assert output.recovery == recovery
    names = [support.recovery for support in output.classes]
    (missing, *_) = output.classes[names.index(recovery) + 1].missing
    assert lacks in missing


def test_a_sink_that_takes_nothing_twice_stands_in_for_the_last_element_sent(folder: Path) -> None:
    edit_lines(folder, "system", lambda rows: [row for row in rows if row["event"] != "element-sent"])
    edit_job(folder, lambda job: job["operators"][1].update(delivery="deduplicates"))
    (output,) = impact(folder).outputs
    assert (output.recovery, output.guarantee) == ("precise", "exactly-once")


def test_an_input_log_with_a_hole_supports_no_replay(folder: Path) -> None:
    edit_lines(folder, "channels", lambda rows: rows[:20] + rows[25:])
    (output,) = impact(folder).outputs
    assert output.recovery == "gap"
    assert "5 elements of in between 240 and 479" in output.classes[1].missing[0]


def test_an_input_log_that_ends_before_the_restart_supports_no_replay(folder: Path) -> None:
    edit_lines(folder, "channels", lambda rows: rows[:100])
    (output,) = impact(folder).outputs
    assert output.recovery == "gap"
    assert "after element 339" in output.classes[1].missing[0]


def test_what_the_log_no_longer_keeps_is_named(folder: Path) -> None:
    edit_job(folder, lambda job: job["channels"][0].update(first_retained=250))
    (output,) = impact(folder).outputs
    assert output.classes[1].missing[0].startswith("elements 240 to 249 of in")


def test_a_weaker_class_that_is_asked_for_is_no_finding_and_a_stronger_one_is(folder: Path) -> None:
    assert ask(folder, recovery="gap").findings == ()
    found = ask(GAP, recovery="precise")
    assert ids(found) == ["checkpoint-unknown", "missing-piece"] or ids(found) == ["missing-piece"]
    assert "an input log of in" in found.findings[0].message


def test_an_older_checkpoint_doubles_more(folder: Path) -> None:
    """A lost checkpoint never makes the answer better."""
    edit_lines(folder, "checkpoints", lambda rows: [row for row in rows if row["checkpoint"] < 4])
    (output,) = impact(folder, recovery="rollback").outputs
    assert output.doubled == Count(90, 90)  # 180 to 270 s, which the log keeps from 240 s on: by the period
    assert not output.supported


def test_a_checkpoint_after_the_crash_is_another_runs(folder: Path) -> None:
    edit_lines(
        folder, "checkpoints", lambda rows: rows.append({**rows[-1], "checkpoint": 5, "round": 5, "time": 420_000})
    )
    assert impact(folder).checkpoint == impact(PRECISE).checkpoint


# The crash and the restart


def test_a_crash_that_nobody_timed_lies_between_bounds(folder: Path) -> None:
    """From the last sign of life, an element sent at 269 s, to the next boot."""
    edit_job(folder, lambda job: job.pop("failure_time"))
    found = ask(folder, recovery="gap")
    crash = found.result.crash
    assert (crash.least, crash.most, crash.source) == (269_000, 360_000, "system log")
    assert ids(found) == ["crash-time-unknown"]
    assert found.exit_code == 5
    assert found.result.outputs[0].missing == Count(0, 91)


def test_the_crash_asked_for_overrules_the_log(folder: Path) -> None:
    found = impact(folder, crash=300_000, recovery="gap")
    assert (found.crash.source, found.outputs[0].missing) == ("--crash", Count(60, 60))


def test_two_boots_without_times_say_nothing(folder: Path) -> None:
    edit_lines(folder, "system", lambda rows: [{k: v for k, v in row.items() if k != "time"} for row in rows])
    found = ask(folder)
    assert (ids(found), found.result, found.exit_code) == (["no-times"], None, 5)
    assert cklog("impact", folder).code == 5
    found = ask(folder, crash=270_000, restart=360_000, recovery="gap")
    assert found.result.outputs[0].missing == Count(90, 90)


def test_a_clock_that_runs_backwards_says_nothing(folder: Path) -> None:
    edit_lines(folder, "system", lambda rows: rows[7].update(time=100_000))
    found = ask(folder)
    assert (ids(found), found.result, found.exit_code) == (["clock-backwards"], None, 5)
    assert found.findings[0].where[0].offset is not None


def test_a_log_that_ends_with_the_crash_leaves_phases_open(folder: Path) -> None:
    edit_lines(folder, "system", lambda rows: rows[:7])
    for recovery in ("gap", "stateless-rollback", "rollback", "precise"):
        found = ask(folder, recovery=recovery)
        assert "not-restarted" in ids(found)
        assert found.result.restart is None
        assert cklog("impact", folder, "--recovery", recovery).code in (0, 3, 5)
    (output,) = impact(folder, recovery="gap").outputs
    assert (output.phases[0].phase, output.phases[0].to) == ("offline", None)
    assert output.phases[0].results.most is None


def test_a_clean_shutdown_is_no_crash(folder: Path) -> None:
    edit_job(folder, lambda job: job.pop("failure_time"))
    edit_lines(folder, "system", lambda rows: rows.insert(7, {"event": "shutdown", "time": 270_000}))
    ended = cklog("impact", folder)
    assert (ended.code, "no crash" in ended.err) == (66, True)


def test_a_restart_before_the_crash_is_refused() -> None:
    ended = cklog("impact", PRECISE, "--crash", "2000", "--restart", "1000")
    assert (ended.code, "not after the crash" in ended.err) == (2, True)


# Recovery tasks


def test_tasks_come_in_the_papers_order_with_their_logged_values() -> None:
    tasks = [(task.task, task.subject) for task in impact(PRECISE).tasks]
    assert tasks == [
        ("detect crash", "system log"),
        ("connect source", "in"),
        ("connect sink", "count"),
        ("install query", "count"),
        ("load state", "count"),
        ("resume input", "in"),
        ("drop duplicates", "count"),
        ("set query state", "count"),
        ("switch to source", "in"),
    ]
    values = {task.task: task.with_ for task in impact(PRECISE).tasks}
    assert values["load state"] == {"checkpoint": 4, "uri": "images/4/count"}
    assert values["resume input"] == {"element": 240}
    assert values["drop duplicates"] == {"ts": 269_000, "equal": 0}
    assert values["switch to source"]["earliest_watermark"] == 360


def test_window_starts_after_gap_recovery_are_computed_from_the_logged_one(folder: Path) -> None:
    edit_job(folder, lambda job: job["operators"][1].update(window={"ms": 60_000, "slide_ms": 7000}))
    (task,) = [task for task in impact(folder, recovery="gap").tasks if task.task == "align windows"]
    assert task.with_ == {"start": 0, "slide": 7000, "next": 364_000}


def test_window_starts_after_a_replay_without_states_follow_the_checkpoint(folder: Path) -> None:
    (task,) = [task for task in impact(folder, recovery="stateless-rollback").tasks if task.task == "align windows"]
    assert task.with_ == {"start": 0, "slide": 1000, "next": 240_000}


def test_a_removed_query_does_not_come_back(folder: Path) -> None:
    edit_lines(folder, "system", lambda rows: rows.insert(6, {"event": "query-removed", "query": "count", "time": 1}))
    found = impact(folder)
    assert found.outputs == ()
    assert found.notes == ("query count was removed before the crash: it does not come back",)


def test_a_query_comes_back_in_its_last_state(folder: Path) -> None:
    paused = {"event": "query-state", "query": "count", "state": "paused", "time": 5}
    edit_lines(folder, "system", lambda rows: rows.insert(6, paused))
    (task,) = [task for task in impact(folder).tasks if task.task == "set query state"]
    assert task.with_ == {"state": "paused"}


# Damage and nonsense


def test_a_damaged_system_log_never_ends_in_a_silent_answer(folder: Path) -> None:
    path = folder / "system" / "part-00000.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"boot"', b'"bo\xffot"', 1))
    ended = cklog("impact", folder)
    assert ended.code in (5, 66)
    assert "Traceback" not in ended.err


def test_a_torn_input_log_supports_less(folder: Path) -> None:
    path = folder / "channels" / "part-00000.jsonl"
    path.write_bytes(path.read_bytes()[:5000])
    found = ask(folder)
    assert found.result.outputs[0].recovery == "gap"
    assert "torn-tail" in ids(found)


def test_logged_elements_whose_times_do_not_rise_are_not_used(folder: Path) -> None:
    edit_lines(folder, "channels", lambda rows: rows[3].update(time=400_000))
    found = ask(folder)
    assert "unordered-elements" in ids(found)
    assert found.result.outputs[0].recovery == "gap"


def test_the_logs_of_parallel_channels_are_not_used(folder: Path) -> None:
    edit_lines(folder, "channels", lambda rows: rows[7].update(channel="in/0->count/1"))
    found = ask(folder)
    assert "parallel-source" in ids(found)
    assert found.result.outputs[0].recovery == "gap"


def test_of_several_crashes_the_last_one_is_taken_and_the_others_are_told(folder: Path) -> None:
    again = [{"event": "boot", "time": 500_000}, {"event": "boot", "time": 600_000}]
    edit_lines(folder, "system", lambda rows: rows.extend(again))
    found = ask(folder, recovery="gap")
    assert (found.result.crash.least, found.result.restart) == (500_000, 600_000)
    assert ids(found) == ["crash-time-unknown", "several-crashes"]
    assert impact(folder, crash=270_000, recovery="gap").outputs[0].missing == Count(90, 90)


@pytest.mark.parametrize(
    "window",
    [{}, {"ms": 0}, {"ms": 5, "tuples": 5}, {"ms": "5"}, {"ms": 5, "slide_ms": 6}, [], None, {"ms": 5, "start": "a"}],
)
def test_a_window_that_cannot_be_read_is_a_finding(folder: Path, window: Any) -> None:
    edit_job(folder, lambda job: job["operators"][1].update(window=window))
    found = ask(folder, recovery="gap")
    assert ids(found) == ["bad-window"]
    assert found.result.outputs[0].convergence == "infinite"


def test_channels_in_a_cycle_are_refused(folder: Path) -> None:
    edit_job(folder, lambda job: job["channels"].append({"channel": "count/0->count/0"}))
    ended = cklog("impact", folder)
    assert (ended.code, "cycle" in ended.err) == (66, True)


@settings(max_examples=examples(80), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["system", "channels", "checkpoints"]), st.data())
def test_lost_lines_never_make_the_answer_more_confident(folder: Path, place: str, data: st.DataObject) -> None:
    """Whatever is dropped, the class is no stronger, and phases of one class are no shorter."""
    original = PRECISE / place / "part-00000.jsonl"
    lines = original.read_text().splitlines(keepends=True)
    dropped = data.draw(st.sets(st.integers(0, len(lines) - 1), min_size=1, max_size=6))
    for other in ("system", "channels", "checkpoints"):
        shutil.copy(PRECISE / other / "part-00000.jsonl", folder / other)
    (folder / place / "part-00000.jsonl").write_text("".join(x for i, x in enumerate(lines) if i not in dropped))
    for recovery in ("", "gap", "stateless-rollback", "rollback"):
        try:
            found = ask(folder, recovery=recovery)
        except NotFound:
            continue
        whole, (now,) = impact(PRECISE, recovery=recovery).outputs[0], found.result.outputs or (None,)
        if now is None or now.recovery != whole.recovery:
            assert now is None or RECOVERIES.index(now.recovery) < RECOVERIES.index(whole.recovery)
            continue
        for phase in whole.phases:
            (same,) = [p for p in now.phases if p.phase == phase.phase]
            assert same.from_ <= phase.from_
            if (recovery, place) == ("stateless-rollback", "checkpoints"):
                continue  # a replay from an older checkpoint is wrong at other times
            assert same.to is None or (phase.to is not None and same.to >= phase.to)
            assert same.results.most is None or same.results.most >= phase.results.least


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=3), st.just([]), st.just({}), st.just([None]), st.floats()
)
FIELDS = ("ts", "time", "equal", "query", "state", "operator", "event", "seq")


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 12), st.sampled_from(FIELDS), VALUES)
def test_no_system_event_ends_in_a_traceback(folder: Path, row: int, field: str, value: Any) -> None:
    shutil.copy(PRECISE / "system" / "part-00000.jsonl", folder / "system" / "part-00000.jsonl")
    edit_lines(folder, "system", lambda rows: rows[row].update({field: value}))
    refused_or_answered(cklog("impact", folder))


MEMBERS = ("kind", "window", "windows", "recovery", "period_ms", "start_ms", "delivery", "query", "parallelism")


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 1), st.sampled_from(MEMBERS), VALUES)
def test_no_manifest_ends_in_a_traceback(folder: Path, row: int, member: str, value: Any) -> None:
    shutil.copy(PRECISE / "job.json", folder / "job.json")
    edit_job(folder, lambda job: job["operators"][row].update({member: value}))
    refused_or_answered(cklog("impact", folder))


def refused_or_answered(ended: Ended) -> None:
    assert ended.code in (0, 3, 5, 65, 66), ended.err
    assert "Traceback" not in ended.err


@pytest.mark.slow
@pytest.mark.spark
def test_both_engines_give_the_same_bytes(spark: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    for recovery in ("gap", "stateless-rollback", "rollback", "precise"):
        local = cklog("impact", PRECISE, "--recovery", recovery, "--json", "--engine", "local")
        with monkeypatch.context() as patched:
            patched.setattr(Run, "engine_for", lambda run, size: spark)
            found = cklog("impact", PRECISE, "--recovery", recovery, "--json", "--split-size", "1000")
        assert found.out == local.out
