"""Links that lead out of PATH: there and not read, or read exactly as if nothing were a link."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cklog.storage import Root
from tests.conftest import SAMPLES
from tests.program import cklog

FOLDERS = sorted(path.name for path in SAMPLES.iterdir() if path.is_dir())
COMMANDS = ("inspect", "recovery-line", "retention", "chain")


def ask(*words: str | Path) -> tuple[int, dict[str, Any]]:
    """The exit code, and the answer or the error."""
    ran = cklog(*words, "--json")
    assert "Traceback" not in ran.err
    return ran.code, json.loads(ran.out or ran.err.strip().splitlines()[-1])


def ids(found: dict[str, Any]) -> set[str]:
    return {finding["id"] for finding in found["findings"]}


def answers(home: Path) -> dict[str, tuple[int, Any]]:
    """What a folder is answered, by command, but for what is said of links."""
    told = {}
    for command in COMMANDS:
        code, found = ask(command, home, "--follow-links")
        told[command] = code, found
    return told


def link_each_file(home: Path, outside: Path) -> None:
    """Every file elsewhere, by another name in one folder."""
    outside.mkdir()
    for number, path in enumerate(sorted(path for path in home.rglob("*") if path.is_file())):
        path.rename(outside / str(number))
        path.symlink_to(outside / str(number))


def link_each_folder(home: Path, outside: Path) -> None:
    """Every folder that holds files elsewhere, the innermost ones first."""
    outside.mkdir()
    folders = sorted((path for path in home.rglob("*") if path.is_dir()), key=lambda path: -len(path.parts))
    for number, path in enumerate(folders):
        path.rename(outside / str(number))
        path.symlink_to(outside / str(number))


@pytest.mark.parametrize("link", [link_each_file, link_each_folder])
@pytest.mark.parametrize("name", FOLDERS)
def test_with_links_followed_nothing_is_answered_otherwise(
    name: str, link: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    """What lists and what reads see the same files, by the same numbers."""
    home = tmp_path / "run"
    shutil.copytree(SAMPLES / name, home)
    whole = answers(home)
    link(home, tmp_path / "outside")
    assert answers(home) == whole


PARTS = [
    *(f"ck/{log}{one}" for log in ("offsets", "commits", "sources/0") for one in ("", "/5")),
    *("ck/offsets/6", "ck/sources", "ck/metadata", "out/_spark_metadata", "out/_spark_metadata/5"),
    *("ck/state", "ck/state/0", "ck/state/0/1", "ck/state/0/1/6.delta"),
]


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_a_query_behind_a_link_is_there_and_not_read(part: str, tmp_path: Path) -> None:
    """No file tells of it but the link: never that it is missing and the restart fails, never that all is well."""
    home = tmp_path / "run"
    shutil.copytree(SAMPLES / "spark-wordcount", home)
    asked = ("recovery-line", home, "--map", f"file:///srv/cklog-sample/wordcount={home}")
    whole = ask(*asked)
    moved, path = tmp_path / "outside", home / part
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
    path.rename(moved)
    path.symlink_to(moved)
    code, found = ask(*asked)
    assert (code, found["verdict"]) == (5, "indeterminate")
    assert "unfollowed-link" in ids(found)
    assert {"sink-log-behind", "missing-batch-file", "missing-metadata"}.isdisjoint(
        finding["id"] for finding in found["findings"] if finding["subject"] == part
    )
    code, found = ask(*asked, "--follow-links")
    assert (code, found["result"]) == (whole[0], whole[1]["result"])


def put_aside(home: Path, path: str, outside: Path) -> None:
    """Move a file or folder out of a run, and leave a link to it."""
    outside.mkdir()
    (home / path).rename(outside / "moved")
    (home / path).symlink_to(outside / "moved")
    (home / path).with_name(f".{Path(path).name}.crc").unlink(missing_ok=True)


READS = {
    "checkpoints": ("recovery-line", "z-cycles", "retention", "inspect", "graph"),
    "channels": ("recovery-line", "replay", "inspect"),
    "events": ("z-cycles",),
    "job.json": ("recovery-line", "z-cycles", "retention", "inspect"),
}


@pytest.mark.parametrize("part", ["checkpoints", "checkpoints/join.jsonl", "channels/join.jsonl", "events", "job.json"])
def test_a_table_of_a_run_behind_a_link_is_unread(part: str, tmp_path: Path) -> None:
    home = tmp_path / "run"
    shutil.copytree(SAMPLES / "uncoordinated-join", home)
    put_aside(home, part, tmp_path / "outside")
    for command in READS[part.partition("/")[0]]:
        code, found = ask(command, home)
        assert code == 5, command
        assert found.get("verdict", "indeterminate") == "indeterminate"


def deletable(result: dict[str, Any]) -> set[str]:
    return {row["path"] for row in result["rows"] if row["fate"] == "OBSOLETE"}


@pytest.mark.parametrize("command", ["recovery-line", "z-cycles", "retention"])
@pytest.mark.parametrize("name", ["join", "orders", "payments", "sink"])
def test_a_link_makes_no_answer_more_certain_than_damage_does(command: str, name: str, tmp_path: Path) -> None:
    """Records that nobody read are as unknown as those that nobody can read."""
    path = f"checkpoints/{name}.jsonl"
    told = []
    for home in (tmp_path / "linked", tmp_path / "damaged"):
        shutil.copytree(SAMPLES / "uncoordinated-join", home)
        (home / f"checkpoints/.{name}.jsonl.crc").unlink(missing_ok=True)
        (home / path).write_text("?\n" * 3) if home.name == "damaged" else put_aside(home, path, tmp_path / "outside")
        told.append(ask(command, home)[1]["result"])
    if command == "retention":
        assert deletable(told[0]) <= deletable(told[1])
        return
    if command == "recovery-line":
        linked, damaged = ([one.pop("action"), one.pop("runs")][0] for one in told)
        assert (linked, damaged) == ("undetermined", "restart-older")
    assert told[0] == told[1]


def test_other_places_of_a_run_behind_links_are_unread_too(tmp_path: Path) -> None:
    for sample, part, *command in (
        ("cec-aggregate", "outputs", "recovery-line"),
        ("cec-aggregate", "outputs/agg1", "extent"),
        ("cec-aggregate", "outputs/agg1", "eventual-checkpoint"),
        ("odysseus-gap", "system", "impact"),
        ("meteor-shower", "state", "advise", "timing"),
        ("token-rounds", "system", "rounds"),
    ):
        home = tmp_path / f"{sample}-{'-'.join(command)}"
        shutil.copytree(SAMPLES / sample, home)
        put_aside(home, part, tmp_path / f"{home.name}-outside")
        assert ask(*command, home)[0] == 5, (sample, part)


def test_a_map_into_a_bucket_keeps_what_the_uri_says_of_it() -> None:
    """What stands behind the question mark says how to get to the store: it is no part of a name."""
    root = Root("s3://b/copy?region=x", (("file:///srv/ck", "s3://b/copy?region=x"),))
    assert root.resolve("file:///srv/ck/shared/1") == "s3://b/copy/shared/1?region=x"
    assert root.original("s3://b/copy/shared/1?region=x") == "file:///srv/ck/shared/1"
    assert root.below("shared").path == "s3://b/copy/shared?region=x"
