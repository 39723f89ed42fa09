"""What may go of a run of checkpoint records: every rule, files and folders that hold them, logs, refusals."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.builders.flink_folders import file
from tests.conftest import SAMPLES
from tests.program import cklog

Answer = dict[str, Any]


def write(root: Path, records: list[dict[str, Any]], manifest: dict[str, Any] | None = None, tail: str = "") -> Path:
    (root / "checkpoints").mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (root / "checkpoints" / "all.jsonl").write_text(lines + tail)
    if manifest is not None:
        (root / "job.json").write_text(json.dumps(manifest))
    return root


def taken(number: int, operator: str = "a", **more: Any) -> dict[str, Any]:
    """A checkpoint of OP/0 at 1000 ms times its number."""
    return {"operator": operator, "subtask": 0, "checkpoint": number, "time": 1000 * number, "bytes": 10, **more}


def chain(*forms: int | None, operator: str = "a", **more: Any) -> list[dict[str, Any]]:
    """Checkpoints 1, 2, …: each a base (None), or a delta on that number."""
    parts = [{"form": "base"} if parent is None else {"form": "delta", "parent": parent} for parent in forms]
    return [taken(number, operator, **part, **more) for number, part in enumerate(parts, 1)]


def asked(path: Path, *more: str) -> Answer:
    ended = cklog("retention", path, *more, "--json")
    assert "Traceback" not in ended.err
    answer: Answer = json.loads(ended.out) if ended.out else {"error": ended.err}
    return answer | {"exit": ended.code}


def rules(path: Path, *more: str) -> dict[str, tuple[str, str, str | None]]:
    """Fate, rule and dependant by path."""
    rows = asked(path, *more)["result"]["rows"]
    return {row["path"]: (row["fate"], row["rule"], row["needed_by"]) for row in rows}


def gone(path: Path, *more: str) -> set[str]:
    return {name for name, (fate, _, _) in rules(path, *more).items() if fate == "OBSOLETE"}


def test_checkmates_domino_keeps_what_single_failures_need() -> None:
    """Figure 5 of CheckMate: the line of total failure is (1, 1, 1), and C12, C22 and C32 are on Z-cycles."""
    found = rules(SAMPLES / "domino-cycle")
    assert {name for name, row in found.items() if row[1] == "line"} == {"op1/0=1", "op2/0=1", "op3/0=1"}
    assert {name for name, row in found.items() if row[1] == "useless"} == {"op1/0=2", "op2/0=2", "op3/0=2"}
    assert {name: row[2] for name, row in found.items() if row[1] == "failure"} == {
        "op1/0=3": "op1/0",
        "op2/0=3": "op2/0",
    }


def test_the_newest_the_chain_below_it_and_nothing_else(tmp_path: Path) -> None:
    found = rules(write(tmp_path, chain(None, 1, 2, None, 4, 5)))
    assert found == {
        "a/0=1": ("OBSOLETE", "obsolete", None),
        "a/0=2": ("OBSOLETE", "obsolete", None),
        "a/0=3": ("OBSOLETE", "obsolete", None),
        "a/0=4": ("KEEP", "chain", "a/0=5"),
        "a/0=5": ("KEEP", "chain", "a/0=6"),
        "a/0=6": ("VALID", "line", None),
    }


def test_a_number_a_time_or_a_pin(tmp_path: Path) -> None:
    write(tmp_path, chain(None, 1, None, None, None, None))
    assert gone(tmp_path) == {f"a/0={n}" for n in range(1, 6)}
    assert gone(tmp_path, "--keep", "3") == {f"a/0={n}" for n in range(1, 4)}
    assert gone(tmp_path, "--window", "2s", "--now", "6000") == {"a/0=1", "a/0=2", "a/0=3"}
    assert gone(tmp_path, "--window", "2s", "--now", "1970-01-01T00:00:06Z") == {"a/0=1", "a/0=2", "a/0=3"}
    found = rules(tmp_path, "--pin", "a/0=2", "--keep", "2")
    assert found["a/0=2"] == ("KEEP", "pin", None)
    assert found["a/0=1"] == ("KEEP", "chain", "a/0=2")
    assert found["a/0=5"] == ("KEEP", "keep", None)
    assert found["a/0=6"] == ("VALID", "line", None)


def test_what_has_no_time_may_be_within_the_window(tmp_path: Path) -> None:
    records = chain(None, None, None)
    del records[0]["time"]
    found = rules(write(tmp_path, records), "--window", "1ms", "--now", "99999999")
    assert found["a/0=1"] == ("KEEP", "no-time", None)
    assert found["a/0=2"] == ("OBSOLETE", "obsolete", None)


def test_marked_ones_go_with_their_last_dependant(tmp_path: Path) -> None:
    """US patent 9,471,438, deletion: mark while a dependant exists."""
    write(tmp_path, chain(None, 1, 2, None))
    marks = tmp_path / "marks.txt"
    marks.write_text("# deleted by the job\na/0=1\n\na/0=2  # later\n")
    found = rules(tmp_path, "--keep", "9", "--marked", str(marks))
    assert found["a/0=1"] == ("KEEP", "marked", "a/0=2")
    assert found["a/0=2"] == ("KEEP", "marked", "a/0=3")
    assert found["a/0=3"] == ("KEEP", "keep", None)
    found = rules(tmp_path, "--keep", "9", "--marked", str(marks), "--marked", "a/0=3")
    assert {row[1] for name, row in found.items() if name != "a/0=4"} == {"deletable"}


def test_a_mark_on_what_recovery_needs_is_told(tmp_path: Path) -> None:
    answer = asked(write(tmp_path, chain(None)), "--marked", "a/0=1")
    assert [row["fate"] for row in answer["result"]["rows"]] == ["VALID"]
    assert [f["id"] for f in answer["findings"]] == ["marked-but-needed"]


def test_variables_have_chains_of_their_own(tmp_path: Path) -> None:
    """Checkpoint 3 stores `x` as a delta on 1 and `y` whole: 2 goes, though it is the one before."""
    variables: list[list[dict[str, Any]]] = [
        [{"name": "x", "form": "base"}, {"name": "y", "form": "base"}],
        [{"name": "y", "form": "delta", "parent": 1}],
        [{"name": "x", "form": "delta", "parent": 1}, {"name": "y", "form": "base"}],
    ]
    records = [taken(number, variables=listed) for number, listed in enumerate(variables, 1)]
    found = rules(write(tmp_path, records))
    assert found["a/0=1"] == ("KEEP", "chain", "a/0=3")
    assert found["a/0=2"] == ("OBSOLETE", "obsolete", None)


def test_files_of_another_place_are_not_missed(tmp_path: Path) -> None:
    """The store that relative names begin at may not be the run folder."""
    write(tmp_path, [taken(n, uri=f"ck/a/{n}") for n in (1, 2)])
    assert gone(tmp_path) == {"a/0=1"}
    file(tmp_path / "ck" / "a" / "1", 4)
    assert asked(tmp_path)["result"]["doubt"] == "unproven"


def test_what_was_not_completed_or_cannot_be_restored(tmp_path: Path) -> None:
    records = [
        taken(1, status="incomplete"),
        *chain(None, None, None)[1:],
        taken(4, form="delta", parent=9),
        taken(5, status="incomplete"),
        taken(1, "b", form="delta", parent=7),
        taken(2, "c", form="delta", parent=7),
        taken(3, "c"),
    ]
    found = rules(write(tmp_path, records))
    assert found["a/0=1"] == ("OBSOLETE", "incomplete", None)
    assert found["a/0=3"] == ("VALID", "line", None)
    assert found["a/0=4"] == ("KEEP", "repairable", None)
    assert found["a/0=5"] == ("KEEP", "unfinished", None)
    assert found["b/0=1"] == ("KEEP", "last", None)
    assert found["c/0=2"] == ("KEEP", "broken", None)
    dropped = rules(write(tmp_path, records), "--drop-broken")
    assert dropped.pop("c/0=2") == ("OBSOLETE", "broken", None)
    assert dropped == {name: rule for name, rule in found.items() if name != "c/0=2"}


def test_after_damage_everything_from_the_line_on_stays(tmp_path: Path) -> None:
    channel = "a/0->b/0"
    records = [taken(n, sent={channel: 10 * n}) for n in (1, 2, 3)]
    records += [taken(n, "b", received={channel: 10 * n + 5}) for n in (1, 2, 3)]
    assert gone(write(tmp_path, records)) == {"a/0=1", "a/0=2", "b/0=1"}
    answer = asked(write(tmp_path, records, tail='{"operator": "a", "subt'))
    assert answer["result"]["doubt"] == "damaged"
    assert gone(tmp_path) == {"a/0=1", "a/0=2", "b/0=1"}
    (tmp_path / "checkpoints" / "all.jsonl").write_text(
        "".join(json.dumps(r) + "\n" for r in records if r["checkpoint"] < 3 or r["operator"] == "b") + "{torn\n"
    )
    found = rules(tmp_path)
    assert found["a/0=1"][0] == "OBSOLETE"
    assert {row[0] for name, row in found.items() if name in ("a/0=2", "b/0=2", "b/0=3")} <= {"VALID", "KEEP"}
    assert {trim["below"] for trim in asked(tmp_path)["result"]["trimming"]} == {None}


def passed_on() -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Checkpoints of a, of b, and of c: b passes on what a sends."""
    into, out = "a/0->b/0", "b/0->c/0"
    first = [taken(n, sent={into: 10 * n}) for n in (1, 2, 3)]
    middle = [taken(n, "b", received={into: 10 * n - 5}, sent={out: 10 * n}) for n in (1, 2, 3)]
    last = [taken(n, "c", received={out: 10 * n - 2}) for n in (1, 2, 3, 4)]
    return first, middle, last


def test_of_a_subtask_whose_records_are_all_gone_the_line_may_be_newer(tmp_path: Path) -> None:
    """All from the line on stays that is left without it: what goes would have gone with its records, too."""
    first, middle, last = passed_on()
    whole = gone(write(tmp_path, [*first, *middle, *last]))
    assert not whole & {"c/0=3", "c/0=4"}
    volatile = {"operator": "b", "checkpoint": 9, "kind": "volatile", "sent": {"b/0->c/0": 99}}
    for left in ([*first, *last], [*first, volatile, *last]):
        answer = asked(write(tmp_path, left))
        assert gone(tmp_path) == {"a/0=1", "a/0=2"} <= whole
        assert answer["result"]["doubt"] == "damaged"
        assert [(f["id"], f["subject"]) for f in answer["findings"]] == [("no-stored-checkpoint", "b/0")]
        assert {trim["below"] for trim in answer["result"]["trimming"]} == {None}
    assert gone(write(tmp_path, [*first, *middle])) <= whole


def test_a_subtask_that_only_waits_holds_nothing(tmp_path: Path) -> None:
    """Nobody had received anything of it: without a checkpoint it is where it began, and no line depends on it."""
    records = [taken(n, "c", received={"b/0->c/0": 0}) for n in (1, 2)]
    answer = asked(write(tmp_path, records, {"operators": [{"name": "b"}, {"name": "c"}]}))
    assert (answer["findings"], gone(tmp_path)) == ([], {"c/0=1"})


def test_records_behind_a_link_that_is_not_followed_may_need_everything(tmp_path: Path) -> None:
    first, middle, last = passed_on()
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    elsewhere.mkdir()
    write(run, [*first, *middle[:2], *last])
    (elsewhere / "b.jsonl").write_text("".join(json.dumps(record) + "\n" for record in middle[2:]))
    assert "c/0=3" in gone(run), "what the line needs if b/0=3 is there"
    (run / "checkpoints" / "b.jsonl").symlink_to(elsewhere / "b.jsonl")
    answer = asked(run)
    assert (answer["result"]["doubt"], gone(run)) == ("unproven", set())
    assert "unfollowed-link" in {f["id"] for f in answer["findings"]}
    assert gone(run, "--follow-links") == {"a/0=1", "a/0=2", "b/0=1", "b/0=2", "c/0=1", "c/0=2"}
    (run / "checkpoints" / "b.jsonl").unlink()
    (run / "logs").symlink_to(elsewhere)
    assert gone(run), "what lies beside records hides none"


def test_a_round_that_may_still_complete_stays(tmp_path: Path) -> None:
    kind = {"kind": "coordinated"}
    records = [taken(n, name, round=n, **kind) for name in "ab" for n in (1, 2)] + [taken(3, "a", round=3, **kind)]
    found = rules(write(tmp_path, records))
    assert found["a/0=2"][:2] == found["b/0=2"][:2] == ("VALID", "line")
    assert found["a/0=3"][0] != "OBSOLETE"
    assert found["a/0=1"][:2] == ("OBSOLETE", "obsolete")


def test_a_round_that_may_lack_a_subtask_holds_everything(tmp_path: Path) -> None:
    """Records are lost and no job.json names the subtasks: an older round may be the last complete one."""
    records = [taken(n, "a", round=n, kind="coordinated") for n in (1, 2, 3)]
    answer = asked(write(tmp_path, records, tail='{"operator": "b", "checkpoint": 3, "ro\n'))
    assert (answer["exit"], answer["result"]["doubt"]) == (5, "unproven")
    assert {row["fate"] for row in answer["result"]["rows"]} == {"VALID", "KEEP"}
    assert [trim["below"] for trim in answer["result"]["trimming"]] == []


def test_files_folders_and_what_lies_elsewhere(tmp_path: Path) -> None:
    uris = ["state/1.bin", "file:///srv/run/state/2", "s3://bucket/3", "job.json", "../outside", "state/6.bin"]
    records = [taken(n, uri=uri) for n, uri in enumerate(uris, 1)]
    write(tmp_path, records, {"operators": [{"name": "a"}]})
    for path in ("state/1.bin", "state/2/x", "state/2/deep/y", "state/6.bin", "state/20"):
        file(tmp_path / path, 4)
    maps = ("--map", f"file:///srv/run={tmp_path}")
    assert gone(tmp_path, *maps) == {"state/1.bin", "state/2/x", "state/2/deep/y", "a/0=3", "a/0=4", "a/0=5"}
    script = cklog("retention", tmp_path, *maps, "--format", "script").out
    assert [line.split("  #")[0] for line in script.splitlines() if line.startswith("rm")] == [
        "rm -- ./state/1.bin",
        "rm -- ./state/2/deep/y",
        "rm -- ./state/2/x",
    ]
    assert "# a/0=3: 10 bytes, obsolete; no file of it is known below PATH" in script
    subprocess.run(["sh", "-c", script], cwd=tmp_path, check=True)
    assert (tmp_path / "job.json").exists()
    assert (tmp_path / "state" / "6.bin").exists()
    assert cklog("retention", tmp_path, *maps, "--format", "paths").out.splitlines()[-1] == "a/0=5"


def test_a_file_of_two_checkpoints_stays_for_the_one_that_needs_it(tmp_path: Path) -> None:
    file(tmp_path / "shared", 4)
    write(tmp_path, [taken(n, uri="shared") for n in (1, 2)])
    assert rules(tmp_path) == {"shared": ("VALID", "line", None)}


def test_with_the_lines_own_file_gone_nothing_else_goes(tmp_path: Path) -> None:
    write(tmp_path, [taken(n, uri=f"ck/{n}") for n in (1, 2, 3)])
    for name in ("1", "2"):
        file(tmp_path / "ck" / name, 4)
    answer = asked(tmp_path)
    assert (answer["exit"], answer["result"]["doubt"]) == (3, "unproven")
    assert "missing-state-file" in {f["id"] for f in answer["findings"]}
    assert not gone(tmp_path)


def test_logs_are_needed_from_the_oldest_line_on_that_a_restart_may_go_back_to(tmp_path: Path) -> None:
    channel = "a/0->b/0"
    records = [taken(n, sent={channel: 10 * n}) for n in (1, 2, 3)]
    records += [taken(n, "b", received={channel: 10 * n - 2}) for n in (1, 2, 3)]
    trim = asked(write(tmp_path, records))["result"]["trimming"]
    of_queues = {"log": "channel", "bytes": None, "place": None}
    assert trim == [{"channel": channel, "below": 28, "checkpoint": "b/0=3", **of_queues}]
    trim = asked(tmp_path, "--pin", "b/0=2")["result"]["trimming"]
    assert trim == [{"channel": channel, "below": 18, "checkpoint": "b/0=2", **of_queues}]


def test_out_of_order_channels_are_needed_from_the_first_message_that_was_missing() -> None:
    trims = {t["channel"]: t["below"] for t in asked(SAMPLES / "raw-events")["result"]["trimming"]}
    rows = json.loads(cklog("recovery-line", SAMPLES / "raw-events", "--json").out)["result"]["channels"]
    replayed = [row["replay_from"] for row in rows if row["channel"] == "route/1->pack/0"]
    assert replayed == [27, 30]
    assert trims["route/1->pack/0"] == 27


@pytest.mark.parametrize("sample", ["uncoordinated-join", "checkmate-uncoordinated", "raw-events", "q3-coordinated"])
def test_on_samples_everything_proposed_can_go(sample: str, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(SAMPLES / sample, tmp_path / sample))
    before = json.loads(cklog("recovery-line", copy, "--json").out)["result"]
    rows = asked(copy)["result"]["rows"]
    assert {row["fate"] for row in rows} == {"VALID", "OBSOLETE"}
    for row in rows:
        if row["fate"] == "OBSOLETE" and row["file"]:
            (copy / row["path"]).unlink()
    after = json.loads(cklog("recovery-line", copy, "--json").out)["result"]
    for answer in (before, after):
        for entry in answer["line"]:  # CheckMate numbers a subtask's snapshots by what is there
            entry["checkpoint"] = entry["uri"] or entry["checkpoint"]
    for part in ("line", "channels", "sources"):
        assert after[part] == before[part]


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        (("--window", "7d"), 2, "--window needs --now"),
        (("--now", "5"), 2, "--now without --window"),
        (("--window", "soon", "--now", "5"), 2, "no length of time"),
        (("--keep", "0"), 2, "at least 1"),
        (("--pin", "a/0"), 2, "expected OP/SUB=CKPT"),
        (("--pin", "a/0=7"), 66, "the last ones are 1"),
        (("--pin", "z/0=1"), 66, "subtasks here: a/0"),
        (("--marked", "a/0=7"), 66, "no such checkpoint"),
        (("--marked", "no/such/file"), 66, "no such file"),
        (("--jobs-stopped",), 2, "Flink"),
        (("--job-log", "x"), 2, "Flink"),
    ],
)
def test_options_that_cannot_be_meant(options: tuple[str, ...], code: int, word: str, tmp_path: Path) -> None:
    ended = cklog("retention", write(tmp_path, chain(None)), *options)
    assert (ended.code, ended.out) == (code, "")
    assert word in ended.err


@pytest.mark.parametrize("sample", ["kafka-broker", "kafka-streams-state/state"])
def test_runs_that_no_plan_is_made_of_say_so(sample: str) -> None:
    ended = cklog("retention", SAMPLES / sample)
    assert (ended.code, ended.out) == (66, "")
    assert "hint" in ended.err


@pytest.mark.parametrize(("window", "kept"), [("1s", {0, 1, 2}), ("999ms", {1, 2}), ("1ms", {2})])
def test_a_checkpoint_of_time_0_was_taken_then(window: str, kept: set[int], tmp_path: Path) -> None:
    """0 is a time like any other: it is within the window or not, and nothing is unknown about it."""
    times = {0: 0, 1: 1, 2: 1000}
    write(tmp_path, [{**taken(number + 1), "time": time} for number, time in times.items()])
    found = rules(tmp_path, "--window", window, "--now", "1000")
    assert {number for number in times if found[f"a/0={number + 1}"][0] != "OBSOLETE"} == kept
    assert "no-time" not in {rule for _, rule, _ in found.values()}


def test_a_checkpoint_of_no_time_may_be_within_the_window(tmp_path: Path) -> None:
    write(tmp_path, [{**taken(1), "time": None}, taken(2), taken(3)])
    found = rules(tmp_path, "--window", "1ms", "--now", "3000")
    assert found["a/0=1"][:2] == ("KEEP", "no-time")
    assert found["a/0=2"][0] == "OBSOLETE"
