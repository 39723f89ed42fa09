"""A PDF of the converter put in order: it numbers and writes fonts, and what a page names, in another order each time.

    file  = "%PDF-1.7" comment object* "xref" table "trailer" dictionary "startxref" offset "%%EOF"

Objects are numbered anew as they are met from the trailer on, the names in a dictionary of resources in their order,
and are written by their numbers. What streams hold stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_OBJECT = re.compile(rb"(\d+) 0 obj\n")
_TABLE = re.compile(
    rb"xref\n0 \d+\n((?:\d{10} \d{5} [nf][ \r\n]{1,2})+)trailer\n(.*?)startxref\n\d+\n%%EOF\s*", re.DOTALL
)
_NAMED = re.compile(rb"(?<= <<\n)(?: +/[A-Za-z]+\d+ [^\n]*\n){2,}(?= +>>)")
"""What a page names, such as its fonts: lines of "/fo0 1 0 R"."""
_REFERENCE = re.compile(rb"\b(\d+) 0 R\b")
_STREAM = b"\nstream\n"


def in_order(pdf: bytes) -> bytes:
    """Return the same document in the order in which its objects are met; as it is where it is laid out otherwise."""
    objects, trailer = _parts(pdf)
    if not objects:
        return pdf
    number: dict[int, int] = {}
    _meet(objects, trailer, number)
    head = pdf[: min(at for at, _ in objects.values())]
    written = [(new, _renumbered(objects[old][1], number)) for old, new in number.items()]
    places, body = [b"0000000000 65535 f \n"], [head]
    at = len(head)
    for new, text in written:
        places.append(b"%010d 00000 n \n" % at)
        body.append(b"%d 0 obj\n%s" % (new, text))
        at += len(body[-1])
    end = re.sub(rb"/Size \d+", b"/Size %d" % len(places), _renumbered(trailer, number))
    return b"%sxref\n0 %d\n%strailer\n%sstartxref\n%d\n%%%%EOF\n" % (
        b"".join(body),
        len(places),
        b"".join(places),
        end,
        at,
    )


def _parts(pdf: bytes) -> tuple[dict[int, tuple[int, bytes]], bytes]:
    """Each object by its number, with where it begins, and the trailer; nothing of a file that has no such table."""
    begun = pdf.rfind(b"\nxref\n") + 1
    table = _TABLE.fullmatch(pdf, begun) if begun else None
    if table is None:
        return {}, b""
    used = sorted(int(line[:10]) for line in table[1].splitlines() if line[17:18] == b"n")
    found: dict[int, tuple[int, bytes]] = {}
    for at, end in zip(used, [*used[1:], begun], strict=True):
        head = _OBJECT.match(pdf, at)
        if head is None:
            return {}, b""
        text, mark, stream = pdf[head.end() : end].partition(_STREAM)
        found[int(head[1])] = at, _NAMED.sub(_sorted_lines, text) + mark + stream
    return found, table[2]


def _sorted_lines(found: re.Match[bytes]) -> bytes:
    return b"".join(sorted(found[0].splitlines(keepends=True)))


def _meet(objects: Mapping[int, tuple[int, bytes]], trailer: bytes, number: dict[int, int]) -> None:
    """Number every object that is reached, in the order in which references to it are met, the deepest first."""
    waiting = _named_by(trailer)[::-1]
    while waiting:
        one = waiting.pop()
        if one in objects and one not in number:
            number[one] = len(number) + 1
            waiting += _named_by(objects[one][1])[::-1]


def _named_by(text: bytes) -> list[int]:
    return [int(one) for one in _REFERENCE.findall(text.partition(_STREAM)[0])]


def _renumbered(text: bytes, number: Mapping[int, int]) -> bytes:
    said, mark, stream = text.partition(_STREAM)
    return _REFERENCE.sub(lambda found: b"%d 0 R" % number.get(int(found[1]), 0), said) + mark + stream
