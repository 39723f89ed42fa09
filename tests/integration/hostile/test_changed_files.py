"""A file that is something else when it is read than when its folder was listed: exit 5, naming it, in every format."""

from __future__ import annotations

import functools
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cklog import storage
from cklog.stores import local
from tests.conftest import SAMPLES
from tests.program import Ended, cklog

NOT_READ = ("README.md", "expected.json")
PATHS = {"kafka-streams-state": "state", "tables": "flink-older-checkpoint"}
"""Samples whose PATH is a folder in them."""

EACH_FORMAT = (
    *("cec-aggregate", "cec-aggregate-kafka", "cec-aggregate-parquet", "checkmate-uncoordinated", "connect-offsets"),
    *("flink-orders", "incremental", "kafka-broker", "kafka-streams-state", "odysseus-gap", "patent-store"),
    *("raw-events", "spark-state-hdfs", "spark-state-rocksdb", "tables", "uncoordinated-join-parquet"),
)
OTHERS = sorted({path.name for path in SAMPLES.iterdir() if path.is_dir()} - {*EACH_FORMAT})


@pytest.fixture(autouse=True)
def no_directory_listed_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process answers for one run; this one has answered for others, which may have followed links."""
    monkeypatch.setattr(local, "_listed", {})
    monkeypatch.setattr(local, "_real_places", set())


def to_a_folder(path: Path, copy: Path) -> None:
    path.unlink()
    path.mkdir()


def to_a_link(path: Path, copy: Path) -> None:
    """To the same bytes, outside PATH: only where they are says that they were not listed."""
    path.unlink()
    path.symlink_to(copy)


def to_a_pipe(path: Path, copy: Path) -> None:
    path.unlink()
    os.mkfifo(path)


CHANGES: tuple[Callable[[Path, Path], None], ...] = (to_a_folder, to_a_link, to_a_pipe)


@contextmanager
def changed_once_listed(path: Path, change: Callable[[], None]) -> Iterator[list[Path]]:
    """Have a file change when the root that holds it has been listed; yields what was changed."""
    listed, done = storage.Root.tree, list[Path]()

    def tree(self: storage.Root, prefix: str = "") -> storage.Tree:
        found = listed(self, prefix)
        if not done and any(Path(self.uri(""), entry.path) == path for entry in found.files):
            done.append(path)
            change()
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage.Root, "tree", tree)
        yield done


def one_of_each_kind(home: Path) -> list[Path]:
    """One file of each folder and suffix."""
    files = sorted(path for path in home.rglob("*") if path.is_file() and path.name not in NOT_READ)
    return list({(path.parent, path.suffix): path for path in files}.values())


def ids(ended: Ended) -> set[str]:
    found: dict[str, Any] = json.loads(ended.out)
    return {one["id"] for one in found["findings"]} if "findings" in found else {found["error"]["id"]}


def change_each(
    name: str, command: str, home: Path, choose: Callable[[int], tuple[Callable[[Path, Path], None], ...]]
) -> int:
    """Change one file after the other; an answer stays the same, or is exit 5. Returns how many were exit 5."""
    shutil.copytree(SAMPLES / name, home)
    words = (command, home / PATHS.get(name, ""), "--json")
    whole, refused = cklog(*words), 0
    for number, path in enumerate(one_of_each_kind(home)):
        needed = set()
        for change in choose(number):
            data = path.read_bytes()
            copy = SAMPLES / name / path.relative_to(home)
            with changed_once_listed(path, functools.partial(change, path, copy)) as done:
                ended = cklog(*words)
            if done:
                path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
                path.write_bytes(data)
            what = (path.relative_to(home), change.__name__, ended)
            assert "Traceback" not in ended.err, what
            same = (ended.code, ended.out) == (whole.code, whole.out)
            assert same or (ended.code == 5 and "unreadable-file" in ids(ended)), what
            needed.add(not same)
            refused += not same
        assert len(needed) < 2, (path, "a link is read where a folder is refused")
    return refused


@pytest.mark.quarter
@pytest.mark.parametrize("name", EACH_FORMAT)
def test_what_is_read_is_what_was_listed(name: str, tmp_path: Path) -> None:
    """Links alone, but for a folder or pipe now and then: they differ in nothing after the file was opened."""
    assert change_each(
        name, "recovery-line", tmp_path / name, lambda i: (CHANGES[1], CHANGES[2 * (i % 2)])[: 1 + (i % 3 == 0)]
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", ["recovery-line", "inspect", "retention", "impact"])
@pytest.mark.parametrize("name", [*EACH_FORMAT, *OTHERS])
def test_every_change_of_every_kind_of_file(name: str, command: str, tmp_path: Path) -> None:
    change_each(name, command, tmp_path / name, lambda i: CHANGES)


def test_links_may_lead_out_if_that_was_asked_for(tmp_path: Path) -> None:
    home, copy = tmp_path / "run", SAMPLES / "domino-cycle"
    shutil.copytree(copy, home)
    path = one_of_each_kind(home / "checkpoints")[0]
    words = ("recovery-line", home, "--json", "--follow-links")
    whole = cklog(*words)
    with changed_once_listed(path, lambda: to_a_link(path, copy / path.relative_to(home))) as done:
        assert cklog(*words) == whole
    assert done


def test_a_folder_that_becomes_a_link_is_left_as_well(tmp_path: Path) -> None:
    home, copy = tmp_path / "run", SAMPLES / "domino-cycle"
    shutil.copytree(copy, home)
    path = one_of_each_kind(home / "checkpoints")[0]

    def change() -> None:
        shutil.rmtree(path.parent)
        path.parent.symlink_to(copy / "checkpoints")

    with changed_once_listed(path, change):
        ended = cklog("recovery-line", home, "--json")
    assert (ended.code, ids(ended)) == (5, {"unreadable-file"})


@pytest.mark.slow
def test_a_scan_by_processes_of_its_own_reads_no_link_that_was_made_meanwhile(tmp_path: Path) -> None:
    """The folders of many runs are listed by one process, and read by others."""
    for number in range(300):
        shutil.copytree(SAMPLES / "domino-cycle", tmp_path / "runs" / str(number))
    path = tmp_path / "runs" / "7" / "checkpoints" / one_of_each_kind(SAMPLES / "domino-cycle" / "checkpoints")[0].name
    copy = SAMPLES / "domino-cycle" / "checkpoints" / path.name
    with changed_once_listed(path, lambda: to_a_link(path, copy)) as done:
        ended = cklog("scan", tmp_path / "runs", "--json", "--engine", "local")
    assert done
    rows = {row["path"].rpartition("/")[2]: row["exit"] for row in json.loads(ended.out)["result"]["runs"]}
    assert rows.pop("7") == 5
    assert set(rows.values()) == {rows["8"]}
