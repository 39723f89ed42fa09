"""Which snapshots of Flink jobs stay when not all of them are wanted: a number, a time, pins; real jobs too."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.builders.flink_folders import HEIR, OLD, THIRD, Snapshot, checkpoint, job, savepoint, torn
from tests.conftest import SAMPLES
from tests.program import cklog
from tests.reading.flink_folders import asked, fates, restored, verdicts

SAVEPOINT = f"savepoint-{OLD[:6]}-0123456789ab"
STORED = "file:/mnt/flink/prod/checkpts"


def rules(path: Path, *more: str) -> dict[str, tuple[str, str]]:
    return fates(asked("retention", path, *more, root=path))


def standing(path: Path, *more: str) -> dict[str, str]:
    """The rule of each snapshot's metadata."""
    found = rules(path, *more)
    return {name.removesuffix("/_metadata"): rule for name, (_, rule) in found.items() if name.endswith("/_metadata")}


def log(path: Path, times: dict[int, int], name: str = OLD) -> Path:
    lines = [f"Triggering checkpoint {n} (type=X) @ {time} for job {name}.\n" for n, time in times.items()]
    path.write_text("".join(lines))
    return path


def test_the_newest_of_each_job_stays_and_what_it_shares(tmp_path: Path) -> None:
    job(tmp_path)
    job(tmp_path, THIRD, (3, 4))
    found = rules(tmp_path, "--keep", "1", "--jobs-stopped")
    gone = {path for path, (fate, _) in found.items() if fate == "OBSOLETE"}
    assert gone == {
        *(f"{OLD}/chk-{n}/{name}" for n in (5, 6) for name in ("_metadata", f"p{n}")),
        *(f"{OLD}/shared/s{n}" for n in (4, 5)),
        *(f"{THIRD}/chk-3/{name}" for name in ("_metadata", "p3")),
        f"{THIRD}/shared/s2",
    }
    assert {found[path][1] for path in gone} == {"older"}
    assert found[f"{OLD}/shared/s6"] == found[f"{OLD}/chk-7/_metadata"] == ("VALID", "restorable")
    assert standing(tmp_path, "--keep", "2")[f"{OLD}/chk-6"] == "keep"
    assert standing(tmp_path, "--keep", "2")[f"{OLD}/chk-5"] == "older"


def test_of_running_jobs_shared_files_stay(tmp_path: Path) -> None:
    job(tmp_path)
    found = rules(tmp_path, "--keep", "1")
    assert found[f"{OLD}/chk-5/_metadata"] == ("OBSOLETE", "older")
    assert found[f"{OLD}/shared/s4"] == ("KEEP", "unfinished")


def test_without_a_limit_all_that_can_be_restored_stays(tmp_path: Path) -> None:
    job(tmp_path)
    assert set(standing(tmp_path, "--pin", "chk-5").values()) == {"restorable"}


def test_a_snapshot_by_name(tmp_path: Path) -> None:
    job(tmp_path)
    for pin in (f"{OLD}/chk-5", "chk-5/", f"{OLD}=5", f"{OLD}/0=5", f"{OLD[:6]}=5"):
        assert standing(tmp_path, "--keep", "1", "--pin", pin) == {
            f"{OLD}/chk-5": "pin",
            f"{OLD}/chk-6": "older",
            f"{OLD}/chk-7": "restorable",
        }


@pytest.mark.parametrize("leads", ["outside", "nowhere"])
def test_a_checkpoint_whose_metadata_is_a_link_is_neither_torn_nor_given_up(tmp_path: Path, leads: str) -> None:
    """It was not read: it may be whole, so the one before is only a bound, and files that it may name stay."""
    job(tmp_path / "run")
    metadata = tmp_path / "run" / OLD / "chk-7" / "_metadata"
    metadata.rename(tmp_path / "away")
    metadata.symlink_to(tmp_path / ("away" if leads == "outside" else "none"))
    line = asked("recovery-line", tmp_path / "run", root=tmp_path / "run")
    assert (line["exit"], [entry["checkpoint"] for entry in line["result"]["line"]]) == (5, [6])
    found = {(finding["id"], finding["subject"]) for finding in line["findings"]}
    assert ("unreadable-file", f"{OLD}/chk-7/_metadata") in found
    assert "no-metadata" not in {id for id, _ in found}
    for more in ((), ("--drop-broken",), ("--drop-broken", "--jobs-stopped")):
        plan = asked("retention", tmp_path / "run", *more, root=tmp_path / "run")
        assert plan["exit"] == 5
        assert "OBSOLETE" not in {fate for fate, _ in fates(plan).values()}


def test_a_pin_holds_what_cannot_be_restored_too(tmp_path: Path) -> None:
    job(tmp_path)
    (tmp_path / OLD / "shared" / "s4").unlink()
    assert rules(tmp_path)[f"{OLD}/chk-5/p5"] == ("KEEP", "broken")
    assert rules(tmp_path, "--drop-broken")[f"{OLD}/chk-5/p5"] == ("OBSOLETE", "broken")
    assert rules(tmp_path, "--pin", "chk-5", "--drop-broken")[f"{OLD}/chk-5/p5"] == ("KEEP", "pin")


def test_broken_ones_count_for_nothing(tmp_path: Path) -> None:
    job(tmp_path)
    (tmp_path / OLD / "chk-7" / "p7").unlink()
    assert standing(tmp_path, "--keep", "2") == {
        f"{OLD}/chk-5": "keep",
        f"{OLD}/chk-6": "restorable",
        f"{OLD}/chk-7": "broken",
    }


def test_a_savepoint_is_its_owners(tmp_path: Path) -> None:
    job(tmp_path)
    savepoint(tmp_path, SAVEPOINT, 4, Snapshot(own={"a": 4}, savepoint=True))
    assert standing(tmp_path, "--keep", "1")[SAVEPOINT] in ("savepoint", "restorable")
    assert rules(tmp_path, "--keep", "1")[f"{SAVEPOINT}/a"][0] != "OBSOLETE"


def test_what_an_heir_restarts_from_counts_as_its_own(tmp_path: Path) -> None:
    job(tmp_path)
    checkpoint(tmp_path, HEIR, 8, Snapshot({f"{OLD}/shared/s7": 107}, {"q": 1}))
    found = standing(tmp_path, "--keep", "2")
    assert found == {
        f"{OLD}/chk-5": "older",
        f"{OLD}/chk-6": "older",
        f"{OLD}/chk-7": "keep",
        f"{HEIR}/chk-8": "restorable",
    }
    assert rules(tmp_path, "--keep", "1")[f"{OLD}/shared/s7"] == ("VALID", "restorable")


def test_times_come_from_the_job_managers_log(tmp_path: Path) -> None:
    job(tmp_path / "root", numbers=(4, 5, 6, 7))
    told = log(tmp_path / "jm.log", {5: 5000, 6: 6000, 7: 7000})
    options = ("--window", "1s", "--now", "7000", "--job-log", str(told))
    assert standing(tmp_path / "root", *options) == {
        f"{OLD}/chk-4": "no-time",
        f"{OLD}/chk-5": "older",
        f"{OLD}/chk-6": "window",
        f"{OLD}/chk-7": "restorable",
    }


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        (("--window", "1d", "--now", "9"), 2, "--job-log FILE"),
        (("--window", "1d", "--now", "9", "--job-log", "no/such"), 66, "no/such"),
        (("--job-log", "x"), 2, "--window"),
        (("--marked", "x/0=1"), 2, "marks nothing"),
        (("--pin", "chk-77"), 66, "no snapshot"),
        (("--pin", "zzzz/0=5"), 66, "no job of that name"),
        (("--pin", f"{OLD}/chk-9"), 66, "no metadata"),
    ],
)
def test_options_that_cannot_be_meant(options: tuple[str, ...], code: int, word: str, tmp_path: Path) -> None:
    job(tmp_path)
    torn(tmp_path, OLD, 9, {"f": 1})
    ended = cklog("retention", tmp_path, *options)
    assert (ended.code, ended.out) == (code, "")
    assert word in ended.err


def test_an_unreadable_snapshot_holds_everything(tmp_path: Path) -> None:
    job(tmp_path)
    job(tmp_path, THIRD, (3,))
    (tmp_path / THIRD / "chk-3" / "_metadata").write_bytes(b"")
    found = rules(tmp_path, "--keep", "1", "--jobs-stopped")
    assert "OBSOLETE" not in {fate for fate, _ in found.values()}


@pytest.mark.parametrize(("keep", "more"), [(1, ()), (2, ()), (1, ("--drop-broken",)), (2, ("--drop-broken",))])
def test_what_may_go_of_real_jobs_is_missed_by_nobody(
    keep: int, more: tuple[str, ...], shared_data: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(shared_data / "flink-checkpoints", tmp_path / "root"))
    maps = ("--map", f"{STORED}={copy}")
    before = json.loads(cklog("recovery-line", copy, *maps, "--json").out)
    plan = json.loads(cklog("retention", copy, *maps, "--keep", str(keep), "--jobs-stopped", *more, "--json").out)
    rows = plan["result"]["rows"]
    assert "older" in {row["rule"] for row in rows}
    for row in rows:
        if row["fate"] == "OBSOLETE":
            (copy / row["path"]).unlink()
    after = json.loads(cklog("recovery-line", copy, *maps, "--json").out)
    assert restored(after) == restored(before)
    kept = {row["path"].removesuffix("/_metadata") for row in rows if row["fate"] != "OBSOLETE"}
    assert {name: told for name, told in verdicts(after).items() if name in kept} == {
        name: told for name, told in verdicts(before).items() if name in kept
    }


def test_the_sample_with_its_log() -> None:
    sample = SAMPLES / "flink-orders"
    maps = ("--map", f"file:///srv/cklog-sample/flink-orders={sample}")
    options = ("--window", "1500ms", "--now", "2026-11-21T15:09:05Z", "--job-log", str(sample / "jobmanager.log"))
    rows = json.loads(cklog("retention", sample, *maps, *options, "--json").out)["result"]["rows"]
    by_folder = {row["path"].split("/")[1]: row["rule"] for row in rows if row["path"].endswith("/_metadata")}
    assert by_folder["chk-13"] == "restorable"
    assert (by_folder["chk-11"], by_folder["chk-12"]) == ("older", "window")
