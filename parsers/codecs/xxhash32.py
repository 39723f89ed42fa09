"""XXH32 of blocks (the published xxHash specification, version 0.1.1, "XXH32 algorithm"), by the library xxhash."""

from __future__ import annotations

from collections.abc import Sequence

import xxhash


def xxh32(blocks: Sequence[bytes], seed: int = 0) -> list[int]:
    """Return the hash of each block, in the order of the blocks.

    >>> [f"{value:08x}" for value in xxh32([b"", b"a", b"abc"])]
    ['02cc5d05', '550d7456', '32d153ff']
    """
    return [xxhash.xxh32_intdigest(block, seed) for block in blocks]
