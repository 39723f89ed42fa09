"""Tables that a job writes to, as values: the commits that a table has, and what a stream stamped on each of them.

A sink that is a table remembers what it has taken. On a restart it asks itself: it drops what it is offered under a
number that it has taken from this writer, and takes what comes under a greater one. Whether it still has the rows is
another question: a table that was taken back may have forgotten rows and not numbers, or numbers and not rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from cklog.model.findings import Finding, InputUsed

TableFormat = Literal["iceberg", "delta", "paimon", "hudi"]

Numbered = Literal["checkpoint", "batch", "identifier", "offsets"]
"""What a writer counts: checkpoints of a Flink job, batches of a Spark query, identifiers of a commit user's own, or
nothing but the offsets of what it reads."""

Operation = Literal["append", "overwrite", "delete", "rewrite", "restore", "other"]
"""rewrite: the same rows in other files, as compaction does; restore: the table as it was at an older commit."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Who wrote a commit, as the table tells writers apart.

    `id` : a Flink job's id, a Spark query's id, an appId, a commit user, a sink's id, a group of Kafka Connect
    `operator` : the operator of the job, where the sink keeps several apart; "" where it does not
    `counts` : what its numbers are
    """

    id: str
    counts: Numbered
    operator: str = ""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a stream wrote beside a commit.

    `number` : up to which number of the writer's the table has taken everything; None: offsets are all it says
    `offsets` : by source (`topic-0`), the next offset that the table has not taken
    """

    writer: Writer
    number: int | None
    offsets: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TableCommit:
    """A commit of a table: a snapshot, a version, an instant.

    Attributes
    ----------
    id : what the format calls it by: a snapshot's id, a version, an instant
    time : ms since the epoch; None: not said
    rows : rows that it added; None: not said
    restores : of a `restore`, the id of the commit that it went back to; None: not said
    undone : whether a later commit, or a reference that was moved, took it back: its rows are not in the table
    """

    id: str
    time: int | None
    operation: Operation
    rows: int | None
    stamps: tuple[Stamp, ...] = ()
    restores: str | None = None
    undone: bool = False


@dataclass(frozen=True, slots=True)
class SinkTable:
    """What is known of a table; nothing is judged here.

    Attributes
    ----------
    commits : of the branch that is written to, and those that were undone; the oldest first
    head : the id of the commit that readers see; None: the table is empty
    branches : the head of each named branch and tag
    remembers : for each writer the greatest number that the sink, asked on a restart, finds; a writer that is not
        here is unknown to the table, which takes whatever it offers
    expired : whether older commits are gone, so that `commits` may not be all that the table has taken
    expired_before : the time (ms) of the oldest commit that is left, if older ones are gone; None: not known
    id : by which streams that read the table know it; "": the format has none, or the table does not say
    location : where the table lies by its own metadata, which is what a job stores of its files; "": it does not say
    before : the id of the commit that came before the first of `commits`, where that is gone; "": not known
    indeterminate : whether the table may have taken more, or other things, than is said here: its newest metadata are
        damaged, or nobody but a catalog knows which they are. What follows from it is a bound
    """

    uri: str
    format: TableFormat
    branch: str
    commits: tuple[TableCommit, ...]
    head: str | None
    branches: Mapping[str, str]
    remembers: Mapping[Writer, int]
    expired: bool = False
    expired_before: int | None = None
    findings: tuple[Finding, ...] = ()
    inputs: tuple[InputUsed, ...] = ()
    indeterminate: bool = False
    id: str = ""
    before: str = ""
    location: str = ""


class ReadsTables(Protocol):
    """What reads tables of a format, by its own library; nothing but metadata is read, never rows."""

    def __call__(self, uri: str, branch: str = "") -> SinkTable:
        """Read a table.

        Parameters
        ----------
        uri : the folder of a table, a metadata file, or `catalog:name.space.table`
        branch : "" is the main one

        Raises
        ------
        UsageError : the library is not installed, which the message names with the extra that has it
        NotFound : there is no table
        CorruptInput : so much of its metadata is damaged that nothing can be said of it
        Unreadable : it may not be read
        """


@dataclass(frozen=True, slots=True)
class Pending:
    """What a checkpoint's state has for a sink that has not been told whether to commit it.

    A restore of this checkpoint commits it, unless the table remembers its number or a greater one.

    `sink` : the operator, by its name or id
    `writer` : as the table tells writers apart; None: the state does not say
    `number` : under which it is committed; None: not said
    `files` : the files that it names (manifests, data files), by their stored paths
    `missing` : those of them that are not there; None: nobody could look
    `version` : of the committable's format, where it is not understood any further
    `renamed` : the sink offers it under the id of the job that restores it, of which the table may know nothing
    """

    sink: str
    writer: Writer | None
    number: int | None
    files: tuple[str, ...] = ()
    missing: tuple[str, ...] | None = None
    version: int | None = None
    renamed: bool = False

    @property
    def unseen(self) -> bool:
        """Whether it names files, and nobody could look whether all of them are there."""
        return bool(self.files) and self.missing is None
