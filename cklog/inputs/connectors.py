"""Offsets of source connectors as values: where each one resumes, as it was stored, and records that it has written.

A source connector reads some system, in *partitions* of its own (a database, a file, a cluster's topic), each named by
a small map. Where it is in a partition, its *offset*, is another map. Whoever runs the connector stores these pairs by
key, the newest of which holds; a null in place of an offset deletes it, and the connector begins anew there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from cklog.model.findings import Finding, InputUsed, Where

RecordFate = Literal["counts", "pending", "aborted", "cut"]
"""What becomes of a record of a log: it counts; its transaction is open, or aborted; a restarting broker cuts it."""

RecordFates = Callable[[str, int, int], RecordFate]
"""From the folder of a partition, a producer (-1: of no transaction) and an offset to what becomes of the record."""

StoreForm = Literal["topic", "export", "file"]


class ConnectKey(NamedTuple):
    """What an offset is stored under: the connector's name, and the partition of its source as sorted (name, JSON)."""

    connector: str
    partition: tuple[tuple[str, str], ...]


_OFFSETS = re.compile(r"(?:.*[-_.])?connect[-_.a-z0-9]*offsets?(?:[-_.].*)?|mm2-offsets\..*", re.IGNORECASE | re.DOTALL)
"""What topics of offsets are called: `connect-offsets` by Kafka's own configuration, and after it by most others."""


def is_offsets_topic(topic: str) -> bool:
    """Return whether a topic is called as one of offsets.

    >>> [is_offsets_topic(name) for name in ("connect-offsets", "my_connect_offsets", "orders", "connect-configs")]
    [True, True, False, False]
    """
    return _OFFSETS.fullmatch(topic) is not None


@dataclass(frozen=True, slots=True)
class StoredOffset:
    """The newest entry of a key.

    Attributes
    ----------
    store : the topic, or the file below PATH
    key : as it was written, byte by byte: the worker looks for just these bytes
    offset : None: it was deleted
    number : the record's offset in the partition of the topic; of a file, the place of its entry
    older : how many entries of the key this one replaces, as far as they are still there
    time : when it was written (ms); None: not known
    pending : an offset, or a deletion ({}), that an open transaction would store instead; None: there is none
    ambiguous : whether it cannot be read, or others say something else and nothing tells which one is the newest
    """

    store: str
    form: StoreForm
    connector: str
    partition: Mapping[str, Any]
    key: bytes
    offset: Mapping[str, Any] | None
    number: int
    where: Where
    older: int = 0
    time: int | None = None
    pending: Mapping[str, Any] | None = None
    ambiguous: bool = False


@dataclass(frozen=True, slots=True)
class StoredOffsets:
    """All entries below PATH, sorted by store, connector and partition; what is wrong, and what was read.

    `stores` : every store that is there, also one that holds no entry
    """

    entries: tuple[StoredOffset, ...]
    stores: tuple[str, ...]
    findings: tuple[Finding, ...]
    inputs: tuple[InputUsed, ...]


class TakenRecord(NamedTuple):
    """A record that a connector has written: which log it lies in, and where it says that it comes from.

    `source` : None: it does not say
    """

    log: str
    number: int
    source: Mapping[str, Any] | None
