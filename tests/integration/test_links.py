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


@pytest.mark.quarter
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


def move(old: Path, new: Path) -> None:
    """Move a file or folder, and leave a link to where it went."""
    shutil.move(old, new)
    old.symlink_to(new)


def in_place_of(old: Path, target: str) -> None:
    """Put a link in the place of a file or folder."""
    shutil.rmtree(old) if old.is_dir() else old.unlink()
    old.symlink_to(target)


AGG = "outputs/agg1"
QUEUES: dict[str, Callable[[Path, Path], None]] = {
    "all outside": lambda run, away: move(run / "outputs", away),
    "one outside": lambda run, away: move(run / AGG, away),
    "a file outside": lambda run, away: move(run / AGG / "part-00000.jsonl", away),
    "all elsewhere below PATH": lambda run, _: move(run / "outputs", run / "real"),
    "one elsewhere below PATH": lambda run, _: move(run / AGG, run / "real"),
    "all in a circle": lambda run, _: in_place_of(run / "outputs", "outputs"),
    "one in a circle": lambda run, _: in_place_of(run / AGG, "agg1"),
    "a file in a circle": lambda run, _: in_place_of(run / AGG / "part-00000.jsonl", "part-00000.jsonl"),
    "one up": lambda run, _: in_place_of(run / AGG, ".."),
    "one nowhere": lambda run, _: in_place_of(run / AGG, "/nonexistent/agg1"),
}
ASKED_OF_QUEUES = (
    ["extent", "--operator", "agg1"],
    ["extent", "--operator", "agg1/0"],
    ["extent", "--operator", "agg1", "--over-time"],
    ["eventual-checkpoint", "--operator", "agg1"],
    *([command] for command in ("recovery-line", "replay", "retention", "inspect", "impact")),
)


@pytest.mark.quarter
@pytest.mark.parametrize("case", QUEUES)
def test_a_queue_behind_a_link_is_followed_or_refused_by_every_command(case: str, tmp_path: Path) -> None:
    """What leads out of PATH is read with --follow-links; the rest nobody reads, and no answer is without it."""
    home = tmp_path / "run"
    shutil.copytree(SAMPLES / "cec-aggregate", home)
    whole = [ask(words[0], home, *words[1:]) for words in ASKED_OF_QUEUES]
    QUEUES[case](home, tmp_path / "away")
    for words, before in zip(ASKED_OF_QUEUES, whole, strict=True):
        code, found = ask(words[0], home, *words[1:])
        assert code == 5, words
        told = [found["error"]["id"]] if "error" in found else ids(found)
        assert "unreadable-file" in told, words
        if "outside" in case:
            assert ask(words[0], home, *words[1:], "--follow-links") == before, words


def test_a_folder_is_listed_once_whatever_links_lead_to_it(tmp_path: Path) -> None:
    """In whatever order the file system names them."""
    for name in ("aa", "zz", "m"):
        (tmp_path / "x" / "real" / "deep").mkdir(parents=True, exist_ok=True)
        (tmp_path / "x" / name).symlink_to(tmp_path / "x" / "real")
    (tmp_path / "x" / "real" / "deep" / "f").write_bytes(b"1")
    (tmp_path / "x" / "real" / "deep" / "up").symlink_to("../..")
    for follow in (False, True):
        root = Root(str(tmp_path / "x"), follow_links=follow)
        assert [entry.path for entry in root.list()] == ["real/deep/f"]
        assert sorted(root.unfollowed()) == ["aa", "m", "real/deep/up", "zz"]
        assert not root.trouble.links
    for name in ("b", "a"):
        (tmp_path / name).symlink_to(tmp_path / "x" / "real" / "deep" / "..")
    (tmp_path / "x" / "real" / "deep" / "up").unlink()
    outside = Root(str(tmp_path / "y"), follow_links=True)
    (tmp_path / "y").mkdir()
    for name in ("b", "a"):
        (tmp_path / name).rename(tmp_path / "y" / name)
    assert [entry.path for entry in outside.list()] == ["a/deep/f"]
    assert list(outside.unfollowed()) == ["b"]


def test_a_map_into_a_bucket_keeps_what_the_uri_says_of_it() -> None:
    """What stands behind the question mark says how to get to the store: it is no part of a name."""
    root = Root("s3://b/copy?region=x", (("file:///srv/ck", "s3://b/copy?region=x"),))
    assert root.resolve("file:///srv/ck/shared/1") == "s3://b/copy/shared/1?region=x"
    assert root.original("s3://b/copy/shared/1?region=x") == "file:///srv/ck/shared/1"
    assert root.below("shared").path == "s3://b/copy/shared?region=x"


@pytest.mark.parametrize(
    ("command", "sample", "log"),
    [("recovery-line", "uncoordinated-join", "orders.jsonl"), ("rounds", "token-rounds", "part-00000.jsonl")],
)
def test_messages_of_a_log_that_is_not_read_are_not_said_to_be_gone(
    command: str, sample: str, log: str, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(SAMPLES / sample, run)
    (run / "channels" / log).rename(tmp_path / log)
    (run / "channels" / log).symlink_to(tmp_path / log)
    code, found = ask(command, run)
    assert code == 5
    [hole] = [one["message"] for one in found["findings"] if one["id"] == "retention-hole"]
    assert "are gone from the log, or in a part of it that cannot be read" in hole
