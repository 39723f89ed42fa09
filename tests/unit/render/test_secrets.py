"""Secrets: masked in each text before it is escaped, quoted or laid out, so that none is left and no format breaks."""

from __future__ import annotations

import csv
import io
import json
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from cklog.model.findings import Finding
from cklog.model.verdict import Answer
from cklog.render.formats import FORMATS, render
from cklog.render.text import masked
from tests.program import cklog

SECRETS = [
    "s3://me:hunter2@bucket/run",
    "s3://me:a/hunter2+b@bucket/run",
    "s3://me:a@hunter2@bucket/run",
    "s3://me:it's-hunter2@bucket/run",
    "s3://bucket/run?secret_key=hunter2",
    "s3://bucket/run?secret_key=a,hunter2;b)hunter2&region=x",
    'org.apache.kafka.PlainLoginModule required password="hunter2";',
    "password='very hunter2'",
    'token="a\\"hunter2',
    "token=hunter2\\",
    "https://b/x?AccountKey=hunter2",
    "fs.azure.account.key.me.dfs.core.windows.net=hunter2",
]
NONE = [
    "s3://bucket/run/a=1/b@2",
    "hdfs://namenode:8020/user/me@corp/run",
    "kafka://one:9092,two:9092/topic@1",
    "s3://arn:aws:s3:eu-central-1:1:accesspoint/run@1",
    "file:///C:/run@1",
    "keys=3",
]


def answer(text: str) -> Answer[object]:
    found = Finding("bad-record", "error", text, f"of {text}")
    runs = {"summary": text, "formats": [], "runs": [{"run": text, text: text}], "of": {text: 1}}
    return Answer(command="inspect", verdict="findings", exit_code=3, inputs=(), findings=(found,), result=runs)


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("form", [form for form in FORMATS if form not in ("kv", "env")])
def test_no_format_shows_one_and_each_stays_what_it_is(form: str, secret: str) -> None:
    shown = render(answer(secret), form)
    assert "hunter2" not in shown
    if form == "json":
        assert json.loads(shown)["findings"][0]["message"] == masked(f"of {secret}")
    if form == "jsonl":
        assert [json.loads(line) for line in shown.splitlines()]
    if form == "csv":
        assert all(len(row) == 2 for row in csv.reader(io.StringIO(shown, newline="")))


@pytest.mark.parametrize("width", [20, 40, 60, 100])
@pytest.mark.parametrize("secret", SECRETS)
def test_a_narrow_terminal_does_not_part_one_from_its_name(secret: str, width: int) -> None:
    shown = render(answer(f"a long way before it {secret}"), "table", width)
    assert "hunter2" not in "".join(shown.split())


@pytest.mark.parametrize("text", NONE)
def test_what_is_none_is_shown(text: str) -> None:
    assert masked(text) == text


def test_a_long_name_is_looked_through_in_time() -> None:
    before = time.process_time()
    for name in ("token" * 100_000 + " =", "://a:" * 100_000 + "=", "token=' " * 50_000):
        masked(name)
    assert time.process_time() - before < 2


@pytest.mark.parametrize("secret", [SECRETS[1], SECRETS[6]])
def test_no_output_of_the_program_has_one(secret: str, tmp_path: Path) -> None:
    """Of operators, state files and messages of errors, in formats that tools read, too."""
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    for one in ("in", secret):
        rows = [
            {"operator": one, "subtask": 0, "checkpoint": i, "uri": secret, "sent": {}, "received": {}}
            for i in range(1, 4)
        ]
        name = f"{len([*checkpoints.iterdir()])}.jsonl"
        (checkpoints / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    for words in (
        *(("recovery-line", "--format", form) for form in FORMATS),
        *(("graph", "--format", form) for form in ("dot", "mermaid", "svg", "graphml", "node-link")),
        *(("report", "--format", form) for form in ("md", "html")),
        ("report", "--brief"),
        ("recovery-line", "--brief"),
        ("runbook", "--format", "md"),
        ("runbook",),
        ("replay", "--format", "csv"),
        ("scan", "--format", "prometheus"),
        ("recovery-line", "--at", f"{secret}=4", "--json"),
    ):
        ran = cklog(words[0], tmp_path, *words[1:])
        assert "hunter2" not in ran.out + ran.err, words
        if words[-1] in ("svg", "graphml") and ran.out:
            ElementTree.fromstring(ran.out)
        if words[-1] in ("json", "--json", "node-link"):
            json.loads(ran.out)
