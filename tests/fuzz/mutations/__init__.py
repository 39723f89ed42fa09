"""Mutations, each a function that damages a tree with dice, or finds nothing there that it could damage.

`stretches`: bytes. `whole_files`: files. `fields`: single JSON fields. `pages`: Parquet. `frames`: compressed streams
and Kafka's batches. `versions`: versions and names of formats that are not known. `ALL` has them by the name under
which the summary counts them, with their weights.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from tests.fuzz.mutations import fields, frames, pages, stretches, versions, whole_files
from tests.fuzz.mutations.change import Change, Mutation
from tests.fuzz.tree import Tree

ALL: Mapping[str, tuple[Mutation, int]] = {
    **stretches.MUTATIONS,
    **whole_files.MUTATIONS,
    **fields.MUTATIONS,
    **pages.MUTATIONS,
    **frames.MUTATIONS,
    **versions.MUTATIONS,
}

_TRIES = 20


def damage(tree: Tree, dice: random.Random) -> Change:
    """Damage a tree in one way that its files allow."""
    names, weights = list(ALL), [weight for _, weight in ALL.values()]
    for _ in range(_TRIES):
        [name] = dice.choices(names, weights)
        change = ALL[name][0](tree, dice)
        if change is not None:
            return change.named(name)
    change = stretches.flipped(tree, dice) or Change((), "no file has a byte left")
    return change.named("bytes.flip")


__all__ = ["ALL", "Change", "damage"]
