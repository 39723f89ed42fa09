"""The state stores of a query that runs in micro-batches: what a parser hands over of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple, Protocol, TypedDict

import pyarrow as pa

from cklog.inputs.batches import FileFlaw, FileRead
from cklog.inputs.pieces import ChainName
from cklog.model.findings import InputUsed


class StateOperator(NamedTuple):
    """An operator with state: its number, its folder, and its name as its metadata calls it, if it does.

    `metadata` is how reading that went, None if there is none; `schemas` are stored paths in it, and `lost_schemas`
    those files that cannot be used, by path. `has_schema`: the schema of its state is there; `needs_metadata`: by what
    is there, a restart needs its metadata. Where it does not, `compared` says how reading the schemas went that a
    restart compares with those of the query. `left_checksums` are those of metadata and of schemas that are gone.
    `unseen_schemas` are stored paths of `schemas` at which nobody looked, because they lie outside PATH.
    """

    operator: str
    folder: str
    name: str | None
    metadata: FileRead[Any] | None
    schemas: tuple[str, ...]
    lost_schemas: tuple[tuple[str, FileFlaw], ...]
    has_schema: bool
    needs_metadata: bool
    compared: tuple[FileRead[Any], ...]
    left_checksums: tuple[str, ...]
    unseen_schemas: tuple[str, ...] = ()


class TablesSeen(NamedTuple):
    """Tables of an LSM tree that no checksum file proves: how many were looked into and are sound, as far as that went.

    `thorough`: every block was checked, except of those that are counted in `unproved`, with the reason.
    """

    sound: int
    thorough: bool
    unproved: tuple[tuple[str, int], ...]


class StateStoreRow(TypedDict):
    """The stores of one operator: how many partitions, the version that a restart loads, its files and their bytes."""

    operator: str
    name: str | None
    store: str
    partitions: int
    loads_version: int
    files: int
    bytes: int


class StateSchemaRow(TypedDict):
    """The stored schema of a store, as Spark writes types, and its file; `family` None: it has one schema alone.

    `key` and `value` None: the file cannot be read.
    """

    operator: str
    store: str
    family: str | None
    key: str | None
    value: str | None
    path: str


class StoredState(Protocol):
    """The state stores of a query as of one line of batches; a restart there loads version `needed` of each.

    Files are read when somebody asks for them, and each once.
    """

    needed: int

    @property
    def folder(self) -> str:
        """The folder of all state, below PATH."""

    @property
    def is_here(self) -> bool:
        """Whether there is any file of state."""

    @property
    def unknown(self) -> str:
        """Why the files of the stores cannot be understood, "" if they can."""

    @property
    def uncounted(self) -> str:
        """Why an operator may have had stores of which nothing is left, "" if none can have had any."""

    @property
    def operators(self) -> tuple[StateOperator, ...]:
        """The operators with state, in order."""

    @property
    def repairs_itself(self) -> bool:
        """Whether it is known that a restart passes over snapshots that it cannot read."""

    def tried_in_vain(self, version: int) -> list[str]:
        """Return the snapshots read so far that cannot be used, though loading a version tries them before another."""

    @property
    def stores(self) -> int:
        """How many stores a restart loads."""

    def required(self, version: int) -> Collection[ChainName]:
        """Return the stores that must have a version: their number is that of the batch which wrote it."""

    def table(self) -> pa.Table:
        """Return rows of `cklog.inputs.pieces.PIECES`, with the flaws of files that were read so far."""

    def read(self, paths: Collection[str]) -> bool:
        """Read files that were not read before; return whether `table` may look different now."""

    def read_all(self) -> None:
        """Read every file that counts."""

    def flaws(self) -> list[tuple[str, FileFlaw]]:
        """Return the files read so far that cannot be used, by path."""

    def unproved(self) -> list[str]:
        """Return the files read so far whose bytes nothing proves."""

    def tables_seen(self) -> TablesSeen:
        """Return how far tables were looked into that nothing else proves."""

    def missing(self, chain: ChainName, version: int) -> str:
        """Return the path at which a version that is missing should be."""

    def rows(self, batch: int) -> Iterator[StateStoreRow]:
        """Yield a row for each operator and store, of a restart after `batch`."""

    def schemas(self) -> Iterator[StateSchemaRow]:
        """Yield the stored schema of every store."""

    def later_files(self, batch: int) -> list[str]:
        """Return the files of versions that a query which goes back to `batch` writes anew."""

    def inputs(self) -> tuple[InputUsed, ...]:
        """Return the files that the table is made of."""
