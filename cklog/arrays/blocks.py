"""Rows folded block by block while they are decoded, so that no column of them is ever written out.

Decoded by the million, columns go out to memory and come back to whatever folds them; a block of some thousand rows
stays in the core's own cache between the loops that decode it and the one that folds it. All of them run in one call
of machine code, which lets go of the interpreter lock once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from cklog.arrays.buffers import unfilled
from cklog.arrays.loops import Loop
from cklog.arrays.types import Ints

_BLOCK = 1 << 13
"""Rows of a block; from 2^12 to 2^18 a row costs the same."""

ANY = -1
"""No limit."""


@dataclass(frozen=True, slots=True)
class BlockColumn:
    """A column that `fill(*given, out, 0)` decodes into `out`, from where it came to last; it returns the rows.

    Numbers less than 0, or of `limit` and more, may not be in it. Of a column of texts these are numbers in `texts`.
    """

    fill: Loop
    given: tuple[Any, ...]
    limit: int = ANY
    texts: pa.Array | None = None


@dataclass(frozen=True, slots=True)
class Blocks:
    """So many rows of columns by name, none of them null, which are not decoded yet, and can be once."""

    rows: int
    columns: Mapping[str, BlockColumn]

    def texts(self, name: str) -> Any:
        """Return the texts, an Arrow array, that the numbers of a column stand for."""
        return self.columns[name].texts

    def fold(self, loop: Loop, names: Sequence[str], state: tuple[Ints, ...]) -> bool:
        """Run `loop(rows, *columns, *state)` over all rows, block after block; False where one cannot be decoded so.

        Columns have 64-bit integers. What `state` holds counts only where all rows have been folded.
        """
        wanted = [self.columns[name] for name in names]
        out = tuple([unfilled(min(_BLOCK, self.rows), np.int64) for _ in wanted])
        fold = loop.compiled((0, *out, *state))
        fills = [column.fill.compiled((*column.given, out[0], 0)) for column in wanted]
        if fold is None or None in fills:
            return False
        columns = tuple([(fill, column.given) for fill, column in zip(fills, wanted, strict=True)])
        limits = np.array([column.limit for column in wanted])
        given = self.rows, columns, limits, out, fold, state
        compiled = _FOLD.compiled(given)
        return compiled is not None and compiled(*given) == self.rows


def _fold_blocks(
    rows: int,
    columns: Sequence[tuple[Callable[..., int], tuple[Any, ...]]],
    limits: Ints,
    out: Sequence[Ints],
    fold: Callable[..., int],
    state: tuple[Ints, ...],
) -> int:
    """Fill blocks with the next rows of each column and fold them; return how many rows, -1 where one may not be."""
    done = 0
    while done < rows:
        count = min(len(out[0]), rows - done)
        for k in range(len(columns)):
            fill, given = columns[k]
            block = out[k][:count]
            if fill(*given, block, 0) < count:
                return -1
            if limits[k] >= 0:
                greatest = 0
                least = 0
                for i in range(count):
                    greatest = max(greatest, block[i])
                    least = min(least, block[i])
                if least < 0 or greatest >= limits[k]:
                    return -1
        if fold(count, *out, *state) < 0:
            return -1
        done += count
    return done


_FOLD = Loop(_fold_blocks)
