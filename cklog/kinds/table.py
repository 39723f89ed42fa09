"""From the kind that a parser declares to the class that answers for it: the whole dispatch."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import cast

from cklog.errors import UsageError
from cklog.inputs.offers import KindName, OffersPartitions, Parser
from cklog.kinds.kind import Kind, Opened

KINDS: Mapping[KindName, str] = {
    "records": "cklog.kinds.records:RecordsKind",
    "queues": "cklog.kinds.queues:QueuesKind",
    "batches": "cklog.kinds.batches:BatchesKind",
    "snapshots": "cklog.kinds.snapshots:SnapshotsKind",
    "partitions": "cklog.kinds.partitions:PartitionsKind",
    "stores": "cklog.kinds.stores:StoresKind",
    "pieces": "cklog.kinds.pieces:PiecesKind",
}
"""The class of each kind, as module:class; loaded when a run of its kind is opened."""


def kind_of(parser: Parser, opened: Opened) -> Kind:
    """Return what answers for a parser's run.

    Raises
    ------
    UsageError : the parser, somebody's plug-in, declares no kind that there is
    """
    if parser.kind not in KINDS:
        hint = f"kinds are {', '.join(KINDS)}; see docs/parsers.md"
        raise UsageError(f"the parser {parser.name} declares the kind {parser.kind}, which there is none of", hint)
    module, _, name = KINDS[parser.kind].partition(":")
    # What a parser of this kind offers is said in cklog.inputs.offers, and the class takes just that; that a plug-in
    # keeps to it is checked by its own type checker, not here.
    made = cast("Callable[[Parser, Opened], Kind]", getattr(importlib.import_module(module), name))
    return made(parser, opened)


def partitions_of(parser: Parser) -> OffersPartitions:
    """Return a parser of the kind `partitions` as what it offers: Kafka logs are opened beside runs of other kinds."""
    return cast("OffersPartitions", parser)
