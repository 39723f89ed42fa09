"""Errors by which Arrow says that it cannot read something."""

from __future__ import annotations

import pyarrow as pa

ARROW_ERRORS = (
    pa.ArrowInvalid,
    pa.ArrowTypeError,
    pa.ArrowKeyError,
    pa.ArrowIndexError,
    pa.ArrowCapacityError,
    pa.ArrowSerializationError,
    pa.ArrowNotImplementedError,
)
"""What Arrow raises because of the bytes it reads, besides OSError. `ArrowException` is the base of these, but of
`ArrowMemoryError` as well: a process that is short of memory says nothing about a file, so nobody may catch that one
where a file is read."""

STORE_ERRORS = (pa.ArrowException,)
"""What Arrow raises because of a store, besides OSError: Google's client has errors of no kind of their own.
`ArrowMemoryError` is one of them: catch MemoryError first."""
