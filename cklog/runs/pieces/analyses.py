"""A folder that holds chains of base and delta checkpoints and nothing else: no messages, no channels, no rounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from cklog.errors import NotFound
from cklog.model.findings import Finding, InputUsed
from cklog.model.question import Question
from cklog.model.verdict import Answer, answer
from cklog.model.wording import many


class StoredPieces(Protocol):
    """A parser of chains."""

    name: str

    def pieces(self) -> tuple[pa.Table, tuple[Finding, ...], tuple[InputUsed, ...]]: ...


class PieceLog:
    """What can be asked of such a folder beside its chains (`cklog chain`) and what may go (`cklog retention`)."""

    def __init__(self, parser: StoredPieces, strict: bool) -> None:
        self._parser = parser
        self._strict = strict

    def inspect(self) -> Answer:
        """Operators, and what is stored of each."""
        table, findings, inputs = self._parser.pieces()
        operators = _operators(table)
        versions = sum(row["checkpoints"] for row in operators)
        summary = f"Chains of {many(len(operators), 'operator')}: {many(versions, 'checkpoint')} in all."
        result = {"summary": summary, "formats": [self._parser.name], "operators": operators}
        return answer("inspect", result, findings, inputs, strict=self._strict)

    def recovery_line(self, question: Question) -> Answer:
        """Refused: nothing here says which checkpoints of different operators go together."""
        self._refuse()

    def replay(self, question: Question) -> Answer:
        """Refused, for the same reason."""
        self._refuse()

    def verify(self, line: Mapping[str, int | None], maximal: bool, question: Question) -> Answer:
        """Refused, for the same reason."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        message = f"a {self._parser.name} folder says nothing of the messages between operators"
        raise NotFound(f"{message}, so there is no line to be found", "cklog chain says what each can restore")


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
