"""Arrays that a decoder fills: the only place that makes arrays whose contents are not set.

Such an array holds what the memory held before. A decoder that fills fewer elements than it says would answer from that
memory, differently in each run. Tests put a fill byte into every array made here and compare the answers of two bytes.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

A = TypeVar("A", bound=np.generic)


def unfilled(shape: int | tuple[int, ...], kind: type[A]) -> NDArray[A]:
    """Return an array whose elements are not set; the caller must set each one before it reads it.

    >>> unfilled((2, 3), np.int64).shape
    (2, 3)
    """
    found: NDArray[A] = _as_allocated(np.empty(shape, kind))
    return found


def pooled(count: int, kind: type[A]) -> NDArray[A]:
    """Return an array whose elements are not set, in memory that Arrow keeps when it is freed, for the next one.

    malloc gives it back to the system where threads free large arrays, and each batch would fault its pages in anew.

    >>> len(pooled(3, np.int32))
    3
    """
    found: NDArray[A] = _as_allocated(np.frombuffer(pa.allocate_buffer(count * np.dtype(kind).itemsize), kind))
    return found


def _as_allocated(array: Any) -> Any:
    """Return the array as the allocator left it; tests replace this function with one that fills the array."""
    return array
