"""stdout of any encoding, closed, full, or left by its reader: an answer or one clear line, never a bug."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, SAMPLES

FLINK = SAMPLES / "flink-orders"
NAME = "naïve→\U0001f600"
"""An operator's name: a character of Latin 1, an arrow as cklog draws it, and one beyond the first plane."""


def program(*args: str | Path, encoding: str = "utf-8") -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    command = [sys.executable, "-m", "cklog", *map(str, args)]
    return subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, check=False)


def shell(line: str) -> subprocess.CompletedProcess[bytes]:
    command = line.replace("cklog", f"{sys.executable} -m cklog", 1)
    return subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=REPOSITORY, capture_output=True, check=False)


@pytest.fixture
def named(tmp_path: Path) -> Path:
    """A run whose operator has a name that few encodings can hold."""
    (tmp_path / "checkpoints").mkdir()
    record = {"operator": NAME, "subtask": 0, "checkpoint": 1}
    (tmp_path / "checkpoints" / "x.jsonl").write_text(json.dumps(record, ensure_ascii=False) + "\n", encoding="utf-8")
    return tmp_path


@pytest.mark.quarter
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "koi8-r", "utf-16", "cp037", "utf-8:strict"])
@pytest.mark.parametrize("form", ["table", "json", "jsonl", "csv", "md"])
def test_every_format_is_printed_in_every_encoding(named: Path, encoding: str, form: str) -> None:
    ended = program("recovery-line", named, "--format", form, encoding=encoding)
    assert (ended.returncode, ended.stderr) == (0, b"")
    ended.stdout.decode(encoding.partition(":")[0])


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_json_means_the_same_in_every_encoding(named: Path, encoding: str) -> None:
    told = program("recovery-line", named, "--json", encoding=encoding).stdout.decode(encoding)
    assert json.loads(told)["result"]["line"][0]["operator"] == NAME


def test_what_cklog_draws_becomes_ascii_and_what_the_input_holds_is_escaped(named: Path) -> None:
    table = program("recovery-line", named, encoding="ascii").stdout.decode("ascii")
    assert "-----" in table
    assert "na\\u00efve->\\ud83d\\ude00/0" in table
    told = program("recovery-line", named, "--format", "csv", encoding="latin-1").stdout.decode("latin-1")
    rows = list(csv.reader(io.StringIO(told)))
    assert rows[1][0] == "naïve->\\ud83d\\ude00/0"


def test_what_tools_read_is_utf_8_in_every_encoding(named: Path) -> None:
    in_ascii = program("graph", named, "--format", "dot", encoding="ascii")
    assert in_ascii.stdout == program("graph", named, "--format", "dot").stdout
    assert NAME in in_ascii.stdout.decode("utf-8")


@pytest.mark.quarter
@pytest.mark.parametrize("args", ["-h", "recovery-line -h", "--version", f"recovery-line {FLINK}"])
def test_a_closed_or_full_stdout_is_one_line_and_exit_73(args: str) -> None:
    for to, why in ((">&-", b"it is closed"), (">/dev/full", b"No space left")):
        ended = shell(f"cklog {args} {to}")
        assert ended.returncode == 73
        assert ended.stderr.startswith(b"cklog: stdout: " + why)
        assert b"Traceback" not in ended.stderr
        assert b"Exception" not in ended.stderr


def test_a_refusal_needs_no_stdout() -> None:
    assert shell("cklog recovery-line /no/such/place >&-").returncode == 66


@pytest.mark.parametrize(("args", "code"), [("recovery-line /no/such/place", 66), ("recovery-line --no-such", 2)])
@pytest.mark.parametrize(("to", "why"), [(">&-", b"it is closed"), (">/dev/full", b"No space left")])
def test_a_refusal_whose_object_cannot_be_written_says_both(args: str, code: int, to: str, why: bytes) -> None:
    ended = shell(f"cklog {args} --json {to}")
    assert ended.returncode == code
    first, *_, last, hint = ended.stderr.splitlines()
    assert first.startswith(b"cklog: ")
    assert last.startswith(b"cklog: stdout: " + why)
    assert hint == b"hint: -o FILE writes to a file"


def test_an_answer_in_a_file_needs_no_stdout(tmp_path: Path) -> None:
    assert shell(f"cklog recovery-line {FLINK} -o {tmp_path / 'answer'} >&-").returncode == 0
    assert (tmp_path / "answer").read_text().startswith("Restore ")


@pytest.mark.parametrize("args", ["-h", f"recovery-line {FLINK}", "simulate nexmark --no-log --rate 1"])
def test_a_reader_that_stops_early_leaves_the_exit_code_of_the_answer(args: str) -> None:
    ended = shell(f"cklog {args} | true")
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_reader_that_stops_early_hides_no_finding() -> None:
    ended = shell(f"cklog recovery-line {SAMPLES / 'uncoordinated-join'} --at join/0=5 | true")
    assert (ended.returncode, ended.stderr) == (4, b"")


def test_nothing_that_belongs_on_a_closed_stderr_gets_into_the_answer() -> None:
    ended = shell(f"cklog recovery-line {FLINK} --format csv 2>&-")
    assert ended.returncode == 0
    assert ended.stdout == shell(f"cklog recovery-line {FLINK} --format csv -q").stdout
    assert shell("cklog recovery-line /no/such/place 2>/dev/full").returncode == 66


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_what_is_told_comes_before_the_answer(unbuffered: str) -> None:
    part = SAMPLES / "spark-wordcount" / "ck" / "offsets"
    command = [sys.executable, "-m", "cklog", "inspect", str(part)]
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    both = subprocess.run(
        command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    first, second, third = both.stdout.decode().splitlines()[:3]
    assert "is a part of the run" in first
    assert "lies beside" in second
    assert third.startswith("A Spark query")
