"""Every finding, action, exit code and error has a page, whole and for a terminal of 80 columns."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cklog.errors import CklogError
from cklog.explanations.answer import known_ids
from cklog.explanations.pages import all_pages
from cklog.model.actions import ACTIONS
from cklog.model.verdict import DAMAGE
from tests.conftest import REPOSITORY
from tests.program import cklog

DOCUMENT = (REPOSITORY / "docs" / "findings.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["findings.md", "json.md"])
def test_the_texts_stand_once(name: str) -> None:
    """What the package holds is the document itself, which a wheel gets as a file."""
    link = REPOSITORY / "cklog" / "explanations" / name
    assert link.is_symlink()
    assert os.readlink(link) == f"../../docs/{name}"


def test_every_row_of_the_document_is_a_meaning_of_its_page() -> None:
    """Rows counted by another way than the parser's: lines that begin with an id, and the ids of the first cell."""
    told: dict[str, int] = {}
    for line in DOCUMENT.splitlines():
        if re.match(r"\| `[a-z-]+`", line):
            for name in re.findall(r"`([a-z-]+)`", line.split(" | ")[0]):
                told[name] = told.get(name, 0) + 1
    assert {page.id: len(page.meanings) for page in all_pages() if page.kind == "finding"} == told
    assert len(told) > 150


def test_every_meaning_is_whole() -> None:
    for page in all_pages():
        for one in page.meanings:
            assert all([one.topic, one.formats, one.means, one.answer, one.do]), page.id
            assert not re.search(r"[`*]|\]\(|^as above", f"{one.means} {one.answer}\n{one.do}"), page.id
            assert bool(one.severity) == (page.kind == "finding"), page.id


def test_damage_is_what_strict_refuses() -> None:
    assert {page.id for page in all_pages() if any(one.damage for one in page.meanings)} == DAMAGE


def test_every_action_has_a_page() -> None:
    assert tuple(page.id for page in all_pages() if page.kind == "action") == ACTIONS
    assert cklog("explain", "restart-older").out.startswith("restart-older: an action.\n")


def test_every_error_has_a_page_with_its_exit_code() -> None:
    def below(kind: type[CklogError]) -> set[tuple[str, int]]:
        return {(kind.id, kind.exit_code)}.union(*(below(one) for one in kind.__subclasses__()))

    made = below(CklogError) - {(CklogError.id, CklogError.exit_code)}
    codes = {page.id for page in all_pages() if page.kind == "exit-code"}
    told = set()
    for page in all_pages():
        if page.kind == "error":
            found = re.search(r"exit code is (\d+)", page.meanings[0].answer)
            assert found
            told.add((page.id, int(found[1])))
    assert told == made
    assert {str(code) for _, code in made} <= codes


def test_the_list_has_a_line_for_each_id_and_fits_a_terminal() -> None:
    ended = cklog("explain")
    assert ended.code == 0
    assert max(map(len, ended.out.splitlines())) <= 80
    begins = [line.split()[0] for line in ended.out.splitlines() if line]
    for name in known_ids():
        assert begins.count(name) == 1, name


def test_a_page_says_what_it_means_for_the_answer_and_what_to_do() -> None:
    for name in ["torn-tail", "3", "corrupt-input", "salvage-first"]:
        ended = cklog("explain", name)
        assert ended.code == 0
        assert max(map(len, ended.out.splitlines())) <= 80
        for title in ("What it means", "For the answer", "What to do now", "Formats"):
            assert f"\n{title}\n  " in ended.out
    assert "exit 3" in cklog("explain", "watermark-decreases").out


@pytest.mark.parametrize("name", known_ids())
def test_a_page_fits_a_screen_and_one_of_several_meanings_has_a_short_section_for_each(name: str) -> None:
    """80 columns and 24 lines, of which the shell takes one."""
    told = cklog("explain", name).out
    assert max(map(len, told.splitlines())) <= 80
    meanings = max(len(page.meanings) for page in all_pages() if page.id == name)
    if meanings == 1 and name != "over-budget":
        assert len(told.splitlines()) <= 23
    else:
        sections = [part for part in told.split("\n\n") if part.startswith(name)]
        assert len(sections) >= meanings
        assert max(len(part.splitlines()) for part in sections) <= 14


def test_one_id_of_a_finding_and_of_an_error_has_both_pages() -> None:
    told = json.loads(cklog("explain", "over-budget", "--json").out)
    assert [page["kind"] for page in told["result"]["pages"]] == ["finding", "error"]


@pytest.mark.parametrize(
    ("asked", "nearest"), [("corupt-file", "corrupt-file"), ("TORN-TAIL", "torn-tail"), ("torn", "torn-tail")]
)
def test_an_unknown_id_is_exit_2_with_the_nearest(asked: str, nearest: str) -> None:
    ended = cklog("explain", asked)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[1].startswith(f"hint: nearest: {nearest}")


def test_ids_are_completed() -> None:
    """As a shell asks: by the variables that it sets."""
    asked = {"_CKLOG_COMPLETE": "complete_bash", "COMP_WORDS": "cklog explain torn", "COMP_CWORD": "2"}
    program = Path(sys.executable).parent / "cklog"
    told = subprocess.run([program], env=os.environ | asked, capture_output=True, text=True, check=True)
    assert told.stdout.split() == [name for name in known_ids() if name.startswith("torn")]
