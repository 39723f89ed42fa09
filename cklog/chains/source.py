"""The pieces of a run as they are handed to the answer of `chain`, whatever they come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import pyarrow as pa

from cklog.inputs.offers import OffersPieces
from cklog.inputs.pieces import Together
from cklog.model.findings import Finding, InputUsed


class PieceFile(NamedTuple):
    """A file of a piece: the bytes of it that are read, and the oldest version that has it too (`since`)."""

    path: str
    bytes: int
    since: int


class ChainSource(NamedTuple):
    """The pieces of a run, and what else the answer needs to know of them.

    Attributes
    ----------
    table : rows of `cklog.inputs.pieces.PIECES`
    findings : what is wrong with the inputs that the pieces were made from
    inputs : those inputs
    together : which chains are restored together
    notes : sentences that a reader of the answer needs, such as what a version is here
    parts : returns the files of a piece, by row of the table; None if a piece is one file or record
    unit : the word for what is restored together, if it is not that of `together`
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
    return ChainSource(
        table=read.table,
        findings=read.findings,
        inputs=read.inputs,
        together=parser.restored_together,
        notes=read.notes,
    )
