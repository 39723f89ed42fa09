"""The pieces of one operator's chains, from the values of a store in the patent's layout, and what is wrong with them.

The piece "" of a checkpoint is what only its own restart needs: all three keys, the variables in NON, the whole INDEX.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cklog.model.findings import Finding, Severity, Where
from cklog.parsers.patent.index import Index, IndexEntry, follow, index_of, lay_out, name_variables
from cklog.parsers.patent.keys import LARGEST, PARTS
from cklog.parsers.patent.values import Gathered, StoredValue, Value

_TOLD = 40
"""Findings of one kind and store; the last one says how many more there are."""


class GatheredValues:
    """The values of a store, gathered key by key; and the checkpoints that any key speaks of."""

    def __init__(self) -> None:
        self._gathered: dict[tuple[int, str], Gathered] = {}

    def add(self, stored: StoredValue) -> None:
        """Take one key and its value."""
        self._gathered.setdefault((stored.key.checkpoint, stored.key.part), Gathered()).add(stored)

    def values(self) -> dict[int, dict[str, Value]]:
        """{checkpoint: {part: value}}, in order."""
        found: dict[int, dict[str, Value]] = {}
        for (checkpoint, part), gathered in sorted(self._gathered.items()):
            found.setdefault(checkpoint, {})[part] = gathered.value()
        return found

    def twice(self) -> Iterator[tuple[StoredValue, bool]]:
        """Pairs whose key was there before, and whether their value differs."""
        for _, gathered in sorted(self._gathered.items()):
            yield from ((stored, stored.key.chunk in gathered.differ) for stored in gathered.again)


def rows_of(
    operator: str, checkpoints: GatheredValues, names: Sequence[str] | None
) -> tuple[list[dict[str, Any]], list[Finding]]:
    """Rows of `PIECES`, by checkpoint and in the order of the index, and findings."""
    values = checkpoints.values()
    indexes = {k: index_of(k, parts["INDEX"]) for k, parts in values.items() if "INDEX" in parts}
    follow(indexes, values)
    for k, index in indexes.items():
        lay_out(index, values[k].get("INCR"))
    told = _StoreFindings(operator)
    most = max((len(index.entries) for index in indexes.values() if index.flaw is None), default=0)
    if names is not None and len(names) < most:
        told.add("bad-manifest", "error", f"variables.json names {len(names)} variables, and there are {most}", None)
        names = None
    for entry in name_variables(indexes, most if names is None else len(names)):
        message = f"nothing says which variable byte {entry.at} of {entry.checkpoint} INDEX is of: it stands alone"
        told.add("unnamed-variable", "info", message, indexes[entry.checkpoint].value.holder(entry.at).where)
    rows = []
    for k, parts in values.items():
        rows.append(_whole(operator, k, parts, indexes.get(k)))
        told.of_parts(k, parts)
        if k in indexes:
            rows += [_variable(operator, entry, parts, indexes[k], names) for entry in indexes[k].in_order]
            told.of_index(indexes[k])
    for stored, differs in checkpoints.twice():
        message = f"{stored.key} is stored twice, {'not the same: neither is used' if differs else 'with one value'}"
        told.add("duplicate-key", "error" if differs else "warning", message, stored.where)
    return rows, told.findings()


def _whole(operator: str, checkpoint: int, parts: dict[str, Value], index: Index | None) -> dict[str, Any]:
    """The piece "" of a checkpoint."""
    missing = [f"{checkpoint} {part}" for part in PARTS if part not in parts]
    flaw = f"lacks {' and '.join(missing)}" if missing else None
    flaw = flaw or parts["NON"].why_not(0) or (index.flaw if index else None)
    size = sum(parts[part].size for part in ("NON", "INDEX") if part in parts)
    first = next(parts[part] for part in PARTS if part in parts)
    return _piece(operator, "", checkpoint, None, size, first.holder(0).place, flaw)


def _variable(
    operator: str, entry: IndexEntry, parts: dict[str, Value], index: Index, names: Sequence[str] | None
) -> dict[str, Any]:
    """The piece of one variable; its place is that of its first byte, or of its entry where there is none."""
    size = None if entry.end is None else entry.end - entry.start
    holder = parts["INCR"].holder(entry.start) if "INCR" in parts else index.value.holder(entry.at)
    parent = None if entry.previous is None else min(entry.previous[0], LARGEST)
    flaw = entry.flaw or entry.lost
    return _piece(operator, _name(entry.variable, names), entry.checkpoint, parent, size, holder.place, flaw)


def _name(variable: int | str | None, names: Sequence[str] | None) -> str:
    """What a variable is called: by `names`, by its number from 1, or by the place where it is first seen."""
    if not isinstance(variable, int):
        return f"variable-{variable}"
    return f"variable-{variable + 1}" if names is None else names[variable]


def _piece(
    operator: str, store: str, version: int, parent: int | None, size: int | None, path: str, flaw: str | None
) -> dict[str, Any]:
    return {
        "operator": operator,
        "subtask": 0,
        "store": store,
        "version": version,
        "form": "base" if parent is None else "delta",
        "parent": parent,
        "bytes": size if size is not None and 0 <= size <= LARGEST else None,
        "path": path,
        "flaw": flaw,
    }


class _StoreFindings:
    """Findings about one operator's store, the first ones of each kind."""

    def __init__(self, operator: str) -> None:
        self._operator = operator
        self._found: dict[str, list[Finding]] = {}
        self._more: dict[str, int] = {}

    def add(self, id: str, severity: Severity, message: str, where: Where | None) -> None:
        """One more; it is counted where there are too many of its kind."""
        found = self._found.setdefault(id, [])
        if len(found) == _TOLD:
            self._more[id] = self._more.get(id, 0) + 1
            return
        subject = f"{self._operator}/0"
        found.append(Finding(id, severity, subject, f"{self._operator}: {message}", (where,) if where else ()))

    def of_parts(self, checkpoint: int, parts: dict[str, Value]) -> None:
        """Keys of a checkpoint that are not there, and values that are not whole."""
        missing = [f"{checkpoint} {part}" for part in PARTS if part not in parts]
        where = next(iter(parts.values())).first.where
        if missing == [f"{checkpoint} NON"]:
            why = "deleted before the rest, as a marked checkpoint's is, or lost; what stands on it can still use it"
            self.add("kept-for-deltas", "warning", f"{missing[0]} is not there: {why}", where)
        elif missing:
            told = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not there"
            self.add("missing-part", "error", f"of checkpoint {checkpoint}, {told}", where)
        for value in parts.values():
            if value.holes:
                more = f"; {len(value.holes) - 1} more such places" if len(value.holes) > 1 else ""
                told = f"{value.name} cannot be read in full: it {value.holes[0].why}{more}"
                self.add("damaged-value", "error", told, value.first.where)

    def of_index(self, index: Index) -> None:
        """Where index data cannot be read on, and entries that cannot be right."""
        name, holder = index.value.name, index.value.holder
        if index.flaw is not None and not index.value.holes:
            told = f"{name} cannot be read in full: it {index.flaw}"
            self.add("damaged-value", "error", told, holder(index.stopped).where)
        for entry in index.in_order:
            if entry.flaw is not None:
                told = f"the variable at byte {entry.at} of {name} {entry.flaw}"
                self.add("bad-index-entry", "error", told, holder(entry.at).where)

    def findings(self) -> list[Finding]:
        """All of them, each kind with how many more there are."""
        found = []
        for id, listed in sorted(self._found.items()):
            found += listed
            if id in self._more:
                told = f"{self._operator}: the same in {self._more[id]} more places"
                found.append(Finding(id, listed[0].severity, f"{self._operator}/0", told))
        return found
