"""Secrets: masked in each text before it is escaped, quoted or laid out, so that none is left and no format breaks."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from cklog.errors import EngineError
from cklog.masking import masked, masked_options
from cklog.model.findings import Finding
from cklog.model.verdict import Answer
from cklog.render.formats import FORMATS, render
from cklog.stores.options import Settings
from tests.conftest import SAMPLES
from tests.program import cklog

SECRETS = [
    "s3://me:hunter2@bucket/run",
    "s3://me:a/hunter2+b@bucket/run",
    "s3://me:a@hunter2@bucket/run",
    "s3://me:it's-hunter2@bucket/run",
    "s3://bucket/run?secret_key=hunter2",
    "s3://bucket/run?secret_key=a,hunter2;b)hunter2&region=x",
    'org.apache.kafka.PlainLoginModule required password="hunter2";',
    "org.apache.kafka.ScramLoginModule required username=me password=a/hunter2;",
    "https://b/x?AccountKey=hunter2",
    "https://b/x?X-Amz-Signature=hunter2&X-Amz-Date=1",
    "https://b/x#access_token=hunter2",
    "s3a://b/x?a=1&token=ab/hunter2=",
    "sc://host:15002/;token=hunter2",
    "sc://host:15002/;use_ssl=true;token=hunter2;user_id=me",
    "jdbc:sqlserver://host:1433;user=me;password=hunter2",
]
OPTIONS = [
    "password='very hunter2'",
    'token="a\\"hunter2',
    "token=hunter2\\",
    "secret_key=a/hunter2",
    "fs.azure.account.key.me.dfs.core.windows.net=hunter2",
    "spark.hadoop.fs.s3a.secret.key=hunter2",
]
"""Hidden where a text quotes options; elsewhere a folder or an operator may be called so."""

NONE = [
    "token=abc",
    "run/token=abc/chk-7",
    "s3://bucket/run/token=abc/chk-7",
    "s3://bucket/run;token=abc/chk-7",
    "file:///data/a?token=abc/chk-7",
    "what?token=abc",
    'password="a"/secret_key=b',
    "s3://bucket/run/a=1/b@2",
    "hdfs://namenode:8020/user/me@corp/run",
    "kafka://one:9092,two:9092/topic@1",
    "s3://arn:aws:s3:eu-central-1:1:accesspoint/run@1",
    "file:///C:/run@1",
    "LoginModule password=abc",
    "keys=3",
]


def answer(text: str) -> Answer[object]:
    found = Finding("bad-record", "error", text, f"of {text}")
    runs = {"summary": text, "formats": [], "runs": [{"run": text, text: text}], "of": {text: 1}}
    return Answer(command="inspect", verdict="findings", exit_code=3, inputs=(), findings=(found,), result=runs)


@pytest.mark.parametrize("before", ["", "'"])
@pytest.mark.parametrize("uri", ["sc://host:15002/;token=", "s3://bucket/run?secret_key="])
def test_a_colon_after_a_uri_stays(uri: str, before: str) -> None:
    assert masked(f"{before}{uri}hunter2{before}: refused") == f"{before}{uri}***{before}: refused"


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
    assert json.loads(render(answer(text), "json"))["result"]["runs"] == [{"run": text, text: text}]


@pytest.mark.parametrize("secret", [*SECRETS, *OPTIONS])
def test_a_text_that_quotes_options_has_none(secret: str) -> None:
    for text in (secret, f"no such setting: {secret}", f"({secret})"):
        assert "hunter2" not in masked_options(text)
        assert "hunter2" not in EngineError(f"the Spark job failed: {text}").message
        assert "hunter2" not in Settings("s3", {}).hidden(text)


@pytest.mark.parametrize("secret", OPTIONS)
def test_a_command_line_that_cannot_be_read_is_quoted_without_one(secret: str) -> None:
    for words in (["recovery-line", "x", "y", secret], ["recovery-line", "--store", secret, f"--{secret}"]):
        ended = cklog(*words)
        assert (ended.code, "hunter2" in ended.out + ended.err) == (2, False), ended
    for option in ("--spark-conf", "--store"):
        ended = cklog("recovery-line", SAMPLES / "domino-cycle", option, f"={secret}")
        assert (ended.code, "hunter2" in ended.out + ended.err) == (2, False), ended


def test_a_traceback_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object) -> None:
        raise ZeroDivisionError("fs.s3a.secret.key=hunter2")

    monkeypatch.setattr("cklog.commands.common.Common.run", fail)
    ended = cklog("recovery-line", SAMPLES / "domino-cycle", "-v")
    assert (ended.code, "Traceback" in ended.err, "hunter2" in ended.err) == (70, True, False)


@pytest.mark.parametrize("command", ["recovery-line", "report", "runbook"])
def test_commands_that_are_printed_have_no_secret_option(command: str) -> None:
    words = ["--store", "secret_key=hunter2", "--store", "access_key=hunter2", "--store", "region=x"]
    ended = cklog(command, SAMPLES / "domino-cycle", *words, "-v", "--format", "md")
    assert ended.code == 0
    assert "hunter2" not in ended.out + ended.err


@pytest.fixture
def alike(tmp_path: Path) -> Path:
    """A folder of jobs of Flink in folders that are called like an option and its value."""
    for name in ("token=abc", "token=abd", 'password="a"', "secret_key=x/sig=y", "secret_key=x/sig=z"):
        shutil.copytree(SAMPLES / "flink-orders", tmp_path / "runs" / name)
    return tmp_path / "runs"


def test_two_runs_keep_their_names_in_every_format_of_a_scan(alike: Path) -> None:
    shown = cklog("scan", alike, "--json")
    rows = json.loads(shown.out)["result"]["runs"]
    paths = {(row["path"], row["run"]) for row in rows}
    assert len(paths) == len(rows)
    assert {row["path"].split("/runs/")[-1].split("/")[0] for row in rows} >= {"token=abc", "token=abd", 'password="a"'}
    labels = re.findall(
        r"^cklog_run_exit_code(\{.*\}) ", cklog("scan", alike, "--format", "prometheus").out, re.MULTILINE
    )
    assert len(labels) == len({*labels}) == len(rows)
    cells = [*csv.reader(io.StringIO(cklog("scan", alike, "--format", "csv").out))]
    assert {tuple(row[:1]) for row in cells[1:]} == {(row["path"],) for row in rows}
    for form in ("table", "md", "jsonl", "csv", "prometheus"):
        assert "***" not in cklog("scan", alike, "--format", form).out


def test_a_line_names_snapshots_as_they_are_called(alike: Path) -> None:
    """The same job in two folders: each has its own snapshots, and commands name folders that exist."""
    chosen = json.loads(cklog("recovery-line", alike, "--json").out)["result"]["line"]
    names = {one for row in chosen for one in [json.dumps(row)] if "token=ab" in one}
    assert len(names) == len([row for row in chosen if "token=ab" in json.dumps(row)]) > 1
    for command, form in (
        *(("recovery-line", form) for form in ("table", "json", "csv", "md", "kv")),
        ("runbook", "md"),
        ("report", "html"),
        ("retention", "table"),
        ("inspect", "json"),
    ):
        shown = cklog(command, alike, "--format", form)
        assert "***" not in shown.out + shown.err, (command, form)
        assert "token=abc" in shown.out, (command, form)
    script = cklog("runbook", alike, "--run", "token=abc/125c1252bd61481884bb23e41a77c92e", "--format", "script")
    assert "token=abc" in script.out + script.err
    assert "***" not in script.out + script.err


def test_a_long_name_is_looked_through_in_time() -> None:
    before = time.process_time()
    for name in ("token" * 100_000 + " =", "://a:" * 100_000 + "=", "token=' " * 50_000, "s3://" + "?sig" * 100_000):
        masked(name)
        masked_options(name)
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
