"""What may not be read, is gone, or lies behind a link: never called damaged, never an older line, never exit 70."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SAMPLES
from tests.program import cklog
from tests.users import open_to_all, somebody_else

WITHOUT_A_LINE = ("flink", "patent-store", "raw-events")
FOLDERS = sorted(path.name for path in SAMPLES.iterdir() if path.is_dir() and path.name not in WITHOUT_A_LINE)
NOT_OPENED = ("README.md", "expected.json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that everybody may look into."""
    return open_to_all(tmp_path)


def ask(*words: str | Path) -> tuple[int, dict[str, Any]]:
    """The exit code, and the answer or the error."""
    ran = cklog(*words, "--json")
    assert "Traceback" not in ran.err
    return ran.code, json.loads(ran.out or ran.err.strip().splitlines()[-1])


def line(found: dict[str, Any]) -> dict[str, int]:
    return {f"{row['operator']}/{row['subtask']}": row["checkpoint"] for row in found["result"]["line"]}


def ids(found: dict[str, Any]) -> set[str]:
    return {finding["id"] for finding in found["findings"]}


def one_of_each_kind(home: Path) -> list[Path]:
    """One file of each folder and suffix."""
    files = sorted(path for path in home.rglob("*") if path.is_file() and path.name not in NOT_OPENED)
    return list({(path.parent, path.suffix): path for path in files}.values())


@pytest.mark.quarter
@pytest.mark.parametrize("name", FOLDERS)
def test_a_file_that_may_not_be_read_is_not_damaged(name: str, folder: Path) -> None:
    """Without it there is the same answer, or a bound that says so, or none: exit 5 then, and the user's name."""
    home = folder / name
    shutil.copytree(SAMPLES / name, home)
    code, whole = ask("recovery-line", home)
    for path in one_of_each_kind(home):
        path.chmod(0)
        with somebody_else():
            refused, found = ask("recovery-line", home)
        path.chmod(0o644)
        if (refused, found) == (code, whole):
            continue  # the answer does not need it
        assert refused == 5, (path, found)
        unread = [f for f in found.get("findings", ()) if f["id"] == "unreadable-file"]
        told = found["error"] if "error" in found else unread[0]
        assert path.name in told["message"]
        assert "permission denied" in told["message"]
        assert "uid" in told["message"]
        if "error" not in found:
            assert found["verdict"] == "indeterminate"
            about = {where["path"] for f in found["findings"] if f["id"] != "unreadable-file" for where in f["where"]}
            assert path.relative_to(home).as_posix() not in about
            for unit, checkpoint in line(whole).items():
                other = line(found).get(unit, checkpoint)
                assert other is None or other <= checkpoint  # nothing newer than what can be proven


@pytest.mark.parametrize("name", ["spark-wordcount", "spark-state-hdfs", "uncoordinated-join", "cec-aggregate"])
def test_an_older_line_is_never_given_for_what_was_not_read(name: str, folder: Path) -> None:
    home = folder / name
    shutil.copytree(SAMPLES / name, home)
    _, whole = ask("recovery-line", home)
    for path in one_of_each_kind(home):
        path.chmod(0)
        with somebody_else():
            _, found = ask("recovery-line", home)
        path.chmod(0o644)
        assert "error" in found or line(found) == line(whole), path


FOLDERS_OF_A_QUERY = [
    *("commits", "offsets", "sources", "sources/0", "state", "state/0", "state/0/0", "state/0/_metadata"),
    "../out/_spark_metadata",
]


@pytest.mark.parametrize("part", FOLDERS_OF_A_QUERY)
def test_a_folder_of_a_query_that_may_not_be_listed_is_not_missing(part: str, folder: Path) -> None:
    """Nothing in it is called missing, nothing is proposed for removal, and no older line is given."""
    home = folder / "run"
    shutil.copytree(SAMPLES / "spark-wordcount", home)
    _, whole = ask("recovery-line", home)
    hidden = (home / "ck" / part).resolve()
    name = hidden.relative_to(home).as_posix()
    hidden.chmod(0)
    with somebody_else():
        code, found = ask("recovery-line", home)
        _, seen = ask("inspect", home)
        script = cklog("retention", home, "--format", "script")
    hidden.chmod(0o755)
    assert (code, found["verdict"], found["result"]["action"]) == (5, "indeterminate", "undetermined")
    assert {f["subject"] for f in found["findings"] if f["severity"] == "error"} == {name}
    assert ids(found) & {"missing-batch-file", "missing-state-file", "missing-source-log", "sink-log-behind"} == set()
    assert (found["result"]["details"]["remove"], found["result"]["runs"][0]["command"]) == ([], None)
    assert all(" remove " not in f["message"] for f in found["findings"])
    assert line(found) == ({} if part == "commits" else line(whole))
    assert seen["verdict"] == "indeterminate"
    assert "rm " not in script.out or not part.startswith(("commits", "offsets", "sources", "state"))


def test_a_query_whose_commits_may_not_be_listed_has_no_line(folder: Path) -> None:
    home = folder / "run"
    shutil.copytree(SAMPLES / "spark-wordcount", home)
    for command in ("recovery-line", "impact", "inspect"):
        ask(command, home)
    (home / "ck/commits").chmod(0)
    with somebody_else():
        _, found = ask("recovery-line", home)
        _, said = ask("impact", home)
        _, seen = ask("inspect", home)
    (home / "ck/commits").chmod(0o755)
    assert found["result"]["details"]["committed"] is None
    assert "initial state" not in found["result"]["details"]["headline"]
    assert said["result"]["line"] == [{"operator": "query", "subtask": 0, "checkpoint": None}]
    assert "is not known, because ck/commits could not be read" in seen["result"]["summary"]


@pytest.mark.parametrize("part", ["commits", "offsets", "state/0/0"])
def test_nothing_is_refuted_or_removed_on_the_way_to_a_batch_of_a_query_that_was_not_seen(
    part: str, folder: Path
) -> None:
    home, asked = folder / "run", folder / "line.json"
    shutil.copytree(SAMPLES / "spark-wordcount", home)
    asked.write_text('{"query/0": 5}')
    back, proof = ("recovery-line", home, "--at", "query/0=4"), ("verify", home, "--line", asked)
    ask(*back), ask(*proof)
    (home / "ck" / part).chmod(0)
    with somebody_else():
        code, found = ask(*back)
        unsure, checked = ask(*proof)
    (home / "ck" / part).chmod(0o755)
    assert (code, unsure) == (5, 5)
    assert found["result"]["details"]["remove"] == []
    assert "remove the" not in found["result"]["details"]["headline"]
    assert "remove all" not in found["result"]["details"]["headline"]
    assert all(check["holds"] is not False for check in checked["result"]["checks"])
    assert "not-restorable" not in ids(checked)


def test_one_folder_that_may_not_be_looked_at_costs_the_others_nothing(folder: Path) -> None:
    home = folder / "kafka"
    shutil.copytree(SAMPLES / "kafka-broker", home)
    _, whole = ask("recovery-line", home)
    (home / "orders-0").chmod(0)
    with somebody_else():
        code, found = ask("recovery-line", home)
    (home / "orders-0").chmod(0o755)
    assert (code, "unreadable-file" in ids(found)) == (5, True)
    assert line(found) == {unit: offset for unit, offset in line(whole).items() if unit != "orders/0"}


def test_what_mkfs_keeps_for_root_is_nobodys_data(folder: Path) -> None:
    home = folder / "kafka"
    shutil.copytree(SAMPLES / "kafka-broker", home)
    whole = ask("recovery-line", home)
    (home / "lost+found").mkdir(mode=0)
    with somebody_else():
        assert ask("recovery-line", home) == whole
    (home / "lost+found").chmod(0o755)


def test_path_itself_may_not_be_read(folder: Path) -> None:
    home = folder / "run"
    shutil.copytree(SAMPLES / "uncoordinated-join", home)
    ask("recovery-line", home)
    home.chmod(0)
    with somebody_else():
        code, found = ask("recovery-line", home)
    home.chmod(0o755)
    assert (code, found["error"]["id"]) == (5, "unreadable-file")


def test_a_map_to_a_place_that_cannot_be_reached_is_an_error_of_its_own(folder: Path) -> None:
    home, hidden = folder / "run", folder / "hidden"
    shutil.copytree(SAMPLES / "spark-wordcount", home)
    (hidden / "in").mkdir(parents=True)
    ask("recovery-line", home)
    hidden.chmod(0)
    with somebody_else():
        code, found = ask("recovery-line", home, "--map", f"file:///srv={hidden / 'in'}")
    hidden.chmod(0o755)
    assert (code, "--map" in found["error"]["message"]) == (66, True)


# Links


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A job of Flink whose shared files lie elsewhere, behind a link."""
    home = tmp_path / "root"
    shutil.copytree(SAMPLES / "flink-orders", home)
    shared = next(path for path in sorted(home.rglob("shared")) if any(path.iterdir()))
    shutil.move(str(shared), str(tmp_path / "elsewhere"))
    shared.symlink_to(tmp_path / "elsewhere")
    return home


def test_what_a_link_leads_to_outside_path_is_neither_read_nor_proposed(linked: Path, tmp_path: Path) -> None:
    code, found = ask("recovery-line", linked)
    assert (code, "unfollowed-link" in ids(found)) == (5, True)  # its files are not missing: nobody looked
    _, followed = ask("recovery-line", linked, "--follow-links")
    _, whole = ask("recovery-line", SAMPLES / "flink-orders")
    assert line(followed) == line(whole)
    inside = {path.name for path in (tmp_path / "elsewhere").iterdir()}
    script = cklog("retention", linked, "--format", "script", "--jobs-stopped").out
    assert not [name for name in inside if name in script]


def test_a_link_to_a_file_outside_is_not_read(tmp_path: Path) -> None:
    home = tmp_path / "run"
    shutil.copytree(SAMPLES / "uncoordinated-join", home)
    secret = tmp_path / "job.json"
    shutil.move(str(home / "job.json"), str(secret))
    (home / "job.json").symlink_to(secret)
    _, found = ask("inspect", home)
    assert "unfollowed-link" in ids(found)
    assert not any(used["path"] == "job.json" for used in found["inputs"])


def test_links_inside_path_and_in_circles_are_harmless(tmp_path: Path) -> None:
    home = tmp_path / "run"
    shutil.copytree(SAMPLES / "flink-orders", home)
    whole = ask("recovery-line", home)[1]
    (home / "again").symlink_to(home)
    (home / "itself").symlink_to(home / "itself")
    (home / "nowhere").symlink_to(tmp_path / "is-not-there")
    code, found = ask("recovery-line", home)
    assert line(found) == line(whole)
    assert code in (0, 3)


# Names


def test_names_that_are_no_utf8_are_read_and_shown_escaped(tmp_path: Path) -> None:
    home = os.path.join(tmp_path, os.fsdecode(b"caf\xe9"))
    shutil.copytree(SAMPLES / "flink-orders", home)
    _, whole = ask("recovery-line", SAMPLES / "flink-orders")
    ran = cklog("recovery-line", tmp_path, "--json")
    assert {*line(json.loads(ran.out)).values()} == {*line(whole).values()}
    assert "caf\\\\xe9/" in ran.out
    ran.out.encode()
    text = cklog("inspect", home).out
    assert "\udce9" not in text
    assert chr(0xF7E9) not in text


def test_names_are_listed_exactly_for_a_shell(tmp_path: Path) -> None:
    """What xargs -0 gets is what the operating system calls the files; lines cannot hold every name."""
    home = os.path.join(tmp_path, os.fsdecode(b"-caf\xe9"))
    shutil.copytree(SAMPLES / "flink-orders", home)
    before = cklog("retention", tmp_path, "--format", "paths", "--jobs-stopped", "--drop-broken").out.splitlines()
    assert before
    assert all(path.startswith("./-") and os.path.isfile(os.path.join(tmp_path, path)) for path in before)
    listed = cklog("retention", tmp_path, "--format", "paths", "-0", "--jobs-stopped", "--drop-broken").out
    assert listed.split("\0")[:-1] == before
    assert cklog("retention", tmp_path, "-0").code == 2
