"""What README and docs point to is there: pages, headings, files, modules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

AT_THE_ROOT = ("README.md", "CONTRIBUTING.md", "SECURITY.md")
PAGES = [REPOSITORY / name for name in AT_THE_ROOT] + sorted((REPOSITORY / "docs").rglob("*.md"))
FOLDERS = "cklog|commands|parsers|tests|benchmarks|sample_logs|docs"


def _anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as they are made from their words."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_pages_and_headings(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            path, _, anchor = target.partition("#")
            place = page.parent / path if path else page
            assert place.exists(), target
            assert not anchor or anchor in _anchors(place), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_that_is_named_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for path in re.findall(rf"`((?:{FOLDERS})/[\w./-]*)`", text):
        assert (REPOSITORY / path).exists() or re.search(r"/[A-Z]+/", path), path  # KIND stands for any kind


def test_every_page_can_be_reached_from_the_readme() -> None:
    found, left = set[Path](), [PAGES[0]]
    while left:
        page = left.pop()
        found.add(page)
        targets = re.findall(r"\]\(([^)#\s]+\.md)", page.read_text(encoding="utf-8"))
        left += {(page.parent / target).resolve() for target in targets if "://" not in target} - found
    assert [page.name for page in PAGES if page.resolve() not in found] == []


def test_every_page_stands_in_the_menu_of_the_site() -> None:
    menu = set(re.findall(r": (\S+\.md)$", (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"), flags=re.MULTILINE))
    docs = REPOSITORY / "docs"
    made = {path for path in menu if path.startswith("commands/")}  # of what the commands print
    assert menu - made == {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
