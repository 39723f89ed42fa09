"""Damaged histories under all that looks at checkpoint graphs: no traceback, nothing newer, nothing silent."""

from __future__ import annotations

import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cklog.model.question import Question
from cklog.model.verdict import Answer
from cklog.render.formats import render
from tests.builders.native import checkpoint, line, write
from tests.conftest import SAMPLES
from tests.oracles.folder_damage import DOCUMENTED, damaged
from tests.oracles.graph_damage import AB, BA, asked, ended

# --- damage


def coordinated(folder: Path) -> None:
    """Four rounds of a/0, b/0, b/1 and c/0, a file each; c/0 has not taken part in the last."""
    a = [f"a/0->b/{i}" for i in (0, 1)]
    c = [f"b/{i}->c/0" for i in (0, 1)]
    (folder / "checkpoints").mkdir()
    for name, sent, received in (("a/0", a, []), ("b/0", c[:1], a[:1]), ("b/1", c[1:], a[1:]), ("c/0", [], c)):
        rounds = range(1, 4 if name == "c/0" else 5)
        marks = [{"sent": dict.fromkeys(sent, 9 * n), "received": dict.fromkeys(received, 9 * n)} for n in rounds]
        base = {"kind": "coordinated", "duration_ms": 1.5, "bytes": 10}
        records = [checkpoint(name, n, round=n, **base, **told) for n, told in zip(rounds, marks, strict=True)]
        write(folder, "checkpoints", records, f"{name.replace('/', '-')}.jsonl")
    operators = [{"name": name, "parallelism": 1 + (name == "b")} for name in "abc"]
    (folder / "job.json").write_bytes(line({"operators": operators}))


def surviving(folder: Path) -> None:
    """a/0 and b/0 in a circle; only b/0 failed, and a/0 tells what it holds now."""
    a = [checkpoint("a/0", n, sent={AB: 2 * n}, received={BA: 2 * n - 1}, index=n) for n in (1, 2, 3)]
    a.append(checkpoint("a/0", 4, sent={AB: 9}, received={BA: 5}, kind="volatile"))
    b = [checkpoint("b/0", n, sent={BA: 2 * n - 1}, received={AB: 2 * n - 1}, index=n) for n in (1, 2, 3)]
    write(folder, "checkpoints", a, "a.jsonl")
    write(folder, "checkpoints", b, "b.jsonl")
    (folder / "job.json").write_bytes(line({"failed": ["b"], "operators": [{"name": "a"}, {"name": "b"}]}))


def domino(folder: Path) -> None:
    for place in ("checkpoints", "channels"):
        shutil.copytree(SAMPLES / "domino-cycle" / place, folder / place)
    shutil.copy(SAMPLES / "domino-cycle" / "job.json", folder)


HISTORIES = {"domino": domino, "coordinated": coordinated, "surviving": surviving}


@pytest.fixture(params=HISTORIES)
def history(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    folder = tmp_path / "whole"
    folder.mkdir()
    HISTORIES[request.param](folder)
    return folder


Told = dict[str, tuple[int, Answer[Any] | None]]


def told(folder: Path) -> Told:
    """What damage must not make newer or more confident."""
    return {name: ended(folder, ask) for name, ask in asked() if name in _HELD}


_HELD = ("recovery-line", "z-cycles", "audit-cic", "failed-at", "metrics", "graph")


@pytest.mark.quarter
def test_damage_makes_nothing_newer_and_does_not_go_unsaid(history: Path, tmp_path: Path) -> None:
    injure(history, tmp_path, random.Random(5), rounds=1, ways=3)


@pytest.mark.slow
def test_much_damage_does_no_more(history: Path, tmp_path: Path) -> None:
    injure(history, tmp_path, random.Random(6), rounds=8, ways=6)


def injure(history: Path, tmp_path: Path, rng: random.Random, rounds: int, ways: int) -> None:
    """Each file is damaged in `ways` ways per round."""
    whole = told(history)
    for path in sorted(p for p in history.rglob("*") if p.is_file() and p.parent.name != "channels"):
        before = path.read_bytes()
        for _ in range(rounds):
            for how, data in rng.sample([*damaged(before, rng).items(), *lines_lost(before, rng).items()], ways):
                copy = tmp_path / "copy"
                shutil.copytree(history, copy)
                target = copy / path.relative_to(history)
                target.unlink() if data is None else target.write_bytes(data)
                only_whole_lines = data is None or set(data.splitlines(True)) < set(before.splitlines(True))
                hold(whole, told(copy), f"{path.name} {how}", silent=only_whole_lines)
                shutil.rmtree(copy)


def lines_lost(data: bytes, rng: random.Random) -> dict[str, bytes]:
    """One line gone, one overwritten."""
    lines = data.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    garbled = b"\x00\xff{" + lines[at][3:-1][::-1] + b"\n"
    return {
        "line dropped": b"".join(lines[:at] + lines[at + 1 :]),
        "line garbled": b"".join([*lines[:at], garbled, *lines[at + 1 :]]),
    }


def hold(whole: Told, found: Told, what: str, silent: bool) -> None:
    codes = {name: code for name, (code, _) in found.items()}
    assert set(codes.values()) <= DOCUMENTED, (what, codes)
    for name, (_, answer) in found.items():
        before = whole[name][1]
        if answer is None or before is None:
            continue
        newer = _OLDER[name](before, answer)
        assert not newer, (what, name, newer)
        assert answer.findings or answer.result == before.result or silent, (what, name)
        if answer.findings and name in ("z-cycles", "audit-cic") and answer.result != before.result and not silent:
            assert "ecords are lost" in render(answer, "table"), what


def newer_line(before: Answer[Any], found: Answer[Any]) -> list[str]:
    """The subtasks whose line is newer than it was; a current state is newer than all that is stored."""
    old, new = ({f"{e.operator}/{e.subtask}": _rank(e) for e in a.result.line} for a in (before, found))
    return [name for name, number in new.items() if number > old.get(name, 0)]


def _rank(entry: Any) -> int:
    return sys.maxsize if entry.checkpoint is None else int(entry.checkpoint)


def kept_more(before: Answer[Any], found: Answer[Any]) -> list[int]:
    """The moments at which more checkpoints would have been used than really."""
    old = {m.time: m.stored - m.rolled_past for m in before.result.moments}
    return [m.time for m in found.result.moments if m.stored - m.rolled_past > old.get(m.time, 0)]


def nothing(_before: Answer[Any], _found: Answer[Any]) -> list[str]:
    """No more than the findings: what is left may have fewer cycles, or more."""
    return []


_OLDER: dict[str, Callable[[Answer[Any], Answer[Any]], list[Any]]] = {
    "recovery-line": newer_line,
    "graph": newer_line,
    "failed-at": kept_more,
    "z-cycles": nothing,
    "audit-cic": nothing,
    "metrics": nothing,
}


@pytest.mark.slow
def test_every_byte_of_a_coordinated_job_flipped(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    coordinated(whole)
    before = told(whole)["recovery-line"][1]
    assert before is not None
    for path in sorted(p for p in whole.rglob("*") if p.is_file()):
        data = path.read_bytes()
        for at in range(len(data)):
            path.write_bytes(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])
            code, found = ended(whole, lambda run: run.recovery_line(Question()))
            assert code in DOCUMENTED, (path.name, at)
            assert found is None or not newer_line(before, found), (path.name, at)
        path.write_bytes(data)


def test_no_line_is_wider_than_the_terminal(history: Path) -> None:
    for name, ask in asked():
        found = ended(history, ask)[1]
        if found is None:
            continue
        for width in (40, 80, 120):
            most = max(width, 80 if name == "failed-at" else 0)  # a figure has 80 columns
            assert max(map(len, render(found, "table", width).splitlines())) <= most, (name, width)
