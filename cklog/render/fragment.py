"""An answer as a piece of HTML for a notebook: nothing that runs, nothing loaded, every text of the input escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from cklog.model.verdict import Answer
from cklog.render.text import visible_lines
from cklog.render.view import Section, headline_of, view


def html_fragment(answer: Answer[object], picture: str = "") -> str:
    """Return what people are shown of an answer as HTML; a `picture`, safe SVG, stands for the tables."""
    shown = view(answer)
    parts = [_element("p", _element("strong", _text(headline_of(shown, answer.findings))))]
    parts += [_element("p", _text(sentence)) for sentence in shown.lead]
    parts += [_element("pre", _text(figure)) for figure in shown.figures]
    parts += [picture] if picture else [part for section in shown.sections for part in _table(section)]
    notes = [] if picture else [_element("li", _text(note)) for note in shown.notes]
    parts += [_element("ul", *notes)] if notes else []
    findings = [
        _element("li", _element("b", _text(f.severity)), " ", _element("code", _text(f.id)), ": ", _text(f.message))
        for f in answer.findings
    ]
    parts += [_element("ul", *findings)] if findings else []
    return '<div class="cklog">' + "\n".join(parts) + "</div>\n"


def _table(section: Section) -> Iterable[str]:
    yield _element("h4", _text(section.title))
    head = _element("tr", *(_element("th", _text(name)) for name in section.columns))
    rows = (_element("tr", *(_element("td", _text(cell)) for cell in row)) for row in section.rows)
    yield _element("table", _element("thead", head), _element("tbody", *rows))
    if section.note:
        yield _element("p", _text(section.note))


def _text(value: Any) -> str:
    """Return a text that HTML does not obey, and in which nothing hides."""
    return escape(visible_lines(str(value)))


def _element(tag: str, *inside: str) -> str:
    return f"<{tag}>{''.join(inside)}</{tag}>"
