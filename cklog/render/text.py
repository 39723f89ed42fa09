"""Texts from logs and from the command line, made harmless before anybody sees them."""

from __future__ import annotations

import json
import re

from cklog.local_files import shown_name
from cklog.masking import masked, may_hold_secrets

_JSON_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
_UNSEEN = re.compile(
    "[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
"""What JSON leaves as it is and a terminal or an editor may obey: C1 controls, marks of direction, lone surrogates."""


def visible(text: str) -> str:
    """Return a text from a log on one line, with no secret and nothing in it that a terminal would obey.

    >>> visible("w1\\n\\x1b[31m é")
    'w1\\\\n\\\\x1b[31m é'
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in shown_name(masked(text)))


def visible_lines(text: str) -> str:
    """Return a text of several lines, each of them as `visible`.

    >>> visible_lines("a\\n\\x1b s3://me:pw@b")
    'a\\n\\\\x1b s3://me:***@b'
    """
    return "\n".join(map(visible, masked(text).split("\n")))


def is_plain(text: str) -> bool:
    """Return whether a text has nothing in it that a terminal would obey.

    >>> is_plain("s3://me:pw@b"), is_plain("a\\n")
    (True, False)
    """
    return text.isprintable() and shown_name(text) == text


def visible_json(text: str) -> str:
    """Return JSON without secrets, and without a character that a terminal or an editor would obey.

    Its values stay the same but for the secrets in them.

    >>> visible_json('"\\x9b1m"'), visible_json('["s3://b?token=x", "token=x"]')
    ('"\\\\u009b1m"', '["s3://b?token=***", "token=x"]')
    """
    if may_hold_secrets(text):
        text = _JSON_STRING.sub(_masked_string, text)
    if text.isascii():
        return text.replace("\x7f", "\\u007f")
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", shown_name(text, "\\\\"))


def visible_cell(text: str) -> str:
    """Return the text of a CSV cell: as `visible`, but for the line ends, which the cell's quotes hold.

    >>> visible_cell("a\\r\\n\\x1b")
    'a\\r\\n\\\\x1b'
    """
    return "".join(c if c.isprintable() or c in "\r\n" else repr(c)[1:-1] for c in shown_name(masked(text)))


def escaped_markdown(text: str) -> str:
    """Return a text in which Markdown sees no marks, on one line."""
    text = masked(text)  # before the escapes part what is called like a secret from its value
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, "\\" + mark)
    return visible(text)


def _masked_string(found: re.Match[str]) -> str:
    """Return a string of JSON without secrets."""
    text = json.loads(found[0], strict=False)
    shown = masked(text)
    return found[0] if shown == text else json.dumps(shown, ensure_ascii=False)


_BEGINNING = re.compile(r"( +)|()[0-9]+[.] ")
_HANGING = 3
"""What the further lines of an indented sentence, or of an item of a list, are indented by."""


def wrapped_lines(text: str, width: int | None) -> list[str]:
    """Return a sentence in lines of a terminal, between words; those that follow hang below an item.

    >>> wrapped_lines("1. Stop what still runs", 16), wrapped_lines("no line is left", 8)
    (['1. Stop what', '   still runs'], ['no line', 'is left'])
    """
    if width is None:
        return [text]
    from rich.console import Console
    from rich.text import Text

    def lines(part: str, room: int) -> list[str]:
        return [str(line).rstrip() for line in Text(part).wrap(Console(width=room), room)]

    begins = _BEGINNING.match(text)
    margin = 0 if begins is None else len(begins[1] or "") + _HANGING
    if not 0 < margin <= width // 2:
        return lines(text, width)
    first = lines(text, width)[0]
    rest = text[len(first) :].lstrip()
    return [first, *(" " * margin + line for line in (lines(rest, width - margin) if rest else ()))]
