"""A restart as a sink sees it, and what a table says of it, as values.

The model. A sink is offered results under *numbers* that rise: checkpoints of a Flink job, batches of a Spark query. Of
each table and job two facts count, and they are not the same:

    remembers  the greatest number that the sink finds in the table when it asks there after a restart
    held       the numbers whose rows are in the table: of commits that nobody took back

A restart from a line `c` offers what the state has *pending* (numbers up to c), then c+1, c+2, … Of each number one of
these comes true:

    skipped          the sink drops it, and the table has the same rows already
    skipped-wrongly  the sink drops it, and the table does not have these rows: a silent loss
    twice            the sink takes it, and the table has rows of it already
    written          the sink takes it, and the table has it once
    fails            the restart wants to commit it, and its files are gone: the restart fails
    missing          it lies before the line, the table does not have it, and nobody writes it again

Whether what is dropped is the same as what the table has is known of one thing only: a batch of Spark whose plan
stayed runs again with exactly its range. Whatever else is written after a restart may begin and end elsewhere, so that
dropping it loses what an earlier attempt did not have, even if the table has a commit of that number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from cklog.inputs.sink_tables import Numbered, Pending, TableFormat

Fate = Literal["skipped", "written", "twice", "skipped-wrongly", "missing", "fails"]

Strength = Literal["sure", "may", "unknown"]
"""sure: it comes true; may: rows behind the numbers, or the sink's version, decide; unknown: evidence is missing."""

Guarantee = Literal["none", "at-most-once", "at-least-once", "exactly-once"]

LOSES: frozenset[Fate] = frozenset({"skipped-wrongly", "missing", "fails"})
HARMS: frozenset[Fate] = LOSES | {"twice"}


@dataclass(frozen=True, slots=True)
class Restart:
    """What a restart from a line offers to a table.

    Attributes
    ----------
    line : the newest number before the line, -1: the initial state
    counts : what the job's sinks count
    writers : what a table may call this job: a query's id; of Flink the ids of all attempts that the files tell of
    asks : by what id the sink asks the table after this restart; "": not known
    same_to : what comes after the line up to this number has the contents that it had before
    pending : what the state has for the table that was not known to be committed; None: nobody could look
    since : when what comes first after the line was planned (ms); None: not known
    began : the first number whose plan is known, and when it was made (ms): what a table took before under such a
        number is of an older job, whose numbers began anew; None: not known
    without_state : a job that is started without state asks for nothing
    unknown : whether there is state that could not be read, so that nobody knows which line this is
    """

    line: int
    counts: Numbered
    writers: frozenset[str]
    asks: str
    same_to: int
    pending: tuple[Pending, ...] | None = ()
    since: int | None = None
    began: tuple[int, int] | None = None
    without_state: bool = False
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What becomes of the numbers [`from_`, `to`) in a table; `to` None: and all that come after."""

    fate: Fate
    from_: int
    to: int | None
    strength: Strength = "sure"


@dataclass(frozen=True, slots=True)
class PendingFate:
    """A commit that the state has pending for a sink, and what a restore does with it.

    `fate` : None: not known; `missing` : files of it that are gone; None: nobody could look
    """

    number: int | None
    fate: Fate | None
    files: int
    missing: tuple[str, ...] | None
    sink: str = ""


@dataclass(frozen=True, slots=True)
class OtherWriter:
    """Who else wrote to a table since the first commit of this job: commits, and when (ms)."""

    writer: str
    commits: int
    first: str
    last: str
    last_time: int | None


@dataclass(frozen=True, slots=True)
class Rollback:
    """A commit to which a table goes back so that it agrees with a line.

    `line` : the number of that line
    `undoes` : numbers of this job that are taken back, to be written again
    `undoes_others` : commits of other writers that are taken back with them
    `statements` : by where they are run, the words to paste; None of a place: no such statement is known
    """

    commit: str
    time: int | None
    line: int
    undoes: tuple[tuple[int, int], ...]
    undoes_others: tuple[str, ...]
    statements: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SinkFit:
    """What a table says of a restart from a line.

    Attributes
    ----------
    name : as `--sink` names it
    writer : what the table calls this job; "": it does not know it
    line : the number of the line
    taken_to, commit, time : the newest number whose rows are in the table, by which commit, and when
    remembers : the newest number that the sink finds when it asks; None: none
    outcomes : what becomes of every number that is in doubt, and of those written from here on
    others : who else wrote there since
    agrees : whether a restart from this line leaves every row once; None: cannot be told
    guarantee, at_best : what is proven, and what it is if everything unknown should hold
    why : words of `cklog.sink_tables.findings.WHY`, where it cannot be told
    """

    name: str
    uri: str
    format: TableFormat
    branch: str
    writer: str
    operator: str
    line: int
    taken_to: int | None
    commit: str | None
    time: int | None
    remembers: int | None
    outcomes: tuple[Outcome, ...]
    pending: tuple[PendingFate, ...]
    others: tuple[OtherWriter, ...]
    agrees: bool | None
    guarantee: Guarantee
    at_best: Guarantee
    why: tuple[str, ...] = ()

    def of(self, *fates: Fate) -> tuple[Outcome, ...]:
        """Return the outcomes of some fates."""
        return tuple(one for one in self.outcomes if one.fate in fates)
