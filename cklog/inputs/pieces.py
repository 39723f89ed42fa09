"""Pieces of chains, as parsers hand them over."""

from __future__ import annotations

from typing import Literal, NamedTuple

import pyarrow as pa

from cklog.model.findings import Finding, InputUsed
from cklog.model.names import Subtask

Together = Literal["run", "subtask"]


class PiecesRead(NamedTuple):
    """The pieces of a run as a table of `PIECES`, what is wrong with them, and the files that they were read from.

    `notes` are what else a reader of the chains must know: what a version is, for instance. `bare` are subtasks that
    have a store here of which nothing can be read.
    """

    table: pa.Table
    findings: tuple[Finding, ...]
    inputs: tuple[InputUsed, ...]
    notes: tuple[str, ...] = ()
    bare: tuple[Subtask, ...] = ()


PIECES = pa.schema(
    [
        pa.field("operator", pa.string(), nullable=False),
        pa.field("subtask", pa.int64(), nullable=False),
        pa.field("store", pa.string(), nullable=False),
        pa.field("version", pa.int64(), nullable=False),
        pa.field("form", pa.string(), nullable=False),
        pa.field("parent", pa.int64()),
        pa.field("bytes", pa.int64()),
        pa.field("duration_ms", pa.float64()),
        pa.field("path", pa.string(), nullable=False),
        pa.field("flaw", pa.string()),
    ]
)
"""One stored part of a chain; strings plain or dictionary-encoded.

`store` "" is the checkpoint as a whole, else a variable or state store. `form` base / delta; `parent` the version that
a delta stands on (null: the version of its chain before it); `bytes` and `duration_ms` (what taking it took) null:
not known; `path` below PATH, with ":offset" where useful, "" not known; `flaw` why it cannot be read, null: intact.
A column `offset` (int64) may say the offsets apart from the paths.
"""


UNFINISHED = "was not stored completely"
"""The flaw of a version that was in the making: nothing stands on it, but the chain is not broken by it."""


UNSEEN = "needs files outside PATH, which were not looked at"
"""The flaw of a version that may be whole: nobody can tell."""


def subject_of(name: tuple[str, int, str], version: int | None = None) -> str:
    """Return a chain, or a version of it, as findings name it.

    >>> subject_of(("join", 1, "left"), 7), subject_of(("join", 1, ""))
    ('join/1=7 left', 'join/1')
    """
    operator, subtask, store = name
    number = "" if version is None else f"={version}"
    return f"{operator}/{subtask}{number}" + (f" {store}" if store else "")


class ChainName(NamedTuple):
    """A chain by what it holds the state of; `store` "" is the checkpoint as a whole."""

    operator: str
    subtask: int
    store: str

    def __str__(self) -> str:
        return subject_of(self)
