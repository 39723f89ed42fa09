"""Commands about one damaged folder: a disagreement that is made up is noticed, and a small sample has none."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SAMPLES
from tests.fuzz.everywhere import Place, damages, ten_bytes, tried
from tests.fuzz.oracle import Told
from tests.fuzz.subjects import folder_files
from tests.fuzz.tree import Tree
from tests.oracles.answers.agreement import COMMANDS, disagreements
from tests.program import Ended

RUN = {"run": "job", "action": "restart"}
ERROR = {"id": "corrupt-file", "subject": "f", "severity": "error"}
LINE = {"operator": "a", "subtask": 0, "checkpoint": 1, "uri": "file:/state/a-1"}


def answers() -> dict[str, tuple[int, dict[str, Any]]]:
    """What all commands say of a folder in which one run can be restarted."""
    line = {"findings": [], "result": {"action": "restart", "runs": [RUN], "line": [LINE]}}
    row = {"action": "restart", "exit": 0, "error_id": None}
    other: dict[str, Any] = {"findings": [], "result": {"rows": [{"path": "state/a-0", "fate": "OBSOLETE"}]}}
    said = {command: (0, copy.deepcopy(line)) for command in ("recovery-line", "replay", "report", "runbook")}
    said |= {command: (0, copy.deepcopy(other)) for command in ("impact", "inspect", "retention", "verify")}
    return {**said, "scan": (0, {"findings": [], "result": {"runs": [row]}})}


def told(said: dict[str, tuple[int, dict[str, Any]]]) -> dict[str, Told]:
    return {command: Told(Ended(code, json.dumps(one), ""), True) for command, (code, one) in said.items()}


def another_exit(said: dict[str, Any], command: str, code: int) -> None:
    said[command] = code, said[command][1]


def another_action(said: dict[str, Any]) -> None:
    said["report"][1]["result"]["action"] = "repair-first"


def another_error(said: dict[str, Any]) -> None:
    said["replay"][1]["findings"].append(ERROR)


def another_row(said: dict[str, Any]) -> None:
    said["scan"][1]["result"]["runs"][0]["action"] = "start-over"


def refused(said: dict[str, Any]) -> None:
    for command in COMMANDS:
        said[command] = 65, {"error": {}}
    said["scan"] = 3, {"findings": [], "result": {"runs": [{"action": "restart", "exit": 0}]}}


def let_go(said: dict[str, Any]) -> None:
    said["retention"][1]["result"]["rows"][0]["path"] = "state/a-1"


WRONG = {
    "runbook: another exit code": lambda said: another_exit(said, "runbook", 5),
    "impact: another action": lambda said: said["impact"][1]["result"].update(action="start-over"),
    "impact: another exit code": lambda said: another_exit(said, "impact", 3),
    "report: another action": another_action,
    "replay: another error": another_error,
    "scan: another action": another_row,
    "scan: a row for what is refused": refused,
    "verify: a restart is refuted": lambda said: another_exit(said, "verify", 3),
    "retention: the line's state": let_go,
}


@pytest.mark.parametrize("name", WRONG)
def test_commands_that_disagree_are_noticed(name: str) -> None:
    said = answers()
    WRONG[name](said)
    found = list(disagreements(told(said)))
    assert [one for one in found if name.partition(":")[0] in one], found


def test_commands_that_agree_pass() -> None:
    said = answers()
    assert list(disagreements(told(said))) == []
    said["impact"][1]["findings"].append(ERROR)
    another_exit(said, "impact", 3)
    assert list(disagreements(told(said))) == [], "impact reads logs that no line needs"


def test_every_file_is_removed_and_damaged_in_ten_bytes(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "run", folder_files(SAMPLES / "domino-cycle"))
    seen = {}
    for name, how in damages(tree):
        if name:
            seen[name, how] = tree.now(name)
    assert [name for name, _ in seen] == [name for name in tree.names for _ in range(2)]
    for (name, how), now in seen.items():
        data = tree.files[name]
        assert (now is None) == (how == "removed")
        if now is not None:
            places = [at for at, (one, two) in enumerate(zip(data, now, strict=True)) if one != two]
            assert len(places) == min(10, len(data))
            assert places[0] == 0
            assert places[-1] >= 0.8 * len(data) or len(data) < 10
    assert ten_bytes(b"abc") != b"abc"
    assert tree.touched == set()


def test_all_commands_agree_about_a_small_sample_whatever_is_damaged() -> None:
    place = Place("domino-cycle", SAMPLES / "domino-cycle")
    count, wrong = tried(place, every=5)
    assert wrong == []
    assert count == 9 * len(COMMANDS)
