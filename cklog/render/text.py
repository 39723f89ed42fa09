"""Texts from logs, made harmless."""

from __future__ import annotations


def visible(text: str) -> str:
    """Return a text from a log on one line, with nothing in it that a terminal would obey.

    >>> visible("w1\\n\\x1b[31m é")
    'w1\\\\n\\\\x1b[31m é'
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
