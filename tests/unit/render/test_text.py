"""What reaches a terminal, a spreadsheet or a log collector: nothing that it would obey, and no secret."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklog.masking import masked
from cklog.model.findings import Finding
from cklog.model.verdict import Answer
from cklog.render.formats import render
from cklog.render.text import visible, visible_json
from tests.program import cklog

OBEYED = [*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), "\u200e", "\u202e", "\u2066", "\u2028", "\ufeff"]
SECRETS = [
    "s3://me:hunter2@bucket/run",
    "s3://bucket/run?secret_key=hunter2&region=x",
    "abfss://c@a/run?sig=hunter2",
    "jdbc://h/db?user=me;password=hunter2",
    "s3://bucket/run?AWS_SECRET_ACCESS_KEY=hunter2",
]


def answer(text: str) -> Answer[object]:
    found = Finding("bad-record", "error", text, text)
    runs = {"summary": text, "formats": [], "runs": [{"run": text, "format": text}]}
    return Answer(command="inspect", verdict="findings", exit_code=3, inputs=(), findings=(found,), result=runs)


@given(st.text(st.sampled_from([*OBEYED, "a", '"', "\\", ","])))
def test_json_says_the_same_without_a_character_that_anybody_obeys(text: str) -> None:
    shown = visible_json(json.dumps({"x": text}, ensure_ascii=False))
    assert json.loads(shown) == {"x": text}
    assert not set(shown) & set(OBEYED)


@pytest.mark.parametrize("char", OBEYED)
@pytest.mark.parametrize("form", ["json", "jsonl", "table", "md"])
def test_no_format_has_one_in_it(form: str, char: str) -> None:
    assert not set(render(answer(f"w{char}1"), form)) & (set(OBEYED) - {"\n"})


@given(
    st.lists(st.text(st.sampled_from(["\r", "\n", "\x9b", "\x1b", "\u202e", "a", '"', ","]), min_size=1), min_size=1)
)
def test_a_cell_with_a_line_end_is_quoted_and_comes_back(texts: list[str]) -> None:
    from cklog.render.formats import _csv_row, _harmless_cell

    shown = _csv_row([_harmless_cell(text) for text in texts])
    assert not set(shown) & (set(OBEYED) - {"\r", "\n"})
    rows = list(csv.reader(io.StringIO(shown, newline="")))
    assert len(rows) == 1
    for cell, text in zip(rows[0], texts, strict=True):
        assert cell == visible_but_line_ends(text)


def visible_but_line_ends(text: str) -> str:
    shown = "".join(char if char in "\r\n" else visible(char) for char in text)
    return f"'{shown}" if text[0] == "\r" else shown


@pytest.mark.parametrize("secret", SECRETS)
def test_secrets_are_masked_wherever_they_stand(secret: str) -> None:
    shown = masked(f"flink run -s {secret} and '{secret}', \"{secret}\"")
    assert "hunter2" not in shown
    assert shown.count("***") == 3


@pytest.mark.quarter
@pytest.mark.parametrize("secret", SECRETS[:2])
@pytest.mark.parametrize("form", ["json", "table", "csv", "jsonl", "md"])
def test_no_output_of_the_program_has_them(secret: str, form: str, tmp_path: Path) -> None:
    """In an answer, in a finding, in an error."""
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    record = {"operator": "a", "subtask": 0, "checkpoint": 1, "time": 1, "uri": secret}
    (checkpoints / "a.jsonl").write_text(json.dumps({**record, "sent": {}, "received": {}}) + "\n")
    for ran in (
        cklog("recovery-line", tmp_path, "--format", form),
        cklog("recovery-line", "no/such/folder", "--map", f"{secret}=no", "--format", form),
        cklog("inspect", secret.replace("s3://", "unknown://"), "--format", form),
    ):
        assert "hunter2" not in ran.out + ran.err
