"""The pieces of one operator's chains, from the values of a store in the patent's layout, and what is wrong with them.

The piece "" of a checkpoint is what only its own restart needs: that all three keys are there, the variables in NON,
and the whole INDEX.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from cklog.model.findings import Finding, Severity, Where, effect_of_error
from cklog.model.verdict import UNKNOWN_VERSION
from cklog.parsers.patent.index import Index, IndexEntry, follow, index_of, lay_out, name_variables
from cklog.parsers.patent.keys import LARGEST, PARTS
from cklog.parsers.patent.values import Gathered, StoredValue, Value

_LISTED = 40
"""Findings of one kind and store; the last one says how many more there are."""


class GatheredValues:
    """The values of a store, gathered key by key."""

    def __init__(self) -> None:
        self._gathered: dict[tuple[int, str], Gathered] = {}

    def add(self, stored: StoredValue) -> None:
        """Add one key and its value."""
        self._gathered.setdefault((stored.key.checkpoint, stored.key.part), Gathered()).add(stored)

    def values(self) -> dict[int, dict[str, Value]]:
        """Return {checkpoint: {part: value}}, in order."""
        found: dict[int, dict[str, Value]] = {}
        for (checkpoint, part), gathered in sorted(self._gathered.items()):
            found.setdefault(checkpoint, {})[part] = gathered.value()
        return found

    def twice(self) -> Iterator[tuple[StoredValue, bool]]:
        """Yield pairs whose key was there before, and whether their value differs."""
        for _, gathered in sorted(self._gathered.items()):
            yield from ((stored, stored.key.chunk in gathered.differ) for stored in gathered.again)


def rows_of(
    operator: str, checkpoints: GatheredValues, names: Sequence[str] | None, unknown: bool
) -> tuple[list[dict[str, Any]], list[Finding]]:
    """Return rows of `cklog.inputs.pieces.PIECES`, by checkpoint and in the order of the index, and findings.

    `names` are those of the variables in the order of the index; None: they are named by their numbers. `unknown`:
    there are keys of parts that are not known.
    """
    values = checkpoints.values()
    indexes = {k: index_of(k, parts["INDEX"]) for k, parts in values.items() if "INDEX" in parts}
    follow(indexes, values)
    for k, index in indexes.items():
        lay_out(index, values[k].get("INCR"))
    findings = _StoreFindings(operator, unknown)
    most = max((len(index.entries) for index in indexes.values() if index.flaw is None), default=0)
    if names is not None and len(names) < most:
        message = f"variables.json names {len(names)} variables, and there are {most}"
        findings.add("bad-manifest", "error", message, None)
        names = None
    for entry in name_variables(indexes, most if names is None else len(names)):
        message = f"nothing says which variable byte {entry.at} of {entry.checkpoint} INDEX is of: it stands alone"
        findings.add("unnamed-variable", "info", message, indexes[entry.checkpoint].value.holder(entry.at).where)
    rows = []
    for k, parts in values.items():
        rows.append(_whole_row(operator, k, parts, indexes.get(k)))
        findings.add_parts(k, parts)
        if k in indexes:
            rows += [_variable_row(operator, entry, parts, indexes[k], names) for entry in indexes[k].in_order]
            findings.add_index(indexes[k])
    for stored, differs in checkpoints.twice():
        message = f"{stored.key} is stored twice, {'not the same: neither is used' if differs else 'with one value'}"
        findings.add("duplicate-key", "error" if differs else "warning", message, stored.where)
    return rows, findings.findings()


def _whole_row(operator: str, checkpoint: int, parts: dict[str, Value], index: Index | None) -> dict[str, Any]:
    """Build the row of the piece "" of a checkpoint."""
    missing = [f"{checkpoint} {part}" for part in PARTS if part not in parts]
    flaw = f"lacks {' and '.join(missing)}" if missing else None
    flaw = flaw or parts["NON"].why_not(0) or (index.flaw if index else None)
    size = sum(parts[part].size for part in ("NON", "INDEX") if part in parts)
    first = next(parts[part] for part in PARTS if part in parts)
    return {
        "operator": operator,
        "subtask": 0,
        "store": "",
        "version": checkpoint,
        "form": "base",
        "parent": None,
        "bytes": _column_size(size),
        "path": first.holder(0).place,
        "flaw": flaw,
    }


def _variable_row(
    operator: str, entry: IndexEntry, parts: dict[str, Value], index: Index, names: Sequence[str] | None
) -> dict[str, Any]:
    """Build the row of one variable; its place is that of its first byte, or of its entry where there is none."""
    holder = parts["INCR"].holder(entry.start) if "INCR" in parts else index.value.holder(entry.at)
    return {
        "operator": operator,
        "subtask": 0,
        "store": _variable_name(entry.variable, names),
        "version": entry.checkpoint,
        "form": "base" if entry.previous is None else "delta",
        "parent": None if entry.previous is None else min(entry.previous.checkpoint, LARGEST),
        "bytes": None if entry.end is None else _column_size(entry.end - entry.start),
        "path": holder.place,
        "flaw": entry.flaw or entry.lost,
    }


def _variable_name(variable: int | str | None, names: Sequence[str] | None) -> str:
    """Name a variable by `names`, by its number from 1, or by the place where it is first seen."""
    if not isinstance(variable, int):
        return f"variable-{variable}"
    return f"variable-{variable + 1}" if names is None else names[variable]


def _column_size(size: int) -> int | None:
    """Return a size that a column can hold; None for one that cannot be."""
    return size if 0 <= size <= LARGEST else None


_MAY_FOLLOW = frozenset({"missing-part", "damaged-value", "bad-index-entry"})
"""Kinds of findings that may follow from what is not known."""


class _StoreFindings:
    """Findings about one operator's store, the first ones of each kind.

    `unknown`: keys or files in it are of a version that is not known, and nothing else is said to be damaged by that.
    """

    def __init__(self, operator: str, unknown: bool) -> None:
        self._operator, self._unknown = operator, unknown
        self._found: dict[str, list[Finding]] = {}
        self._more: dict[str, int] = {}

    def add(self, id: str, severity: Severity, message: str, where: Where | None) -> None:
        """Add one more; it is only counted where there are too many of its kind."""
        id = UNKNOWN_VERSION if self._unknown and id in _MAY_FOLLOW else id
        found = self._found.setdefault(id, [])
        if len(found) == _LISTED:
            self._more[id] = self._more.get(id, 0) + 1
            return
        places = () if where is None else (where,)
        effect = effect_of_error(severity, "unknown" if id in ("bad-manifest", UNKNOWN_VERSION) else "older-line")
        found.append(Finding(id, severity, f"{self._operator}/0", f"{self._operator}: {message}", places, effect))

    def add_parts(self, checkpoint: int, parts: dict[str, Value]) -> None:
        """Add keys of a checkpoint that are not there, and values that are not whole."""
        missing = [f"{checkpoint} {part}" for part in PARTS if part not in parts]
        where = next(iter(parts.values())).first.where
        if missing == [f"{checkpoint} NON"]:
            why = "deleted before the rest, as a marked checkpoint's is, or lost; what stands on it can still use it"
            self.add("kept-for-deltas", "warning", f"{missing[0]} is not there: {why}", where)
        elif missing:
            these = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not there"
            self.add("missing-part", "error", f"of checkpoint {checkpoint}, {these}", where)
        for value in parts.values():
            if value.holes:
                more = f"; {len(value.holes) - 1} more such places" if len(value.holes) > 1 else ""
                message = f"{value.name} cannot be read in full: it {value.holes[0].why}{more}"
                self.add("damaged-value", "error", message, value.first.where)

    def add_index(self, index: Index) -> None:
        """Add where index data cannot be read on, and entries that cannot be right."""
        name, holder = index.value.name, index.value.holder
        if index.flaw is not None and not index.value.holes:
            message = f"{name} cannot be read in full: it {index.flaw}"
            self.add(
                UNKNOWN_VERSION if index.unknown else "damaged-value", "error", message, holder(index.stopped).where
            )
        for entry in index.in_order:
            if entry.flaw is not None:
                message = f"the variable at byte {entry.at} of {name} {entry.flaw}"
                id = UNKNOWN_VERSION if entry.unknown else "bad-index-entry"
                self.add(id, "error", message, holder(entry.at).where)

    def findings(self) -> list[Finding]:
        """Return all of them, each kind with how many more there are."""
        found = []
        for id, listed in sorted(self._found.items()):
            found += listed
            if id in self._more:
                message = f"{self._operator}: the same in {self._more[id]} more places"
                found.append(replace(listed[0], message=message, where=()))
        return found
