"""Tables as outputs of a job that others read: what its stream stamped on commits numbers what passes between them.

Readers know a table by its commits. So of each commit it is said up to which number of the writer's all is in the table
by then. A commit that was taken back is out of every reader's reach in Iceberg, whose streams follow the parents of the
head: who has read it has read more than there will be. Streams of Delta read every version, those that were taken back
too, and whatever the table took again: how far such a stream is cannot be told by numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cklog.inputs.feeds import Output, Written
from cklog.inputs.sink_tables import SinkTable, Writer
from cklog.sink_tables.fitting import NamedTable
from cklog.sink_tables.judge import writers_of
from cklog.sink_tables.model import Restart
from cklog.sink_tables.rules import Rule, rule_of

_BEYOND = (1 << 62) - 1
"""Above every number that a writer stamps: what a commit that was taken back has taken."""


@dataclass(frozen=True, slots=True)
class TableOutput:
    """A table as the output of one of its writers, and whether its memory of numbers goes back with its rows."""

    output: Output
    goes_back: bool

    def written(self, until: int, kept: int | None = None) -> Written:
        """Return what is written as of a point of the writer.

        What the table lacks of that, a number without rows among it, is judged by `cklog.sink_tables.judge`: here it
        holds nobody back.
        """
        end = self.output.end
        return Written(until, kept, brings=until if end is None else min(until, end), can_cut=self.goes_back)


def table_outputs(tables: Sequence[NamedTable], restart: Restart) -> list[TableOutput]:
    """Return those tables that a job writes to, by what they call it, as its outputs."""
    found = []
    for one in tables:
        writers = writers_of(one.account, restart, one.known)
        if writers:
            rule = rule_of(restart.counts, one.table.format)
            unit = "batch" if restart.counts == "batch" else "checkpoint"
            found.append(TableOutput(table_output(one.table, writers, rule, unit), rule.goes_back))
    return found


def table_output(table: SinkTable, writers: frozenset[Writer], rule: Rule, unit: str) -> Output:
    """Return a table as the output of some of its writers, numbered by what they stamp on commits.

    A table whose older commits are gone may have forgotten what it took: it holds it, and remembers nothing.

    >>> stamped = Writer("q", "batch")
    >>> table = SinkTable("t", "delta", "main", (), None, {}, {stamped: 4})
    >>> table_output(table, frozenset({stamped}), Rule(drops_new=True), "batch").remembered
    5
    """
    reached, first, undone = 0, None, False
    commits: dict[str, int] = {}
    for commit in table.commits:
        stamps = [s.number for s in commit.stamps if s.writer in writers and s.number is not None]
        if commit.undone:
            undone = undone or bool(stamps)
            commits[commit.id] = _BEYOND if table.format == "iceberg" else reached
            continue
        for number in stamps:
            first = number if first is None else min(first, number)
            reached = max(reached, number + 1)
        commits[commit.id] = reached
    if table.expired and table.before:
        commits[table.before] = first or 0
    remembered = [number for writer, number in table.remembers.items() if writer in writers]
    return Output(
        name=table.uri,
        end=None if table.indeterminate or (table.expired and not reached) else reached,
        rule="appends" if rule.drops_new is False else "skips",
        remembered=max(remembered) + 1 if remembered else 0,
        first=(first or 0) if table.expired else 0,
        unit=unit,
        commits=commits,
        table=table.id,
        broken=_undone(table) if undone and table.format != "iceberg" else "",
    )


def _undone(table: SinkTable) -> str:
    return (
        f"{table.uri} was taken back: a stream that reads it reads the commits that were undone, too, and those that "
        "undid them"
    )
