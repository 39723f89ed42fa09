"""The answer of `chain`: what of every chain can be restored, and what must be read for one checkpoint, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from cklog.arrays.columns import holds
from cklog.chains.build import piece_microseconds, piece_sizes
from cklog.chains.findings import chain_findings
from cklog.chains.flaws import place_at, place_of
from cklog.chains.model import BrokenLink, ChainAnswer, ChainRestore, ChainRow, ReadStep, Status
from cklog.chains.restorable import Chains, Link, chains_of
from cklog.chains.source import ChainSource, PieceFile
from cklog.chains.ways import TOO_LARGE
from cklog.errors import NotFound, UsageError
from cklog.inputs.pieces import UNFINISHED, UNSEEN, subject_of
from cklog.model.findings import Finding
from cklog.model.verdict import Draft
from cklog.model.wording import among, many
from cklog.policies.delta_number import RESTORE

READ_LISTED = 100_000
"""Pieces to read that are listed; more are only counted."""


@dataclass(frozen=True, slots=True)
class ChainQuestion:
    """What `chain` is asked.

    `operator` ("" for all, OPERATOR or OPERATOR/SUBTASK) and `store` (None for all) choose chains; `checkpoint` None is
    the newest that goes together. `read_rate` in MB/s gives times where no durations are recorded.
    """

    operator: str = ""
    store: str | None = None
    checkpoint: int | None = None
    read_rate: float | None = None


def chain_answer(source: ChainSource, asked: ChainQuestion) -> Draft[ChainAnswer]:
    """Say which checkpoints the chains of a run can restore, and what must be read for them.

    Raises
    ------
    UsageError : the read rate is no positive number
    NotFound : there are no chains, not of that operator or store, or none of them has the checkpoint asked for
    """
    if asked.read_rate is not None and not 0 < asked.read_rate < float("inf"):
        raise UsageError(f"--read-rate {asked.read_rate}: megabytes a second, more than 0")
    chains = chains_of(source.table)
    wanted = _chosen_chains(chains, asked)
    made = _ChainRows(chains, source, asked)
    rows = [made.row(chain) for chain in wanted]
    together = made.together(wanted, rows)
    read, left_out = made.steps(wanted, rows)
    found = ChainAnswer(
        restored_together=source.unit or source.together,
        asked=asked.checkpoint,
        totals=_totals_by_status(rows),
        together=together,
        chains=tuple(rows),
        read=read,
        read_left_out=left_out,
        notes=source.notes,
    )
    unreachable = [*made.unreachable(wanted)]
    findings = [*source.findings, *chains.findings, *made.too_large(), *chain_findings(found, unreachable)]
    nothing = all(row.checkpoint is None for row in together)
    unseen = any(row.status == "unchecked chain" for row in rows)
    lost = nothing or bool(unreachable)
    return Draft("chain", found, findings, source.inputs, unrecoverable=lost, indeterminate=unseen)


def _chosen_chains(chains: Chains, asked: ChainQuestion) -> list[int]:
    """Return the chains that are asked for."""
    found = [i for i, name in enumerate(chains.names) if asked.operator in ("", name.operator, f"{name[0]}/{name[1]}")]
    if not found:
        operators = ", ".join(dict.fromkeys(name.operator for name in chains.names))
        what = f"no operator or subtask {asked.operator}" if asked.operator else "there are no checkpoints"
        raise NotFound(what, f"operators here: {operators}" if operators else "cklog inspect says what is here")
    with_store = [i for i in found if asked.store in (None, chains.names[i].store)]
    if not with_store:
        stores = ", ".join(sorted({chains.names[i].store for i in found} - {""}))
        raise NotFound(f"no store {asked.store}", f"stores here: {stores or 'none, checkpoints are stored as a whole'}")
    number = asked.checkpoint
    if number is not None and not any(chains.node(i, number) is not None for i in with_store):
        newest = max(int(chains.version[chains.first[i + 1] - 1]) for i in with_store)
        raise NotFound(f"no checkpoint {number}", f"the newest is {newest}")
    return with_store


class _ChainRows:
    """The rows of the answer, and the arrays over all n versions (nodes) of c chains that they are made from."""

    def __init__(self, chains: Chains, source: ChainSource, asked: ChainQuestion) -> None:
        self._chains, self._mode, self._asked, self._parts = chains, source.together, asked, source.parts
        self._size, self._took = piece_sizes(chains.table), piece_microseconds(chains.table)  # of each piece
        self._bytes = chains.ways.sums(self._size[chains.row])  # of all that restoring a node reads
        self._micros = chains.ways.sums(self._took[chains.row])
        self._newest = chains.newest_nodes
        self._common = chains.common(self._mode)
        self._stored = ~holds(chains.table["flaw"], UNFINISHED)[chains.row]
        self._stored_before = np.r_[0, np.cumsum(self._stored)]  # how many stored nodes lie before each, shape (n + 1,)
        self._lost_before = np.r_[0, np.cumsum(self._stored & ~chains.restorable)]
        self._last = chains.last(self._stored)

    def too_large(self) -> Iterator[Finding]:
        """Report sums of sizes or times that do not fit 63 bits."""
        for what, sums in (("sizes", self._bytes), ("durations", self._micros)):
            nodes = np.flatnonzero(sums == TOO_LARGE)
            if len(nodes):
                chain = int(np.searchsorted(self._chains.first, nodes[0], "right")) - 1
                subject = subject_of(self._chains.names[chain], int(self._chains.version[nodes[0]]))
                message = (
                    f"the {what} of what {many(len(nodes), 'checkpoint', 'stand')} on do not fit 63 bits, "
                    f"{among(len(nodes), subject)}"
                )
                yield Finding("sum-overflow", "warning", what, f"{message}; no sum is told")

    def row(self, chain: int) -> ChainRow:
        """Return the row of one chain."""
        chains = self._chains
        start, end = int(chains.first[chain]), int(chains.first[chain + 1])
        newest = int(self._last[chain]) if self._last[chain] >= 0 else end - 1
        best = int(self._newest[chain])
        link = chains.why_not(chain, int(chains.version[newest]))
        target = self.target(chain)
        node = None if target is None else chains.node(chain, target)
        node = node if node is not None and chains.restorable[node] else None
        pieces, deltas, back_to = (None, None, None) if node is None else self._pieces_read(node)
        time, time_from = (None, None) if node is None else self._read_time(self._micros[node], self._bytes[node])
        operator, subtask, store = chains.names[chain]
        return ChainRow(
            operator=operator,
            subtask=subtask,
            store=store,
            status=self._status(start, end, newest, best),
            checkpoints=int(self._stored_before[end] - self._stored_before[start]),
            unrestorable=int(self._lost_before[end] - self._lost_before[start]),
            oldest=int(chains.version[start]),
            newest=int(chains.version[newest]),
            restorable=None if best < 0 else int(chains.version[best]),
            because=None if link is None else self._broken_link(link),
            checkpoint=None if node is None else target,
            pieces=pieces,
            deltas=deltas,
            back_to=back_to,
            bytes=None if node is None or self._bytes[node] < 0 else int(self._bytes[node]),
            time_ms=time,
            time_from=time_from,
        )

    def _pieces_read(self, node: int) -> tuple[int, int, int]:
        """Return how many pieces a node is read from, how many of them are deltas, and the oldest one's version."""
        chains = self._chains
        if self._parts is None:
            deltas = int(chains.ways.length[node])
            return deltas + 1, deltas, int(chains.version[chains.ways.end[node]])
        own, since = int(chains.version[node]), [part.since for part in self._parts(int(chains.row[node]))]
        return len(since), sum(first < own for first in since), min([own, *since])

    def target(self, chain: int) -> int | None:
        """Return the version to restore: the one asked for, else the newest that goes with the other chains."""
        return self._common[chain] if self._asked.checkpoint is None else self._asked.checkpoint

    def _status(self, start: int, end: int, newest: int, best: int) -> Status:
        """Return the status of the chain of nodes [start, end); `best` is its newest restorable node, -1 for none."""
        if self._chains.restorable[newest] or not self._stored[newest]:
            return "intact chain"
        if self._chains.flaw(int(self._chains.row[newest])) == UNSEEN:
            return "unchecked chain"
        rows = self._chains.row[start:end]
        deltas = holds(self._chains.table["form"].take(pa.array(rows)), "delta") if best < 0 else np.zeros(1)
        return "orphaned deltas" if deltas.any() else "broken chain"

    def _read_time(self, micros: int, size: int) -> tuple[float | None, Literal["history", "read-rate"] | None]:
        """Estimate how long reading takes in ms, and say from what: how long storing took, else the rate given."""
        if micros >= 0:
            return round(RESTORE * int(micros) / 1000, 3), "history"
        if size >= 0 and self._asked.read_rate is not None:
            return round(int(size) / self._asked.read_rate / 1000, 3), "read-rate"
        return None, None

    def _broken_link(self, link: Link) -> BrokenLink:
        """Return the link with the place of its piece."""
        place = () if link.row is None else place_at(self._chains.table, link.row)
        return BrokenLink(
            checkpoint=link.version,
            needed_by=link.needed_by,
            flaw=link.flaw,
            path=place[0].path if place else None,
            offset=place[0].offset if place else None,
        )

    def together(self, wanted: Sequence[int], rows: Sequence[ChainRow]) -> tuple[ChainRestore, ...]:
        """Return what the chains that are restored together go back to, and what of those asked for that reads."""
        groups: dict[tuple[str, int] | None, list[tuple[int, ChainRow]]] = {}
        for chain, row in zip(wanted, rows, strict=True):
            groups.setdefault(None if self._mode == "run" else (row.operator, row.subtask), []).append((chain, row))
        found = []
        for owner, members in groups.items():
            holding = members if owner is None else [(c, r) for c, r in members if self._has_target(c)]
            if holding or self._asked.checkpoint is None:
                version = self.target(members[0][0])
                whole = version is not None and all(r.checkpoint is not None for _, r in holding)
                found.append(_restored_together(owner, [r for _, r in holding or members], version if whole else None))
        return tuple(found)

    def _has_target(self, chain: int) -> bool:
        """Say whether the chain has the version that its subtask goes back to: variables come and go."""
        target = self.target(chain)
        return target is not None and self._chains.node(chain, target) is not None

    def unreachable(self, wanted: Sequence[int]) -> Iterator[tuple[str, BrokenLink]]:
        """Yield the chains that cannot restore the checkpoint asked for, and where their way down fails."""
        number = self._asked.checkpoint
        if number is None:
            return
        for chain in wanted:
            link = self._chains.why_not(chain, number) if self._mode == "run" or self._has_target(chain) else None
            if link is not None:
                yield str(self._chains.names[chain]), self._broken_link(link)

    def steps(self, wanted: Sequence[int], rows: Sequence[ChainRow]) -> tuple[tuple[ReadStep, ...], int]:
        """Return the pieces to read, chain by chain, and how many more there are."""
        pieces: list[int] = []
        whose: list[ChainRow] = []
        count = 0
        for chain, row in zip(wanted, rows, strict=True):
            if row.checkpoint is None or row.pieces is None:
                continue
            count += row.pieces
            if count <= READ_LISTED:
                read = self._chains.reading(chain, row.checkpoint)
                pieces += read
                whose += [row] * len(read)
        found: list[ReadStep] = []
        if self._parts is None:
            columns = self._chains.table.take(pa.array(pieces, pa.int64())).drop_columns(["operator", "store"])
            for row, piece, values in zip(whose, pieces, columns.to_pylist(), strict=True):
                found.append(self._piece_step(row, piece, values))
        else:
            for row, piece in zip(whose, pieces, strict=True):
                found += [self._file_step(row, part) for part in self._parts(piece)]
        return tuple(found), count - len(found)

    def _file_step(self, row: ChainRow, part: PieceFile) -> ReadStep:
        """Return the step that reads one of the files of a piece."""
        restored = row.checkpoint or 0
        return ReadStep(
            operator=row.operator,
            subtask=row.subtask,
            store=row.store,
            restore=restored,
            checkpoint=part.since,
            form="delta" if part.since < restored else "base",
            bytes=part.bytes,
            time_ms=self._read_time(-1, part.bytes)[0],
            path=part.path,
            offset=None,
        )

    def _piece_step(self, row: ChainRow, piece: int, values: dict[str, Any]) -> ReadStep:
        """Return the step that reads a piece; `values` are those of its row of the table."""
        size = int(self._size[piece])
        micros = int(self._took[piece]) if row.time_from == "history" else -1
        place = place_of(values["path"], values.get("offset"))
        return ReadStep(
            operator=row.operator,
            subtask=row.subtask,
            store=row.store,
            restore=row.checkpoint or 0,
            checkpoint=values["version"],
            form=values["form"],
            bytes=size if size >= 0 else None,
            time_ms=self._read_time(micros, size)[0],
            path=place[0].path if place else "",
            offset=place[0].offset if place else None,
        )


def _restored_together(owner: tuple[str, int] | None, rows: Sequence[ChainRow], version: int | None) -> ChainRestore:
    """Sum sizes and times over chains that are restored together; a sum is not known if that of one of them is not."""
    read = rows if version is not None else ()
    sizes_known = [row.bytes for row in read if row.bytes is not None]
    by_subtask: dict[tuple[str, int], list[float | None]] = {}
    for row in read:
        by_subtask.setdefault((row.operator, row.subtask), []).append(row.time_ms)
    times = [sum(part for part in parts if part is not None) for parts in by_subtask.values() if None not in parts]
    operator, subtask = owner or (None, None)
    return ChainRestore(
        operator=operator,
        subtask=subtask,
        chains=len(rows),
        checkpoint=version,
        pieces=sum(row.pieces or 0 for row in read),
        bytes=sum(sizes_known) if read and len(sizes_known) == len(read) else None,
        time_ms=round(max(times), 3) if read and len(times) == len(by_subtask) else None,
    )


def _totals_by_status(rows: Sequence[ChainRow]) -> dict[str, int]:
    """Count the chains by status, and their checkpoints."""
    status = [row.status for row in rows]
    return {
        "chains": len(rows),
        "intact": status.count("intact chain"),
        "broken": status.count("broken chain"),
        "orphaned": status.count("orphaned deltas"),
        "unchecked": status.count("unchecked chain"),
        "checkpoints": sum(row.checkpoints for row in rows),
        "unrestorable": sum(row.unrestorable for row in rows),
    }
