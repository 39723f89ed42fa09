"""Long ids cut for people, as git does: Flink's jobs of 32 digits and UUIDs, to as few digits as tell them apart.

Only what a terminal shows is cut. Commands, URIs and absolute paths stay whole, for they are pasted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from cklog.model.findings import Finding
from cklog.render.view import Section, View

LEAST_DIGITS = 8
"""So many digits of an id are shown at least."""

_ID = re.compile(r"(?<![0-9A-Za-z_-])(?:[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?![0-9A-Za-z_-])")
_SHORTEST = 32
_PASTED = re.compile(r"[(\[\"']*(?:/|[A-Za-z][A-Za-z0-9+.-]*:/|[^ ]*=)")
"""How a word begins that is whole or of no use, as what follows an option is: an absolute path, a URI, what is set."""


def with_short_ids(shown: View, findings: Sequence[Finding]) -> tuple[View, tuple[Finding, ...]]:
    """Return what a terminal shows of an answer, with ids cut in sentences and cells."""
    ids = sorted({found for text in _texts(shown, findings) for found in _ID.findall(text)})
    if not ids:
        return shown, tuple(findings)
    short = _prefixes(ids)

    def cut(value: Any) -> Any:
        return _cut(value, short) if isinstance(value, str) and len(value) >= _SHORTEST else value

    def cut_section(section: Section) -> Section:
        return replace(section, rows=tuple(tuple(map(cut, row)) for row in section.rows), note=cut(section.note))

    view = replace(
        shown,
        headline=cut(shown.headline),
        notes=tuple(map(cut, shown.notes)),
        sections=tuple(map(cut_section, shown.sections)),
        lead=tuple(map(cut, shown.lead)),
        steps=tuple(cut(step) if step in shown.sentences else step for step in shown.steps),
        sentences=shown.sentences.union(map(cut, shown.sentences)),
    )
    return view, tuple(replace(finding, message=cut(finding.message)) for finding in findings)


def _texts(shown: View, findings: Iterable[Finding]) -> Iterator[str]:
    """Every text that may hold an id: those that are not cut, too, so that no two ids look the same."""
    yield from (shown.headline, *shown.notes, *shown.figures, *shown.steps)
    yield from (finding.message for finding in findings)
    for section in shown.sections:
        yield section.note
        for row in section.rows:
            yield from (cell for cell in row if isinstance(cell, str) and len(cell) >= _SHORTEST)


def _prefixes(ids: Sequence[str]) -> dict[str, str]:
    """The shortest beginning of each of the sorted ids that no other one has.

    >>> _prefixes(["0123456789aa", "0123456789ab", "ffffffffffff"])
    {'0123456789aa': '0123456789aa', '0123456789ab': '0123456789ab', 'ffffffffffff': 'ffffffff'}
    """
    found = {}
    for i, one in enumerate(ids):
        beside = [_shared(one, other) for other in (*ids[max(i - 1, 0) : i], *ids[i + 1 : i + 2])]
        found[one] = one[: max(LEAST_DIGITS, *(shared + 1 for shared in beside))] if beside else one[:LEAST_DIGITS]
    return found


def _shared(one: str, other: str) -> int:
    """How many characters two ids begin with alike."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))


def _cut(text: str, short: dict[str, str]) -> str:
    """A text with its ids cut, but for words that are pasted."""
    shown: list[str] = []
    for word in text.split(" "):
        whole = _PASTED.match(word) or (shown and shown[-1].startswith("-") and shown[-1] != "-")
        shown.append(word if whole else _ID.sub(lambda found: short[found[0]], word))
    return " ".join(shown)
