"""What looking into state files shows: each piece that handles name is looked into once, whichever snapshots need it.

A file of the right size may be full of zeros, as a power cut leaves it, or have flipped bits. What can be seen of that
depends on what the file is; a parser looks, and says of each piece what is wrong or why nothing is known of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from cklog.inputs.offers import OffersSnapshots
from cklog.inputs.snapshots import ContentCheck, FilePlace, StateStretch
from cklog.model.findings import Finding, Where
from cklog.model.wording import agreeing, many

_COLUMNS = ("file", "start", "bytes", "form", "offsets")
_TABLE, _OPTIONS = "sst", "options"


@dataclass(slots=True)
class ExaminedState:
    """Looks into the files that snapshots name, `thorough` or only where it costs little."""

    parser: OffersSnapshots
    thorough: bool = False
    _known: dict[StateStretch, ContentCheck] = field(default_factory=dict)
    _opaque: set[tuple[str, int]] = field(default_factory=set)

    def damaged(
        self, table: pa.Table, files: Sequence[str], places: Sequence[FilePlace]
    ) -> list[tuple[int, ContentCheck]]:
        """Look into what one snapshot names; return pieces that cannot be used or judged, each with its file.

        Parameters
        ----------
        table : the rows of the snapshot
        files : the files that it names, with their `places`; those that are not there are left out
        """
        number = {file: i for i, file in enumerate(files) if places[i].size is not None}
        pieces = self._pieces(table, number, places)
        unseen = [piece for piece in pieces if piece not in self._known]
        self._known.update(zip(unseen, self.parser.contents(unseen, self.thorough), strict=True))
        found = ((i, piece, self._known[piece]) for piece, i in pieces.items())
        return [
            (i, check)
            for i, piece, check in found
            if check.unread or check.unknown or (check.flaw and piece.form != _OPTIONS)
        ]

    def _pieces(self, table: pa.Table, number: dict[str, int], places: Sequence[FilePlace]) -> dict[StateStretch, int]:
        """Return each piece that handles name, with the number of its file."""
        named = pc.and_(pc.equal(table["entry"], "handle"), pc.is_valid(table["file"]))
        handles = table.select(_COLUMNS).filter(named)
        pieces: dict[StateStretch, int] = {}
        columns = (handles[name].to_pylist() for name in _COLUMNS)
        for file, start, size, form, offsets in zip(*columns, strict=True):
            i = number.get(file)
            if i is None:
                continue
            path = places[i].path
            if form is None:
                self._opaque.add((path, start or 0))
            else:
                pieces[StateStretch(path, start or 0, size, form, tuple(offsets or ()))] = i
        return pieces

    def findings(self) -> list[Finding]:
        """Say what was not looked at, and which files are damaged that no restore reads."""
        found = [
            _harmless(piece, check)
            for piece, check in sorted(self._known.items())
            if check.flaw and piece.form == _OPTIONS
        ]
        said = self._unchecked()
        return [*found, Finding("contents-not-checked", "info", "state files", said)] if said else found

    def _unchecked(self) -> str:
        """Say what was looked at, and what was not; "" if there is nothing to say."""
        read = {
            piece: check for piece, check in self._known.items() if not (check.unread or check.flaw or check.unknown)
        }
        tables = sum(piece.form == _TABLE and not check.unproved for piece, check in read.items())
        said = [_looked_at(tables, len(read), self.thorough)] if read else []
        reasons: dict[str, int] = {}
        for check in read.values():
            if check.unproved:
                reasons[check.unproved] = reasons.get(check.unproved, 0) + 1
        if self._opaque:
            reasons["their layout is the job's own, or not known"] = len(self._opaque)
        for why, count in sorted(reasons.items()):
            said.append(f"{many(count, 'piece')} of state {agreeing(count, 'were')} not checked further: {why}.")
        if self.thorough and not reasons:
            return ""
        return " ".join(said)


def _looked_at(tables: int, pieces: int, thorough: bool) -> str:
    """Say how far pieces of state in files were looked at, of which some are tables of an LSM tree."""
    if thorough:
        return f"Of {many(pieces, 'piece')} of state in files, every block of {many(tables, 'table')} was checked."
    return (
        f"Of {many(pieces, 'piece')} of state in files not every byte was read, but footers, indexes and properties of "
        "tables, whole manifests, and the heads of other state: --check-contents checks every block of tables."
    )


def _harmless(piece: StateStretch, check: ContentCheck) -> Finding:
    message = f"{piece.path}: {check.flaw}. RocksDB's options are not read by a restore, which does without them"
    return Finding("corrupt-file", "warning", piece.path, message, where=(Where(piece.path, check.at),))
