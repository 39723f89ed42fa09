"""What happens to bytes on their way: bits flip, stretches go, come again or come from elsewhere, lengths lie."""

from __future__ import annotations

import random
import struct

NUMBERS = (-(2**63), -(2**31), -1, 0, 1, 127, 128, 255, 2**15, 2**16 - 1, 2**24, 2**31 - 1, 2**40, 2**63 - 1)


def mutated(seeds: list[bytes], dice: random.Random) -> bytes:
    """A seed with up to four things wrong."""
    data = bytearray(dice.choice(seeds))
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        at, length = dice.randrange(len(data)), dice.choice((1, 2, 4, 8, 16, 64, 400))
        kind = dice.randrange(6)
        if kind == 0:
            data[at] ^= 1 << dice.randrange(8)
        elif kind == 1:
            del data[at : at + length]
        elif kind == 2:
            data[at:at] = data[at : at + length] * dice.choice((1, 2, 50))
        elif kind == 3:
            other = dice.choice(seeds)
            place = dice.randrange(len(other))
            data[at : at + dice.choice((0, length))] = other[place : place + length]
        elif kind == 4:
            width = dice.choice((1, 2, 4, 8))
            number = dice.choice(NUMBERS) & ((1 << 8 * width) - 1)
            data[at : at + width] = struct.pack(">Q", number)[8 - width :]
        else:
            data[at:] = bytes(length) if dice.random() < 0.2 else data[at:]
        if not data:
            return b""
    return bytes(data)
