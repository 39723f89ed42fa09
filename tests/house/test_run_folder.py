"""The page about the run folder is true: its code and commands run, its columns and records are the model's."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pyarrow as pa
import pytest

from cklog.model.schemas import TABLES
from cklog.parsers.tables.records import as_record, member_of
from tests.conftest import REPOSITORY
from tests.program import cklog

PAGE = (REPOSITORY / "docs" / "run-folder.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(python|console)\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
SECTIONS = {
    title.split("/")[0]: text for title, text in re.findall(r"^### `(.*?)`\n(.*?)(?=^##)", PAGE, flags=re.M | re.S)
}
TYPES = {
    "text": {pa.string()},
    "integer": {pa.int64()},
    "ms": {pa.int64()},
    "number": {pa.float64()},
    "JSON": {pa.string()},
    "channel → number": {pa.map_(pa.string(), pa.int64())},
    "text → number": {pa.map_(pa.string(), pa.int64())},
    "integer, or channel → number": {pa.int64(), pa.map_(pa.string(), pa.int64())},
}
"""What a type is called on the page, and the types of the columns that are read from such a member."""


def test_code_and_commands_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    assert [kind for kind, _ in BLOCKS] == ["python", "console"] * 4
    for kind, text in BLOCKS:
        if kind == "python":
            exec(compile(text, "run-folder.md", "exec"), names)
        else:
            command, _, shown = text.removeprefix("$ cklog ").partition("\n")
            assert cklog(*shlex.split(command)).out == shown


@pytest.mark.parametrize("table", TABLES)
def test_every_column_is_there_with_its_type(table: str) -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", SECTIONS[table].split("| event | with |")[0], flags=re.MULTILINE)
    shown = dict(rows)
    columns: dict[str, set[pa.DataType]] = {}
    for field in TABLES[table]:
        columns.setdefault(member_of(field), set()).add(field.type)
    assert list(shown) == list(columns)
    for name, words in shown.items():
        kind, _, _ = words.removesuffix(", required").partition(" = ")
        assert TYPES[kind] == columns[name], name
        assert words.endswith(", required") is not TABLES[table].field(name).nullable, name


@pytest.mark.parametrize("table", TABLES)
def test_the_records_shown_are_records(table: str) -> None:
    lines = "".join(re.findall(r"^```json\n(.*?)^```$", SECTIONS[table], flags=re.DOTALL | re.MULTILINE)).splitlines()
    assert lines
    for line in lines:
        record = as_record(json.loads(line), TABLES[table])
        assert {member_of(TABLES[table].field(name)) for name, value in record.items() if value is not None} == set(
            json.loads(line)
        )
