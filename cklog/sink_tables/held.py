"""Which numbers of a job the rows of a table are of.

A commit that is stamped with a number has taken all numbers since the one before: sinks put several checkpoints into
one commit, and make none of a checkpoint without rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cklog.inputs.sink_tables import Numbered, SinkTable, TableCommit, Writer
from cklog.sink_tables.model import OtherWriter
from cklog.sink_tables.numbers import Spans, spans_of
from cklog.sink_tables.rules import UNNUMBERED

FIRST: Mapping[Numbered, int] = {"batch": 0, "checkpoint": 1, "identifier": 1, "offsets": 0}
"""The first number that there is."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a table has of one job.

    `there` : numbers whose rows are in it; `undone` : what each commit had taken that was taken back, up to its number
    `newest` : the commit of the greatest number that is there; `first` : the place of the job's first commit
    `former` : numbers whose rows are of an older job under the same id, whose numbers began anew
    """

    there: Spans
    undone: tuple[tuple[int, int], ...]
    newest: TableCommit | None
    first: int | None
    former: Spans = ()


class Account:
    """A table, looked through once: what it has of each writer. Lines are held against it one after the other."""

    def __init__(self, table: SinkTable) -> None:
        self.table = table
        self._stamps: dict[Writer, list[tuple[int, int]]] = {}
        self._held: dict[tuple[frozenset[Writer], tuple[int, int] | None], Held] = {}
        self._others: dict[frozenset[Writer], tuple[OtherWriter, ...]] = {}
        self.tops: dict[Writer, int] = {}
        for place, commit in enumerate(table.commits):
            for stamp in commit.stamps:
                number = -1 if stamp.number is None or not 0 <= stamp.number < UNNUMBERED else stamp.number
                self._stamps.setdefault(stamp.writer, []).append((place, number))
                if not commit.undone:
                    self.tops[stamp.writer] = max(number, self.tops.get(stamp.writer, -1))

    @property
    def writers(self) -> set[Writer]:
        """Return everybody that the table knows."""
        return {*self._stamps, *self.table.remembers}

    def numbers(self, writers: Iterable[Writer]) -> list[tuple[int, int]]:
        """Return where the numbers of some writers are: place and number, in the order of commits."""
        found = [pair for writer in writers for pair in self._stamps.get(writer, ()) if pair[1] >= 0]
        return sorted(found)

    def held(self, writers: frozenset[Writer], began: tuple[int, int] | None = None) -> Held:
        """Return what the table has of a job, which it calls by some writers: its attempts.

        `began` is a number of the job and when it was planned: what was committed before, under it or a greater one,
        is of an older job.
        """
        key = writers, began
        if key not in self._held:
            self._held[key] = self._look(writers, began)
        return self._held[key]

    def _look(self, writers: frozenset[Writer], began: tuple[int, int] | None) -> Held:
        reached: dict[Writer, int] = {}
        top = min((FIRST[writer.counts] for writer in writers), default=0) - 1
        there: list[tuple[int, int]] = []
        undone: list[tuple[int, int]] = []
        former: list[tuple[int, int]] = []
        best: tuple[int, TableCommit] | None = None
        found = sorted(
            ((place, number, w) for w in writers for place, number in self._stamps.get(w, ()) if number >= 0),
            key=lambda row: row[:2],
        )
        for place, number, writer in found:
            commit = self.table.commits[place]
            before = reached.get(writer, top if top < number else _below(there, number))
            span = (min(before, number - 1) + 1, number + 1)
            reached[writer] = max(number, reached.get(writer, -1))
            top = max(top, number)
            older = began is not None and number >= began[0] and commit.time is not None and commit.time < began[1]
            if older and began is not None:
                former += [(max(span[0], began[0]), span[1])]
                span = (span[0], min(span[1], began[0]))
            (undone if commit.undone else there).append(span)
            if not (commit.undone or older) and (best is None or number >= best[0]):
                best = (number, commit)
        kept, first = spans_of(there), found[0][0] if found else None
        return Held(kept, tuple(undone), None if best is None else best[1], first, spans_of(former))

    def others(self, writers: frozenset[Writer]) -> tuple[OtherWriter, ...]:
        """Return who else committed since the job's first commit; the oldest first."""
        if writers not in self._others:
            self._others[writers] = tuple(self._look_for_others(writers))
        return self._others[writers]

    def _look_for_others(self, writers: frozenset[Writer]) -> Iterable[OtherWriter]:
        found: dict[str, list[TableCommit]] = {}
        for commit in self.table.commits[self.held(writers).first or 0 :]:
            if commit.undone or any(stamp.writer in writers for stamp in commit.stamps):
                continue
            name = commit.stamps[0].writer.id if commit.stamps else f"({commit.operation})"
            found.setdefault(name, []).append(commit)
        for name, mine in [*found.items()][:_MOST_OTHERS]:
            yield OtherWriter(name, len(mine), mine[0].id, mine[-1].id, mine[-1].time)


_MOST_OTHERS = 100


def _below(spans: Iterable[tuple[int, int]], number: int) -> int:
    """The greatest number below another that is in spans: where an attempt that began again may have gone on from."""
    return max((min(end, number) - 1 for start, end in spans if start < number), default=-1)
