"""Every command on every sample, and on folders of real systems: an answer, or a refusal, with a documented exit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.integration.questions import FOLDERS, QUESTIONS
from tests.program import cklog

REAL = ("engine-verified", "flink-checkpoints", "flink-metadata", "kafka", "spark-checkpoints")
DOCUMENTED = {0, 2, 3, 4, 5, 65, 66}
"""What docs/json.md has for intact input, and for a question to which a folder may hold no answer."""


def ends_as_documented(question: str, folder: Path) -> None:
    ended = cklog(*(str(folder) if word == "PATH" else word for word in question.split()))
    where = f"{question} {folder.name}: exit {ended.code}\n{ended.err}"
    assert ended.code in DOCUMENTED, where
    assert "Traceback" not in ended.err, where
    assert "Usage:" not in ended.err, where  # then the question itself is wrong
    refused = ended.code not in (0, 3, 4, 5)
    if refused and question.endswith("--json"):
        assert ended.out.startswith('{"error": '), where
    else:
        assert bool(ended.out) != refused, where


def ask_everything(folders: list[Path], scratch: Path) -> None:
    """Every question; and its line, where there is one, is proved or refuted."""
    line = scratch / "line.json"
    for folder in folders:
        for question in QUESTIONS:
            ends_as_documented(question, folder)
        line.write_text(cklog("recovery-line", folder, "--json").out or "{}")
        ends_as_documented(f"verify PATH --line {line} --maximal", folder)


def folders_below(path: Path) -> list[Path]:
    """Every folder that somebody could name: the path itself, and all below it."""
    return [path, *sorted(entry for entry in path.rglob("*") if entry.is_dir() and not entry.is_symlink())]


@pytest.mark.quarter
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_every_command_on_a_sample(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    ask_everything([folder], tmp_path)


@pytest.mark.parametrize("name", ["flink-zeroed-sst", "kafka-streams-43", "spark-v2-sink-ahead"])
def test_every_command_on_what_a_real_system_left(
    name: str, shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(REPOSITORY)
    folder = shared_data / "engine-verified" / name
    assert folder.is_dir()
    ask_everything([folder], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("system", REAL)
def test_every_command_on_every_folder_of_real_data(
    system: str, shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs, parts of runs, folders of several runs, and folders that hold none."""
    monkeypatch.chdir(REPOSITORY)
    ask_everything(folders_below(shared_data / system), tmp_path)


@pytest.mark.slow
def test_every_command_above_the_real_data(shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    assert {path.name for path in shared_data.iterdir() if path.is_dir()} <= set(REAL)
    ask_everything([shared_data], tmp_path)


@pytest.mark.slow
def test_every_command_on_the_image_of_a_broker(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(REPOSITORY)
    image = tmp_path / "image"
    image.mkdir()
    packed = shared_data / "kafka" / "broker-crash.tar.gz"
    subprocess.run(["tar", "-xzSf", packed, "-C", image], check=True, timeout=120)
    folders = folders_below(image)
    assert len(folders) > 15
    ask_everything(folders, tmp_path)
