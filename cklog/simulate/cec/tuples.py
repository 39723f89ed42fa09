"""The tuples of a simulated source: every key and price is a hash of the seed and the tuple's number.

So a tuple is the same in every run, on every machine and with every version of numpy, and any stretch of the
stream can be made without the tuples before it.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cklog.arrays.types import U64, Ints
from cklog.errors import UsageError

MOST_PRICE = 100
"""Prices are 1, 2, … up to this."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What the operator is fed. The defaults are the paper's (section IV.B).

    Parameters
    ----------
    keys : number of items, each with windows of its own
    distribution : how often each key comes: all alike, or the k-th of them in proportion to k ** -zipf_exponent
    zipf_exponent : of the Zipf distribution
    count : tuples in a window, or None for time windows
    window_ms : length of the tumbling time windows, aligned to multiples of it, or None for count windows
    rate : tuples that the operator processes in one second without checks. The default is derived: windows of 10
        tuples of 100,000 keys close 9 * 100,000 tuples after they open, in 16.5 s (Figure 8, no checks)
    tuples : length of the run
    seed : of the hash
    start_ms : time of the first tuple since the epoch
    """

    keys: int = 100_000
    distribution: Literal["uniform", "zipf"] = "uniform"
    zipf_exponent: float = 1.1
    count: int | None = 10
    window_ms: int | None = None
    rate: float = 54_545.0
    tuples: int = 1_000_000
    seed: int = 1
    start_ms: int = 1_700_000_000_000

    def __post_init__(self) -> None:
        if (self.count is None) == (self.window_ms is None):
            raise UsageError("a window is a number of tuples or a time: give one of the two")
        for name, value in (("keys", self.keys), ("count", self.count), ("window", self.window_ms)):
            if value is not None and value < 1:
                raise UsageError(f"{name}: {value} is less than 1")
        if self.tuples < 0 or self.start_ms < 0:
            raise UsageError("the number of tuples and the start of the run cannot be negative")
        if not 0 < self.rate < math.inf:
            raise UsageError(f"rate: {self.rate:g} tuples per second")
        if self.distribution not in ("uniform", "zipf") or not 0 <= self.zipf_exponent < math.inf:
            raise UsageError(f"distribution {self.distribution} with exponent {self.zipf_exponent:g}")


def draw(workload: Workload, start: int, end: int) -> tuple[Ints, Ints]:
    """Draw key and price of the tuples from number `start` to before `end`, shape (end - start,) each."""
    hashes = splitmix64(workload.seed, start, end)
    prices = (_mixed_bits(hashes) % np.uint64(MOST_PRICE)).astype(np.int64) + 1
    if workload.distribution == "uniform":
        return (hashes % np.uint64(workload.keys)).astype(np.int64), prices
    limits = _zipf_limits(workload.keys, workload.zipf_exponent)
    return np.searchsorted(limits, hashes >> np.uint64(64 - _ZIPF_BITS), side="right"), prices


def splitmix64(seed: int, start: int, end: int) -> U64:
    """Return outputs `start` to before `end` of a splitmix64 generator (Steele, Lea, Flood, OOPSLA 2014).

    It begins at `seed`, which is mixed first: generators that begin at neighbouring numbers would share most of what
    they return.

    >>> splitmix64(1, 0, 4)[2] == splitmix64(1, 2, 3)[0] != splitmix64(2, 1, 2)[0]
    np.True_
    """
    begin = _mixed_bits(np.array([seed % 2**64], np.uint64))
    return _mixed_bits(begin + np.arange(start + 1, end + 1, dtype=np.uint64) * _GOLDEN)


def _mixed_bits(x: U64) -> U64:
    """The finaliser of splitmix64; arithmetic is modulo 2**64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: U64 = x ^ (x >> np.uint64(31))
    return mixed


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)

_ZIPF_BITS = 40
"""Bits of the hash that choose a key: so few that the last bit of a power, which may differ between machines, is
rounded away."""


@functools.lru_cache(maxsize=4)
def _zipf_limits(keys: int, exponent: float) -> U64:
    """Key k is chosen by numbers from limit k - 1 to limit k, of 2**40 in all; shape (keys,)."""
    weights = np.cumsum(np.arange(1, keys + 1, dtype=np.float64) ** -exponent)
    limits: U64 = np.rint(weights / weights[-1] * 2.0**_ZIPF_BITS).astype(np.uint64)
    return limits
