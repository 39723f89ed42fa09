"""A parser of somebody else's: the example of docs/parsers.md, installed and asked."""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

import cklog
from cklog.engine.scan import Damage, Split, reader_of
from tests.conftest import REPOSITORY
from tests.program import cklog as run

PAGE = REPOSITORY / "docs" / "parsers.md"

GOOD = (
    "a,0,1,,,a/0->b/0,4\n"
    "a,0,2,,,a/0->b/0,9\n"
    "b,0,1,a/0->b/0,3,,\n"
    "b,0,2,a/0->b/0,11,,\n"  # has received what a's checkpoint 2 has not sent: an orphan message
)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page's module on the path and in the entry-point group; the folder that is to be looked at."""
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    library = tmp_path / "library"
    library.mkdir()
    (library / "cklog_csv.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(library)
    monkeypatch.delitem(sys.modules, "cklog_csv", raising=False)
    real = importlib.metadata.entry_points

    def entry_points(**given: Any) -> Any:
        if given != {"group": "cklog.parsers"}:
            return real(**given)
        return [*real(**given), EntryPoint("csv-checkpoints", "cklog_csv:CsvCheckpoints", "cklog.parsers")]

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


def test_the_example_is_found_and_answers(installed: Path) -> None:
    (installed / "job.ckpt.csv").write_text(GOOD)
    with cklog.open(installed) as opened:
        found = opened.recovery_line()
    assert opened.format == "csv-checkpoints"
    line = {entry.operator: entry.checkpoint for entry in found.result.line}
    assert line == {"a": 2, "b": 1}
    assert [(r.channel, r.replay_from, r.replay_to) for r in found.result.channels] == [("a/0->b/0", 3, 9)]
    assert [(used.path, used.format, used.records) for used in found.inputs] == [("job.ckpt.csv", "csv-checkpoints", 4)]


def test_the_program_takes_it_by_name_too(installed: Path) -> None:
    (installed / "job.ckpt.csv").write_text(GOOD)
    (installed / "job.json").write_text("{}")
    told = json.loads(run("recovery-line", installed, "--from", "csv-checkpoints", "--json").out)
    assert [entry["checkpoint"] for entry in told["result"]["line"]] == [2, 1]
    assert run("inspect", installed, "--from", "csv-checkpoints").code == 0


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("b,0,two,a/0->b/0,3,,", "not a checkpoint"),
        ("b,0", "not a checkpoint: 'checkpoint'"),
        ("b,0,-2,a/0->b/0,3,,", "checkpoint is -2, less than 0"),
        ("b,0,2,a/0->b/0,-3,,", "less than 0"),
        ("b,0,99999999999999999999,,,,", "beyond 64 bits"),
    ],
)
def test_its_damage_is_found_with_its_place(installed: Path, line: str, why: str) -> None:
    (installed / "job.ckpt.csv").write_text(GOOD + line + "\n")
    told = run("recovery-line", installed, "--json")
    (finding,) = (f for f in json.loads(told.out)["findings"] if f["id"] == "bad-record")
    assert why in finding["message"]
    assert [(w["path"], w["offset"]) for w in finding["where"]] == [("job.ckpt.csv", len(GOOD))]
    assert told.code in (3, 5)
    assert run("recovery-line", installed, "--strict").code == 65


def test_what_cannot_be_decoded_ends_the_file(installed: Path) -> None:
    data = GOOD.encode() + b"\xff\n" + GOOD.encode()
    (installed / "job.ckpt.csv").write_bytes(data)
    split = Split(str(installed / "job.ckpt.csv"), "job.ckpt.csv", "cklog_csv:read", 0, len(data), len(data))
    damage, batch = reader_of(split)(split, "checkpoints", ("operator", "_offset"))
    assert isinstance(damage, Damage)
    assert damage.id == "corrupt-file"
    assert not isinstance(batch, Damage)
    assert batch.column("_offset").to_pylist() == [0, 19, 38, 57]
    assert run("recovery-line", installed).code in (3, 5)


def test_an_empty_file_is_told(installed: Path) -> None:
    (installed / "job.ckpt.csv").write_text(GOOD)
    (installed / "lost.ckpt.csv").write_text("")
    told = json.loads(run("recovery-line", installed, "--json").out)
    assert "empty-file" in {finding["id"] for finding in told["findings"]}


def test_the_example_is_as_short_as_the_page_promises() -> None:
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 35
