"""The page of speed: prose that people write, and between two comments each table that a script writes."""

from __future__ import annotations

import re

_BLOCK = re.compile(r"<!-- table: ([a-z0-9-]+) -->\n(.*?)<!-- end of table -->\n", flags=re.DOTALL)


def blocks(page: str) -> list[tuple[str, str]]:
    """Return the name and the content of each table, in order."""
    return [(found[1], found[2]) for found in _BLOCK.finditer(page)]


def with_table(page: str, name: str, content: str) -> str:
    """Return the page with this table's content, and nothing else changed.

    >>> page = "Said.\\n<!-- table: cold -->\\nold\\n<!-- end of table -->\\nMore.\\n"
    >>> print(with_table(page, "cold", "new\\n"), end="")
    Said.
    <!-- table: cold -->
    new
    <!-- end of table -->
    More.
    """
    places = [found for found in _BLOCK.finditer(page) if found[1] == name]
    if len(places) != 1:
        raise SystemExit(f"the page has {len(places)} places for the table {name}, not one")
    return page[: places[0].start(2)] + content + page[places[0].end(2) :]
