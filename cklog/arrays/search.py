"""Many binary searches at once."""

from __future__ import annotations

import numpy as np

from cklog.arrays.types import Ints, Small, Tiny


def first_at_least(values: Ints | Small | Tiny, low: Ints, high: Ints, limit: Ints) -> Ints:
    """Return per query the first index in [low, high) with `values[index] >= limit`, `high` if there is none.

    `values` rises within each range. All arrays but `values` have shape (q,). Halving steps, all queries at
    once; limits are compared, never added up, so that values near 2**63 are as good as any.

    >>> v = np.array([1, 5, 9, 0, 7])
    >>> first_at_least(v, np.array([0, 3, 3]), np.array([3, 5, 3]), np.array([5, 8, 1])).tolist()
    [1, 5, 3]
    """
    found = low.copy()  # always: all of [low, found) is below the limit
    for power in reversed(range(int((high - low).max(initial=0)).bit_length())):  # the distance, highest bit first
        probe = np.minimum(found + (1 << power), high)
        found = np.where(values[probe - 1] < limit, probe, found)
    return found
