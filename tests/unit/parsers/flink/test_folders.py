"""Where PATH is and what lies there: parts of a root, copies, names that nobody should follow."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from cklog import storage
from tests.builders import flink as fb
from tests.builders.flink_folders import OLD, ORIGIN, Snapshot, checkpoint, file, job, torn, uri
from tests.program import cklog
from tests.reading.flink_folders import asked, ids, restored, verdicts


def test_a_snapshot_by_itself(tmp_path: Path) -> None:
    """PATH is one checkpoint: its shared files lie next to it, by the names of its folder and its job's.

    Of one that cannot be restored nothing tells whether there is an older one: that is a question about its folder.
    """
    job(tmp_path)
    torn(tmp_path, OLD, 8)
    for path in (tmp_path / OLD / "chk-6", f"{tmp_path / OLD / 'chk-6'}/", f"file://{tmp_path / OLD / 'chk-6'}"):
        answer = asked("recovery-line", path, root=tmp_path)
        assert verdicts(answer) == {"chk-6": "restorable"}
        assert restored(answer) == {OLD: uri(OLD, "chk-6")}
    assert asked("recovery-line", tmp_path / OLD / "chk-8", root=tmp_path)["exit"] == 5
    copy = tmp_path / "a copy; of it"
    shutil.copytree(tmp_path / OLD / "chk-6", copy)
    answer = asked("recovery-line", copy)
    assert (answer["exit"], verdicts(answer)) == (5, {".": "unchecked"})
    answer = asked("recovery-line", copy, "--no-check-files")
    assert answer["result"]["details"]["restore"][0]["command"] == f"flink run -s '{copy}'"


def test_a_folder_without_snapshots(tmp_path: Path) -> None:
    assert asked("recovery-line", tmp_path)["exit"] == 66
    answer = asked("recovery-line", tmp_path, "--from", "flink")
    assert (answer["exit"], answer["result"]["line"]) == (4, [])
    assert asked("retention", tmp_path, "--from", "flink")["exit"] == 0
    assert asked("inspect", tmp_path, "--from", "flink")["exit"] == 0


def test_a_renamed_checkpoint(tmp_path: Path) -> None:
    job(tmp_path)
    (tmp_path / OLD / "chk-7").rename(tmp_path / OLD / "chk-70")
    answer = asked("recovery-line", tmp_path, root=tmp_path)
    assert "renamed-snapshot" in ids(answer)
    assert answer["result"]["line"][0]["checkpoint"] == 7


HOSTILE = (
    "../../../canary",
    "..",
    "",
    ".",
    "a/../../../../canary",
    "x\n../canary",
    "\x1b[31m",
    "file:canary",
    "-rf",
)


@pytest.mark.parametrize("name", HOSTILE)
def test_relative_names_lead_nowhere_outside(tmp_path: Path, name: str, looked_at: list[str]) -> None:
    root = tmp_path / "root"
    file(tmp_path / "canary", 5)
    checkpoint(root, OLD, 7, Snapshot(other=(fb.relative(name, 5),)))
    answer = asked("recovery-line", root)
    assert verdicts(answer)[f"{OLD}/chk-7"] in ("unchecked", "missing-state-file")
    assert restored(answer) == {OLD: None}
    assert all(inside(path, root) for path in looked_at)


@pytest.mark.parametrize(
    "stored",
    [
        "/CANARY",
        "file:/CANARY",
        "file:///CANARY",
        "file://host/CANARY",
        f"{ORIGIN}/../../../../../../CANARY",
        f"{ORIGIN}/{OLD}/shared/../../../canary",
        f"file:/x/{OLD}/../canary",
        f"file:/x/{OLD}/shared/../../../canary",
        "http://127.0.0.1:9/canary",
        "s3://bucket/canary",
        "file:",
        "/",
        "//",
    ],
)
def test_absolute_names_lead_nowhere_outside(tmp_path: Path, stored: str, looked_at: list[str]) -> None:
    root = tmp_path / "root"
    canary = file(tmp_path / "canary", 5)
    stored = stored.replace("/CANARY", str(canary))
    readers = fb.states(fb.absolute(stored, 5), {"SourceReaderState": (0, [0])})
    source = fb.operator(6, [fb.subtask(6, managed=readers)])
    folder = checkpoint(root, OLD, 7)
    (folder / "_metadata").write_bytes(fb.metadata(6, [source], checkpoint=7).data)
    for maps in (None, root):
        answer = asked("replay", root, root=maps)
        assert verdicts(answer)[f"{OLD}/chk-7"] in ("unchecked", "missing-state-file")
        assert restored(answer) == {OLD: None}
    assert all(inside(path, root) for path in looked_at)


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths that were opened, asked about or listed, of whatever file system."""
    found: list[str] = []
    real = storage.file_system

    def noted(path: str) -> Any:
        found.append(path)
        return real(path)

    monkeypatch.setattr(storage, "file_system", noted)
    return found


def inside(path: str, root: Path) -> bool:
    return Path(os.path.abspath(path.removeprefix("file://"))).is_relative_to(root)


def test_a_map_leads_outside_if_it_says_so(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    checkpoint(root, OLD, 7, Snapshot({"../elsewhere/x": 5, "../elsewhere/deep/y": 6}))
    assert asked("recovery-line", root)["exit"] == 5
    told = str(elsewhere)
    answer = asked("recovery-line", root, "--map", f"{ORIGIN}/../elsewhere={told}")
    assert verdicts(answer) == {f"{OLD}/chk-7": "restorable"}
    (elsewhere / "x").write_bytes(b"")
    answer = asked("recovery-line", root, "--map", f"{ORIGIN}/../elsewhere={told}")
    assert verdicts(answer) == {f"{OLD}/chk-7": "size-mismatch"}


def test_names_with_control_characters_are_shown_as_what_they_are(tmp_path: Path) -> None:
    checkpoint(tmp_path, OLD, 7, Snapshot(other=(fb.relative("a\n\x1b[31mb", 5),)))
    shown = cklog("recovery-line", tmp_path)
    assert "\x1b" not in shown.out
    assert re.search(r"chk-7/a\\n\\x1b\[31mb", shown.out)


def test_files_are_listed_and_not_asked_about_one_by_one(tmp_path: Path, looked_at: list[str]) -> None:
    calls = []
    for count in (3, 300):
        root = tmp_path / str(count)
        checkpoint(root, OLD, 7, Snapshot({f"{OLD}/shared/s{n}": 1 for n in range(count)}))
        looked_at.clear()
        assert verdicts(asked("recovery-line", root, root=root)) == {f"{OLD}/chk-7": "restorable"}
        calls.append(len(looked_at))
    assert calls[0] == calls[1] < 20
