"""Mutations of bytes: bits flip; stretches are zeroed, cut, doubled, put in from elsewhere, or swapped."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Mapping
from functools import partial

from tests.fuzz.mutations.change import Change, Mutation, some_file
from tests.fuzz.tree import Tree

NUMBERS = (-(2**63), -(2**31), -1, 0, 1, 127, 255, 2**15, 2**16 - 1, 2**24, 2**31 - 1, 2**40, 2**63 - 1)
_LENGTHS = (1, 2, 4, 8, 16, 64, 512, 4096)


def _flip(data: bytearray, at: int, dice: random.Random) -> None:
    for place in (at, *(dice.randrange(len(data)) for _ in range(dice.choice((0, 0, 0, 2))))):
        data[place] ^= 1 << dice.randrange(8)


def _zero(data: bytearray, at: int, dice: random.Random) -> None:
    length = min(dice.choice(_LENGTHS), len(data) - at)
    data[at : at + length] = bytes(length)


def _cut(data: bytearray, at: int, dice: random.Random) -> None:
    del data[at:]


def _hole(data: bytearray, at: int, dice: random.Random) -> None:
    del data[at : at + dice.choice(_LENGTHS)]


def _again(data: bytearray, at: int, dice: random.Random) -> None:
    data[at:at] = data[at : at + dice.choice(_LENGTHS)] * dice.choice((1, 1, 3))


def _garbage(data: bytearray, at: int, dice: random.Random) -> None:
    data[at:at] = dice.randbytes(dice.choice(_LENGTHS[:6]))


def _swap(data: bytearray, at: int, dice: random.Random) -> None:
    length = min(dice.choice(_LENGTHS), len(data) // 2)
    first, second = sorted((min(at, len(data) - length), dice.randrange(len(data) - length + 1)))
    second = max(second, min(first + length, len(data) - length))
    data[first : first + length], data[second : second + length] = (
        data[second : second + length],
        data[first : first + length],
    )


def _number(data: bytearray, at: int, dice: random.Random) -> None:
    width, order = dice.choice((1, 2, 4, 8)), dice.choice("<>")
    at = min(at, max(0, len(data) - width))
    packed = struct.pack(f"{order}Q", dice.choice(NUMBERS) & ((1 << 64) - 1))
    data[at : at + width] = packed[:width] if order == "<" else packed[8 - width :]


_Edit = Callable[[bytearray, int, random.Random], None]


def _stretch(edit: _Edit, tree: Tree, dice: random.Random) -> Change | None:
    found = some_file(tree, dice)
    if found is None:
        return None
    name, before = found
    data = bytearray(before)
    at = dice.choice((dice.randrange(len(data)), dice.randrange(len(data)), dice.randrange(min(len(data), 64))))
    edit(data, at, dice)
    tree.put(name, bytes(data))
    return Change((name,), f"{name}: {edit.__name__.strip('_')} at byte {at}")


flipped: Mutation = partial(_stretch, _flip)

MUTATIONS: Mapping[str, tuple[Mutation, int]] = {
    "bytes.flip": (flipped, 8),
    "bytes.zero": (partial(_stretch, _zero), 5),
    "bytes.cut": (partial(_stretch, _cut), 5),
    "bytes.hole": (partial(_stretch, _hole), 4),
    "bytes.again": (partial(_stretch, _again), 3),
    "bytes.garbage": (partial(_stretch, _garbage), 3),
    "bytes.swap": (partial(_stretch, _swap), 3),
    "bytes.number": (partial(_stretch, _number), 4),
}
