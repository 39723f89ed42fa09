"""The binary files beside a Kafka log's segments: producer snapshots and indexes of aborted transactions.

    NNNNNNNNNNNNNNNNNNNN.snapshot   version:i16 = 1  crc32c:u32  count:i32  entry*       as of offset N (exclusive)
        entry = producerId:i64  epoch:i16  lastSequence:i32  lastOffset:i64  offsetDelta:i32  timestamp:i64
                coordinatorEpoch:i32  currentTxnFirstOffset:i64 (-1 none); the CRC covers all behind it
    NNNNNNNNNNNNNNNNNNNN.txnindex   entry*, one per aborted transaction whose marker lies in segment N
        entry = version:i16 = 0  producerId:i64  firstOffset:i64  lastOffset:i64 (of its marker)  lastStableOffset:i64

All integers are big-endian. Both can be made anew from the log: a broker does so after a crash. A crash may leave a cut
entry at the end of an index; a snapshot is written whole or, its CRC wrong, not used.
"""

from __future__ import annotations

import struct

import crc32c

from cklog.inputs.partitions import AbortedSpan, ProducerState

_HEAD = struct.Struct(">hIi")
_CHECKED_FROM = 6
_PRODUCER = struct.Struct(">qhiqiqiq")
_ABORTED = struct.Struct(">hqqqq")


class BadSnapshot(Exception):
    """Why bytes are no snapshot, or no index."""


def producers(data: bytes) -> tuple[ProducerState, ...]:
    """The producers of a snapshot, by id.

    Raises
    ------
    BadSnapshot : cut short, another version, a wrong CRC, or more or fewer entries than it says
    """
    if len(data) < _HEAD.size:
        raise BadSnapshot(f"{len(data)} bytes, a snapshot has {_HEAD.size} at least")
    version, crc, count = _HEAD.unpack_from(data)
    if version != 1:
        raise BadSnapshot(f"version {version}, known is 1")
    computed = crc32c.crc32c(memoryview(data)[_CHECKED_FROM:])
    if computed != crc:
        raise BadSnapshot(f"crc is {crc:08x}, the bytes give {computed:08x}")
    if len(data) != _HEAD.size + count * _PRODUCER.size:
        raise BadSnapshot(f"{count} producers are announced, there are {len(data) - _HEAD.size} bytes of them")
    found = _PRODUCER.iter_unpack(data[_HEAD.size :])
    return tuple(
        sorted(
            ProducerState(producer, epoch, sequence, last, time, None if first < 0 else first)
            for producer, epoch, sequence, last, _, time, _, first in found
        )
    )


def aborted(data: bytes) -> tuple[AbortedSpan, ...]:
    """The whole entries of an index of aborted transactions, in its order, as far as their version is known.

    >>> aborted(_ABORTED.pack(0, 3, 2, 16, 1) + bytes(5))
    (AbortedSpan(producer=3, first=2, last=16, stable=1),)
    """
    whole = len(data) - len(data) % _ABORTED.size
    found = []
    for version, *rest in _ABORTED.iter_unpack(data[:whole]):
        if version != 0:
            break
        found.append(AbortedSpan(*rest))
    return tuple(found)
