"""Files that are full of zeros, at their right size: what a power cut leaves of a file that was never flushed."""

from __future__ import annotations

from cklog.parsers.codecs.sst import Read

_SAMPLE_BYTES, _SAMPLES = 4 << 10, 16


def tell_zeros(read: Read, size: int) -> str:
    """Say how much of some bytes is zeros; "" if there is anything else in one of sixteen samples of them.

    >>> tell_zeros(lambda at, count: bytes(min(count, 9000 - at)), 9000)
    'all of its 9000 bytes are zeros'
    """
    count = min(_SAMPLES, -(-size // _SAMPLE_BYTES))
    whole = size <= _SAMPLES * _SAMPLE_BYTES
    step = _SAMPLE_BYTES if whole else (size - _SAMPLE_BYTES) // (_SAMPLES - 1)
    for i in range(count):
        if any(read(i * step, min(_SAMPLE_BYTES, size - i * step))):
            return ""
    if not size:
        return ""
    if whole:
        return f"all of its {size} bytes are zeros"
    return f"it is zeros, in {count * _SAMPLE_BYTES} of {size} bytes looked at"
