"""Tables of RocksDB (`.sst`) that no checksum file proves, as on an object store: what they themselves can prove.

Cheaply that is the footer and the blocks that lead to all others; or every block. A table that is full of zeros at its
right size makes the load fail.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from cklog.budgets import reading
from cklog.inputs.batches import FileFlaw
from cklog.inputs.stored_state import TablesSeen
from cklog.model.verdict import UNKNOWN_VERSION
from cklog.parsers.codecs.sst import check_sst
from cklog.parsers.codecs.zeros import tell_zeros
from cklog.storage import FileEntry, Root

_SUFFIX = ".sst"


@dataclass(slots=True)
class SnapshotTables:
    """Looks into tables, `thorough` or only where it costs little, and counts them."""

    root: Root
    thorough: bool
    _sound: int = 0
    _unproved: Counter[str] = field(default_factory=Counter)

    def flaw(self, entry: FileEntry) -> FileFlaw | None:
        """Return what is wrong with a table, None if nothing is or the file is no table.

        Raises
        ------
        OSError : it cannot be read
        """
        if not entry.path.endswith(_SUFFIX):
            return None
        with reading(entry.path), self.root.open(entry.path) as file:

            def read(at: int, count: int) -> bytes:
                data: bytes = file.read_at(min(count, entry.size - at), at)
                return data

            found = check_sst(read, entry.size, self.thorough)
            if found.flaw is not None:
                zeros = tell_zeros(read, entry.size)
                at = 0 if zeros else found.flaw.at
                return FileFlaw("corrupt-file", at, f"{entry.path}: {zeros or found.flaw.why}")
            if found.unknown is not None:
                return FileFlaw(UNKNOWN_VERSION, found.unknown.at, f"{entry.path}: {found.unknown.why}")
        self._sound += 1
        self._unproved.update([found.unchecked] if found.unchecked else [])
        return None

    @property
    def seen(self) -> TablesSeen:
        """What was looked at."""
        return TablesSeen(self._sound, self.thorough, tuple(sorted(self._unproved.items())))
