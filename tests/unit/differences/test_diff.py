"""What `diff` says of two answers: exactly what was changed in one of them, and nothing of what was not."""

from __future__ import annotations

import copy
import io
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SAMPLES
from tests.program import Ended, cklog

JOIN = SAMPLES / "uncoordinated-join"


@pytest.fixture(scope="module")
def answer() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cklog("recovery-line", JOIN, "--json").out)
    return found


def held_against(before: Any, after: Any, place: Path, *options: str) -> Ended:
    for name, value in (("before.json", before), ("after.json", after)):
        (place / name).write_text(json.dumps(value), encoding="utf-8")
    return cklog("diff", place / "before.json", place / "after.json", *options)


def differing(before: Any, after: Any, place: Path) -> dict[str, Any]:
    ended = held_against(before, after, place, "--json")
    assert ended.code == 0, ended.err
    told: dict[str, Any] = json.loads(ended.out)
    return dict(told["result"])


def test_an_answer_is_the_same_as_itself(answer: dict[str, Any], tmp_path: Path) -> None:
    found = differing(answer, answer, tmp_path)
    assert found["same"] is True
    assert [found[name] for name in ("line", "ranges", "sources", "files", "others")] == [[]] * 5
    assert {one["change"] for one in found["findings"]} <= {"same"}
    assert held_against(answer, answer, tmp_path, "--exit-code").code == 0


def test_another_version_or_order_of_members_is_no_difference(answer: dict[str, Any], tmp_path: Path) -> None:
    other = dict(reversed(copy.deepcopy(answer).items()))
    other["tool"]["version"] = "0.0.9"
    assert differing(answer, other, tmp_path)["same"] is True
    assert "cklog 0.0.9 after" in held_against(answer, other, tmp_path).out


EDITS: list[tuple[str, Callable[[dict[str, Any]], Any], str, dict[str, Any]]] = [
    (
        "line",
        lambda told: told["result"]["line"][1].update(checkpoint=1),
        "line",
        {"subject": "join/1", "change": "older", "before": {"checkpoint": 3}, "after": {"checkpoint": 1}},
    ),
    (
        "initial",
        lambda told: told["result"]["line"][1].update(checkpoint=0, state="initial"),
        "line",
        {
            "subject": "join/1",
            "change": "older",
            "before": {"checkpoint": 3, "state": "stored"},
            "after": {"checkpoint": 0, "state": "initial"},
        },
    ),
    (
        "current",
        lambda told: told["result"]["line"][1].update(checkpoint=None, state="current"),
        "line",
        {
            "subject": "join/1",
            "change": "newer",
            "before": {"checkpoint": 3, "state": "stored"},
            "after": {"checkpoint": None, "state": "current"},
        },
    ),
    (
        "source",
        lambda told: told["result"]["sources"][0].update(offset=9_999),
        "sources",
        {"change": "newer", "after": {"offset": 9_999}},
    ),
    (
        "start",
        lambda told: told["result"]["sources"][0].update(offset=None),
        "sources",
        {"change": "older", "after": {"offset": None}},
    ),
    (
        "range",
        lambda told: told["result"]["channels"][0].update(replay_to=777),
        "ranges",
        {"change": "changed", "after": {"replay_to": 777}},
    ),
    (
        "gone",
        lambda told: told["result"]["line"].pop(0),
        "line",
        {"subject": "join/0", "change": "gone", "after": None},
    ),
    ("member", lambda told: told["result"].update(domino="?"), "others", {"path": "domino", "after": "?"}),
    ("new", lambda told: told["result"].update(later=[1]), "others", {"path": "later", "before": None, "after": [1]}),
    (
        "input",
        lambda told: told["inputs"][0].update(bytes=1),
        "others",
        {"path": "inputs[job.json]", "after": {"bytes": 1}},
    ),
]


@pytest.mark.parametrize(("edit", "where", "told"), [edit[1:] for edit in EDITS], ids=[edit[0] for edit in EDITS])
def test_what_was_changed_is_told_and_nothing_else(
    edit: Callable[[dict[str, Any]], Any], where: str, told: dict[str, Any], answer: dict[str, Any], tmp_path: Path
) -> None:
    other = copy.deepcopy(answer)
    edit(other)
    found = differing(answer, other, tmp_path)
    assert found["same"] is False
    assert len(found[where]) == 1
    assert {name: found[where][0][name] for name in told} == told
    rest = ["line", "ranges", "sources", "files", "others"]
    assert [found[name] for name in rest if name != where] == [[]] * 4
    assert held_against(answer, other, tmp_path, "--exit-code").code == 1
    assert held_against(answer, other, tmp_path).code == 0


def test_findings_are_gone_new_changed_or_the_same(answer: dict[str, Any], tmp_path: Path) -> None:
    def finding(name: str, severity: str, subject: str) -> dict[str, Any]:
        return {"id": name, "severity": severity, "subject": subject, "message": f"{name} there", "where": []}

    kept = finding("torn-tail", "warning", "a")
    before = {**answer, "verdict": "findings", "findings": [finding("bad-record", "error", "a"), kept, kept]}
    after = {**answer, "verdict": "findings", "findings": [finding("bad-record", "warning", "a"), kept]}
    after["findings"].append(finding("empty-file", "warning", "b"))
    found = differing(before, after, tmp_path)
    told = [(one["change"], one["id"], one["severity_before"], one["severity"]) for one in found["findings"]]
    assert told == [
        ("gone", "torn-tail", "warning", "warning"),
        ("new", "empty-file", None, "warning"),
        ("changed", "bad-record", "error", "warning"),
        ("same", "torn-tail", "warning", "warning"),
    ]
    assert (found["before"]["exit"], found["after"]["exit"]) == (3, 0)
    table = held_against(before, after, tmp_path, "--table", "findings", "--format", "jsonl").out.splitlines()
    assert [json.loads(line) for line in table] == found["findings"]
    assert "findings (exit 3) before, findings (exit 0) after" in held_against(before, after, tmp_path).out


def test_files_that_may_go_now_and_files_that_stay_now(tmp_path: Path) -> None:
    folder = JOIN
    before = json.loads(cklog("retention", folder, "--keep", "4", "--json").out)
    after = json.loads(cklog("retention", folder, "--keep", "1", "--json").out)
    fates = [{row["path"]: row["fate"] == "OBSOLETE" for row in one["result"]["rows"]} for one in (before, after)]
    found = differing(before, after, tmp_path)
    now = {one["subject"] for one in found["files"] if one["change"] == "deletable"}
    stays = {one["subject"] for one in found["files"] if one["change"] == "kept"}
    assert now == {path for path in fates[0] if fates[1][path] and not fates[0][path]}
    assert stays == {path for path in fates[0] if fates[0][path] and not fates[1][path]}
    assert now | stays


def test_run_folders_are_asked_for_their_lines(tmp_path: Path) -> None:
    shutil.copytree(JOIN, tmp_path / "after")
    damaged = tmp_path / "after" / "checkpoints" / "join.jsonl"
    damaged.write_bytes(damaged.read_bytes()[:-40])
    after = tmp_path / "after.json"
    after.write_text(cklog("recovery-line", tmp_path / "after", "--json").out, encoding="utf-8")
    asked = json.loads(cklog("diff", JOIN, tmp_path / "after", "--json").out)["result"]
    told = json.loads(cklog("diff", JOIN, after, "--json").out)["result"]
    del asked["after"]["name"], told["after"]["name"]
    assert asked == told
    assert {(one["change"], one["id"]) for one in asked["findings"]} == {
        ("new", "bad-record"),
        ("new", "checksum-mismatch"),
    }


def test_another_action_is_told_in_the_first_line(answer: dict[str, Any], tmp_path: Path) -> None:
    other = copy.deepcopy(answer)
    other["result"]["action"] = "salvage-first"
    told = held_against(answer, other, tmp_path, "--brief").out
    assert told == "Different: both ok (exit 0). Action: restart before, salvage-first after.\n"


def test_cells_hold_whole_members_and_times_as_people_read_them(answer: dict[str, Any], tmp_path: Path) -> None:
    other = copy.deepcopy(answer)
    gone = other["result"]["line"].pop(0)
    assert (gone["operator"], gone["time"]) == ("join", 1767225616346)
    told = held_against(answer, other, tmp_path).out
    assert "join/0    gone     checkpoint 4, time 2026-01-01T00:00:16.346Z, uri ck/join/0/4, …" in told


def test_an_error_in_place_of_an_answer_is_told(tmp_path: Path) -> None:
    refused = cklog("recovery-line", SAMPLES / "domino-cycle", "--run", "none", "--json")
    error = next(line for line in (refused.out + refused.err).splitlines() if line.startswith('{"error"'))
    (tmp_path / "before.json").write_text(error, encoding="utf-8")
    ended = cklog("diff", tmp_path / "before.json", SAMPLES / "domino-cycle")
    assert ended.code == 0
    assert f"error {json.loads(error)['error']['id']} (exit {refused.code}) before" in ended.out


def test_one_answer_may_come_from_stdin(
    answer: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.json").write_text(json.dumps(answer), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(answer).encode())))
    assert cklog("diff", tmp_path / "a.json", "-", "--exit-code").code == 0
    assert cklog("diff", "-", "-").code == 2


def test_a_closed_stdin_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    ended = cklog("diff", "-", SAMPLES / "domino-cycle")
    assert ended.code == 66
    assert ended.err.startswith("cklog: stdin is closed\n")


HOSTILE: dict[str, tuple[bytes, int]] = {
    "nothing": (b"", 65),
    "text": (b"restart at 7", 65),
    "bytes": (b"\xff\xfe\x00{", 65),
    "list": (b"[1]", 65),
    "null": (b"null", 65),
    "object": (b"{}", 65),
    "not a number": (b'{"schema": "cklog.recovery-line/1", "verdict": "ok", "findings": [], "result": NaN}', 65),
    "infinite": (b'{"schema": "cklog.recovery-line/1", "verdict": "ok", "findings": [], "result": 1e999}', 65),
    "long number": (b'{"schema": ' + b"9" * 5_000 + b"}", 65),
    "deep": (b'{"a":' * 100_000, 65),
    "other version": (b'{"schema": "cklog.recovery-line/2", "verdict": "ok", "findings": [], "result": {}}', 65),
    "other tool": (b'{"schema": "other/1", "verdict": "ok", "findings": [], "result": {}}', 65),
    "no such schema": (b'{"schema": "cklog.fortune/1", "verdict": "ok", "findings": [], "result": {}}', 65),
    "no verdict": (b'{"schema": "cklog.recovery-line/1", "verdict": "fine", "findings": [], "result": {}}', 65),
    "verdict is a list": (b'{"schema": "cklog.recovery-line/1", "verdict": [], "findings": [], "result": {}}', 65),
    "no findings": (b'{"schema": "cklog.recovery-line/1", "verdict": "ok", "findings": [7], "result": {}}', 65),
    "no result": (b'{"schema": "cklog.recovery-line/1", "verdict": "ok", "findings": []}', 65),
    "other command": (b'{"schema": "cklog.verify/1", "verdict": "ok", "findings": [], "result": {}}', 2),
    "no rows": (b'{"schema": "cklog.recovery-line/1", "verdict": "ok", "findings": [], "result": {"line": [7]}}', 0),
    "odd rows": (
        b'{"schema": "cklog.recovery-line/1", "verdict": "ok", "findings": [], "inputs": 7, "result":'
        b' {"line": [{"operator": [], "subtask": {}, "checkpoint": "x", "state": {}}, {}], "channels": {},'
        b' "sources": [{"source": "\\ud800\\u001b[31m", "offset": [1]}]}}',
        0,
    ),
    "result is text": (b'{"schema": "cklog.recovery-line/1", "verdict": "ok", "findings": [], "result": "x"}', 0),
}


@pytest.mark.parametrize(("data", "code"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_are_one_line_and_a_documented_exit(
    data: bytes, code: int, answer: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text(json.dumps(answer), encoding="utf-8")
    (tmp_path / "b.json").write_bytes(data)
    for pair in (("a.json", "b.json"), ("b.json", "a.json")):
        for form in ("table", "json", "csv", "jsonl", "md"):
            ended = cklog("diff", *(tmp_path / name for name in pair), "--format", form)
            assert ended.code == code, ended.err
            assert bool(ended.out) == (code == 0 or form == "json")
            assert "\x1b" not in ended.out
            if code == 65:
                assert "b.json" in ended.err.splitlines()[0]


def test_a_file_over_the_budget_is_not_read(tmp_path: Path) -> None:
    huge = tmp_path / "huge.json"
    with huge.open("wb") as file:
        file.truncate(80 << 20)
    ended = cklog("diff", huge, JOIN)
    assert ended.code == 65
    assert "over the budget" in ended.err


def test_a_file_that_is_not_there_is_exit_66(tmp_path: Path) -> None:
    assert cklog("diff", tmp_path / "none.json", JOIN).code == 66
