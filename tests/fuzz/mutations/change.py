"""What a mutation did."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.fuzz.tree import Tree


@dataclass(frozen=True)
class Change:
    """What a mutation did, and to which files.

    `kind` : the mutation's name, once it is known
    `free` : oracles that it lifts, whatever the bytes now say
    `strict` : whether what it wrote is no valid record, though it may look like one to a reader of bytes
    `unreadable` : whether the question has to be asked as somebody who may not read everything
    `unknown` : the file that is of a later version now; nothing else is wrong with it
    """

    paths: tuple[str, ...]
    what: str
    kind: str = ""
    free: frozenset[str] = frozenset()
    strict: bool = False
    unreadable: bool = False
    unknown: str = ""

    def named(self, kind: str) -> Change:
        """The same with its mutation's name."""
        return replace(self, kind=kind)


Mutation = Callable[[Tree, random.Random], Change | None]


def some_file(tree: Tree, dice: random.Random, endings: tuple[str, ...] = ("",)) -> tuple[str, bytes] | None:
    """A file that is not empty, among those with such names; large and small ones alike."""
    names = [name for name in tree.names if name.endswith(endings)]
    for _ in range(8):
        if not names:
            return None
        name = dice.choice(names)
        data = tree.now(name)
        if data:
            return name, data
    return None
