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
    told: dict[str, list[str]] = {}
    for page in pages:
        told.setdefault(page.id, []).append(_what(page))
    head = "; ".join(f"{name}: {' and '.join(kinds)}" for name, kinds in told.items())
    return View(f"{head}.", (), figures=tuple(_page_text(page) for page in pages), data=data)


def _cells(page: Page, one: Meaning) -> tuple[object, ...]:
    damage = "yes" if one.damage else "no"
    return page.id, page.kind, one.topic, one.formats, one.severity, damage, one.means, one.answer, one.do


def _what(page: Page) -> str:
    if page.kind != "finding":
        told = {"action": "an action", "exit-code": "an exit code", "error": "an error in place of an answer"}
        return told[page.kind]
    places = len(page.meanings)
    return "a finding" if places == 1 else f"a finding with {places} meanings"


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
    """A page that fits a screen; of an id with several meanings a short section for each."""
    if len(page.meanings) == 1:
        return _meaning_text(page, page.meanings[0])
    return "\n\n".join(_section_text(page, number) for number in range(len(page.meanings)))


def _meaning_text(page: Page, one: Meaning) -> str:
    head = [f"{page.id} · {one.topic}", *([f"severity: {one.severity}"] if one.severity else [])]
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


def _section_text(page: Page, number: int) -> str:
    """One meaning of several; what an earlier one says of the answer is not said again."""
    one = page.meanings[number]
    same = next(i for i, other in enumerate(page.meanings) if other.answer == one.answer)
    head = f"{page.id} ({number + 1}) · {one.topic} · {one.severity} · formats: {one.formats}"
    told = [("means", one.means), ("answer", one.answer if same == number else f"as ({same + 1})"), ("do", one.do)]
    body = [
        textwrap.fill(text, _WIDTH, initial_indent=f"  {title:<8}", subsequent_indent=" " * 10) for title, text in told
    ]
    return "\n".join([textwrap.fill(head, _WIDTH, subsequent_indent="  "), *body])
