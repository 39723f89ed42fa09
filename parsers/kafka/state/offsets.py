"""Offsets of changelogs that a state store keeps inside its RocksDB, next to its data.

    Kafka Streams from 4.3 on    column family "offsets"       topic "-" partition → int64   the last record it holds
                                                               "status" → int64: 1 it is open, 0 it was closed
                                                               "position" → of the source topics, not looked at
    Quix Streams                 column family "__metadata__"  "__changelog_offset__" → uint64   the last record

All integers are big-endian. The offset is written in one batch with the data, so that both are of one moment.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

from cklog.inputs.stores import StoreInside, StoreOffset

KAFKA_STREAMS, QUIX = "offsets", "__metadata__"
"""Names of the column families."""

_STATUS, _POSITION, _QUIX_OFFSET = b"status", b"position", b"__changelog_offset__"
_CLOSED = bytes(8)
_LONG = struct.Struct(">q")


def of_kafka_streams(store: str, file: str, pairs: Mapping[bytes, bytes]) -> StoreInside:
    """Return what a store of Kafka Streams says of its changelogs.

    >>> pairs = {b"app-counts-changelog-1": _LONG.pack(1234), b"status": _LONG.pack(1)}
    >>> found = of_kafka_streams("counts", "0_1/rocksdb/counts", pairs)
    >>> found.unclean, [(entry.name, entry.offset) for entry in found.offsets]
    (True, [('app-counts-changelog-1', 1234)])
    """
    offsets: list[StoreOffset] = []
    for key, value in sorted(pairs.items()):
        if key in (_STATUS, _POSITION):
            continue
        topic, _, number = key.decode("utf-8", "backslashreplace").rpartition("-")
        if not topic or not number.isdecimal() or not number.isascii() or int(number) >> 31 or len(value) != _LONG.size:
            return StoreInside(store, (), False, _no_offset(key, KAFKA_STREAMS))
        offset = int(_LONG.unpack(value)[0])
        offsets.append(StoreOffset(topic, int(number), offset if offset >= 0 else None, 0, file, store))
    return StoreInside(store, tuple(offsets), pairs.get(_STATUS, _CLOSED) != _CLOSED)


def of_quix(store: str, file: str, changelog: str, partition: int, pairs: Mapping[bytes, bytes]) -> StoreInside:
    """Return what a store of Quix Streams says of its changelog; its offset is None if it has written nothing yet.

    >>> pairs = {b"__changelog_offset__": _LONG.pack(41)}
    >>> of_quix("default", "default/orders/0", "changelog__g--orders--default", 0, pairs).offsets[0].offset
    41
    """
    value = pairs.get(_QUIX_OFFSET)
    if value is None:
        return StoreInside(store, (StoreOffset(changelog, partition, None, 0, file, store),), False)
    if len(value) != _LONG.size or value[0] & 0x80:
        return StoreInside(store, (), False, _no_offset(_QUIX_OFFSET, QUIX))
    offset = StoreOffset(changelog, partition, int(_LONG.unpack(value)[0]), 0, file, store)
    return StoreInside(store, (offset,), False)


def _no_offset(key: bytes, family: str) -> str:
    return f"the key {ascii(key[:60])[1:]} in its column family {family} has no offset"


def joined(found: Iterable[StoreInside]) -> tuple[StoreInside, ...]:
    """Return one for each store: one with segments is several databases, and is as far as the least of them.

    >>> one, other = (StoreInside("w", (StoreOffset("t", 0, offset, 0),), False) for offset in (7, 5))
    >>> [entry.offset for entry in joined([one, other])[0].offsets]
    [5]
    """
    stores: dict[str, StoreInside] = {}
    for inside in found:
        before = stores.get(inside.store)
        stores[inside.store] = inside if before is None else _lower(before, inside)
    return tuple(stores[store] for store in sorted(stores))


def _lower(one: StoreInside, other: StoreInside) -> StoreInside:
    """Return the lower offset of each changelog, and what is worse of the rest."""
    offsets: dict[tuple[str, int], StoreOffset] = {}
    for entry in (*one.offsets, *other.offsets):
        before = offsets.setdefault((entry.topic, entry.partition), entry)
        if entry.offset is None or (before.offset is not None and entry.offset < before.offset):
            offsets[entry.topic, entry.partition] = entry
    unread = one.unread or other.unread
    return StoreInside(one.store, () if unread else tuple(offsets.values()), one.unclean or other.unclean, unread)
