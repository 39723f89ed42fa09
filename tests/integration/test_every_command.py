"""Every command on every sample, and on folders of real systems: an answer, or a refusal, with a documented exit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.program import cklog

SAMPLES = sorted(path for path in (REPOSITORY / "sample_logs").iterdir() if path.is_dir())
DOCUMENTED = {0, 2, 3, 4, 5, 65, 66}
"""What docs/json.md has for intact input, and for a question to which a folder may hold no answer."""

QUESTIONS = (
    "recovery-line PATH",
    "recovery-line PATH --json",
    "recovery-line PATH --explain",
    "recovery-line PATH --failed-at all",
    "replay PATH --json",
    "inspect PATH",
    "inspect PATH --metrics --json",
    "impact PATH",
    "impact PATH --json",
    "retention PATH",
    "retention PATH --format script",
    "chain PATH",
    "chain PATH --json",
    "rounds PATH",
    "graph PATH",
    "graph PATH --format svg",
    "graph PATH --kind rollback",
    "z-cycles PATH",
    "z-cycles PATH --audit-cic",
    "extent PATH --operator agg1",
    "extent PATH --operator agg1 --over-time",
    "eventual-checkpoint PATH --operator agg1",
    "advise extent PATH --operator agg1",
    "advise delta PATH",
    "advise timing PATH",
    "compare PATH sample_logs/uncoordinated-join",
)


def ends_as_documented(question: str, folder: Path) -> None:
    ended = cklog(*(str(folder) if word == "PATH" else word for word in question.split()))
    where = f"{question} {folder.name}: exit {ended.code}\n{ended.err}"
    assert ended.code in DOCUMENTED, where
    assert "Traceback" not in ended.err, where
    assert "Usage:" not in ended.err, where  # then the question itself is wrong
    assert ended.out if ended.code in (0, 3, 4, 5) else not ended.out, where


@pytest.mark.parametrize("folder", SAMPLES, ids=lambda path: path.name)
def test_every_command_on_a_sample(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    for question in QUESTIONS:
        ends_as_documented(question, folder)


def test_every_command_on_what_real_systems_left(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    folders = sorted(path for path in (shared_data / "engine-verified").iterdir() if path.is_dir())
    assert folders
    for folder in folders:
        for question in QUESTIONS:
            ends_as_documented(question, folder)
