"""The template of a block of JSON lines: what its first line fixes for all of them.

    template = literal (value literal)*       a value is an integer of 64 bits or a string without escapes

Words (true, false, null), names and brackets belong to the literals.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from cklog.parsers.jsonl.words import Deviates
from cklog.parsers.tables.records import object_of_pairs

ColumnKind = Literal["string", "int64"]

_ANY: dict[ColumnKind, bytes] = {"string": rb'[^"\\\x00-\x1f]*', "int64": rb"-?(?:0|[1-9][0-9]*)"}

_TOKEN = re.compile(
    rb' *(?:"(?P<string>%(string)b)"|(?P<int64>%(int64)b)(?![0-9.eE])'
    rb"|(?P<word>true|false|null)|(?P<mark>[{}\[\],:]))" % {key.encode(): value for key, value in _ANY.items()}
)


@dataclass(frozen=True, slots=True)
class TemplateValue:
    """One value of the template and the literal bytes between the value before it and this one."""

    name: str
    kind: ColumnKind
    literal: bytes


@dataclass(frozen=True, slots=True)
class LineTemplate:
    """What the first line fixes. The first value's literal starts with the end of the line before.

    `members` are the names of all members; `others` those that are neither one integer nor one string, and not null.
    `tail`: the bytes of a line behind its last value, with the newline.
    """

    values: tuple[TemplateValue, ...]
    line: bytes
    members: frozenset[str]
    others: frozenset[str]
    tail: bytes


class _ValuePlace(NamedTuple):
    """Where a value stands in a line, bytes [start, end) without quotes; `name` is "" below the top level."""

    name: str
    kind: ColumnKind
    start: int
    end: int


def template_of(block: bytes) -> LineTemplate:
    """Return the template that the first line of `block` fixes.

    >>> [(value.name, value.literal) for value in template_of(b'{"channel":"a","seq":7}\\n').values]
    [('channel', b'}\\n{"channel":"'), ('seq', b'","seq":')]

    Raises
    ------
    Deviates : the line is no object with a value, names a member twice, or holds what no template can
    """
    line = block[: block.find(b"\n") + 1]
    last = _LAST.template
    if last is not None and _LAST.lines.fullmatch(line):
        return replace(last, line=line)
    found = _template_of_line(line)
    _LAST.keep(found)
    return found


_LONG_LINE = 1 << 10


class _LastTemplate(threading.local):
    """The template that a thread found last, and what its lines are: most blocks of a log have the one before."""

    def __init__(self) -> None:
        self.template: LineTemplate | None = None
        self.lines = re.compile(b"")

    def keep(self, template: LineTemplate) -> None:
        """Keep a template for the next block; not one of long lines, of which it costs less than what it is made of."""
        if len(template.line) > _LONG_LINE:
            return
        first, *others = template.values
        literals = [first.literal[len(template.tail) :], *(value.literal for value in others)]
        parts = [re.escape(one) + _ANY[value.kind] for one, value in zip(literals, template.values, strict=True)]
        self.template, self.lines = template, re.compile(b"".join(parts) + re.escape(template.tail))


_LAST = _LastTemplate()


def _template_of_line(line: bytes) -> LineTemplate:
    try:
        members = json.loads(line, object_pairs_hook=object_of_pairs)
    except (ValueError, RecursionError):
        raise Deviates from None
    found = list(_values(line))
    if not isinstance(members, dict) or not found:
        raise Deviates
    names = [value.name for value in found]
    tail = line[found[-1].end :]
    if "crc32c" in names[:-1] or (names[-1] == "crc32c" and tail != b'"}\n') or "_offset" in members:
        raise Deviates
    values = []
    before = 0
    for name, kind, start, end in found:
        values.append(TemplateValue(name, kind, line[before:start]))
        before = end
    first = TemplateValue(values[0].name, values[0].kind, tail + values[0].literal)
    others = frozenset(name for name, value in members.items() if value is not None and name not in names)
    return LineTemplate(values=(first, *values[1:]), line=line, members=frozenset(members), others=others, tail=tail)


def member_spans(line: bytes, names: set[str]) -> dict[str, tuple[int, int]]:
    """Find the bytes [start, end) of members' values in a line that is a JSON object; null is no value.

    >>> member_spans(b'{"state":{"n":[1, 2]},"seq":7}', {"state"})
    {'state': (9, 21)}
    """
    text = line.decode("latin-1")  # a character for every byte
    decoder, found, at = json.JSONDecoder(), {}, text.index("{")
    while text[at] != "}":
        name, at = decoder.raw_decode(text, _skip_spaces(text, at + 1))
        start = _skip_spaces(text, text.index(":", at) + 1)
        value, end = decoder.raw_decode(text, start)
        at = _skip_spaces(text, end)
        if name in names and value is not None:
            found[name] = start, end
    return found


def _skip_spaces(text: str, at: int) -> int:
    while text[at] == " ":
        at += 1
    return at


def _values(line: bytes) -> Iterator[_ValuePlace]:
    """Yield every integer and every string of a line that is no member's name.

    >>> [*_values(b'{"seq":7,"at":["x"]}\\n')]
    [_ValuePlace(name='seq', kind='int64', start=7, end=8), _ValuePlace(name='', kind='string', start=16, end=17)]
    """
    at, depth, name, names = 0, 0, "", set[str]()
    while line[at:] != b"\n":
        token = _TOKEN.match(line, at)
        if not token:
            raise Deviates
        at = token.end()
        depth += {b"{": 1, b"[": 1, b"}": -1, b"]": -1}.get(token["mark"] or b"", 0)
        if token["string"] is not None and _names_a_member(line, at):
            if depth == 1:
                name = token["string"].decode(errors="surrogateescape")
                if name in names:
                    raise Deviates  # the later one of the two would count
                names.add(name)
        elif token["string"] is not None or token["int64"] is not None:
            kind: ColumnKind = "int64" if token["string"] is None else "string"
            yield _ValuePlace(name if depth == 1 else "", kind, *token.span(kind))


def _names_a_member(line: bytes, at: int) -> bool:
    """Whether the string that ends before byte `at` is a name: a colon follows."""
    return line[at:].lstrip(b" ").startswith(b":")
