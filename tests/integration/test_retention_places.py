"""What may be deleted is named where it lies, and nothing that is needed by a second name."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.program import cklog


def record(number: int, uri: str | None, operator: str = "a") -> dict[str, object]:
    about = {"operator": operator, "subtask": 0, "checkpoint": number, "uri": uri}
    return {**about, "sent": {}, "received": {}}


def run_in(home: Path, names: tuple[bytes, ...] = (b"state",), numbers: tuple[int, ...] = (1, 2, 3)) -> Path:
    """A run of three checkpoints, of which `numbers` have their files."""
    (home / "checkpoints").mkdir(parents=True)
    rows = [record(number, f"ck/{number}") for number in (1, 2, 3)]
    (home / "checkpoints" / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for number in numbers:
        folder = home / "ck" / str(number)
        folder.mkdir(parents=True)
        for name in names:
            with open(os.path.join(os.fsencode(folder), name), "wb") as file:
                file.write(name)
    return home


def paths(place: Path, *more: str) -> list[str]:
    return [path for path in cklog("retention", place, "--format", "paths", "-0", *more).out.split("\0") if path]


def test_what_a_link_that_stays_leads_to_stays(tmp_path: Path) -> None:
    home = run_in(tmp_path, numbers=(1, 2))
    (home / "ck" / "3").mkdir()
    (home / "ck" / "3" / "state").symlink_to("../1/state")
    assert paths(home) == ["ck/2/state"]
    told = json.loads(cklog("retention", home, "--json").out)["result"]
    row = next(row for row in told["rows"] if row["path"] == "ck/1/state")
    assert (row["fate"], row["rule"], row["needed_by"]) == ("KEEP", "linked", "ck/3/state")
    assert told["totals"]["OBSOLETE"]["checkpoints"] == 1


def test_what_lies_in_a_folder_that_a_link_leads_to_stays(tmp_path: Path) -> None:
    home = run_in(tmp_path, numbers=(1, 2))
    (home / "ck" / "3").symlink_to("1")
    assert paths(home) == ["ck/2/state"]


def test_a_link_that_goes_itself_holds_nothing(tmp_path: Path) -> None:
    """Nor does one to a folder that it lies in."""
    home = run_in(tmp_path, numbers=(1, 3))
    (home / "ck" / "2").mkdir()
    (home / "ck" / "2" / "state").symlink_to("../1/state")
    (home / "again").symlink_to(".")
    assert paths(home) == ["ck/1/state", "ck/2/state"]


def test_a_run_below_path_is_deleted_in_and_nothing_beside_it(tmp_path: Path) -> None:
    """Both forms are for the folder that was PATH."""
    run_in(tmp_path / "jobs" / "r")
    (tmp_path / "ck" / "1").mkdir(parents=True)
    (tmp_path / "ck" / "1" / "state").write_text("of somebody else")
    for more in ((), ("--run", "jobs/r")):
        assert paths(tmp_path, *more) == ["jobs/r/ck/1/state", "jobs/r/ck/2/state"]
    script = cklog("retention", tmp_path, "--format", "script").out
    subprocess.run(["sh"], input=script, text=True, cwd=tmp_path, check=True)
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("state"))
    assert left == ["ck/1/state", "jobs/r/ck/3/state"]


def test_two_names_are_never_one(tmp_path: Path) -> None:
    """A byte that is no UTF-8, and the character that stands for it in cklog, which a name may have as well."""
    names = (b"f\xe9", "f\uf7e9".encode(), b"-r", b"n\nl")
    home = run_in(tmp_path, names)
    there = {os.fsdecode(b"ck/%d/" % number + name) for number in (1, 2) for name in names}
    assert {*map(os.fsencode, paths(home))} == {*map(os.fsencode, there)}
    subprocess.run(["sh"], input=os.fsencode(cklog("retention", home, "--format", "script").out), cwd=home, check=True)
    assert not any(os.path.lexists(os.path.join(home, path)) for path in there)


def test_a_null_byte_makes_no_second_path_of_a_name(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    rows = [record(number, None, "a\0/etc/passwd\0") for number in (1, 2)]
    (tmp_path / "checkpoints" / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ran = cklog("retention", tmp_path, "--format", "paths", "-0")
    assert (ran.code, ran.out) == (2, "")


@pytest.mark.parametrize("name", [b"caf\xe9", b"-x"])
def test_a_run_is_chosen_by_its_name(name: bytes, tmp_path: Path) -> None:
    run_in(Path(os.path.join(tmp_path, os.fsdecode(name))))
    run_in(tmp_path / "other")
    assert cklog("recovery-line", tmp_path, f"--run={os.fsdecode(name)}").code == 0
