"""Scans: splits × kernel × reduce, the one way to read anything big.

A *split* is a part of a file that can be read alone. Its reader (named `module:function`, so that a split
is small when pickled) yields Arrow record batches of a table's columns and the damage that it met. A *kernel*
is a pure function from one such batch to a few rows of partial results. *Reduce* merges partial rows of equal
keys; it is associative and commutative, so neither engine, nor the number and order of splits, shows in the
answer.

Engines: `cklog.engine.local` (threads in this process) and `cklog.engine.spark` (mapInArrow and groupBy).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

import pyarrow as pa

Aggregate = Literal["sum", "min", "max"]
Kernel = Callable[[pa.RecordBatch], pa.RecordBatch]

DAMAGE_LISTED = 100
"""Damaged records named with their place, per file and kind; all of them are counted."""


@dataclass(frozen=True, slots=True)
class Split:
    """A part of one file: bytes [start, end) of it, or row groups [start, end) of a Parquet file.

    `uri` is what `cklog.storage` opens, `path` what answers show, `size` the bytes that reading costs.
    """

    uri: str
    path: str
    reader: str
    start: int
    end: int
    size: int


@dataclass(frozen=True, slots=True)
class Damage:
    """`count` records of kind `id` that were skipped; `offset` as in `cklog.model.findings.Where`."""

    path: str
    id: str
    offset: int | None
    detail: str
    count: int = 1


Reader = Callable[[Split, str, tuple[str, ...]], Iterator["pa.RecordBatch | Damage"]]
"""(split, table, columns) → batches of exactly those columns, and damage."""


@dataclass(frozen=True, slots=True)
class Reduce:
    """Merge rows that agree in `keys`: each other column by its aggregate.

    With `span` = (from, to), rows whose half-open spans [from, to) overlap or touch merge, and others stay
    apart: the result has one row per key and *island*, its span the union.
    """

    keys: tuple[str, ...]
    aggregates: Mapping[str, Aggregate]
    span: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Scan:
    """What to read and how to fold it; `reduce` None keeps every partial row (small tables only).

    `trim` drops rows from what one split was reduced to, before they leave it. `without` = (column, modulus,
    rest): rows that leave this rest when all is reduced do not come back from the engine.
    """

    splits: tuple[Split, ...]
    table: str
    columns: tuple[str, ...]
    kernel: Kernel
    partial: pa.Schema
    reduce: Reduce | None
    trim: Callable[[pa.Table], pa.Table] | None = None
    without: tuple[str, int, int] | None = None


@dataclass(frozen=True, slots=True)
class Scanned:
    """The reduced table (in no order), the damage, and the intact records read, by file."""

    table: pa.Table
    damage: tuple[Damage, ...] = ()
    records: Mapping[str, int] = field(default_factory=dict)


class Engine(Protocol):
    """Runs scans. Both engines give equal results."""

    name: str

    def run(self, scan: Scan) -> Scanned:
        """Read every split, apply the kernel, reduce."""

    def close(self) -> None:
        """Give back what the engine holds."""


def reader_of(split: Split) -> Reader:
    """The function that a split names.

    >>> reader_of(Split("f", "f", "cklog.engine:reader_of", 0, 1, 1)).__name__
    'reader_of'
    """
    module, _, name = split.reader.partition(":")
    found: Reader = getattr(importlib.import_module(module), name)
    return found
