"""Scans: splits × kernel × reduce, the one way to read anything big.

A *split* is a part of a file that can be read alone. Its reader (named `module:function`, so that a split
is small when pickled) yields Arrow record batches of a table's columns and the damage that it met. A *kernel*
is a pure function from one such batch to a few rows of partial results. *Reduce* merges partial rows of equal
keys; it is associative and commutative, so neither engine, nor the number and order of splits, shows in the
answer.

This room knows no format and no analysis: readers and kernels are handed to it.

- `local`: the engine of threads in this process
- `spark`: the engine on a Spark session (mapInArrow and groupBy)
- `merge`: reduce, on Arrow tables
- `damage`: counts damage and intact records
- `reading`: how a run is read: which engine, how large splits, how strict
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import pyarrow as pa

from cklog.arrays.blocks import Blocks
from cklog.errors import first_line
from cklog.local_files import is_local, os_name, reason, without_file_scheme
from cklog.progress import Stage, Unit, portion, stage
from cklog.storage import Root, Tree
from cklog.unknown_formats import why_unknown

R = TypeVar("R")

Aggregate = Literal["sum", "min", "max"]
"""How the values of a column become one."""

Kernel = Callable[[pa.RecordBatch], pa.RecordBatch]
"""A pure function from a batch of rows to partial results."""


@dataclass(frozen=True, slots=True)
class BlockKernel:
    """A kernel that folds rows which are not decoded yet as well: `blocks` gives of them what `batch` would.

    None where they cannot be decoded so; they come as a batch then.
    """

    batch: Kernel
    blocks: Callable[[Blocks], pa.RecordBatch | None]

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the partial results of a batch."""
        return self.batch(batch)


DAMAGE_LISTED = 100
"""Damaged records that are listed with their place, per file and kind; all of them are counted."""


class Listing(NamedTuple):
    """What lies in a folder, and the links in it that were not followed, as they were listed."""

    tree: Tree
    links: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, root: Root) -> Listing:
        """List a folder, which is done once."""
        return cls(root.tree(), (*root.trouble.links.items(),))


@dataclass(frozen=True, slots=True)
class Split:
    """A part of one file: bytes [start, end) of it, or row groups [start, end) of a Parquet file.

    `numbered`: start and end are numbers of other things, such as files of a folder, and `size` is what these take.

    `uri` is what `cklog.storage` opens, `path` what answers show, `size` the bytes that reading costs.
    `listed`: the bytes of the whole file, where the parts are row groups.
    `folding` names the `BlockReader` that has a kernel fold rows while they are decoded; "": there is none.
    `together` names the `Gatherer` that reads several such splits at once, of a whole file each; "": it is read alone.
    `maps` say where stored paths are now that the file names, as `cklog.storage.Root` has them, and `follow_links`
    whether links are followed out of it: a reader sees the files that the driver saw. `listing` is how it saw them,
    of a split that stands for files of a folder: that is not listed again, for a job that goes on may write there.
    """

    uri: str
    path: str
    reader: str
    start: int
    end: int
    size: int
    maps: tuple[tuple[str, str], ...] = ()
    follow_links: bool = False
    numbered: bool = False
    together: str = ""
    folding: str = ""
    listed: int | None = None
    listing: Listing | None = field(default=None, compare=False, repr=False)

    @property
    def bytes_listed(self) -> int:
        """The bytes of the whole file when it was listed."""
        return self.size if self.listed is None else self.listed

    def cost(self) -> int:
        """Return the bytes that reading it costs; of some lines or batches of a file these alone.

        >>> Split("f", "f.jsonl", "", 10, 30, 90).cost(), Split("f", "f.parquet", "", 0, 1, 90).cost()
        (20, 90)
        """
        if self.numbered or self.path.endswith(".parquet"):
            return self.size
        return min(self.size, self.end - self.start)

    def folder(self) -> Root:
        """Return the folder that `uri` names, of a split that stands for files of a folder."""
        found = Root(self.uri, self.maps, follow_links=self.follow_links)
        if self.listing is not None:
            found.take_listing(self.listing.tree)
            found.trouble.links.update(self.listing.links)
        return found

    def root(self) -> Root:
        """Return the root below which the file lies.

        >>> Split("/r/q/0.log", "q/0.log", "", 0, 9, 9).root().path
        '/r'
        >>> Split("s3://b/r/q/0.log?region=x", "q/0.log", "", 0, 9, 9).root().path
        's3://b/r?region=x'
        """
        bare, mark, query = self.uri.partition("?") if "://" in self.uri else (self.uri, "", "")
        above = bare.removesuffix(self.path).rstrip("/") or "/"
        return Root(above + mark + query, self.maps, follow_links=self.follow_links)


@dataclass(frozen=True, slots=True)
class Damage:
    """`count` records that were skipped; `id` is that of the finding, `offset` as in `cklog.model.findings.Where`."""

    path: str
    id: str
    offset: int | None
    detail: str
    count: int = 1


def damage_of(path: str, error: Exception, lead: str = "cannot be read on: ") -> Damage:
    """Return what an error says of a file: unread where the operating system refused to read it, of an unknown format,
    or else damaged.

    >>> damage_of("a", OSError(5, "Input/output error")).id, damage_of("a", OSError("corrupt snappy data")).id
    ('unreadable-file', 'corrupt-file')
    """
    if isinstance(error, OSError) and error.errno is not None:
        return Damage(path, "unreadable-file", None, reason(error))
    if (unknown := why_unknown(error)) is not None:
        return Damage(path, unknown.id, None, first_line(unknown))
    return Damage(path, "corrupt-file", None, f"{lead}{first_line(error)}")


Reader = Callable[[Split, str, tuple[str, ...]], Iterator["pa.RecordBatch | Damage"]]
"""(split, table, columns) → batches of exactly those columns, and damage."""


@dataclass(frozen=True, slots=True)
class Folded:
    """What a kernel made of so many rows while they were decoded."""

    part: pa.RecordBatch
    num_rows: int


BlockReader = Callable[[BlockKernel, Split, str, tuple[str, ...]], Iterator["pa.RecordBatch | Folded | Damage"]]
"""(kernel, split, table, columns) → what a `Reader` yields, or what the kernel made of rows."""


@dataclass(frozen=True, slots=True)
class Together:
    """Rows of several whole files as one batch, and how many of them are of each, by its path."""

    batch: pa.RecordBatch
    rows: Mapping[str, int]


Gatherer = Callable[[Sequence[Split], str, tuple[str, ...]], Iterator["Together | Split"]]
"""(splits, table, columns) → the rows of files in which nothing is wrong, and the splits that have to be read alone."""


@dataclass(frozen=True, slots=True)
class Reduce:
    """How rows that agree in `keys` become one: each other column by its aggregate.

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
    """What runs scans; all engines give equal results."""

    name: str

    def run(self, scan: Scan) -> Scanned:
        """Read every split, apply the kernel, and reduce what it gives."""

    def close(self) -> None:
        """Give back what the engine holds."""


def scan_stage(scan: Scan, engine: str, unit: Unit = "bytes") -> AbstractContextManager[Stage]:
    """Run a scan as a stage of its own, counted in bytes or in splits; in files, where one split is all of a folder."""
    size = sum(split.cost() for split in scan.splits)
    total = len(scan.splits) if unit == "splits" else size
    return stage(
        f"scanning {scan.table}",
        unit if total else "files",
        total or None,
        splits=len(scan.splits),
        size=size,
        by=engine,
    )


def gatherer_of(name: str) -> Gatherer:
    """Import and return the function that splits name to be read together."""
    found: Gatherer = _named(name)
    return found


def _named(name: str) -> Any:
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)


def reader_of(split: Split) -> Reader:
    """Import and return the function that a split names as its reader; what it reads is counted as progress.

    >>> reader_of(Split("f", "f", "cklog.engine.scan:reader_of", 0, 1, 1)).args[0].__name__
    'reader_of'
    """
    return functools.partial(_counted, _named(split.reader))


def folding_reader_of(
    split: Split, kernel: Kernel
) -> Callable[[Split, str, tuple[str, ...]], Iterator[pa.RecordBatch | Folded | Damage]]:
    """Return the same, or where both the kernel and the file can, a reader that has rows folded while it decodes."""
    if isinstance(kernel, BlockKernel) and split.folding:
        return functools.partial(_counted, functools.partial(_named(split.folding), kernel))
    return reader_of(split)


def _counted(
    reader: Callable[[Split, str, tuple[str, ...]], Iterator[R]], split: Split, table: str, columns: tuple[str, ...]
) -> Iterator[R | Damage]:
    told = split.numbered or not split.size or not is_local(split.uri) or split.path.endswith(".parquet")
    with portion(split.cost()):
        for item in reader(split, table, columns):
            told = told or (isinstance(item, Damage) and item.id == "unreadable-file")
            yield item
    if not told:
        yield from _changed(split)


def _changed(split: Split) -> Iterator[Damage]:
    """Yield that a file has fewer bytes than when it was listed: what was there behind them is in no answer.

    One that has grown is read up to where it ended. A Parquet file without its end is damaged, which is told anyhow.
    """
    try:
        size = os.stat(os_name(without_file_scheme(split.uri))).st_size
    except (OSError, ValueError):  # gone, or not to be looked at: whoever read it has said so
        return
    if size < split.size:
        what = f"it had {split.size} bytes when it was listed, and has {size} now: something writes to it. Ask a copy"
        yield Damage(split.path, "unreadable-file", size, what)
