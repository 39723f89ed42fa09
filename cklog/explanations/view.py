"""Explanations as pages for a terminal of 80 columns, and a line for each id."""

from __future__ import annotations

import textwrap

from cklog.explanations.answer import Explanations
from cklog.explanations.pages import Meaning, Page
from cklog.model.verdict import Answer
from cklog.model.wording import many
from cklog.render.view import Section, View

_WIDTH = 78
_COLUMNS = ("id", "kind", "topic", "formats", "severity", "damage", "means", "answer", "do")


def explain_view(answer: Answer[Explanations]) -> View:
    """Show pages, or the list of all ids with a line each."""
    pages = answer.result.pages
    data = Section("Explanations", _COLUMNS, tuple(_cells(page, one) for page in pages for one in page.meanings))
    if answer.result.listed:
        head = f"{many(len({page.id for page in pages}), 'id')}; cklog explain ID says what it means and what to do."
        return View(head, _lists(pages), data=data)
    head = "; ".join(f"{page.id}: {_what(page)}" for page in pages)
    return View(f"{head}.", (), figures=tuple(_page_text(page) for page in pages), data=data)


def _cells(page: Page, one: Meaning) -> tuple[object, ...]:
    damage = "yes" if one.damage else "no"
    return page.id, page.kind, one.topic, one.formats, one.severity, damage, one.means, one.answer, one.do


def _what(page: Page) -> str:
    if page.kind != "finding":
        return {"exit-code": "an exit code", "error": "an error in place of an answer"}[page.kind]
    places = len(page.meanings)
    return "a finding" if places == 1 else f"a finding with {places} meanings, by what it is about"


def _lists(pages: tuple[Page, ...]) -> tuple[Section, ...]:
    """A list for each topic; an id stands where it comes first, so that each has one line."""
    topics: dict[str, dict[str, str]] = {}
    seen: set[str] = set()
    for page in pages:
        if page.id not in seen:
            seen.add(page.id)
            topics.setdefault(page.meanings[0].topic, {})[page.id] = page.meanings[0].means
    return tuple(
        Section(topic, ("id", "means"), tuple(_line(name, means) for name, means in lines.items()))
        for topic, lines in topics.items()
    )


def _line(name: str, means: str) -> tuple[str, str]:
    """An id and the beginning of its meaning, which together fit a terminal."""
    most = _WIDTH - max(len(name), _LONGEST_ID) - 3
    first = means
    for mark in (";", ":"):
        begins = first.split(mark)[0]
        first = begins if len(first) > most and len(begins) > most // 2 else first
    return name, textwrap.shorten(first, most, placeholder=" …")


_LONGEST_ID = 26


def _page_text(page: Page) -> str:
    parts = [_meaning_text(page, one, i) for i, one in enumerate(page.meanings)]
    return "\n\n".join(parts)


def _meaning_text(page: Page, one: Meaning, number: int) -> str:
    again = f" ({number + 1})" if len(page.meanings) > 1 else ""
    head = [f"{page.id}{again} · {one.topic}", *([f"severity: {one.severity}"] if one.severity else [])]
    told = [
        ("What it means", one.means),
        ("For the answer", one.answer),
        ("What to do now", one.do),
        ("Formats", one.formats),
    ]
    body = [
        f"{title}\n{textwrap.fill(text, _WIDTH, initial_indent='  ', subsequent_indent='  ')}" for title, text in told
    ]
    return "\n".join([*head, *body])
