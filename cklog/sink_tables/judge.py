"""A restart held against a table: what becomes of every number that is offered, and of those that are not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cklog.inputs.sink_tables import Pending, SinkTable, Writer
from cklog.sink_tables.held import FIRST, Account, Held
from cklog.sink_tables.model import (
    HARMS,
    LOSES,
    Fate,
    Guarantee,
    Outcome,
    PendingFate,
    Restart,
    SinkFit,
    Strength,
)
from cklog.sink_tables.numbers import END, Spans, common, has, spans_of, within, without
from cklog.sink_tables.rules import Rule, rule_of, same_numbers


def judge(account: Account, restart: Restart, name: str = "", known: Sequence[str] = ()) -> list[SinkFit]:
    """Hold a restart against a table; one answer for each operator of the job that writes to it.

    Parameters
    ----------
    known : ids that the table may call the job by, beside those of the restart: what `--sink NAME=` says
    """
    found = writers_of(account, restart, known)
    operators = sorted({writer.operator for writer in found}) or [""]
    return [_judged(account, restart, (name, *known), operator, found) for operator in operators]


def writers_of(account: Account, restart: Restart, known: Sequence[str]) -> frozenset[Writer]:
    """Return what the table calls the job: the ids that are known, or its only writer, where those are the sink's."""
    fitting = {writer for writer in account.writers if same_numbers(restart.counts, writer.counts)}
    ids = restart.writers | {restart.asks} | set(known) | {p.writer.id for p in restart.pending or () if p.writer}
    ours = {writer for writer in fitting if writer.id in ids}
    named = any(p.writer is not None for p in restart.pending or ())
    if named and account.table.expired:
        return frozenset(ours)  # whom the state names may have written what is gone; nobody else's numbers are its own
    if not ours and rule_of(restart.counts, account.table.format).asks_user and len({w.id for w in fitting}) == 1:
        ours = fitting
    return frozenset(ours)


def held_by(account: Account, restart: Restart, writers: frozenset[Writer]) -> Held:
    """Return what a table has of a job that it calls by some writers.

    An id that was chosen by hand outlives a checkpoint, whose own id no other has.
    """
    own = any(writer.id in restart.writers for writer in writers)
    return account.held(writers, None if own else restart.began)


@dataclass(frozen=True, slots=True)
class _Case:
    """A table, a restart, and what follows from both before any number is looked at."""

    table: SinkTable
    restart: Restart
    rule: Rule
    held: Held
    pending: tuple[Pending, ...]
    remembers: int
    forgot: bool
    why: tuple[str, ...]


def _judged(
    account: Account, restart: Restart, names: tuple[str, ...], operator: str, found: frozenset[Writer]
) -> SinkFit:
    table = account.table
    writers = frozenset(writer for writer in found if writer.operator in ("", operator))
    rule = rule_of(restart.counts, table.format)
    asked = _asked(restart, writers, rule, names[1:])
    remembers = max((table.remembers.get(w, -1) for w in asked), default=-1)
    pending = tuple(p for p in restart.pending or () if _is_for(p, operator))
    held = held_by(account, restart, writers)
    forgot = table.expired and not asked & set(table.remembers)
    why = tuple(_why(account, restart, writers, pending, forgot, operator))
    if any(p.unseen and p.number is not None and p.number > remembers for p in pending):
        why = (*why, "pending-unseen")
    case = _Case(table, restart, rule, held, pending, remembers, forgot, why)
    told = [_pending_fate(case, p) for p in pending]
    outcomes = tuple(_unnumbered(case) if set(why) & set(_UNNUMBERED) else _outcomes(case, told))
    if restart.unknown:
        outcomes = tuple(replace(one, strength="unknown") for one in outcomes)
    elif _outlived(account, writers):
        outcomes = tuple(replace(one, strength="unknown") if one.fate in LOSES else one for one in outcomes)
    newest = held.newest
    return SinkFit(
        name=names[0],
        uri=table.uri,
        format=table.format,
        branch=table.branch,
        writer=_called(asked or writers),
        operator=operator,
        line=restart.line,
        taken_to=held.there[-1][1] - 1 if held.there else None,
        commit=None if newest is None else newest.id,
        time=None if newest is None else newest.time,
        remembers=None if remembers < 0 else remembers,
        outcomes=outcomes,
        pending=tuple(told),
        others=account.others(writers),
        agrees=_agrees(outcomes, why),
        guarantee=_guarantee(outcomes, why, proven=True),
        at_best=_guarantee(outcomes, why, proven=False),
        why=why,
    )


def _outlived(account: Account, writers: frozenset[Writer]) -> bool:
    """Return whether a table remembers a number of which it has no commit any more: its rows may be there or not."""
    remembers = account.table.remembers
    newest = {w: max((number for _, number in account.numbers([w])), default=-1) for w in writers}
    return account.table.expired and any(remembers.get(w, -1) > number for w, number in newest.items())


def _asked(restart: Restart, writers: frozenset[Writer], rule: Rule, known: Sequence[str]) -> frozenset[Writer]:
    """The writers that the sink asks for: the one that wrote the line; all, where only the state knows which.

    A job without state should ask for none; sinks that did ask all the same are known.
    """
    if restart.without_state:
        return writers
    mine = frozenset(writer for writer in writers if writer.id in (restart.asks, *known))
    named = {p.writer.id for p in restart.pending or () if p.writer is not None}
    told = frozenset(writer for writer in writers if writer.id in named)
    if told:
        return told
    return writers if rule.asks_user and not mine else mine


def _is_for(pending: Pending, operator: str) -> bool:
    return not operator or pending.writer is None or pending.writer.operator in ("", operator)


def _called(writers: Iterable[Writer]) -> str:
    return max((writer.id for writer in writers), default="")


def _pending_fate(case: _Case, pending: Pending) -> PendingFate:
    n, held = pending.number, case.held.there
    fate: Fate | None
    if n is None:
        fate = None
    elif pending.renamed and has(held, n) and not pending.missing:
        fate = "twice"
    elif n <= case.remembers:
        fate = "skipped" if has(held, n) else "skipped-wrongly"
    elif pending.missing:
        fate = "fails"
    elif has(held, n):
        fate = "twice"
    else:
        fate = None if pending.unseen else "written"
    return PendingFate(n, fate, len(pending.files), pending.missing, pending.sink)


def _outcomes(case: _Case, pending: Sequence[PendingFate]) -> Iterable[Outcome]:
    """What becomes of every number: before the line, pending, run again as it was, and new; in this order."""
    yield from _missing(case)
    for offered, one in zip(case.pending, pending, strict=True):
        if one.number is not None and one.fate is not None:
            strength: Strength = "unknown" if case.forgot and one.fate == "written" else "sure"
            if offered.renamed and one.fate == "twice":
                strength = "may"  # a job that comes back under its old id is known
            yield Outcome(one.fate, one.number, one.number + 1, strength)
        elif offered.unseen and one.number is not None:
            yield Outcome("fails", one.number, one.number + 1, "unknown")
    line, same = case.restart.line, max(case.restart.same_to, case.restart.line)
    dropped = case.remembers + 1 if case.rule.drops_new is not False else 0
    held = case.held.there
    again = ((line + 1, same + 1),)
    yield from _each("skipped", common(within(again, 0, dropped), held))
    yield from _each("skipped-wrongly", without(within(again, 0, dropped), held))
    yield from _each("twice", common(within(again, dropped, END), held))
    yield from _new(case, ((same + 1, END),), dropped)
    if case.forgot:
        yield from _each("twice", again, "unknown")
    if "other-writer" in case.why and line < 0:
        yield Outcome("twice", 0, None, "unknown")  # the same job under another id, perhaps
    fresh = without(within(((line + 1, END),), dropped, END), held)
    yield from _each("written", fresh, "unknown" if case.forgot else "sure")


def _unnumbered(case: _Case) -> Iterable[Outcome]:
    """What can be told of a table whose commits have no numbers: by time, whether a batch may be there already."""
    line, same, since = case.restart.line, max(case.restart.same_to, case.restart.line), case.restart.since
    later = since is not None and any(
        commit.time is not None and commit.time >= since and commit.operation in ("append", "overwrite")
        for commit in case.table.commits
        if not commit.undone
    )
    yield from _each("twice", ((line + 1, same + 1),), "may" if later else "unknown")
    yield from _each("written", ((same + 1, END),), "unknown")


def _new(case: _Case, new: Spans, dropped: int) -> Iterable[Outcome]:
    """What is written after the restart, perhaps with other boundaries than before.

    Where nothing that is new is dropped, all that the table has behind the line comes twice, and where it has nothing
    there, all that is dropped is lost. Where there is both, the boundaries decide it row by row.
    """
    held, low = case.held.there, within(new, 0, dropped)
    open_rule = case.rule.drops_new is None or case.restart.without_state
    behind = common(new, held)
    yield from _each("skipped-wrongly", low, "may" if open_rule or behind else "sure")
    doubled = behind if open_rule else common(within(new, dropped, END), held)
    yield from _each("twice", doubled, "may" if low else "sure")


def _missing(case: _Case) -> Iterable[Outcome]:
    """What lies before the line, is not in the table, and not pending either.

    What a commit had taken that was taken back is offered again if its number is pending: the state then names all that
    it had not been told to commit. A checkpoint is always pending in its own state.
    """
    line, restart, held = case.restart.line, case.restart, case.held
    offered = {p.number for p in case.pending if p.number is not None}
    lost = [span for span in held.undone if span[1] - 1 <= line and span[1] - 1 not in offered]
    gone = without(spans_of([*lost, *within(held.former, 0, line + 1)]), held.there)
    top = max([FIRST[restart.counts] - 1, *(end - 1 for _, end in (*held.there, *held.undone))])
    tail = within(((0, line + 1),), top + 1, END)
    for number in sorted(offered):
        gone, tail = without(gone, ((number, number + 1),)), without(tail, ((number, number + 1),))
    blind = restart.pending is None and restart.counts != "batch"
    yield from _each("missing", gone, "unknown" if blind else "sure")
    hidden = "other-writer" in case.why or case.forgot or blind
    yield from _each("missing", without(tail, gone), "sure" if case.rule.commits_all and not hidden else "unknown")


def _each(fate: Fate, spans: Spans, strength: Strength = "sure") -> Iterable[Outcome]:
    return (Outcome(fate, start, None if end >= END else end, strength) for start, end in spans)


def _why(
    account: Account,
    restart: Restart,
    writers: frozenset[Writer],
    pending: Sequence[Pending],
    forgot: bool,
    operator: str,
) -> Iterable[str]:
    """Why it cannot be told whether table and line agree."""
    table = account.table
    if restart.unknown:
        yield "line-not-read"
    if table.indeterminate:
        yield "not-whole"
    tops = {writer: top for writer, top in account.tops.items() if same_numbers(restart.counts, writer.counts)}
    always = restart.counts == "checkpoint" and table.format in ("iceberg", "paimon")  # its sinks stamp every commit
    if restart.counts == "batch" and table.format == "paimon":
        yield "not-numbered"
    elif not writers and tops:
        yield "other-writer"
    elif not writers and table.commits and not always and not table.expired:
        yield "not-stamped"
    elif operator and any(w.operator == operator and top > restart.line for w, top in tops.items() if w not in writers):
        yield "other-attempt"
    if forgot:
        yield "forgotten"
    if restart.pending is None and restart.counts != "batch":
        yield "pending-not-read"
    if any(p.number is None for p in pending):
        yield "pending-not-numbered"


def _agrees(outcomes: Sequence[Outcome], why: Sequence[str]) -> bool | None:
    harm = [one for one in outcomes if one.fate in HARMS]
    if "not-whole" in why:
        return None  # the newest metadata may have taken back what does harm as well as added some
    if any(one.strength != "unknown" for one in harm) and not set(why) & set(_UNNUMBERED):
        return False
    return None if harm or any(word in _HIDING for word in why) else True


_UNNUMBERED = ("not-numbered", "not-stamped")
_HIDING = (
    "line-not-read",
    "not-whole",
    "not-numbered",
    "not-stamped",
    "other-writer",
    "other-attempt",
    "forgotten",
    "pending-not-numbered",
)
"""Reasons for which nothing is known of what the table has; pending commits that nobody read say so in the outcomes."""


def _guarantee(outcomes: Sequence[Outcome], why: Sequence[str], proven: bool) -> Guarantee:
    """What is kept: by all that may happen, or, if not `proven`, by what surely happens alone."""
    counted = [one for one in outcomes if proven or one.strength == "sure"]
    hidden = proven and any(word in _HIDING for word in why)
    loses = hidden or any(one.fate in LOSES for one in counted)
    doubles = hidden or any(one.fate == "twice" for one in counted)
    if loses:
        return "none" if doubles else "at-most-once"
    return "at-least-once" if doubles else "exactly-once"
