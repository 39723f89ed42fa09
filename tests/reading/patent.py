"""What cklog makes of a store in the patent's layout: pieces, chains, flaws."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from cklog.chains.restorable import Chains, chains_of
from cklog.model.findings import Finding
from cklog.parsers.patent.parser import PatentStore
from cklog.storage import Root


def pieces(folder: Path) -> tuple[pa.Table, tuple[Finding, ...]]:
    read = PatentStore(Root(str(folder))).pieces()
    return read.table, read.findings


def chains(folder: Path) -> Chains:
    return chains_of(pieces(folder)[0])


def rows(table: pa.Table) -> dict[tuple[str, str, int], dict[str, object]]:
    """{(operator, store, version): its piece}."""
    return {(r["operator"], r["store"], r["version"]): r for r in table.to_pylist()}


def read_of(folder: Path, store: str, version: int) -> list[tuple[int, str, int]]:
    """(version, form, bytes) of what restores a variable of the only operator, in order."""
    found = chains(folder)
    chain = found.chain_named(("window", 0, store))
    assert chain is not None
    table = found.table.to_pylist()
    return [(table[r]["version"], table[r]["form"], table[r]["bytes"]) for r in found.reading(chain, version)]


def ids(folder: Path) -> dict[str, str]:
    return {finding.id: finding.severity for finding in pieces(folder)[1]}


def flaws(folder: Path) -> dict[tuple[str, int], str]:
    """{(store, version): flaw} of the only operator."""
    return {(store, version): str(r["flaw"]) for (_, store, version), r in rows(pieces(folder)[0]).items() if r["flaw"]}


def newest(folder: Path) -> int | None:
    """The newest checkpoint that the only operator can be restored to as a whole."""
    [found] = set(chains(folder).common("subtask"))
    return found
