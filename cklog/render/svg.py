"""SVG by hand: elements with everything escaped, and coordinates that come out the same everywhere."""

from __future__ import annotations

from html import escape

from cklog.render.text import visible

Attributes = dict[str, str | float | None]

GLYPH = 0.6  # width of a letter of a sans-serif font, of its size; a little more than most are


def element(tag: str, *inside: str, **attributes: str | float | None) -> str:
    """Write an element; `_` in a name stands for `-`, and an attribute that is None is left out.

    >>> element("text", text_of("a<b"), x=1.0, y=2.375, font_size=12, fill=None)
    '<text x="1" y="2.4" font-size="12">a&lt;b</text>'
    """
    written = "".join(
        f' {name.replace("_", "-")}="{_attribute_text(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return f"<{tag}{written}>{''.join(inside)}</{tag}>" if inside else f"<{tag}{written}/>"


def text_of(text: str) -> str:
    """Return a text from a log, with nothing in it that XML would obey or cannot hold."""
    return escape(visible(text))


def number(value: float) -> str:
    """Write a coordinate with one decimal at most, and no -0.

    >>> number(3.0), number(-0.04), number(12.34)
    ('3', '0', '12.3')
    """
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def wrapped(text: str, columns: int) -> list[str]:
    """Break a text at spaces into lines of at most `columns` characters; a longer word is cut in pieces.

    >>> wrapped("a checkpoint of", 8)
    ['a', 'checkpoi', 'nt of']
    """
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > columns:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
        while len(lines[-1]) > columns:
            lines[-1:] = [lines[-1][:columns], lines[-1][columns:]]
    return lines


def shortened(text: str, most: int) -> str:
    """Return a text with its middle left out if it is longer than `most` characters.

    >>> shortened("partition-0007", 9)
    'part…0007'
    """
    text = visible(text)
    return text if len(text) <= most else f"{text[: most // 2]}…{text[len(text) - (most - most // 2 - 1) :]}"


def _attribute_text(value: str | float) -> str:
    return escape(value) if isinstance(value, str) else number(value)
