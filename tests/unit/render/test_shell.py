"""An answer for shells, as real shells read it: every value arrives, and nothing of it is run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cklog.model.findings import Finding
from cklog.model.verdict import Answer
from cklog.render.formats import render
from tests.conftest import REPOSITORY, SAMPLES
from tests.program import cklog

JOIN = SAMPLES / "uncoordinated-join"
SHELLS = [shell for shell in ("sh", "bash", "dash", "zsh") if shutil.which(shell)]

HOSTILE = [
    "plain",
    "two words",
    "",
    "a=b=",
    "it's",
    '"quoted"',
    "$(touch run)",
    "`touch run`",
    "a; touch run",
    "a\\b\\",
    "  spaces  ",
    "*",
    "~",
    "-n",
    "!history",
    "#comment",
    "$HOME ${HOME}",
    "' ; touch run ; '",
    "ä→b",
]


@dataclass(frozen=True)
class Named:
    """A result with names from a log, as keys too."""

    names: list[str]
    keys: dict[str, int]
    newest_time: int
    known: bool | None
    share: float


def answer(names: list[str], keys: dict[str, int] | None = None) -> Answer[object]:
    found = (Finding("torn-tail", "warning", "it's", "cut"),)
    return Answer("inspect", "findings", 0, (), found, Named(names, keys or {}, 1795226310693, None, 0.5))


def said(shell: str, script: str, text: str, place: Path) -> str:
    (place / "answer").write_text(text, encoding="utf-8")
    told = subprocess.run([shell, "-c", script], cwd=place, capture_output=True, text=True, check=True)
    assert not told.stderr
    assert sorted(path.name for path in place.iterdir()) == ["answer"]
    return told.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_values_arrive_as_they_are_line_by_line(shell: str, tmp_path: Path) -> None:
    script = (
        "while IFS== read -r key value; do case $key in names.count) ;; names.*)"
        ' eval "taken=$value"; printf "<%s>\\n" "$taken";; esac; done < answer'
    )
    told = said(shell, script, render(answer(HOSTILE), "kv"), tmp_path)
    assert told.splitlines() == [f"<{name}>" for name in HOSTILE]


@pytest.mark.parametrize("shell", SHELLS)
def test_values_arrive_as_they_are_by_eval(shell: str, tmp_path: Path) -> None:
    shown = "".join(f'printf "<%s>\\n" "$CKLOG_NAMES_{i}";' for i in range(len(HOSTILE)))
    told = said(shell, f'eval "$(cat answer)"; {shown}', render(answer(HOSTILE), "env"), tmp_path)
    assert told.splitlines() == [f"<{name}>" for name in HOSTILE]


@pytest.mark.parametrize("shell", SHELLS)
def test_keys_from_a_log_are_no_code(shell: str, tmp_path: Path) -> None:
    hostile = answer([], {name: i for i, name in enumerate(HOSTILE)})
    for form in ("kv", "env"):
        for line in render(hostile, form).splitlines():
            key = line.partition("=")[0]
            assert not set(key) & set(" $`;&|<>()'\"\\*~#!\n")
    said(shell, 'eval "$(cat answer)"; echo "$CKLOG_VERDICT"', render(hostile, "env"), tmp_path)


def test_keys_types_and_times() -> None:
    told = render(answer(["a\nb\x1b[31m"], {"x.y z": 3}), "kv").splitlines()
    assert told == [
        "schema=cklog.inspect/1",
        "verdict=findings",
        "exit=0",
        "names.count=1",
        r"names.0='a\nb\x1b[31m'",
        "keys.x%2Ey%20z=3",
        "newest_time=2026-11-21T01:58:30.693Z",
        "known=",
        "share=0.5",
        "findings.count=1",
        "findings.0.id=torn-tail",
        "findings.0.severity=warning",
        r"findings.0.subject='it'\''s'",
        "findings.0.message=cut",
        "findings.0.where.count=0",
        "findings.0.effect=none",
        "inputs.count=0",
    ]


def test_secrets_are_masked_and_keys_that_are_called_like_one_are_not() -> None:
    told = render(answer(["s3://me:pw@b/x"], {"token": 3}), "kv")
    assert "pw" not in told
    assert "keys.token=3\n" in told


def test_the_document_shows_what_works() -> None:
    page = (REPOSITORY / "docs" / "command-line.md").read_text(encoding="utf-8")
    script = page.partition("```sh\n")[2].partition("```")[0]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    told = subprocess.run(
        ["sh", "-c", script],
        env=os.environ | {"RUN": str(JOIN), "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.splitlines() == [
        "verdict is ok",
        "exit is 0",
        *(f"state: ck/{name}" for name in ("join/0/4", "join/1/3", "orders/0/4", "payments/0/4", "sink/0/3")),
        "the first of 5 is join",
    ]


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        return {k: v for name, one in value.items() for k, v in leaves(one, f"{path}.{name}" if path else name).items()}
    if isinstance(value, list):
        return {k: v for i, one in enumerate(value) for k, v in leaves(one, f"{path}.{i}").items()}
    return {path: value}


def test_every_value_of_the_json_is_there_and_the_exit_code() -> None:
    told = json.loads(cklog("recovery-line", JOIN, "--json").out)
    ended = cklog("recovery-line", JOIN, "--format", "kv")
    pairs = dict(line.split("=", 1) for line in ended.out.splitlines())
    expected = leaves(told["result"]) | leaves({"findings": told["findings"], "inputs": told["inputs"]})
    assert set(expected) <= set(pairs)
    counts = {key for key in pairs if key.endswith(".count")}
    assert set(pairs) - set(expected) == {"schema", "verdict", "exit"} | counts
    numbers = {key: str(value) for key, value in expected.items() if type(value) is int and not key.endswith("time")}
    assert {key: pairs[key] for key in numbers} == numbers
    assert pairs["exit"] == str(ended.code)
    assert pairs["line.count"] == str(len(told["result"]["line"]))
