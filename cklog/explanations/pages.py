"""The tables of docs/findings.md and docs/json.md as pages, one for each id."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

PageKind = Literal["finding", "action", "exit-code", "error"]


@dataclass(frozen=True, slots=True)
class Meaning:
    """One meaning of an id: some mean different things of different inputs.

    `topic` : what it is about, by the heading under which it stands
    `formats` : the formats of which it can come
    `severity` : of a finding; "" of all others
    `damage` : whether it speaks of damaged bytes, which `--strict` refuses
    `means` : what it says of the input
    `answer` : what it means for the answer
    `do` : what to do now
    """

    topic: str
    formats: str
    severity: str
    damage: bool
    means: str
    answer: str
    do: str


@dataclass(frozen=True, slots=True)
class Page:
    """What an id means: of a finding, an action, an exit code, or the error that stands in place of an answer."""

    id: str
    kind: PageKind
    meanings: tuple[Meaning, ...]


@cache
def all_pages() -> tuple[Page, ...]:
    """Return every page: findings in the order of their document, then actions, exit codes and errors."""
    found: dict[tuple[PageKind, str], list[Meaning]] = {}
    for kind, ids, meaning in (*_findings(), *_actions(), *_exit_codes(), *_errors()):
        for name in ids:
            found.setdefault((kind, name), []).append(meaning)
    return tuple(Page(name, kind, tuple(meanings)) for (kind, name), meanings in found.items())


_FORMATS = "Formats: "
_SAME = "as above"
_CODE = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def _findings() -> Iterator[tuple[PageKind, list[str], Meaning]]:
    """Each row about a finding; what its severity means for the answer stands in the first table."""
    rows = list(_rows("findings.md"))
    by_severity = {row.cells[0]: row.cells[1] for row in rows if row.columns == ("severity", "for the answer")}
    before = ""
    for row in rows:
        if row.columns[:1] != ("id",):
            continue
        cells = [*row.cells, ""][:5]
        named, severity, means, do, own = cells
        before = do = before if do == _SAME else do
        damage = "(damage)" in named
        words = [word for word in by_severity if re.search(rf"\b{word}\b", severity)]
        rests = [by_severity[word] if len(words) == 1 else f"{word}: {by_severity[word]}" for word in words]
        rests = [own] if own else rests
        if damage:
            rests.append(by_severity["damage"])
        answer = " ".join(_sentence(part) for part in rests)
        yield (
            "finding",
            _CODE.findall(named),
            Meaning(
                _plain(row.topic), row.formats, _plain(severity), damage, _plain(means), _plain(answer), _plain(do)
            ),
        )


def _actions() -> Iterator[tuple[PageKind, list[str], Meaning]]:
    for row in _rows("json.md"):
        if row.columns == ("action", "means", "do"):
            named, means, do = row.cells
            told = "It is told as result.action, and of each run in result.runs."
            yield "action", _CODE.findall(named), Meaning("Actions", "all", "", False, _plain(means), told, _plain(do))


def _exit_codes() -> Iterator[tuple[PageKind, list[str], Meaning]]:
    for row in _rows("json.md"):
        if row.columns == ("exit", "verdict", "means", "do"):
            code, verdict, means, do = map(_plain, row.cells)
            told = f"The verdict is {verdict}." if verdict else "There is no answer."
            yield "exit-code", [code], Meaning("Exit codes", "all", "", False, means, told, do)


def _errors() -> Iterator[tuple[PageKind, list[str], Meaning]]:
    for row in _rows("json.md"):
        if row.columns == ("error", "exit", "means", "do"):
            named, code, means, do = row.cells
            told = f"There is no answer, and the exit code is {code}."
            yield "error", _CODE.findall(named), Meaning("Errors", "all", "", False, _plain(means), told, _plain(do))


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of a table, with the heading above it, the formats that stand there, and the names of its columns."""

    topic: str
    formats: str
    columns: tuple[str, ...]
    cells: tuple[str, ...]


def _rows(document: str) -> Iterator[_Row]:
    topic, formats = "", "all"
    columns: tuple[str, ...] = ()
    for line in (files("cklog.explanations") / document).read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            topic, formats = line.lstrip("# "), "all"
        elif line.startswith(_FORMATS):
            formats = _plain(line.removeprefix(_FORMATS)).rstrip(".")
        if not line.startswith("|"):
            columns = ()
            continue
        cells = tuple(cell.strip() for cell in line.strip().strip("|").split("|"))
        if not columns:
            columns = cells
        elif not set(line) <= set("|- "):
            yield _Row(topic, formats, columns, cells)


def _plain(text: str) -> str:
    """Return a text of a document without the marks of Markdown.

    >>> _plain("see `--map` in [budgets](command-line.md#budgets)")
    'see --map in budgets'
    """
    return _LINK.sub(r"\1", text).replace("`", "").replace("*", "")


def _sentence(text: str) -> str:
    """Return a text with a capital and a full stop.

    >>> _sentence("the answer holds")
    'The answer holds.'
    """
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "?")) else f"{text}."
