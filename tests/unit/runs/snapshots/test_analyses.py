"""What is restored, of which job, and from where: every verdict, lineages, and every way to ask."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import flink as fb
from tests.builders.flink_folders import (
    HEIR,
    OLD,
    ORIGIN,
    THIRD,
    Snapshot,
    assigned,
    checkpoint,
    file,
    job,
    metadata,
    savepoint,
    torn,
    uri,
)
from tests.program import cklog
from tests.reading.flink_folders import asked, ids, restored, verdicts


def test_the_newest_whole_checkpoint_is_restored(tmp_path: Path) -> None:
    job(tmp_path)
    torn(tmp_path, OLD, 8, {"x": 3})
    answer = asked("recovery-line", tmp_path, root=tmp_path)
    assert answer["exit"] == 0
    assert restored(answer) == {OLD: uri(OLD, "chk-7")}
    assert verdicts(answer)[f"{OLD}/chk-8"] == "no-metadata"
    assert answer["result"]["line"][0]["rolled_back"] is False
    assert answer["result"]["rolled_back"] == []
    assert answer["result"]["details"]["restore"][0]["command"] == f"flink run -s {uri(OLD, 'chk-7')}"


def test_every_verdict(tmp_path: Path) -> None:
    job(tmp_path, numbers=(1, 2, 3, 4, 5, 6, 7))
    folder = tmp_path / OLD
    (folder / "chk-7" / "p7").unlink()
    (folder / "chk-6" / "p6").write_bytes(b"y" * 17)
    (folder / "chk-5" / "_metadata").write_bytes((folder / "chk-5" / "_metadata").read_bytes()[:-1])
    (folder / "chk-4" / "_metadata").write_bytes(bytes.fromhex("4960672d00000063"))
    outside = Snapshot({"../elsewhere/shared/z": 5})
    (folder / "chk-3" / "_metadata").write_bytes(metadata(outside, 3))
    (folder / "chk-2" / "_metadata").unlink()
    answer = asked("recovery-line", tmp_path, root=tmp_path)
    assert verdicts(answer) == {
        f"{OLD}/chk-1": "restorable",
        f"{OLD}/chk-2": "no-metadata",
        f"{OLD}/chk-3": "unchecked",
        f"{OLD}/chk-4": "unknown-version",
        f"{OLD}/chk-5": "corrupt",
        f"{OLD}/chk-6": "size-mismatch",
        f"{OLD}/chk-7": "missing-state-file",
    }
    assert answer["exit"] == 5  # chk-3 may be whole
    state = {row["snapshot"]: row["state_bytes"] for row in answer["result"]["details"]["snapshots"]}
    assert {state[f"{OLD}/chk-{number}"] for number in (2, 4, 5)} == {0}, "of what cannot be read nothing is counted"
    assert restored(answer) == {OLD: uri(OLD, "chk-1")}
    expected = {"missing-state-file", "size-mismatch", "corrupt-metadata", "unknown-version", "files-outside"}
    assert ids(answer) == {*expected, "no-metadata", "contents-not-checked"}
    assert [past["checkpoint"] for past in answer["result"]["rolled_back"]] == [7, 6, 5, 4, 3]


@pytest.mark.parametrize("damage", ["deleted", "shorter", "longer"])
def test_a_file_is_missed_by_exactly_those_that_name_it(tmp_path: Path, damage: str) -> None:
    job(tmp_path)
    names = {f"{OLD}/shared/s{n}": {f"{OLD}/chk-{c}" for c in (5, 6, 7) if n in (c - 1, c)} for n in (4, 5, 6, 7)} | {
        f"{OLD}/chk-{c}/{name}": {f"{OLD}/chk-{c}"} for c in (5, 6, 7) for name in (f"p{c}", "_metadata")
    }
    for path, named_by in names.items():
        whole = (tmp_path / path).read_bytes()
        if damage == "deleted":
            (tmp_path / path).unlink()
        else:
            (tmp_path / path).write_bytes(whole[:-1] if damage == "shorter" else whole + b"\0")
        answer = asked("recovery-line", tmp_path, root=tmp_path)
        broken = {name for name, verdict in verdicts(answer).items() if verdict != "restorable"}
        assert broken == named_by, path
        left = sorted({f"{OLD}/chk-{c}" for c in (5, 6, 7)} - broken)
        assert restored(answer) == {OLD: uri(left[-1]) if left else None}
        (tmp_path / path).write_bytes(whole)


def test_segments_and_changelogs_may_be_longer_than_what_is_used(tmp_path: Path) -> None:
    segment = fb.segment(uri(OLD, "taskowned", "m"), 10, 20, 0)
    change = fb.segment(uri(OLD, "shared", "n"), 0, 7, 1)
    checkpoint(tmp_path, OLD, 1, Snapshot(other=(segment, change)))
    merged, other = file(tmp_path / OLD / "taskowned" / "m", 30), file(tmp_path / OLD / "shared" / "n", 7)
    for sizes, verdict in (((30, 7), "restorable"), ((31, 900), "restorable"), ((29, 7), "size-mismatch")):
        for path, size in zip((merged, other), sizes, strict=True):
            path.write_bytes(b"x" * size)
        assert verdicts(asked("recovery-line", tmp_path, root=tmp_path)) == {f"{OLD}/chk-1": verdict}
    merged.unlink()
    assert verdicts(asked("recovery-line", tmp_path, root=tmp_path)) == {f"{OLD}/chk-1": "missing-state-file"}


def test_a_part_that_is_named_twice_is_counted_once(tmp_path: Path) -> None:
    def part(start: int, size: int) -> fb.Built:
        return fb.segment(uri(OLD, "taskowned", "m"), start, size, 0)

    parts = [part(0, 10), part(0, 10), part(10, 7), part(10, 7), part(10, 7)]
    checkpoint(tmp_path, OLD, 1)
    checkpoint(tmp_path, OLD, 2, Snapshot(other=parts))
    file(tmp_path / OLD / "taskowned" / "m", 17)
    rows = asked("recovery-line", tmp_path, root=tmp_path)["result"]["details"]["snapshots"]
    state = {row["snapshot"]: row["state_bytes"] for row in rows}
    assert state[f"{OLD}/chk-2"] - state[f"{OLD}/chk-1"] == 10 + 7


def test_only_of_a_moved_folder_it_is_said_that_a_restore_may_not_find_its_files(tmp_path: Path) -> None:
    job(tmp_path)
    for root, said in ((tmp_path, False), (None, True)):
        (run,) = asked("recovery-line", tmp_path, root=root)["result"]["runs"]
        assert ("a checkpoint that was moved fails" in (run["note"] or "")) == said


def test_two_sizes_of_one_file_cannot_both_be_true(tmp_path: Path) -> None:
    name = uri(OLD, "shared", "s")
    checkpoint(tmp_path, OLD, 1, Snapshot(other=(fb.absolute(name, 5), fb.absolute(name, 6))))
    file(tmp_path / OLD / "shared" / "s", 6)
    answer = asked("recovery-line", tmp_path, root=tmp_path)
    assert verdicts(answer) == {f"{OLD}/chk-1": "size-mismatch"}
    assert answer["result"]["details"]["snapshots"][0]["reasons"] == [
        {"file": f"{OLD}/shared/s", "needed_bytes": 5, "bytes": 6}
    ]


def test_a_size_that_no_file_has_does_not_wrap_around(tmp_path: Path) -> None:
    most = 2**63 - 1
    checkpoint(tmp_path, OLD, 1, Snapshot(other=(fb.segment(uri(OLD, "shared", "s"), most, most, 1),)))
    file(tmp_path / OLD / "shared" / "s", 6)
    assert verdicts(asked("recovery-line", tmp_path, root=tmp_path)) == {f"{OLD}/chk-1": "size-mismatch"}


def test_inlined_state_needs_no_file(tmp_path: Path) -> None:
    checkpoint(tmp_path, OLD, 1, Snapshot(other=(fb.inline(b"x" * 9, uri(OLD, "chk-1", "not-there")), fb.empty())))
    answer = asked("recovery-line", tmp_path)
    assert (answer["exit"], verdicts(answer)) == (0, {f"{OLD}/chk-1": "restorable"})


# Lineage


def test_an_heir_stands_for_the_job_that_it_claimed(tmp_path: Path) -> None:
    job(tmp_path)
    checkpoint(tmp_path, HEIR, 12, Snapshot({f"{OLD}/shared/s7": 107, f"{HEIR}/shared/a": 9}))
    answer = asked("recovery-line", tmp_path, root=tmp_path)
    assert restored(answer) == {HEIR: uri(HEIR, "chk-12")}
    (tmp_path / HEIR / "shared" / "a").unlink()
    answer = asked("recovery-line", tmp_path, root=tmp_path)
    assert restored(answer) == {HEIR: uri(OLD, "chk-7")}
    assert answer["result"]["line"][0]["rolled_back"] is True
    (tmp_path / OLD / "shared" / "s7").unlink()
    assert restored(asked("recovery-line", tmp_path, root=tmp_path)) == {HEIR: uri(OLD, "chk-6")}


def test_a_job_that_went_on_beside_its_heir_stands_for_itself(tmp_path: Path) -> None:
    job(tmp_path, numbers=(5, 20))
    checkpoint(tmp_path, HEIR, 12, Snapshot({f"{OLD}/shared/s5": 105}))
    answer = asked("recovery-line", tmp_path, root=tmp_path)
    assert restored(answer) == {OLD: uri(OLD, "chk-20"), HEIR: uri(HEIR, "chk-12")}
    (tmp_path / HEIR / "chk-12" / "_metadata").write_bytes(b"")
    (tmp_path / OLD / "chk-20" / "p20").unlink()
    assert restored(asked("recovery-line", tmp_path, root=tmp_path))[OLD] == uri(OLD, "chk-5")


def test_two_heirs_of_one_job(tmp_path: Path) -> None:
    job(tmp_path)
    for heir in (HEIR, THIRD):
        checkpoint(tmp_path, heir, 12, Snapshot({f"{OLD}/shared/s7": 107}, {f"p-{heir}": 1}))
    (tmp_path / THIRD / "chk-12" / f"p-{THIRD}").unlink()
    answer = asked("recovery-line", tmp_path, root=tmp_path)
    assert restored(answer) == {HEIR: uri(HEIR, "chk-12"), THIRD: uri(OLD, "chk-7")}


def test_a_savepoint_is_of_the_job_that_it_is_named_after(tmp_path: Path) -> None:
    job(tmp_path)
    name = f"savepoint-{OLD[:6]}-0123456789ab"
    savepoint(tmp_path, name, 9, Snapshot(own={"q": 4}, savepoint=True))
    answer = asked("recovery-line", tmp_path, root=tmp_path)
    assert restored(answer) == {OLD: uri(name)}
    (tmp_path / name / "q").unlink()
    assert restored(asked("recovery-line", tmp_path, root=tmp_path)) == {OLD: uri(OLD, "chk-7")}


def test_a_savepoint_of_an_old_job_serves_its_heir(tmp_path: Path) -> None:
    job(tmp_path)
    name = f"savepoint-{OLD[:6]}-0123456789ab"
    savepoint(tmp_path, name, 9, Snapshot(own={"q": 4}, savepoint=True))
    checkpoint(tmp_path, HEIR, 12, Snapshot({f"{OLD}/shared/s7": 107}, {"p": 1}))
    (tmp_path / HEIR / "chk-12" / "p").unlink()
    assert restored(asked("recovery-line", tmp_path, root=tmp_path)) == {HEIR: uri(name)}


def test_a_savepoint_of_nobody_stands_for_itself(tmp_path: Path) -> None:
    name = "savepoint-ffffff-0123456789ab"
    savepoint(tmp_path, name, 9, Snapshot(own={"q": 4}, savepoint=True))
    job(tmp_path)
    answer = asked("recovery-line", tmp_path, root=tmp_path)
    assert restored(answer) == {OLD: uri(OLD, "chk-7"), name: uri(name)}
    answer = asked("recovery-line", tmp_path / name)
    assert restored(answer) == {name: str(tmp_path / name)}


def test_jobs_that_name_files_of_each_other_in_a_ring(tmp_path: Path) -> None:
    """Nobody writes this; what has the oldest snapshots came first, and no job is left out."""
    for count, standing in ((2, {HEIR: 6}), (3, {HEIR: 6, THIRD: 7})):
        root = tmp_path / str(count)
        names = (OLD, HEIR, THIRD)[:count]
        for at, name in enumerate(names):
            after = names[(at + 1) % count]
            checkpoint(root, name, 5 + at, Snapshot({f"{after}/shared/s-{at}": 9}, {f"p-{at}": 3}))
        answer = asked("recovery-line", root, root=root)
        assert {entry["operator"]: entry["checkpoint"] for entry in answer["result"]["line"]} == standing
        (root / names[-1] / f"chk-{4 + count}" / f"p-{count - 1}").unlink()
        answer = asked("recovery-line", root, root=root)
        line = {entry["operator"]: entry["checkpoint"] for entry in answer["result"]["line"]}
        assert line == standing | {names[-1]: 5}


def test_two_copies_of_a_job_are_two_jobs(tmp_path: Path) -> None:
    """Files are stored by one name: each copy is judged by its own, and none goes on from the other."""
    for copy in ("a", "b"):
        job(tmp_path / copy)
    (tmp_path / "b" / OLD / "shared" / "s7").unlink()
    answer = asked("recovery-line", tmp_path)
    found = {entry["operator"]: entry["checkpoint"] for entry in answer["result"]["line"]}
    assert found == {f"a/{OLD}": 7, f"b/{OLD}": 6}
    row = next(r for r in answer["result"]["details"]["snapshots"] if r["snapshot"] == f"b/{OLD}/chk-7")
    assert row["reasons"][0]["found"] == [f"a/{OLD}/shared/s7"]
    assert asked("recovery-line", tmp_path, "--at", f"{OLD}=6")["exit"] == 66
    assert restored(asked("recovery-line", tmp_path, "--at", f"b/{OLD}/0=5"))[f"b/{OLD}"] is not None


# Ways to ask


@pytest.mark.parametrize("name", [OLD, f"{OLD}/0", OLD[:4], f"{OLD[:8]}/0"])
def test_at_takes_a_job_by_any_name(tmp_path: Path, name: str) -> None:
    job(tmp_path)
    answer = asked("recovery-line", tmp_path, "--at", f"{name}=5", root=tmp_path)
    assert restored(answer) == {OLD: uri(OLD, "chk-5")}
    assert [past["checkpoint"] for past in answer["result"]["rolled_back"]] == [7, 6]


def test_at_what_cannot_be_restored(tmp_path: Path) -> None:
    job(tmp_path)
    (tmp_path / OLD / "chk-6" / "p6").unlink()
    answer = asked("recovery-line", tmp_path, "--at", f"{OLD}=6", root=tmp_path)
    assert (answer["exit"], "checkpoint-unreachable" in ids(answer)) == (4, True)
    told = next(f["message"] for f in answer["findings"] if f["id"] == "checkpoint-unreachable")
    why = told.partition(":")[0]
    assert "chk-6" in why
    assert answer["result"]["details"]["headline"] == f"What was asked for cannot be restored: {why}."
    assert asked("recovery-line", tmp_path, "--at", f"{OLD}=99", root=tmp_path)["exit"] == 66
    assert asked("recovery-line", tmp_path, "--at", "nobody=6", root=tmp_path)["exit"] == 66


@pytest.mark.parametrize("asks", [["--failed", "x/0"], ["--as-of", "1000"], ["--at", f"{OLD}=5", "--earliest"]])
def test_what_a_snapshot_cannot_answer_is_refused(tmp_path: Path, asks: list[str]) -> None:
    job(tmp_path)
    assert asked("recovery-line", tmp_path, *asks, root=tmp_path)["exit"] == 2


def test_against_another_snapshot(tmp_path: Path) -> None:
    for number in (6, 7):
        splits = [[("t", 0, 100 * number)], [("t", 1, 7), ("t", 10, 50)]]
        checkpoint(tmp_path, OLD, number, Snapshot(sources=splits))
    for name in ("chk-6", f"{OLD}/chk-6", f"{OLD}/chk-6/", "6"):
        answer = asked("replay", tmp_path, "--against", name)
        rows = [
            (r["source"], r["offset"], r["other"], r["read_again_by_other"])
            for r in answer["result"]["details"]["against"]
        ]
        assert rows == [("t-0", 700, 600, 100), ("t-1", 7, 7, 0), ("t-10", 50, 50, 0)]
    answer = asked("replay", tmp_path, "--at", f"{OLD}=6", "--against", "chk-7")
    assert [row["read_again"] for row in answer["result"]["details"]["against"]] == [100, 0, 0]
    assert asked("replay", tmp_path, "--against", "chk-5")["exit"] == 66
    job(tmp_path, HEIR, (7,))
    assert asked("replay", tmp_path, "--against", "chk-7", root=tmp_path)["exit"] == 66


def test_no_check_files_takes_the_metadata_by_its_word(tmp_path: Path) -> None:
    job(tmp_path)
    (tmp_path / OLD / "shared" / "s7").unlink()
    for root in (None, tmp_path):
        answer = asked("recovery-line", tmp_path, "--no-check-files", root=root)
        assert (answer["exit"], restored(answer)) == (0, {OLD: uri(OLD, "chk-7")})
        assert "files-not-checked" in ids(answer)
        told = next(f["message"] for f in answer["findings"] if f["id"] == "files-not-checked")
        assert "3 snapshots" in told


@pytest.mark.parametrize(
    ("offset", "id", "code"),
    [
        (-1, "source-at-latest", 3),
        (-2, "source-at-earliest", 3),
        (-3, "source-at-committed", 0),
        (-(1 << 63), "source-not-started", 0),
    ],
)
def test_markers_instead_of_offsets(tmp_path: Path, offset: int, id: str, code: int) -> None:
    checkpoint(tmp_path, OLD, 6, Snapshot(sources=[[("t", 0, 10)]]))
    checkpoint(tmp_path, OLD, 7, Snapshot(sources=[[("t", 0, offset)]]))
    answer = asked("replay", tmp_path, "--against", "chk-6")
    assert (answer["exit"], ids(answer)) == (code, {id})
    assert answer["result"]["sources"][0]["offset"] == (None if offset == -2 else offset)
    if not code:  # the engine or its group decides: no error, and nothing that was looked at
        (run,) = asked("recovery-line", tmp_path)["result"]["runs"]
        claims = [row["claim"] for row in run["unchecked"] if row["kind"] == "source"]
        assert claims == ["source t-0 starts at the right record, because the state holds no offset of it"]
    row = answer["result"]["details"]["against"][0]
    assert (row["read_again"], row["read_again_by_other"]) == (None, None)


def test_splits_of_two_readers_and_of_none(tmp_path: Path) -> None:
    coordinator = assigned([("t", 0), ("t", 1), ("t", 2)])
    checkpoint(tmp_path, OLD, 7, Snapshot(sources=[[("t", 0, 1), ("t", 1, 2)], [("t", 0, 1)]], coordinator=coordinator))
    answer = asked("replay", tmp_path)
    found = {(f["id"], f["subject"]) for f in answer["findings"]}
    assert found == {("split-held-twice", "t-0"), ("split-without-reader", "t-2")}
    assert answer["exit"] == 3


def test_verify_of_snapshots(tmp_path: Path) -> None:
    job(tmp_path)
    (tmp_path / OLD / "shared" / "s7").unlink()
    line = tmp_path / "line.json"
    maps = ("--map", f"{ORIGIN}={tmp_path}")
    line.write_text(cklog("recovery-line", tmp_path, *maps, "--json").out, encoding="utf-8")
    for number, more, code in (
        (None, (), 0),
        (None, ("--maximal",), 0),
        (5, (), 0),
        (5, ("--maximal",), 3),
        (7, (), 3),
    ):
        if number is not None:
            line.write_text(f'{{"{OLD}/0": {number}}}', encoding="utf-8")
        assert asked("verify", tmp_path, "--line", str(line), *more, root=tmp_path)["exit"] == code


def test_the_initial_state_is_a_line_if_nothing_else_is(tmp_path: Path) -> None:
    job(tmp_path, numbers=(7,))
    line = tmp_path / "line.json"
    line.write_text(f'{{"{OLD}/0": null}}', encoding="utf-8")
    asks = ("verify", tmp_path, "--line", str(line), "--maximal")
    assert asked(*asks, root=tmp_path)["exit"] == 3
    (tmp_path / OLD / "chk-7" / "p7").unlink()
    assert asked(*asks, root=tmp_path)["exit"] == 0
    assert asked("recovery-line", tmp_path, root=tmp_path)["exit"] == 4


@pytest.mark.parametrize("version", [5, 6])
def test_a_source_of_which_no_reader_holds_anything_is_told(tmp_path: Path, version: int) -> None:
    """Not where it was done, or where its state is not understood, which is told by itself."""
    known = assigned([("t", 0)])
    checkpoint(tmp_path, OLD, 7, Snapshot(sources=[[]], coordinator=known, version=version))
    answer = asked("replay", tmp_path)
    assert [(f["id"], f["subject"]) for f in answer["findings"]] == [("split-without-reader", "t-0")]
    for subtasks in ([fb.finished(0)], None):
        made = [fb.operator(version, subtasks, name="Orders", uid="orders", coordinator=known)]
        (tmp_path / OLD / "chk-7" / "_metadata").write_bytes(fb.metadata(version, made, checkpoint=7).data)
        assert ids(asked("replay", tmp_path)) == set()
