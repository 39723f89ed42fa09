"""What a table of docs/speed.md is: a name, columns, sizes, and the function that measures its rows."""

from __future__ import annotations

import importlib
import importlib.util
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from benchmarks.data import Data
from benchmarks.timing import Command, Runs, alternating

S = TypeVar("S")
Row = tuple[str, ...]


@dataclass(frozen=True)
class Room:
    """Where a table is measured: its inputs, and how often its pairs are run."""

    data: Data
    pairs: int
    warm: bool = True

    def pairs_of(self, *commands: Command, pairs: int | None = None) -> Runs:
        """Run commands in turn; `pairs` is the most that is worth it."""
        return alternating(commands, min(self.pairs, pairs or self.pairs), warm=self.warm)


@dataclass(frozen=True)
class Table(Generic[S]):
    """One table of the page; `rows` is given where to measure, and the sizes.

    `needs` names modules and programs without which there is no table; `largest` are sizes that are measured when
    asked for, after the full ones.
    """

    name: str
    columns: Row
    rows: Callable[[Room, Sequence[S]], Iterator[Row]]
    quick: Sequence[S]
    full: Sequence[S]
    largest: Sequence[S] = ()
    needs: tuple[str, ...] = ()

    def missing(self) -> list[str]:
        """Return what it needs and is not here."""
        return [name for name in self.needs if not (shutil.which(name) or importlib.util.find_spec(name))]

    def markdown(self, rows: Sequence[Row]) -> str:
        """Return the table as the page has it."""
        lines = [self.columns, ("---",) * len(self.columns), *rows]
        wrong = [row for row in rows if len(row) != len(self.columns)]
        if wrong:
            raise ValueError(f"{self.name} has {len(self.columns)} columns, these rows have not: {wrong}")
        return (
            "".join(f"| {' | '.join(line)} |\n" for line in lines).replace("| --- |", "|---|").replace(" --- |", "---|")
        )


MODULES = (
    *("cold", "progress", "folders", "queues", "large", "scan", "graph", "events", "kafka_segments", "flink_root"),
    *("rocksdb_tables", "sink_tables", "chains", "annotate", "scaling"),
)
"""In the order of the page."""


def tables() -> dict[str, Table[Any]]:
    """Return every table by its name; each module of `benchmarks.tables` lists its own."""
    found: dict[str, Table[Any]] = {}
    for name in MODULES:
        for table in importlib.import_module(f"benchmarks.tables.{name}").TABLES:
            if table.name in found:
                raise ValueError(f"two tables are named {table.name}")
            found[table.name] = table
    return found
