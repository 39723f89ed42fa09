"""What may be deleted, and above all what may not: every rule, parts of a root, and what the plans look like."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from tests.builders import flink as fb
from tests.builders.flink_folders import (
    HEIR,
    OLD,
    ORIGIN,
    THIRD,
    Snapshot,
    checkpoint,
    file,
    job,
    metadata,
    savepoint,
    torn,
    uri,
)
from tests.program import cklog
from tests.reading.flink_folders import asked, fates, ids, restored

SAVEPOINT = f"savepoint-{OLD[:6]}-0123456789ab"


def rules(path: Path, *more: str, root: Path | None = None) -> dict[str, tuple[str, str]]:
    return fates(asked("retention", path, *more, root=root or path))


def test_names_with_control_characters_come_back_from_a_list_with_null_bytes(tmp_path: Path) -> None:
    job(tmp_path)
    left = {f"{OLD}/chk-6/{name}" for name in ("a\nb", "c\x01d", "e\rf", "-g")}
    for path in left:
        file(tmp_path / path, 4)
    listed = cklog("retention", tmp_path, "--format", "paths", "-0", "-q").out.split("\0")[:-1]
    assert {path for path in listed if (tmp_path / path).is_file()} == set(listed) == left
    refused = cklog("retention", tmp_path, "--format", "paths", "-q")
    assert (refused.code, refused.out) == (2, "")


def obsolete(found: dict[str, tuple[str, str]]) -> set[str]:
    return {path for path, (fate, _) in found.items() if fate == "OBSOLETE"}


def test_every_file_of_a_running_job_stays_but_what_no_checkpoint_can_come_to_need(tmp_path: Path) -> None:
    job(tmp_path)
    torn(tmp_path, OLD, 4, {"late": 3})
    torn(tmp_path, OLD, 8, {"early": 3})
    for path in (f"{OLD}/shared/new", f"{OLD}/taskowned/t", f"{OLD}/dstl/d", f"{OLD}/chk-6/left", "README"):
        file(tmp_path / path, 4)
    found = rules(tmp_path)
    assert found.pop(f"{OLD}/chk-4/late") == ("KEEP", "torn")
    assert found.pop(f"{OLD}/chk-6/left") == ("OBSOLETE", "orphan")
    assert found.pop(f"{OLD}/chk-8/early") == found.pop(f"{OLD}/shared/new") == ("KEEP", "unfinished")
    assert found.pop(f"{OLD}/taskowned/t") == found.pop(f"{OLD}/dstl/d") == ("KEEP", "task-owned")
    assert set(found.values()) == {("VALID", "restorable")}
    assert "README" not in found
    assert obsolete(rules(tmp_path, "--drop-broken")) == {f"{OLD}/chk-4/late", f"{OLD}/chk-6/left"}
    assert obsolete(rules(tmp_path, "--jobs-stopped")) == {f"{OLD}/chk-6/left"}
    assert obsolete(rules(tmp_path, "--jobs-stopped", "--drop-broken")) == {
        *(f"{OLD}/chk-4/late", f"{OLD}/chk-6/left", f"{OLD}/chk-8/early"),
        *(f"{OLD}/shared/new", f"{OLD}/taskowned/t", f"{OLD}/dstl/d"),
    }


def test_a_file_is_needed_by_the_newest_checkpoint_that_names_it(tmp_path: Path) -> None:
    """s4 is of chk-5 alone, s5 of 5 and 6, s6 of 6 and 7, and s7 of chk-7."""
    job(tmp_path)
    file(tmp_path / OLD / "chk-6" / "left", 0)
    answer = asked("retention", tmp_path, "--jobs-stopped", root=tmp_path)
    by = {row["path"].rpartition("/")[2]: row["needed_by"] for row in answer["result"]["rows"]}
    newest = {"s4": 5, "s5": 6, "s6": 7, "s7": 7, "p5": 5, "p6": 6, "p7": 7}
    assert {name: by[name] for name in newest} == {name: f"{OLD}/chk-{number}" for name, number in newest.items()}
    assert by["left"] is None


def test_a_folder_s_sums_are_those_of_its_files(tmp_path: Path) -> None:
    job(tmp_path)
    job(tmp_path, THIRD, (3,))
    for path, size in ((f"{OLD}/chk-6/empty", 0), (f"{OLD}/chk-6/left", 9), (f"{THIRD}/chk-3/empty", 0)):
        file(tmp_path / path, size)
    answer = asked("retention", tmp_path, "--jobs-stopped", root=tmp_path)
    for row in answer["result"]["folders"]:
        sizes = {path: path.stat().st_size for path in (tmp_path / row["folder"]).rglob("*") if path.is_file()}
        gone = [size for path, size in sizes.items() if path.name in ("empty", "left")]
        assert (row["files"], row["bytes"]) == (len(sizes), sum(sizes.values()))
        assert (row["obsolete_files"], row["obsolete_bytes"]) == (len(gone), sum(gone))
    assert {row["folder"] for row in answer["result"]["folders"]} == {OLD, THIRD}


def test_what_only_broken_snapshots_name(tmp_path: Path) -> None:
    job(tmp_path)
    (tmp_path / OLD / "shared" / "s4").unlink()
    merged = fb.segment(uri(OLD, "taskowned", "m"), 0, 3, 0)
    (tmp_path / OLD / "chk-5" / "_metadata").write_bytes(
        metadata(Snapshot({f"{OLD}/shared/s{n}": 100 + n for n in (3, 4, 5)}, {"p5": 15}, (merged,)), 5)
    )
    for path in ("shared/s3", "taskowned/m"):
        file(tmp_path / OLD / path, 103)
    assert not obsolete(rules(tmp_path, "--jobs-stopped")), "mended, it would stay"
    running, stopped = rules(tmp_path, "--drop-broken"), rules(tmp_path, "--jobs-stopped", "--drop-broken")
    own = {f"{OLD}/chk-5/p5", f"{OLD}/chk-5/_metadata"}
    assert obsolete(running) == own
    assert running[f"{OLD}/shared/s3"] == ("KEEP", "unfinished")
    assert running[f"{OLD}/taskowned/m"] == ("KEEP", "task-owned")
    assert obsolete(stopped) == {*own, f"{OLD}/shared/s3", f"{OLD}/taskowned/m"}
    assert stopped[f"{OLD}/shared/s5"] == ("VALID", "restorable")


def test_the_last_of_a_job_stays_however_broken(tmp_path: Path) -> None:
    job(tmp_path)
    job(tmp_path, THIRD, (3,))
    for number in (5, 6, 7):
        (tmp_path / OLD / f"chk-{number}" / f"p{number}").unlink()
    for more in ((), ("--drop-broken",)):
        found = rules(tmp_path, "--jobs-stopped", *more)
        assert {rule for path, rule in found.items() if path.startswith(OLD)} == {("KEEP", "last")}


def test_an_heir_without_anything_of_its_own_stays_an_heir(tmp_path: Path) -> None:
    """It restarts from the old job; that is known from its broken checkpoint alone, which therefore stays."""
    job(tmp_path)
    checkpoint(tmp_path, HEIR, 12, Snapshot({f"{OLD}/shared/s7": 107}, {"q": 1}))
    (tmp_path / HEIR / "chk-12" / "q").unlink()
    assert restored(asked("recovery-line", tmp_path, root=tmp_path)) == {HEIR: uri(OLD, "chk-7")}
    assert not obsolete(rules(tmp_path, "--jobs-stopped"))


def test_what_mends_a_checkpoint_stays(tmp_path: Path) -> None:
    """Files of a savepoint that a checkpoint names as its own, though the savepoint itself is broken."""
    job(tmp_path)
    folder = savepoint(tmp_path, SAVEPOINT, 8, Snapshot(own={"a": 4, "b": 5}, savepoint=True))
    checkpoint(tmp_path, OLD, 9, Snapshot(own={"a": 4, "c": 6}))
    (tmp_path / OLD / "chk-9" / "a").unlink()
    (folder / "b").unlink()
    answer = asked("retention", tmp_path, "--jobs-stopped", root=tmp_path)
    found = fates(answer)
    assert found[f"{SAVEPOINT}/a"] == found[f"{OLD}/chk-9/c"] == ("KEEP", "repairable")
    assert found[f"{SAVEPOINT}/_metadata"] == ("KEEP", "last")
    folders = {row["folder"]: row["needed_by"] for row in answer["result"]["folders"]}
    assert folders == {OLD: [], SAVEPOINT: [f"{OLD}/chk-9"]}


def test_a_file_that_was_not_looked_at_may_be_one_that_is_here(tmp_path: Path) -> None:
    """The heir's path tells no job, and nobody gave a map: the file of that name and size is not let go."""
    job(tmp_path, numbers=(7,))
    file(tmp_path / OLD / "shared" / "stray", 33)
    file(tmp_path / OLD / "shared" / "other", 33)
    checkpoint(tmp_path, HEIR, 12, Snapshot(other=(fb.absolute("s3://entropy/4f/stray", 33),)))
    found = rules(tmp_path, "--jobs-stopped")
    assert found[f"{OLD}/shared/stray"] == ("VALID", "unchecked")
    assert obsolete(found) == {f"{OLD}/shared/other"}


@pytest.mark.parametrize("bad", [b"", b"\x49\x60\x67\x2d\0\0\0\x63", b"not flink's"])
def test_a_snapshot_that_cannot_be_read_may_name_anything(tmp_path: Path, bad: bytes) -> None:
    job(tmp_path)
    job(tmp_path, HEIR, (3,))
    torn(tmp_path, OLD, 4, {"late": 3})
    file(tmp_path / OLD / "shared" / "new", 3)
    (tmp_path / OLD / "chk-5" / "p5").unlink()
    assert obsolete(rules(tmp_path, "--jobs-stopped", "--drop-broken"))
    (tmp_path / HEIR / "chk-3" / "_metadata").write_bytes(bad)
    for more in ((), ("--drop-broken",)):  # it is the only one of its job: that it may be mended is all there is
        found = rules(tmp_path, "--jobs-stopped", *more)
        assert not obsolete(found)
        assert found[f"{OLD}/shared/new"] == ("KEEP", "unreadable")
    job(tmp_path, HEIR, (4,))
    assert not obsolete(rules(tmp_path, "--jobs-stopped"))
    found = rules(tmp_path, "--jobs-stopped", "--drop-broken")
    unknown = bad.endswith(b"\x63")  # a version that is not known is no damage
    assert (f"{HEIR}/chk-3/_metadata" in obsolete(found)) == (not unknown)


def test_a_job_alone_says_nothing_of_what_others_need(tmp_path: Path) -> None:
    """What the root's plan keeps for another job, the job's own folder must not let go."""
    job(tmp_path)
    torn(tmp_path, OLD, 4, {"late": 3})
    file(tmp_path / OLD / "shared" / "claimed", 9)
    checkpoint(tmp_path, HEIR, 12, Snapshot({f"{OLD}/shared/claimed": 9}))
    assert rules(tmp_path, "--jobs-stopped")[f"{OLD}/shared/claimed"] == ("VALID", "restorable")
    found = rules(tmp_path / OLD, "--jobs-stopped", root=tmp_path)
    assert found["shared/claimed"] == ("KEEP", "other-jobs")
    assert not obsolete(found)
    assert obsolete(rules(tmp_path / OLD, "--jobs-stopped", "--drop-broken", root=tmp_path)) == {"chk-4/late"}
    assert asked("retention", tmp_path / OLD / "chk-7")["exit"] == 2


def test_a_savepoint_alone_lets_nothing_go(tmp_path: Path) -> None:
    folder = savepoint(tmp_path, SAVEPOINT, 8, Snapshot(own={"a": 4}, savepoint=True))
    file(folder / "b", 4)
    assert rules(folder, "--jobs-stopped") == {
        "_metadata": ("VALID", "restorable"),
        "a": ("VALID", "restorable"),
        "b": ("KEEP", "other-jobs"),
    }


def test_of_two_copies_of_a_job_nobody_knows_which_is_named(tmp_path: Path) -> None:
    job(tmp_path / "a", numbers=(7,))
    file(tmp_path / "a" / OLD / "shared" / "claimed", 9)
    file(tmp_path / "b" / OLD / "shared" / "claimed", 9)
    checkpoint(tmp_path, HEIR, 12, Snapshot(other=(fb.absolute(uri(OLD, "shared", "claimed"), 9),)))
    found = fates(asked("retention", tmp_path, "--jobs-stopped"))
    assert {found[f"{copy}/{OLD}/shared/claimed"][0] for copy in "ab"} == {"VALID", "KEEP"}


def test_needed_by_another_job(tmp_path: Path) -> None:
    job(tmp_path)
    checkpoint(tmp_path, HEIR, 12, Snapshot({f"{OLD}/shared/s7": 107}, {"q": 1}))
    answer = asked("retention", tmp_path, root=tmp_path)
    folders = {row["folder"]: row["needed_by"] for row in answer["result"]["folders"]}
    assert folders == {OLD: [f"{HEIR}/chk-12"], HEIR: []}
    assert "needed-by-other-job" in ids(answer)
    (tmp_path / HEIR / "chk-12" / "q").unlink()  # nothing is needed for a checkpoint that is lost
    checkpoint(tmp_path, HEIR, 13)
    answer = asked("retention", tmp_path, root=tmp_path)
    assert "needed-by-other-job" not in ids(answer)


def test_totals_and_the_plans_for_people(tmp_path: Path) -> None:
    job(tmp_path)
    awkward = ["it's", "a b", "$(id)", "-rf", ";x"]
    torn(tmp_path, OLD, 4, dict.fromkeys(awkward, 3))
    answer = asked("retention", tmp_path, "--jobs-stopped", "--drop-broken", root=tmp_path)
    assert answer["result"]["totals"]["OBSOLETE"] == {"files": 5, "bytes": 15}
    assert sum(total["files"] for total in answer["result"]["totals"].values()) == len(answer["result"]["rows"])
    maps, asked_for = ("--map", f"{ORIGIN}={tmp_path}"), ("--jobs-stopped", "--drop-broken")
    paths = cklog("retention", tmp_path, *maps, *asked_for, "--format", "paths").out
    assert paths.splitlines() == sorted(f"{OLD}/chk-4/{name}" for name in awkward)
    script = cklog("retention", tmp_path, *maps, *asked_for, "--format", "script").out
    lines = [shlex.split(line, comments=True) for line in script.splitlines() if line.startswith("rm")]
    assert [line[2] for line in lines] == [f"./{path}" for path in paths.splitlines()]
    subprocess.run(["sh", "-c", script], cwd=tmp_path, check=True)
    assert not list((tmp_path / OLD / "chk-4").iterdir())
    assert "All of" in cklog("retention", tmp_path, *maps, "--jobs-stopped").out


def test_names_that_no_list_of_lines_can_hold_are_refused_and_listed_with_null_bytes(tmp_path: Path) -> None:
    job(tmp_path)
    torn(tmp_path, OLD, 4, {"late\nimportant": 3, "tab\t": 1, "late": 3})
    asked = ("retention", tmp_path, "--map", f"{ORIGIN}={tmp_path}", "--drop-broken", "--format", "paths")
    refused = cklog(*asked)
    assert (refused.code, refused.out) == (2, "")
    listed = cklog(*asked, "-0").out.split("\0")
    assert set(listed) == {"", *(f"{OLD}/chk-4/{name}" for name in ("late\nimportant", "tab\t", "late"))}


def test_a_missing_file_may_be_one_whose_name_is_damaged_in_the_metadata(tmp_path: Path) -> None:
    """Nobody misses what is not of the size that was stored, or what another checkpoint has for itself."""
    job(tmp_path)
    job(tmp_path, THIRD, (3,))
    checkpoint(tmp_path, HEIR, 9, Snapshot({f"{HEIR}/shared/real": 77}))
    checkpoint(tmp_path, HEIR, 8)
    path = tmp_path / HEIR / "chk-9" / "_metadata"
    path.write_bytes(path.read_bytes().replace(b"shared/real", b"shared/rdal"))
    file(tmp_path / THIRD / "shared" / "as-large", 77)
    file(tmp_path / THIRD / "shared" / "larger", 78)
    found = rules(tmp_path, "--jobs-stopped", "--keep", "1")
    assert found[f"{HEIR}/shared/real"] == found[f"{THIRD}/shared/as-large"] == ("KEEP", "unreadable")
    assert {f"{OLD}/chk-5/p5", f"{OLD}/shared/s4", f"{THIRD}/shared/larger"} <= obsolete(found)
    dropped = rules(tmp_path, "--jobs-stopped", "--keep", "1", "--drop-broken")
    assert dropped[f"{HEIR}/shared/real"] == ("OBSOLETE", "orphan")


def test_of_two_numbers_of_one_checkpoint_neither_is_believed(tmp_path: Path) -> None:
    """A bit of the number in the metadata: what was the newest stays, and so does what counts without it."""
    job(tmp_path)
    undamaged = obsolete(rules(tmp_path, "--keep", "1"))
    for number in (5, 7):
        path = tmp_path / OLD / f"chk-{number}" / "_metadata"
        whole = path.read_bytes()
        path.write_bytes(whole.replace(number.to_bytes(8, "big"), (number + 256).to_bytes(8, "big"), 1))
        found = rules(tmp_path, "--keep", "1")
        assert found[f"{OLD}/chk-{number}/p{number}"] == ("KEEP", "disputed")
        assert obsolete(found) < undamaged
        path.write_bytes(whole)
