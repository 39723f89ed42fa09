"""Damage to bytes by chance: flipped bits, cut, filled, moved and repeated stretches, changed length fields."""

from __future__ import annotations

import random
from collections.abc import Callable

_BYTES = (0, 1, 2, 0x7F, 0x80, 0xFF)
_NUMBERS = (
    0,
    1,
    2,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    1 << 62,
    (1 << 63) - 1,
)


def flip_bit(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]


def set_byte(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    byte = chance.choice(_BYTES) if chance.random() < 0.7 else chance.randrange(256)
    return data[:at] + bytes([byte]) + data[at + 1 :]


def nudge_byte(data: bytes, chance: random.Random) -> bytes:
    """One more or one less, as a count or a length may be."""
    at = chance.randrange(len(data))
    return data[:at] + bytes([(data[at] + chance.choice((-2, -1, 1, 2))) & 255]) + data[at + 1 :]


def cut_end(data: bytes, chance: random.Random) -> bytes:
    return data[: -chance.randint(1, min(len(data), chance.choice((1, 4, 16, len(data)))))]


def cut_stretch(data: bytes, chance: random.Random) -> bytes:
    at, length = chance.randrange(len(data)), chance.choice((1, 2, 4, 8, 30))
    return data[:at] + data[at + length :]


def insert_bytes(data: bytes, chance: random.Random) -> bytes:
    at, length = chance.randint(0, len(data)), chance.choice((1, 1, 2, 4, 8, 20))
    return data[:at] + (chance.randbytes(length) if chance.random() < 0.5 else bytes(length)) + data[at:]


def fill_stretch(data: bytes, chance: random.Random) -> bytes:
    at, length = chance.randrange(len(data)), chance.choice((1, 2, 4, 8, 16, 64))
    length = min(length, len(data) - at)
    return data[:at] + bytes([chance.choice((0, 0, 0xFF))]) * length + data[at + length :]


def repeat_stretch(data: bytes, chance: random.Random) -> bytes:
    at, length = chance.randrange(len(data)), chance.choice((1, 2, 4, 8, 30, 100))
    piece = data[at : at + length]
    to = at + len(piece) if chance.random() < 0.5 else chance.randint(0, len(data))
    return data[:to] + piece + data[to:]


def swap_stretches(data: bytes, chance: random.Random) -> bytes:
    if len(data) < 4:
        return data[::-1]
    a, b, c = sorted(chance.sample(range(len(data) + 1), 3))
    return data[:a] + data[b:c] + data[a:b] + data[c:]


def copy_over(data: bytes, chance: random.Random) -> bytes:
    at, to, length = chance.randrange(len(data)), chance.randrange(len(data)), chance.choice((1, 2, 4, 8, 16))
    piece = data[at : at + length]
    return (data[:to] + piece + data[to + len(piece) :])[: len(data)]


def change_number(data: bytes, chance: random.Random) -> bytes:
    """Change a number of two, four or eight bytes: by little, or to one that is near a limit."""
    width, order = chance.choice((2, 4, 4, 8)), chance.choice(("big", "little"))
    if len(data) < width:
        return flip_bit(data, chance)
    at = chance.randint(0, len(data) - width)
    number = int.from_bytes(data[at : at + width], order)  # type: ignore[arg-type]
    if chance.random() < 0.6:
        number += chance.choice((-256, -8, -2, -1, 1, 2, 8, 256))
    else:
        number = chance.choice(_NUMBERS)
    return data[:at] + (number & (1 << 8 * width) - 1).to_bytes(width, order) + data[at + width :]  # type: ignore[arg-type]


def lengthen_varint(data: bytes, chance: random.Random) -> bytes:
    """Let a number of seven bits a byte go on, by zeros or by more."""
    at = chance.randrange(len(data))
    more = bytes([chance.choice((0x80, 0xFF))]) * chance.choice((0, 1, 3, 8)) + bytes([chance.choice((0, 0, 1, 0x7F))])
    return data[:at] + bytes([data[at] | 0x80]) + more + data[at + 1 :]


ALL: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    flip_bit,
    flip_bit,
    set_byte,
    set_byte,
    nudge_byte,
    nudge_byte,
    cut_end,
    cut_stretch,
    insert_bytes,
    fill_stretch,
    repeat_stretch,
    swap_stretches,
    copy_over,
    change_number,
    change_number,
    lengthen_varint,
)


def mutate(data: bytes, chance: random.Random) -> bytes:
    """Damage bytes once, mostly; sometimes twice or three times."""
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        if data:
            data = chance.choice(ALL)(data, chance)
    return data


class Damage:
    """What is done to one input: nothing, damage to its parts inside, or to its bytes as a whole.

    `chance` is what everything of the case is drawn from.
    """

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        kind = chance.random()
        self.kind = "none" if kind < 0.2 else "inside" if kind < 0.55 else "outside"
        self.repaired = chance.random() < 0.75
        self.done = False

    def inside(self, part: bytes, odds: float = 0.7) -> bytes:
        """Return a part of an input that is still to be compressed or summed, damaged if it is this one's turn."""
        if self.kind != "inside" or self.done or not part or self.chance.random() > odds:
            return part
        self.done = True
        return mutate(part, self.chance)

    def outside(self, data: bytes, repair: Callable[[bytes], bytes] | None) -> bytes:
        """Return a finished input, damaged if nothing inside it was to be, its checksums set right mostly."""
        if self.kind == "none" or (self.kind == "inside" and self.done):
            return data
        damaged = mutate(data, self.chance)
        return repair(damaged) if repair is not None and self.repaired else damaged

    @property
    def told(self) -> str:
        """Which damage it was, for the tally."""
        return "inside" if self.done else "none" if self.kind == "none" else "outside"
