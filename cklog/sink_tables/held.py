"""Which numbers of a job the rows of a table are of.

A commit that is stamped with a number has taken all numbers since the one before: sinks put several checkpoints into
one commit, and make none of a checkpoint without rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cklog.inputs.sink_tables import Numbered, SinkTable, Stamp, TableCommit, Writer
from cklog.sink_tables.numbers import Spans, spans_of
from cklog.sink_tables.rules import UNNUMBERED

FIRST: Mapping[Numbered, int] = {"batch": 0, "checkpoint": 1, "identifier": 1, "offsets": 0}
"""The first number that there is."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a table has of one job.

    `there` : numbers whose rows are in it; `undone` : what each commit had taken that was taken back, up to its number
    `newest` : the commit of the greatest number that is there; `first` : the place of the job's first commit
    """

    there: Spans
    undone: tuple[tuple[int, int], ...]
    newest: TableCommit | None
    first: int | None


def held_by(table: SinkTable, writers: Iterable[Writer]) -> Held:
    """Return what a table has of a job, which it calls by some writers: its attempts.

    Cost: O(commits · log commits)
    """
    ours = frozenset(writers)
    reached: dict[Writer, int] = {}
    top = min((FIRST[writer.counts] for writer in ours), default=0) - 1
    there: list[tuple[int, int]] = []
    undone: list[tuple[int, int]] = []
    best: tuple[int, TableCommit] | None = None
    first: int | None = None
    for place, commit in enumerate(table.commits):
        for stamp, number in _numbered(commit, ours):
            first = place if first is None else first
            before = reached.get(stamp.writer, top if top < number else _below(there, number))
            span = (min(before, number - 1) + 1, number + 1)
            reached[stamp.writer] = max(number, reached.get(stamp.writer, -1))
            top = max(top, number)
            (undone if commit.undone else there).append(span)
            if not commit.undone and (best is None or number >= best[0]):
                best = (number, commit)
    kept = spans_of(there)
    return Held(kept, tuple(undone), None if best is None else best[1], first)


def _below(spans: Iterable[tuple[int, int]], number: int) -> int:
    """The greatest number below another that is in spans: where an attempt that began again may have gone on from."""
    return max((min(end, number) - 1 for start, end in spans if start < number), default=-1)


def _numbered(commit: TableCommit, ours: frozenset[Writer]) -> Iterable[tuple[Stamp, int]]:
    for stamp in commit.stamps:
        if stamp.writer in ours and stamp.number is not None and 0 <= stamp.number < UNNUMBERED:
            yield stamp, stamp.number


def numbers_of(commit: TableCommit, writers: Iterable[Writer]) -> list[int]:
    """Return the numbers of a job that a commit is stamped with."""
    return [number for _, number in _numbered(commit, frozenset(writers))]
