"""What sources have read, held against the numbers of snapshots: within one job a newer one is nowhere behind.

A checkpoint's number stands twice, in its folder's name and in its metadata. A savepoint's stands in its metadata
alone, and nothing there proves it: one wrong bit makes an old savepoint the newest of its job. Offsets of splits
without an end only rise while a job runs, so they show where the number cannot be right.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

import pyarrow as pa

from cklog.engine.reading import Reading
from cklog.inputs.offers import OffersSnapshots
from cklog.runs.snapshots.heads import rows_of
from cklog.runs.snapshots.verdicts import JudgedSnapshot, Survey, judge_snapshots

_Spans = Mapping[tuple[str, str, str], tuple[int, int]]
"""The lowest and the highest offset that a reader has of each split: operator, name, cluster."""


def survey(parser: OffersSnapshots, reading: Reading, check_files: bool = True, check_contents: bool = False) -> Survey:
    """Read and judge every snapshot, looking into state files where it costs little, or all over (`check_contents`).

    One whose number offsets contradict has, as its second, the smallest that they allow. Each that no folder's name
    numbers is held against the checkpoints of its job; against savepoints of it, where the job has no checkpoint that
    can be read. Where several jobs have an id of that beginning, as in application mode, nothing is held against.
    """
    found = judge_snapshots(parser, reading, check_files, check_contents)
    jobs = _by_job(parser, found)
    order = _Order(found.tables)
    judged = list(found.judged)
    for i, j in enumerate(judged):
        if j.folder.number is None and j.id is not None and j.folder.path in found.tables:
            readable = [other for other in jobs.get(parser.taken_from(j.folder.job), ()) if other is not j]
            numbered = [other for other in readable if other.folder.number is not None]
            if len({other.folder.job for other in numbered}) < 2:  # else nothing says of which job it is
                judged[i] = order.held_against(j, numbered or readable)
    return found._replace(judged=tuple(judged))


def _by_job(parser: OffersSnapshots, found: Survey) -> Mapping[str | None, Sequence[JudgedSnapshot]]:
    """The snapshots that could be read and whose number nothing contradicts, by the beginning of the job's id."""
    jobs: dict[str | None, list[JudgedSnapshot]] = {}
    for j in found.judged:
        if j.id is not None and not j.disputed and j.folder.path in found.tables:
            taken_from = parser.taken_from(j.folder.job)
            jobs.setdefault(parser.job_id(j.folder.job)[:6] if taken_from is None else taken_from, []).append(j)
    for snapshots in jobs.values():
        snapshots.sort(key=lambda j: (j.id or 0, j.folder.path))
    return jobs


class _Order:
    """What the sources of snapshots have read, looked up once each."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self._tables = tables
        self._spans: dict[str, _Spans] = {}

    def held_against(self, one: JudgedSnapshot, others: Sequence[JudgedSnapshot]) -> JudgedSnapshot:
        """Return a snapshot, with a second number if it is behind what should be older or beyond what should be newer.

        `others` are of its job, by number. What they have read rises with it, so the place of one is searched.
        """
        number = one.id or 0
        beyond = bisect_left(others, True, key=lambda other: not self._behind(other, one))
        behind = bisect_left(others, True, key=lambda other: self._behind(one, other))
        lowest = (others[beyond - 1].id or 0) + 1 if beyond > 0 else 0
        if number < lowest:
            return one._replace(numbers=(number, lowest), order=others[beyond - 1].folder.path)
        if behind < len(others) and number >= (others[behind].id or 0):
            oldest = max(min(lowest, number - 1), 0)  # of two with one number, it is the older
            return one._replace(id=oldest, numbers=(number, oldest), order=others[behind].folder.path)
        return one

    def _behind(self, one: JudgedSnapshot, other: JudgedSnapshot) -> bool:
        """Whether all offsets that one has of some split are lower than all that the other has."""
        mine, theirs = self._of(one), self._of(other)
        return any(mine[split][1] < theirs[split][0] for split in mine.keys() & theirs.keys())

    def _of(self, judged: JudgedSnapshot) -> _Spans:
        path = judged.folder.path
        if path not in self._spans:
            self._spans[path] = _spans(self._tables[path])
        return self._spans[path]


def _spans(table: pa.Table) -> _Spans:
    """Offsets of splits without an end: parts of one file or range are handed out in any order. Markers are none."""
    found: dict[tuple[str, str, str], tuple[int, int]] = {}
    for row in rows_of(table, "source"):
        offset = row["offset"]
        if offset is None or offset < 0 or row["stop"] is not None:
            continue
        key = (row["operator"], row["name"], row["detail"] or "")
        low, high = found.get(key, (offset, offset))
        found[key] = (min(low, offset), max(high, offset))
    return found
