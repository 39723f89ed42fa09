"""Counting damage and intact records, the same way whatever the splits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cklog.engine import Damage


class DamageTally:
    """Damage by file and kind: the first `limit` places by offset are kept, every record is counted."""

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
            self._trim(key)

    def count(self, path: str, records: int) -> None:
        """`records` more intact records of `path`."""
        self.records[path] = self.records.get(path, 0) + records

    def update(self, other: DamageTally) -> None:
        """Take over what another tally has seen."""
        for damage in other.damage():
            self.add(damage)
        for path, records in other.records.items():
            self.count(path, records)

    def damage(self) -> tuple[Damage, ...]:
        """In order of file, kind and offset; the last row of a kind counts those without a listed place."""
        return tuple(self._rows())

    def _rows(self) -> Iterable[Damage]:
        for key in sorted(self._count):
            self._trim(key)
            placed = self._placed[key]
            yield from placed
            rest = self._count[key] - sum(damage.count for damage in placed)
            if rest:
                yield Damage(key[0], key[1], None, "", rest)

    def _trim(self, key: tuple[str, str]) -> None:
        placed = self._placed[key]
        placed.sort(key=lambda damage: (-1 if damage.offset is None else damage.offset, damage.detail))
        self._placed[key] = [replace(damage) for damage in placed[: self._limit]]
