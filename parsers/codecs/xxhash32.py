"""XXH32 of many blocks at once (the published xxHash specification, version 0.1.1, "XXH32 algorithm").

One block is hashed stripe by stripe, each stripe needing the one before; blocks of one length are independent, so
they are hashed side by side.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Lanes = NDArray[np.uint32]
"""Hashes, or parts of them, side by side: one number for each block, all arithmetic on them modulo 2**32."""

_P1, _P2, _P3, _P4, _P5 = (np.uint32(p) for p in (2654435761, 2246822519, 3266489917, 668265263, 374761393))
"""The primes of the specification."""

_STRIPE_BYTES = 16


def xxh32(blocks: Sequence[bytes], seed: int = 0) -> list[int]:
    """Return the hash of each block, in the order of the blocks.

    Blocks of one length are hashed together, a stripe of 16 bytes of all of them in one step.

    >>> [f"{value:08x}" for value in xxh32([b"", b"a", b"abc"])]
    ['02cc5d05', '550d7456', '32d153ff']
    """
    by_length: dict[int, list[int]] = {}
    for i, block in enumerate(blocks):
        by_length.setdefault(len(block), []).append(i)
    found = [0] * len(blocks)
    for length, places in by_length.items():
        rows = np.frombuffer(b"".join(blocks[i] for i in places), np.uint8).reshape(len(places), length)
        for i, value in zip(places, _hash_rows(rows, np.uint32(seed)).tolist(), strict=True):
            found[i] = value
    return found


def _hash_rows(rows: NDArray[np.uint8], seed: np.uint32) -> Lanes:
    """Hash k blocks of one length, shape (k, bytes) → (k,): stripes, then whole words of the rest, then its bytes."""
    count, length = rows.shape
    stripes = length // _STRIPE_BYTES
    with np.errstate(over="ignore"):  # arithmetic is modulo 2**32
        value: Lanes = np.full(count, seed + _P5, np.uint32)
        if stripes:
            value = _hash_stripes(rows[:, : stripes * _STRIPE_BYTES], seed)
        value = value + np.uint32(length & 0xFFFFFFFF)
        at = stripes * _STRIPE_BYTES
        for _ in range((length - at) // 4):
            word: Lanes = np.ascontiguousarray(rows[:, at : at + 4]).view("<u4")[:, 0]
            value = _rotated_lanes(value + word * _P3, 17) * _P4
            at += 4
        for i in range(at, length):
            value = _rotated_lanes(value + rows[:, i].astype(np.uint32) * _P5, 11) * _P1
        value = (value ^ (value >> np.uint32(15))) * _P2
        value = (value ^ (value >> np.uint32(13))) * _P3
        return np.asarray(value ^ (value >> np.uint32(16)))


def _hash_stripes(rows: NDArray[np.uint8], seed: np.uint32) -> Lanes:
    """Run the four accumulators over all s stripes and merge them; shape (k, 16 s) → (k,)."""
    words = np.ascontiguousarray(rows).view("<u4").reshape(len(rows), -1, 4)
    lanes = np.ascontiguousarray(words.swapaxes(0, 1))  # one stripe after another, shape (s, k, 4)
    sums = np.tile(np.array([seed + _P1 + _P2, seed + _P2, seed, seed - _P1], np.uint32), (len(rows), 1))
    for lane in lanes:
        sums = _rotated_lanes(sums + lane * _P2, 13) * _P1
    turned = [_rotated_lanes(sums[:, i], bits) for i, bits in enumerate((1, 7, 12, 18))]
    return np.asarray(turned[0] + turned[1] + turned[2] + turned[3])


def _rotated_lanes(value: Lanes, bits: int) -> Lanes:
    """Rotate each number to the left, e.g. 0x80000001 by 1 → 3."""
    return np.asarray((value << np.uint32(bits)) | (value >> np.uint32(32 - bits)))
