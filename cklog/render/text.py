"""Texts from logs and from the command line, made harmless before anybody sees them."""

from __future__ import annotations

import re

from cklog.local_files import shown_name

_USER = re.compile(r"(://[^/\s:@?#\"']*):([^/\s@\"']+)@")
_SECRETS = (
    "secret",
    "password",
    "passwd",
    "token",
    "signature",
    "credential",
    "access_key",
    "account_key",
    "private_key",
    "sas",
    "sig",
    "pwd",
)
_NAMED = re.compile(rf"((?:{'|'.join(_SECRETS)})[a-z0-9_.-]*)=([^&\s\"',;)]+)", re.IGNORECASE | re.ASCII)
_MASK = r"\1=***"
_UNSEEN = re.compile(
    "[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
"""What JSON leaves as it is and a terminal or an editor may obey: C1 controls, marks of direction, lone surrogates."""


def visible(text: str) -> str:
    """Return a text from a log on one line, with nothing in it that a terminal would obey.

    >>> visible("w1\\n\\x1b[31m é")
    'w1\\\\n\\\\x1b[31m é'
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in shown_name(text))


def visible_json(text: str) -> str:
    """Return JSON in which no character is left that a terminal or an editor would obey; its values stay the same.

    >>> visible_json('"\\x9b1m"')
    '"\\\\u009b1m"'
    """
    if text.isascii():
        return text.replace("\x7f", "\\u007f")
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", shown_name(text, "\\\\"))


def visible_cell(text: str) -> str:
    """Return the text of a CSV cell: as `visible`, but for the line ends, which the cell's quotes hold.

    >>> visible_cell("a\\r\\n\\x1b")
    'a\\r\\n\\\\x1b'
    """
    return "".join(c if c.isprintable() or c in "\r\n" else repr(c)[1:-1] for c in shown_name(text))


def escaped_markdown(text: str) -> str:
    """Return a text in which Markdown sees no marks, on one line."""
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, "\\" + mark)
    return visible(text)


def masked(text: str) -> str:
    """Return a text without secrets: passwords in URIs, and the values of what is called like one.

    >>> masked("s3://me:pw@b/x?secret_key=abc&region=x")
    's3://me:***@b/x?secret_key=***&region=x'
    """
    if "://" in text:
        text = _USER.sub(r"\1:***@", text)
    lower = text.lower() if "=" in text else ""
    named = any(secret in lower for secret in _SECRETS)  # most texts hold none: each is sought faster than all at once
    return _NAMED.sub(_MASK, text) if named else text


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
