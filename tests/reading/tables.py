"""Whole tables of a parser, as cklog's own engine scans them."""

from __future__ import annotations

import pyarrow as pa

from cklog.engine.local import LocalEngine
from cklog.engine.scan import Scan, Scanned
from cklog.inputs.offers import Parser
from cklog.inputs.tables import as_it_is


def scan_whole(parser: Parser, table: str, schema: pa.Schema, split_bytes: int = 1 << 20) -> Scanned:
    """All rows of a table with the columns of `schema`, in no order, and the damage."""
    splits = tuple(parser.splits(table, split_bytes))
    columns = tuple(schema.names)
    scan = Scan(splits=splits, table=table, columns=columns, kernel=as_it_is, partial=schema, reduce=None)
    return LocalEngine().run(scan)
