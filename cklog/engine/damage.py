"""Counting damage and intact records, the same way whatever the splits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cklog.engine.scan import Damage
from cklog.errors import OverBudget

_REFUSED = "refused: over-budget"
"""What a task calls a file that ends everything; a reader's own `over-budget` is of a part that is left out."""


def over_budget(error: OverBudget, path: str) -> Damage:
    """Return what a task hands on where reading `path`, or something beside it, is over a budget."""
    return Damage(error.path or path, _REFUSED, None, error.of(path).message)


def refuse_over_budget(damage: Iterable[Damage]) -> None:
    """Raise for the first file that is over a budget, and say of how many others that is so."""
    found = [item for item in damage if item.id == _REFUSED]
    if found:
        more = f"; so are {len(found) - 1} more" if len(found) > 1 else ""
        raise OverBudget(found[0].detail + more)


class DamageTally:
    """Damage by file and kind, of which the first `limit` places by offset are kept, and intact records by file."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._placed: dict[tuple[str, str], list[Damage]] = {}
        self._count: dict[tuple[str, str], int] = {}
        self.records: dict[str, int] = {}

    def add(self, damage: Damage) -> None:
        """Count one damage; keep its place if it is among the first."""
        key = (damage.path, damage.id)
        self._count[key] = self._count.get(key, 0) + damage.count
        placed = self._placed.setdefault(key, [])
        if damage.detail or damage.offset is not None:
            placed.append(damage)
        if len(placed) > 2 * self._limit:
            self._keep_first(*key)

    def count(self, path: str, records: int) -> None:
        """Count `records` more intact records of `path`."""
        self.records[path] = self.records.get(path, 0) + records

    def update(self, other: DamageTally) -> None:
        """Add what another tally has counted."""
        for damage in other.damage():
            self.add(damage)
        for path, records in other.records.items():
            self.count(path, records)

    def damage(self) -> tuple[Damage, ...]:
        """Return the damage in order of file, kind and offset; a kind's last row counts what has no listed place."""
        found: list[Damage] = []
        for path, id in sorted(self._count):
            self._keep_first(path, id)
            placed = self._placed[path, id]
            found += placed
            rest = self._count[path, id] - sum(damage.count for damage in placed)
            if rest:
                found.append(Damage(path, id, offset=None, detail="", count=rest))
        return tuple(found)

    def _keep_first(self, path: str, id: str) -> None:
        """Drop the places of a file and kind that lie behind the first ones."""
        key = (path, id)
        placed = self._placed[key]
        placed.sort(key=lambda damage: (-1 if damage.offset is None else damage.offset, damage.detail))
        self._placed[key] = [replace(damage) for damage in placed[: self._limit]]
