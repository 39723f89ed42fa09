"""One list of an answer as a table: the same values as the JSON has, typed, with times that another parser reads."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from cklog.errors import UsageError
from cklog.model.findings import Finding, Where
from cklog.model.verdict import Answer
from cklog.render.formats import render
from tests.conftest import SAMPLES
from tests.program import cklog

JOIN = SAMPLES / "uncoordinated-join"
QUESTIONS = [
    *((command, JOIN, table) for command in ("recovery-line", "replay") for table in ("line", "channels", "sources")),
    ("recovery-line", SAMPLES / "spark-wordcount", "sources"),
    ("inspect", JOIN, "channels"),
    ("inspect", SAMPLES / "spark-wordcount", "batches"),
    ("inspect", SAMPLES / "flink-orders", "inputs"),
    ("recovery-line", SAMPLES / "flink-orders", "restore"),
    ("retention", JOIN, "rows"),
    ("chain", SAMPLES / "patent-store", "chains"),
    ("compare", JOIN, "inputs"),
    ("diff", JOIN, "line"),
    ("diff", JOIN, "others"),
]


def member(told: dict[str, Any], table: str) -> list[dict[str, Any]]:
    result = told["result"]
    found: Any = result.get(table, result.get("details", {}).get(table, told.get(table)))
    return list(found)


@pytest.mark.parametrize(("command", "folder", "table"), QUESTIONS, ids=lambda part: getattr(part, "name", part))
def test_a_table_has_the_rows_of_the_json(command: str, folder: Path, table: str) -> None:
    more = [SAMPLES / "domino-cycle"] if command in ("compare", "diff") else []
    told = cklog(command, folder, *more, "--json")
    rows = member(json.loads(told.out), table)
    ended = cklog(command, folder, *more, "--table", table, "--format", "jsonl")
    assert ended.code == told.code
    lines = [json.loads(line) for line in ended.out.splitlines()]
    assert rows
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        for name, value in row.items():
            if name == "time" or name.endswith("_time"):
                assert line[name].endswith("Z")
                assert round(datetime.fromisoformat(line[name]).timestamp() * 1000) == value
            elif name in line:
                assert line[name] == value
                assert type(line[name]) is type(value)
            else:
                assert value is None or isinstance(value, dict)
                assert any(column.startswith(f"{name}.") for column in line)


def test_cells_of_csv_are_the_cells_of_json_lines() -> None:
    for table in ("line", "channels", "sources", "steps", "rollback"):
        asked = ("recovery-line", JOIN, "--explain", "--table", table, "--format")
        lines = [json.loads(line) for line in cklog(*asked, "jsonl").out.splitlines()]
        rows = list(csv.DictReader(io.StringIO(cklog(*asked, "csv").out)))
        told = [
            {
                name: "" if value is None else value if isinstance(value, str) else json.dumps(value)
                for name, value in line.items()
            }
            for line in lines
        ]
        assert rows == told
        assert rows


@dataclass(frozen=True)
class Lost:
    """A member of a row that is a row itself."""

    records: int
    last_time: int | None


@dataclass(frozen=True)
class RunRow:
    """A row like those of `result.runs`."""

    run: str
    action: str
    newest_time: int | None
    age_ms: int | None
    command: str | None
    read_again: bool | None
    lost: Lost | None
    blocked_by: tuple[str, ...]


@dataclass(frozen=True)
class Planned:
    """An answer that has runs."""

    action: str
    runs: tuple[RunRow, ...]


def planned(*rows: RunRow, findings: tuple[Finding, ...] = ()) -> Answer[object]:
    return Answer("recovery-line", "ok", 0, (), findings, Planned("restart", rows))


def test_a_list_is_found_by_the_name_of_the_member() -> None:
    one = RunRow("wordcount", "restart", 1795226310693, 7, "spark-submit a,b", True, Lost(3, 0), ("x", "y"))
    other = RunRow("=other", "start-over", None, None, None, None, None, ())
    assert render(planned(one, other), "csv", table="runs") == (
        "run,action,newest_time,age_ms,command,read_again,lost.records,lost.last_time,blocked_by\n"
        'wordcount,restart,2026-11-21T01:58:30.693Z,7,"spark-submit a,b",true,3,1970-01-01T00:00:00.000Z,'
        '"[""x"", ""y""]"\n'
        "'=other,start-over,,,,,,,[]\n"
    )
    lines = [json.loads(line) for line in render(planned(one, other), "jsonl", table="runs").splitlines()]
    assert lines[0]["read_again"] is True
    assert lines[0]["lost.records"] == 3
    assert lines[0]["blocked_by"] == ["x", "y"]
    assert lines[1] == dict.fromkeys(lines[0]) | {"run": "=other", "action": "start-over", "blocked_by": []}


def test_an_empty_list_has_its_columns() -> None:
    told = render(planned(), "csv", table="runs")
    assert told == "run,action,newest_time,age_ms,command,read_again,lost.records,lost.last_time,blocked_by\n"
    assert render(planned(), "jsonl", table="runs") == ""
    assert render(planned(), "csv", table="findings") == "id,severity,subject,message,path,offset,places,effect\n"


def test_a_finding_is_a_row_with_the_first_of_its_places() -> None:
    finding = Finding("torn-tail", "warning", "a", "cut", (Where("a.jsonl", 7), Where("b.jsonl")))
    bare = Finding("no-time", "info", "b", "none")
    told = render(planned(findings=(finding, bare)), "csv", table="findings")
    assert told.splitlines()[1:] == ["torn-tail,warning,a,cut,a.jsonl,7,2,none", "no-time,info,b,none,,,0,none"]


def test_a_name_that_the_answer_does_not_have_is_refused_with_those_that_it_has() -> None:
    with pytest.raises(UsageError) as refused:
        render(planned(), "csv", table="line")
    assert refused.value.hint == "it has: runs, findings, inputs"
    ended = cklog("recovery-line", JOIN, "--table", "nothing", "--format", "csv")
    assert (ended.code, ended.out) == (2, "")
    assert "line, channels, sources" in ended.err


@pytest.mark.parametrize("form", ["json", "kv", "env", "kafka-csv"])
def test_a_table_is_refused_in_formats_that_hold_more(form: str) -> None:
    ended = cklog("replay", JOIN, "--table", "line", "--format", form)
    assert ended.code == 2
    assert not ended.out or list(json.loads(ended.out)) == ["error"]


def test_a_table_for_people_and_in_markdown_has_the_same_cells() -> None:
    for form in ("table", "md"):
        ended = cklog("recovery-line", JOIN, "--table", "line", "--format", form)
        assert ended.code == 0
        assert "2026-01-01T00:00:16.346Z" in ended.out
        assert "channel" not in ended.out
