"""The page of exit codes: each example ends with the code of its heading, and prints what the page shows."""

from __future__ import annotations

import re
import shlex

import pytest

from cklog.explanations.pages import all_pages
from tests.conftest import REPOSITORY
from tests.program import cklog, hide_java

PLACE = REPOSITORY / "docs" / "exit-codes.md"
PAGE = PLACE.read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\d+): .*\n((?:(?!## ).*\n)*)", PAGE, flags=re.MULTILINE))
EXAMPLE = re.compile(r"^```text\n\$ (cklog .*)\n((?:(?!```).*\n)*)```$", flags=re.MULTILINE)
SHOWN = [(int(code), command, output) for code, text in SECTIONS.items() for command, output in EXAMPLE.findall(text)]


def test_every_exit_code_has_its_heading_and_all_that_can_be_shown_an_example() -> None:
    assert list(SECTIONS) == [
        page.id
        for page in sorted(all_pages(), key=lambda p: int(p.id) if p.id.isdigit() else 0)
        if page.kind == "exit-code"
    ]
    assert {code for code, _, _ in SHOWN} == {int(code) for code in SECTIONS} - {70, 130, 143}


@pytest.mark.parametrize(("code", "command", "output"), SHOWN, ids=[str(code) for code, _, _ in SHOWN])
def test_an_example_ends_as_it_says(
    code: int, command: str, output: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(REPOSITORY)
    hide_java(monkeypatch)
    ended = cklog(*shlex.split(command)[1:])
    assert ended.code == code
    if request.config.getoption("--refresh-golden"):
        text = PLACE.read_text(encoding="utf-8")
        PLACE.write_text(
            text.replace(f"$ {command}\n{output}", f"$ {command}\n{ended.out}{ended.err}"), encoding="utf-8"
        )
        return
    assert ended.out + ended.err == output
