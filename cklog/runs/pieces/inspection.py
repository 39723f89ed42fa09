"""A folder that holds chains of base and delta checkpoints and nothing else: no messages, no channels, no rounds."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cklog.inputs.offers import OffersPieces
from cklog.model.verdict import Draft
from cklog.model.wording import many


def inspect_pieces(parser: OffersPieces) -> Draft[dict[str, Any]]:
    """Say which operators' chains are here, and what is stored of each."""
    table, findings, inputs, _ = parser.pieces()
    operators = _operators(table)
    versions = sum(row["checkpoints"] for row in operators)
    summary = f"Chains of {many(len(operators), 'operator')}: {many(versions, 'checkpoint')} in all."
    result = {"summary": summary, "formats": [parser.name], "operators": operators}
    return Draft("inspect", result, findings, inputs)


def _operators(table: pa.Table) -> list[dict[str, Any]]:
    """A row for each operator, by name."""
    rows = []
    for operator in sorted(pc.unique(table["operator"]).to_pylist()):
        of = table.filter(pc.equal(table["operator"], operator))
        stores = set(pc.unique(of["store"]).to_pylist()) - {""}
        span = pc.min_max(of["version"]).as_py()
        flawed = of.filter(pc.is_valid(of["flaw"]))
        rows.append(
            {
                "operator": operator,
                "checkpoints": pc.count_distinct(of["version"]).as_py(),
                "from": span["min"],
                "to": span["max"],
                "variables": len(stores),
                "deltas": pc.sum(pc.equal(of["form"], "delta")).as_py(),
                "bytes": pc.sum(of["bytes"]).as_py() or 0,
                "flawed": len(flawed),
            }
        )
    return rows
