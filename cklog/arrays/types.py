"""Names for the numpy arrays that the whole tree hands around; a docstring beside each use says the shape."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
"""Sequence numbers, times in ms, byte positions, or indices into another array."""

Small = NDArray[np.int32]
"""Indices of which there are many and none is great."""

Tiny = NDArray[np.int16]
"""Indices of which there are very many, such as the checkpoints of one subtask."""

U64 = NDArray[np.uint64]
"""Eight bytes of text or of a hash, as one word."""

Bytes = NDArray[np.uint8]
"""Raw bytes of a file."""

Floats = NDArray[np.float64]
"""Sizes, rates and prices that are computed."""

Mask = NDArray[np.bool_]
"""True where a row counts."""
