"""The pages that somebody asks for, or all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from cklog.errors import UsageError
from cklog.explanations.pages import Page, all_pages
from cklog.model.verdict import Answer, Draft, conclude

_NEAREST = 3


@dataclass(frozen=True, slots=True)
class Explanations:
    """The pages that were asked for.

    `listed` : whether they are all that there are, for want of an id
    """

    pages: tuple[Page, ...]
    listed: bool


def explain(ids: Sequence[str]) -> Answer[Explanations]:
    """Return the pages of some ids of findings, actions, errors and exit codes; of none: every page.

    Raises
    ------
    UsageError : an id that there is not, with those that are spelled most like it
    """
    pages = all_pages()
    for asked in ids:
        if asked not in known_ids():
            raise UsageError(f"{asked}: no id of a finding, an action, an error or an exit code", _nearest(asked))
    chosen = tuple(page for asked in dict.fromkeys(ids) for page in pages if page.id == asked) if ids else pages
    return conclude(Draft("explain", Explanations(chosen, not ids), (), ()))


def known_ids() -> list[str]:
    """Return every id that there is a page for, in the order of the documents."""
    return list(dict.fromkeys(page.id for page in all_pages()))


def _nearest(asked: str) -> str:
    """Say which ids somebody may have meant: those spelled alike, else those that share a word."""
    known = known_ids()
    words = {word for word in asked.lower().split("-") if len(word) > 2}
    found = get_close_matches(asked.lower(), known, n=_NEAREST, cutoff=0.6)
    found += [one for one in known if one not in found and words & set(one.split("-"))]
    return f"nearest: {', '.join(found[:_NEAREST])}" if found else "cklog explain lists all of them"
