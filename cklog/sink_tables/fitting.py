"""The newest line that fits all tables, and where there is none, the commits to which tables go back for one.

A line fits if a restart from it leaves every row once in every table. That does not rise or fall with the line: an
older one may have less pending and offer more that is dropped. So lines are asked one by one, the newest first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from cklog.inputs.sink_tables import Pending, SinkTable
from cklog.sink_tables.held import Account
from cklog.sink_tables.judge import judge
from cklog.sink_tables.model import Restart, Rollback, SinkFit
from cklog.sink_tables.numbers import spans_of
from cklog.sink_tables.rollback import candidates, gone_to, statements

MOST_LINES = 200
"""Older lines that are asked for, at the most."""


@dataclass(frozen=True)
class NamedTable:
    """A table of a job, what `--sink` calls it, and the ids that it may call the job by."""

    name: str
    table: SinkTable
    known: tuple[str, ...] = ()

    @cached_property
    def account(self) -> Account:
        """Look through the table, once."""
        return Account(self.table)


def fits(tables: Sequence[NamedTable], restart: Restart) -> list[SinkFit]:
    """Hold a restart against all tables, each with what the state has pending for it."""
    return [fit for one in tables for fit in judge(one.account, _for_one(tables, one, restart), one.name, one.known)]


def _for_one(tables: Sequence[NamedTable], one: NamedTable, restart: Restart) -> Restart:
    """The restart as one of several tables sees it; what is pending for nobody knows which is pending for all."""
    if len(tables) == 1 or not restart.pending:
        return restart
    names = {other.name for other in tables}
    mine = [
        p for p in restart.pending if p.sink == one.name or (p.sink not in names and not _elsewhere(p, tables, one))
    ]
    return replace(restart, pending=tuple(mine))


def _elsewhere(pending: Pending, tables: Sequence[NamedTable], one: NamedTable) -> bool:
    """Whether the files of a pending commit lie in another table's folder."""
    homes = {other.name for other in tables if any(f.startswith(f"{other.table.uri}/") for f in pending.files)}
    return bool(homes) and one.name not in homes


def all_agree(found: Iterable[SinkFit]) -> bool | None:
    """Say whether all tables agree: one that does not outweighs one of which it cannot be told."""
    told = {fit.agrees for fit in found}
    return False if False in told else None if None in told else True


def line_that_fits(
    tables: Sequence[NamedTable], lines: Iterable[Restart], usable: Callable[[Restart], bool] = lambda restart: True
) -> Restart | None:
    """Return the newest of some lines that all tables agree with; None: there is none among the first ones.

    Parameters
    ----------
    lines : the newest first
    usable : whether the state allows a restart from a line; asked only of those that the tables agree with
    """
    for restart, _ in zip(lines, range(MOST_LINES), strict=False):
        if all_agree(fits(tables, restart)) and usable(restart):
            return restart
    return None


def rollbacks_for(tables: Sequence[NamedTable], restart: Restart) -> list[tuple[NamedTable, Rollback]] | None:
    """Return which tables go back to which commits so that all agree with a line; None: no going back helps.

    Of each table the newest commit that makes it agree is taken; one that agrees as it is stays.
    """
    found = []
    for one in tables:
        mine = _for_one(tables, one, restart)
        if all_agree(judge(one.account, mine, one.name, one.known)):
            continue
        back = _rollback(one, mine)
        if back is None:
            return None
        found.append((one, back))
    return found


def _rollback(one: NamedTable, restart: Restart) -> Rollback | None:
    """The newest commit to go to so that a table agrees with a line."""
    table, ids = one.table, _ids(one, restart)
    writers = [writer for writer in one.account.writers if writer.id in ids]
    numbers = one.account.numbers(writers)
    tried: set[int] = set()
    for top in {max(restart.line, restart.same_to), restart.line}:  # what runs again as it was may stay, or has to go
        tried.update(candidates(table, {place for place, number in numbers if number > top})[:_MOST_COMMITS])
    for place in sorted(tried, reverse=True):
        back = gone_to(table, place)
        if all_agree(judge(Account(back), restart, one.name, one.known)):
            return _told(one, restart, place, back)
    return None


_MOST_COMMITS = 20
"""Commits that are tried: one of each stretch between two restores."""


def _ids(one: NamedTable, restart: Restart) -> set[str]:
    return {*restart.writers, restart.asks, *one.known, *(p.writer.id for p in restart.pending or () if p.writer)}


def _told(one: NamedTable, restart: Restart, place: int, back: SinkTable) -> Rollback:
    commit, pairs = one.table.commits[place], zip(one.table.commits, back.commits, strict=True)
    taken_back = [now for now, then in pairs if then.undone and not now.undone and now.operation != "restore"]
    ids = _ids(one, restart)
    ours = {writer for writer in one.account.writers if writer.id in ids}
    numbers = spans_of(
        (s.number, s.number + 1) for c in taken_back for s in c.stamps if s.writer in ours and s.number is not None
    )
    others = tuple(c.id for c in taken_back if not any(stamp.writer in ours for stamp in c.stamps))
    later = tuple(c.id for c in reversed(taken_back))
    name = one.table.uri.removeprefix("catalog:") if one.table.uri.startswith("catalog:") else one.name or "<db.table>"
    return Rollback(
        commit=commit.id,
        time=commit.time,
        line=restart.line,
        undoes=numbers,
        undoes_others=others,
        statements=statements(one.table, name, commit.id, later),
    )
