"""The pieces of a run, whatever they come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from cklog.inputs.offers import OffersPieces
from cklog.inputs.pieces import Together
from cklog.model.findings import Finding, InputUsed


@dataclass(frozen=True, slots=True)
class PieceFile:
    """A file of a piece, its bytes that are read, and the oldest version that has it too."""

    path: str
    bytes: int
    since: int


@dataclass(frozen=True, slots=True)
class ChainSource:
    """The pieces of a run, what is wrong with what they were made from, and what is restored together.

    `notes` are what else a reader of the answer must know: what a version is, for instance. Where pieces are made of
    several files, `parts` tells those of a piece, by row. `unit` is the word for what is restored together, if that is
    not the one of `together`.
    """

    table: pa.Table
    findings: Sequence[Finding]
    inputs: Sequence[InputUsed]
    together: Together
    notes: tuple[str, ...] = ()
    parts: Callable[[int], list[PieceFile]] | None = None
    unit: str = ""


def source_of_pieces(parser: OffersPieces) -> ChainSource:
    """Take the pieces that a parser hands over as they are."""
    read = parser.pieces()
    return ChainSource(read.table, read.findings, read.inputs, parser.restored_together, read.notes)
