"""What a job reads of other jobs and writes for them, as values: how far, as of each point from which it can restart.

Whatever passes from job to job is numbered: records of a partition by their offsets, files of a sink by the batch that
wrote them, rows of a table by the checkpoint or batch stamped on their commit. Every number here is exclusive: the next
one that is not read, not written, not held.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Rule = Literal["appends", "skips", "overwrites"]
"""appends: it goes to the end, under the next numbers, as in a topic; skips: it keeps its number, and is dropped if
that is below what the output remembers; overwrites: it takes the place of what had its number."""


@dataclass(frozen=True, slots=True)
class Written:
    """How far one output is written as of a point of its job.

    Attributes
    ----------
    until : what is numbered below was written before, and is not written again; None: not known
    kept : what is numbered below is written with the same contents if it is written again, as the plans of those
        batches are kept; None: `until`, and whatever comes after may be other records under the same number
    brings : from this number on the point's own state brings what is committed on its restart, such as the open
        transactions of a snapshot; None: `until`, the output has it all already
    can_cut : whether the output can lose what is numbered `kept` and above, and its memory of that
    """

    until: int | None
    kept: int | None = None
    brings: int | None = None
    can_cut: bool = True


@dataclass(frozen=True, slots=True)
class Output:
    """A topic's partition, a folder of files or a table that a job writes, as it is now, and what it does on a restart.

    Attributes
    ----------
    name : by which jobs that read it know it
    end : what is numbered below is in it; None: not known
    rule : what it does with what it is offered again
    remembered : of one that skips, what it is offered under a number below is dropped
    first : the first number that can still be read
    files : the stored path of each file, with its number, where it is a folder of files
    entries : the files below the job's folder that hold its log, by number: without those from a number on it has
        forgotten what they list
    unit : what is numbered
    commits : of a table, for each commit the number below which everything is in it by then; one that was taken back
        has a number above all others
    table : the id by which those who read a table know it; "": not known
    broken : why nobody can tell what readers of it have read, "" if one can
    """

    name: str
    end: int | None
    rule: Rule = "appends"
    remembered: int = 0
    first: int = 0
    files: Mapping[str, int] | None = None
    entries: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    unit: str = "record"
    commits: Mapping[str, int] = field(default_factory=dict)
    table: str = ""
    broken: str = ""


@dataclass(frozen=True, slots=True)
class Input:
    """What a job reads.

    `files` : of a folder of files the stored path of each, with the number that the job's own log gives it; the numbers
        of `Point.read` are of that log then
    `entries` : the files below the job's folder that hold that log, by number: files that the job has listed and not
        read are read by their names, whatever became of them
    `broken` : why that log does not tell all that was read, "" if it does
    `commits` : of a table the last commits that points of the job have read of, the oldest first; the numbers of
        `Point.read` are of this list then
    `table` : the table's own id, "" if offsets of its stream do not say it
    """

    name: str
    files: Mapping[str, int] | None = None
    entries: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    broken: str = ""
    commits: tuple[str, ...] = ()
    table: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """A point from which a job can restart, by what its logs say; `at` asks its kind for it, () for the newest.

    `read` : the next number of each input that it has not read, plans that it keeps included; None: not known
    `written` : how far each output is written
    `label` : what it is called; `initial`: the job begins anew
    """

    label: str
    at: tuple[tuple[str, int], ...]
    read: Mapping[str, int | None]
    written: Mapping[str, Written]
    initial: bool = False


@dataclass(frozen=True, slots=True)
class Feeds:
    """What one job reads and writes; its `points` are the newest first.

    `job` is its name where several lie below one PATH, else ""; `more`: there are older points, left out.
    """

    job: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    points: tuple[Point, ...]
    more: bool = False
