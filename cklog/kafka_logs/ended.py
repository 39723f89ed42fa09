"""How transactions ended that a checkpoint has pending, by the producers' ids and epochs, as the logs show it.

A checkpoint names a transaction by its producer's id and epoch. Its data in a log has both, and the next marker of that
producer ends it. The marker's epoch may be the next one, and is no part of the match.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cklog.inputs.partitions import Partition

COLUMNS = ("at", "base", "last", "records", "producer", "producer_epoch", "transactional", "control", "marker", "_path")
"""Columns of `cklog.inputs.record_batches.BATCHES` that the kernel reads."""

FOUND = pa.schema(
    [
        pa.field("path", pa.string()),
        *(pa.field(name, pa.int64()) for name in ("at", "base", "last", "records", "producer", "epoch")),
        pa.field("marker", pa.string()),
    ]
)
"""Batches of transactions of the producers that are asked for; `marker` null: data."""

Ended = Literal["committed", "aborted", "open", "unknown"]


class ProducerEpoch(NamedTuple):
    """What names a transaction in a log."""

    producer: int
    epoch: int


class EndedTransaction(NamedTuple):
    """A transaction, how it ended, and its stretch [first, end) of a partition; `end` None: it is open."""

    of: ProducerEpoch
    how: Ended
    partition: str
    first: int
    end: int | None
    records: int


def parse_producer(text: str | None) -> ProducerEpoch | None:
    """Return the producer that a checkpoint names; None: it names none.

    >>> parse_producer("producer 42 epoch 7")
    ProducerEpoch(producer=42, epoch=7)
    """
    words = (text or "").split(" ")
    if len(words) != 4 or (words[0], words[2]) != ("producer", "epoch"):
        return None
    return ProducerEpoch(int(words[1]), int(words[3]))


def producers_kernel(producers: frozenset[int], batch: pa.RecordBatch) -> pa.RecordBatch:
    """Keep the batches of transactions of some producers (a kernel with its first argument given)."""
    mine = pc.and_(pc.is_in(batch["producer"], pa.array(sorted(producers), pa.int64())), batch["transactional"])
    found = batch.filter(pc.fill_null(mine, False))
    columns = [
        found[name] for name in ("_path", "at", "base", "last", "records", "producer", "producer_epoch", "marker")
    ]
    return pa.RecordBatch.from_arrays(
        [column.cast(field.type) for column, field in zip(columns, FOUND, strict=True)], schema=FOUND
    )


def kernel_of(wanted: Iterable[ProducerEpoch]) -> functools.partial[pa.RecordBatch]:
    """Return a kernel that keeps the batches of these producers."""
    return functools.partial(producers_kernel, frozenset(one.producer for one in wanted))


def ended_in(
    p: Partition, rows: Iterable[Mapping[str, Any]], wanted: frozenset[ProducerEpoch]
) -> list[EndedTransaction]:
    """Return how each transaction that is wanted ended in one partition; of several of one name the last.

    Parameters
    ----------
    rows : those of `FOUND` in that partition
    """
    number = {segment.path: i for i, segment in enumerate(p.folder.segments)}
    doubtful = {(one.producer, one.first) for one in p.transactions.doubtful}
    running: dict[int, EndedTransaction] = {}
    found: dict[ProducerEpoch, EndedTransaction] = {}
    for row in sorted(rows, key=lambda row: (number[row["path"]], row["at"])):
        producer = row["producer"]
        if row["base"] >= p.restart_end:
            continue
        if row["marker"] is None:
            key = ProducerEpoch(producer, row["epoch"])
            begun = running.get(producer) or EndedTransaction(key, "open", p.name, row["base"], None, 0)
            running[producer] = begun._replace(of=key, records=begun.records + row["records"])
            found[key] = running[producer]
        elif row["marker"] in _HOW and producer in running:
            ended = running.pop(producer)._replace(how=_HOW[row["marker"]], end=row["last"] + 1)
            found[ended.of] = ended
    return [
        one._replace(how="unknown") if (one.of.producer, one.first) in doubtful else one
        for key, one in found.items()
        if key in wanted
    ]


_HOW: Mapping[str, Ended] = {"commit": "committed", "abort": "aborted"}


def how_ended(parts: Iterable[EndedTransaction]) -> Ended:
    """Return how a transaction ended by its parts in all partitions: where they disagree, that is not known.

    >>> how_ended([])
    'unknown'
    """
    ways = {one.how for one in parts}
    return ways.pop() if len(ways) == 1 else "unknown"
