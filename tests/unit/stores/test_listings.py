"""Pages of a listing become files and folders, and what no listing has is refused."""

from __future__ import annotations

import errno
import itertools
from collections.abc import Iterator
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklog.errors import OverBudget
from cklog.stores.deadlines import Deadline
from cklog.stores.listings import Listing, Object, Page, list_all, parse_page
from cklog.stores.patience import NotServed
from tests.integration.stores.hostile import contents, page

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)


@given(st.dictionaries(NAMES, st.integers(0, 1 << 50), max_size=20))
def test_every_name_and_size_is_read_as_it_was_written(objects: dict[str, int]) -> None:
    body = page([contents(f"p/{name}", str(size)) for name, size in objects.items()])
    assert parse_page(body, "p/") == Page([Object(f"p/{name}", size, "") for name, size in objects.items()], "")


def test_names_make_folders_and_a_marker_is_one() -> None:
    found = Listing()
    for path in ("a/b/c", "a/d", "e/f/", "g"):
        found.add(path, 1, "")
    assert list(found.files) == ["a/b/c", "a/d", "g"]
    assert found.folders == {"a", "a/b", "e", "e/f"}


def test_the_time_of_a_listing_starts_again_with_a_thousand_names() -> None:
    renewed: list[int] = []
    told = iter(Page([Object(f"{n}/{i}", 1, "") for i in range(400)], str(n) if n < 10 else "") for n in range(1, 11))
    found = list_all(lambda token: next(told), "", lambda: renewed.append(1), Deadline(60))
    assert len(found.files) == 4000
    assert len(renewed) == 3


@pytest.mark.parametrize("names", [0, 1])
def test_pages_that_name_next_to_nothing_are_refused_after_a_hundred(names: int) -> None:
    asked: list[str] = []

    def ask(token: str) -> Page:
        asked.append(token)
        return Page([Object(f"a{len(asked)}", 1, "")] * names, f"t{len(asked)}")

    with pytest.raises(NotServed, match="does not end"):
        list_all(ask, "", lambda: None, Deadline(60))
    assert len(asked) <= 110


def test_full_pages_without_an_end_are_over_the_budget() -> None:
    def endless() -> Iterator[Page]:
        number = 0
        while True:
            number += 1
            yield Page([Object(f"{number}/{i}", 1, "") for i in range(1000)], str(number))

    told = endless()
    with pytest.raises(OverBudget):
        list_all(lambda token: next(told), "", lambda: None, Deadline(60))


def test_full_pages_end_when_the_time_of_the_listing_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cklog.stores.deadlines.time.monotonic", Mock(side_effect=itertools.count()))
    told = (Page([Object(f"{n}/{i}", 1, "") for i in range(1000)], str(n)) for n in itertools.count())
    with pytest.raises(NotServed, match=r"did not end within 9 s: 9000 names so far \(--store timeout=S\)"):
        list_all(lambda token: next(told), "", lambda: None, Deadline(9))


def test_the_time_of_a_page_ends_with_that_of_its_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("cklog.stores.deadlines.time.monotonic", lambda: now[0])
    page, whole = Deadline(10), Deadline(15)
    now[0] = 9
    page.renew(whole)
    assert page.left() == 6


def test_a_page_that_is_cut_by_the_end_of_the_listing_is_told_as_that(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("cklog.stores.deadlines.time.monotonic", lambda: now[0])
    pages = 0

    def ask(token: str) -> Page:
        nonlocal pages
        pages, now[0] = pages + 1, now[0] + 4
        if now[0] > 10:
            raise NotServed(errno.ETIMEDOUT, "the store gave no answer within 4 s")
        return Page([Object(f"{pages}/{i}", 1, "") for i in range(1000)], str(pages))

    with pytest.raises(NotServed, match="the listing did not end within 10 s: 2000 names so far"):
        list_all(ask, "", lambda: None, Deadline(10))


def test_a_store_that_never_answers_is_told_as_that(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(token: str) -> Page:
        raise NotServed(errno.ETIMEDOUT, "the store gave no answer within 4 s")

    monkeypatch.setattr("cklog.stores.deadlines.time.monotonic", itertools.count().__next__)
    with pytest.raises(NotServed, match="gave no answer"):
        list_all(ask, "", lambda: None, Deadline(0))
