"""Index data of a store in the patent's layout: the variables of each checkpoint, and what each of them stands on.

Entries carry no names. They stand in the order in which variables are serialized, which is the same in every
checkpoint: so the n-th entry of a checkpoint that has all variables is of the n-th variable. In other checkpoints, the
links (fields iii and iv) that lead to an entry or come from it say which variable it is of; an entry without any is
taken for a variable of its own, named by its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from cklog.parsers.patent.keys import FORMS, LARGEST
from cklog.parsers.patent.values import Value


class EntryPlace(NamedTuple):
    """The place of an index entry: byte `at` of the INDEX of a checkpoint."""

    checkpoint: int
    at: int


@dataclass(slots=True, eq=False)
class IndexEntry:
    """The index entry at byte `at`: its variable's bytes are [start, end) of K INCR (`end` None: not known).

    `previous` is where the entry of the version before is, None in base form. `variable` is its number from 0, or the
    place of its first version as "K@at". `flaw`: what is wrong with the entry; `unknown`: it leads behind an entry of a
    form that is not known, which is no damage; `lost`: why the bytes that it leads to cannot be read.
    """

    checkpoint: int
    at: int
    start: int
    previous: EntryPlace | None
    end: int | None = None
    variable: int | str | None = None
    flaw: str | None = None
    unknown: bool = False
    lost: str | None = None

    @property
    def behind(self) -> int:
        """Where the next entry begins."""
        return self.at + FORMS[self.previous is not None][1].size


@dataclass(slots=True, eq=False)
class Index:
    """The entries of one checkpoint by their place; `flaw`: why there is none from byte `stopped` on, None if all are.

    `_dead` are places from which no entries lead to the end, or to known ones.
    """

    checkpoint: int
    value: Value
    entries: dict[int, IndexEntry] = field(default_factory=dict)
    stopped: int = 0
    flaw: str | None = None
    _dead: set[int] = field(default_factory=set)

    def at(self, place: int) -> IndexEntry | None:
        """Return the entry at a place that a later checkpoint names; None if none begins there.

        Behind a fault, where reading on is impossible, it is such a link that says where an entry begins. It is
        believed if entries follow from there to the end.
        """
        if place not in self.entries and self.flaw is not None and place > self.stopped:
            found, stopped, flaw = self._scan_from(place)
            if flaw is None:
                self.entries |= found
            else:
                self._dead.update(found, (stopped,))
        return self.entries.get(place)

    def scan(self) -> None:
        """Read all entries, up to the end or to the first that is none."""
        self.entries, self.stopped, self.flaw = self._scan_from(0)

    def _scan_from(self, at: int) -> tuple[dict[int, IndexEntry], int, str | None]:
        """Return entries from a place on, where reading them ended, and why; None: at the end, or at known ones."""
        found: dict[int, IndexEntry] = {}
        while at < self.value.size and at not in self.entries and at not in self._dead:
            entry = self._decode_entry(at)
            if isinstance(entry, str):
                return found, at, entry
            found[at] = entry
            at = entry.behind
        return found, at, "leads to no entry" if at in self._dead else self.value.why_not(at)

    def _decode_entry(self, at: int) -> IndexEntry | str:
        """Decode the entry at a place, or say why there is none."""
        name, value = self.value.name, self.value
        form = value.read(at, 1)
        if form is None:
            return value.why_not(at, at + 1) or f"needs {name}, which ends at byte {at}"
        if form[0] not in FORMS:
            return f"needs {name}, which has no entry at byte {at}: {form[0]} is no form"
        layout = FORMS[form[0]][1]
        data = value.read(at, layout.size)
        if data is None:
            short = f"needs {name}, whose entry at byte {at} has {layout.size} bytes, {value.size - at} of them there"
            return value.why_not(at, at + layout.size) or short
        _, start, *previous = layout.unpack(data)
        return IndexEntry(self.checkpoint, at, start, EntryPlace(*previous) if previous else None)

    @property
    def unknown(self) -> bool:
        """Whether reading stopped at an entry of a form that a later version may have."""
        form = None if self.flaw is None else self.value.read(self.stopped, 1)
        return form is not None and form[0] not in FORMS

    @property
    def in_order(self) -> list[IndexEntry]:
        """The entries, sorted by their place."""
        return [entry for _, entry in sorted(self.entries.items())]


def index_of(checkpoint: int, value: Value) -> Index:
    """Read the entries of an index value, up to its end or to the first that is none."""
    index = Index(checkpoint, value)
    index.scan()
    return index


def follow(indexes: Mapping[int, Index], checkpoints: Iterable[int]) -> None:
    """Find the entry that each delta builds on; set a flaw where it leads to no entry of a checkpoint that is here.

    `checkpoints` are all of which anything is here. Links are followed from the newest checkpoint down, because they
    say where entries begin that an older, damaged index does not show any more. A link to a checkpoint that is not
    older, or not here at all, gets no flaw: whoever follows the chain finds that by itself.
    """
    here = set(checkpoints)
    for checkpoint in sorted(indexes, reverse=True):
        for entry in indexes[checkpoint].in_order:
            if entry.previous is None:
                continue
            older, place = entry.previous
            if older > LARGEST:
                entry.flaw = f"stands on checkpoint {older}, which cannot be"
            if older >= checkpoint or older not in here:
                continue
            target = indexes[older].at(place) if older in indexes else None
            if target is None:
                why = "where no entry begins" if older in indexes else "which is not there"
                entry.flaw = f"stands on byte {place} of {older} INDEX, {why}"
                entry.unknown = older in indexes and indexes[older].unknown and place >= indexes[older].stopped


def lay_out(index: Index, data: Value | None) -> None:
    """Find where the bytes of each variable are in K INCR; set a flaw for those that cannot be there or be read.

    `data` is the value K INCR, None if it is not there.
    """
    entries = index.in_order
    if data is None:
        for entry in entries:
            entry.lost = f"needs {index.checkpoint} INCR, which is not there"
        return
    placed = [data.is_lost or entry.start <= data.size for entry in entries]
    for entry, fits in zip(entries, placed, strict=True):
        if not fits:
            entry.flaw = f"starts at byte {entry.start} of {data.name}, which has {data.size}"
        elif entry.at == 0 and entry.start:
            entry.flaw = f"starts at byte {entry.start} of {data.name}, and it is the first variable there"
    for i, (entry, after) in enumerate(pairwise(entries)):
        if placed[i] and placed[i + 1] and entry.behind == after.at and entry.start > after.start:
            flaw = f"starts at byte {entry.start} of {data.name}, and the variable after it at byte {after.start}"
            entry.flaw = entry.flaw or flaw
            after.flaw = f"starts at byte {after.start} of {data.name}, and the one before it at byte {entry.start}"
    _measure_variables(index, data, entries, placed)


def _measure_variables(index: Index, data: Value, entries: Sequence[IndexEntry], placed: Sequence[bool]) -> None:
    """Set the end of each variable: where the next one starts, or the value's end; and why it cannot be read, if so.

    `placed[i]` says whether the start of entry i can be right.
    """
    for i, entry in enumerate(entries):
        last = entry.behind >= index.value.size
        if last:
            entry.end = data.size
        elif i + 1 < len(entries) and entries[i + 1].at == entry.behind and placed[i + 1]:
            entry.end = entries[i + 1].start
        if entry.start != entry.end or data.is_lost:
            entry.lost = data.why_not(entry.start, entry.end or None)
        if last:
            entry.lost = entry.lost or data.why_not(data.size)


def name_variables(indexes: Mapping[int, Index], count: int) -> list[IndexEntry]:
    """Set of every entry which variable it is of; return the entries that could only be named by their place.

    A checkpoint with `count` entries has all variables, in order. From there names go along links, both ways. A delta
    that builds on another variable than its own gets a flaw.
    """
    links = list(_linked_entries(indexes))
    for index in indexes.values():
        if index.flaw is None and len(index.entries) == count:
            for number, entry in enumerate(index.in_order):
                entry.variable = number
    for entry, target in (*links, *reversed(links), *links):  # up the chains, down, and up what branched off below
        if entry.variable is None:
            entry.variable = target.variable
        elif target.variable is None:
            target.variable = entry.variable
    alone: list[IndexEntry] = []
    for checkpoint in sorted(indexes):
        for entry in indexes[checkpoint].in_order:
            if entry.variable is None:
                older = _entry_below(indexes, entry)
                entry.variable = f"{checkpoint}@{entry.at}" if older is None else older.variable
                alone += [entry] if older is None else []
    for entry, target in links:
        if entry.variable != target.variable and entry.flaw is None and entry.previous is not None:
            place = entry.previous
            entry.flaw = f"stands on byte {place.at} of {place.checkpoint} INDEX, which is another variable"
    return alone


def _linked_entries(indexes: Mapping[int, Index]) -> Iterator[tuple[IndexEntry, IndexEntry]]:
    """Yield deltas and the entries that they build on, oldest delta first."""
    for checkpoint in sorted(indexes):
        for entry in indexes[checkpoint].in_order:
            target = _entry_below(indexes, entry)
            if target is not None:
                yield entry, target


def _entry_below(indexes: Mapping[int, Index], entry: IndexEntry) -> IndexEntry | None:
    """Return the entry that a delta builds on; None for a base, or if it is not here."""
    if entry.previous is None:
        return None
    older, place = entry.previous
    return indexes[older].entries.get(place) if older < entry.checkpoint and older in indexes else None
