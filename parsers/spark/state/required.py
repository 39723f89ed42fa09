"""Which state stores an operator must have after a batch: its metadata names them, the batch says how many there are.

The number of partitions belongs to the batch: from Spark 4.2 on a query's state can be repartitioned while it does not
run, which adds a batch of its own. Metadata of version 1, which Spark writes from 4.0 on, keeps the first number, and
counts as many as are set of a global operator too, which has one. So these tell how many there are, the first that can:

    commits/N                               state checkpoint format 2: ids of every partition
    offsets/N                               `spark.sql.shuffle.partitions`, unless the operator is a global one
    state/OP/P/…                            any file of a partition but the first, its checksum files too
    state/OP/_metadata/metadata             the operator's name: aggregations and limits alone can be global
    state/OP/0/[STORE/]_metadata/schema     the key: that of a global operator has no field, or one that is always null

Read off Spark 4.3: `groupBy()` has a key without fields and `limit` one of type void, and of both there is partition 0
alone, while the metadata says 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cklog.inputs.batches import FileRead
from cklog.inputs.pieces import ChainName
from cklog.parsers.codecs import hadoop_crc
from cklog.parsers.spark.metadata_log import read
from cklog.parsers.spark.state.schemas import decode_schemas
from cklog.storage import FileEntry, Root

MOST_PARTITIONS = 100_000
"""Partitions that an operator may have; a larger number is damage."""
JOINED = frozenset(f"{side}-{kind}" for side in ("left", "right") for kind in ("keyToNumValues", "keyWithIndexToValue"))
"""The stores of a join between streams, which has all of them in each partition."""
_PARTITION = re.compile("(0|[1-9][0-9]{0,17})/.")


class OperatorMetadata(NamedTuple):
    """An operator's name, its stores with the number of partitions of each, and where its schemas lie (version 2)."""

    name: str
    stores: dict[str, int]
    schemas: tuple[str, ...]


class Required(NamedTuple):
    """The stores that an operator must have, as far as is known, and the number of its partitions.

    `unsure` says why there may be more, else "".
    """

    stores: Iterable[ChainName]
    partitions: int
    unsure: str = ""


class Left(NamedTuple):
    """What is left of an operator: its folder, the files in it by path, and its stores of which there is a version."""

    root: Root
    folder: str
    by_path: Mapping[str, FileEntry]
    seen: Sequence[ChainName]


def required_stores(
    operator: str,
    metadata: FileRead[OperatorMetadata] | None,
    left: Left,
    setting: int | None,
    ids: Sequence[frozenset[str]],
) -> Required:
    """Find the stores that an operator must have after a batch.

    Parameters
    ----------
    setting : how many partitions the batch has, None if nothing says it
    ids : of each partition, those of its stores, as the batch's commit names them
    """
    known = metadata.value if metadata is not None else None
    if known is None:
        stores = {chain.store for chain in left.seen} or {""}
        claimed: Mapping[str, int | None] = dict.fromkeys(stores | (JOINED if stores & JOINED else set()), setting)
    else:
        claimed = {"" if store == "default" else store: setting or count for store, count in known.stores.items()}
    counts = {store: _count_partitions(left, known, count, ids) for store, count in claimed.items()}
    unsure = next((why for _, why in counts.values() if why), "")
    most = max(map(len, ids), default=0)
    if most > len(claimed):
        unsure = f"a commit names {most} stores in a partition, and only of {len(claimed)} is any file left"
    places = ((partition, store) for store, (count, _) in sorted(counts.items()) for partition in range(count))
    why = f"{left.folder}: {unsure}" if unsure else ""
    partitions = max((count for count, _ in counts.values()), default=0)
    return Required((ChainName(operator, partition, store) for partition, store in places), partitions, why)


def _count_partitions(
    left: Left, known: OperatorMetadata | None, claimed: int | None, ids: Sequence[frozenset[str]]
) -> tuple[int, str]:
    """Return how many partitions a store has at least, and why it may have more, "" if it cannot.

    `claimed` is what the settings say, else the metadata.
    """
    if ids:
        return min(len(ids), MOST_PARTITIONS), ""
    seen = _partitions_seen(left)
    claimed = None if claimed is None else min(claimed, MOST_PARTITIONS)
    if claimed is None:
        return seen, "neither metadata nor settings say how many partitions there are, and some may be gone"
    if seen > 1 or claimed == 1:
        return claimed, ""
    keyed = _has_key(left, known)
    if keyed is None:
        return 1, f"nothing shows whether it had one partition, as a global operator has, or {claimed}, as is set"
    return claimed if keyed else 1, ""


def _may_be_global(known: OperatorMetadata) -> bool:
    """Return whether an operator can be one without a key, by its name; the rest have a key always."""
    return known.name in ("stateStoreSave", "globalLimit")


def _partitions_seen(left: Left) -> int:
    """Return how many partitions there are at least, by the last one of which there is any file."""
    lead = len(left.folder) + 1
    matches = (_PARTITION.match(path, lead) for path in left.by_path)
    numbers = (int(match[1]) for match in matches if match)
    return max((number for number in numbers if number < MOST_PARTITIONS), default=0) + 1


def _has_key(left: Left, known: OperatorMetadata | None) -> bool | None:
    """Return whether rows of an operator have a key by which they are shuffled; None if nothing tells."""
    if known is not None and (known.name == "globalLimit" or not _may_be_global(known)):
        return known.name != "globalLimit"
    if any(path.startswith(f"{left.folder}/_stateSchema/") for path in left.by_path):
        return True  # transformWithState
    path = next((path for path in sorted(left.by_path) if path.endswith("/_metadata/schema")), None)
    if path is None:
        return None
    got = read(left.root, left.by_path[path], decode_schemas, left.by_path.get(hadoop_crc.sidecar_of(path)))
    return None if not got.value else any(type not in ("void", "null") for type in got.value[0].key_types)
