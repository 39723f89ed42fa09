"""A line with what the tables that the job writes to say of it; a line that they contradict is no plain restart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from cklog.inputs.sink_tables import TableFormat
from cklog.model.actions import Action, RunAction
from cklog.model.checks import Check, Verification, verification
from cklog.model.findings import Finding, effect_of_error
from cklog.model.lines import RecoveryLine
from cklog.model.verdict import UNDETERMINED, Draft
from cklog.sink_tables.findings import WHY, fit_findings
from cklog.sink_tables.fitting import NamedTable, all_agree, fits, line_that_fits, rollbacks_for
from cklog.sink_tables.judge import held_by, writers_of
from cklog.sink_tables.model import Restart, Rollback, SinkFit
from cklog.sink_tables.naming import OpenedTables


@dataclass(frozen=True, slots=True)
class AskedLine:
    """The line of one job as its sinks see it, and the older ones that it may go back to.

    `run` : the name of the job; `subtask` : as `--at` takes it
    `unit` : what the numbers count
    `older` : the newest first; `usable` : whether the state allows a restart from one of them
    `chosen` : whether the line was asked for, so that no other is looked for
    """

    run: str
    subtask: str
    unit: str
    restart: Restart
    older: Callable[[], Iterable[Restart]]
    usable: Callable[[Restart], bool]
    name: Callable[[int], str]
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class TableRollback:
    """A table that goes back to a commit before the job is started."""

    sink: str
    head: str | None
    to: Rollback


@dataclass(frozen=True, slots=True)
class SinkLine:
    """What the tables make of a line.

    Attributes
    ----------
    run : the job
    agrees : whether all tables agree with the newest line by state; None: cannot be told
    by_state : that line
    fits : the newest line that all tables agree with; None: none was found, or the line is the one that was asked for
    at : the same as `--at` takes it
    rollbacks : where no line fits: tables that go back, so that the newest line by state does
    instead : what helps where neither does
    action, command, note : of the line by state alone
    """

    run: str
    agrees: bool | None
    by_state: str
    fits: str | None
    at: str | None
    rollbacks: tuple[TableRollback, ...]
    instead: str
    action: Action
    command: str | None
    note: str | None


def beside_tables(found: Draft[RecoveryLine], asked: AskedLine, opened: OpenedTables) -> Draft[RecoveryLine]:
    """Hold the line of a job against its tables: what they say, the line that fits, and the action that follows."""
    held = fits(opened.tables, asked.restart)
    agrees = None if opened.unread and all_agree(held) is not False else all_agree(held)
    findings = [finding for fit in held for finding in fit_findings(fit, asked.unit)]
    line = found.result
    mine = next((run for run in line.runs if run.run == asked.run), None) or line.runs[0]
    told = _sink_line(mine, asked, opened, agrees)
    if told.fits is not None:  # the tables agree with that line, so that they only make it older
        findings = [replace(f, effect=effect_of_error(f.severity, "older-line")) for f in findings]
    runs = tuple(_acted(run, told) if run is mine else run for run in line.runs)
    details = {**line.details, "sinks": held, "sink_line": told}
    if not agrees:
        own = details.get("headline") if told.fits is None else None  # else that of the line that fits is added
        by_state = f" By state alone: {own}" if own else ""
        details |= {"headline": f"{_headline(told)}{by_state}", "restore": []}
    return replace(
        found,
        result=replace(line, runs=runs, details=details),
        findings=[*_without_told(found.findings, held), *opened.findings, *findings],
        inputs=[*found.inputs, *opened.inputs],
        indeterminate=found.indeterminate or agrees is None,
    )


def with_line_that_fits(
    found: Draft[RecoveryLine], again: Callable[[str, int], Draft[RecoveryLine]]
) -> Draft[RecoveryLine]:
    """Return the answer with the entries and positions of the line that the tables agree with, if that is an older one.

    `again` : asks about the run once more, with a subtask at a checkpoint
    """
    told = found.result.details["sink_line"]
    if told.at is None:
        return found
    subtask, _, number = told.at.rpartition("=")
    older = again(subtask, int(number)).result
    headline = f"{found.result.details['headline']} With --at {told.at}: {older.details['headline']}"
    line = replace(
        found.result,
        line=older.line,
        channels=older.channels,
        sources=older.sources,
        rolled_back=older.rolled_back,
        recovery_time=older.recovery_time,
        details={**found.result.details, "headline": headline},
    )
    return replace(found, result=line)


def _without_told(findings: Iterable[Finding], held: Sequence[SinkFit]) -> list[Finding]:
    """Leave out what the tables answer: whether files that are gone, or that nobody saw, were committed."""
    told = sinks_answered(held)
    answered = ("pending-file-missing", "pending-unchecked")
    return [one for one in findings if one.id not in answered or one.subject not in told]


def sinks_answered(held: Sequence[SinkFit]) -> set[str]:
    """Return the sinks of which tables tell what becomes of everything that the state has pending for them."""
    pending = [one for fit in held for one in fit.pending]
    return {one.sink for one in pending} - {one.sink for one in pending if one.fate is None}


def _headline(told: SinkLine) -> str:
    if told.agrees is None:
        return f"{UNDETERMINED}: whether the tables agree with {told.by_state} is not known."
    if told.fits is not None:
        return f"The tables contradict {told.by_state}; the newest line that they agree with is {told.fits}."
    first = ", ".join(f"{one.sink} to {one.to.commit}" for one in told.rollbacks)
    how = f"they agree with it once they are taken back ({first})" if first else "no line that is here fits them"
    return f"The tables contradict {told.by_state}; {how}."


def _of_an_older_job(one: NamedTable, restart: Restart) -> bool:
    """Whether a table has numbers of the job that an older one has written under the same id."""
    writers = writers_of(one.account, restart, one.known)
    return bool(held_by(one.account, restart, writers).former)


def _sink_line(mine: RunAction, asked: AskedLine, opened: OpenedTables, agrees: bool | None) -> SinkLine:
    tables = opened.tables
    older, backs = None, None
    if agrees is False and not opened.unread:
        older = None if asked.chosen else line_that_fits(tables, asked.older(), asked.usable)
        backs = rollbacks_for(tables, asked.restart)
    heads = {one.name: one.table.head for one in tables}
    rollbacks = tuple(TableRollback(one.name, heads[one.name], back) for one, back in backs or ())
    formats = {one.table.format for one in tables}
    former = any(_of_an_older_job(one, asked.restart) for one in tables)
    return SinkLine(
        run=mine.run,
        agrees=agrees,
        by_state=asked.name(asked.restart.line),
        fits=None if older is None else asked.name(older.line),
        at=None if older is None else f"{asked.subtask}={older.line}",
        rollbacks=rollbacks,
        instead=_instead(asked.unit, formats, former) if agrees is False and older is None and backs is None else "",
        action=mine.action,
        command=mine.command,
        note=mine.note,
    )


def _instead(unit: str, formats: set[TableFormat], former: bool) -> str:
    if unit == "batch" and former:
        return (
            "the table's batch numbers are from an older checkpoint with the same id, so batches of this checkpoint "
            "with those numbers are not in the table: start with a new checkpoint folder and another id (txnAppId), "
            "with empty state, and let the sources begin where batch 0 of this checkpoint began"
        )
    if unit == "batch" and "delta" in formats:
        return (
            "RESTORE takes rows back, and not the batch numbers that the table has seen: take the rows back, and start "
            "with a new checkpoint folder (or another txnAppId) whose sources begin where the line ends; its state is "
            "lost with the folder"
        )
    return "no commit of the tables makes them agree with a line that is here: write the difference again by hand"


_ASKS_MORE: dict[Action, Action] = {"restart": "repair-first", "restart-older": "repair-first"}


def _acted(run: RunAction, told: SinkLine) -> RunAction:
    """Return what to do about a job as its tables leave it: what they contradict is no plain restart."""
    if told.agrees or run.action == "undetermined":
        return run
    if told.agrees is None:
        note = "nobody can tell what the tables make of a restart: the findings say why"
        return replace(run, action="undetermined", note=note)
    if told.fits is not None and run.action in _ASKS_MORE:
        note = f"the tables contradict {told.by_state}; ask again with --at {told.at}: with {told.fits} they agree"
        return replace(run, action="restart-older", chosen=told.fits, chosen_time=None, command=None, note=note)
    first = "; ".join(f"take {one.sink} to {one.to.commit}" for one in told.rollbacks)
    note = f"before the restart {first}" if first else f"the tables contradict {told.by_state}; {told.instead}"
    return replace(run, action=_ASKS_MORE.get(run.action, run.action), command=None, note=note)


def with_tables_checked(
    found: Draft[Verification], restart: Restart, opened: OpenedTables, unit: str
) -> Draft[Verification]:
    """Prove or refute, too, that a restart from a line leaves every row once in every table."""
    held = fits(opened.tables, restart)
    agrees = None if opened.unread and all_agree(held) is not False else all_agree(held)
    check = Check("exactly-once in tables", agrees, _because(held, opened))
    result = verification([*found.result.checks, check])
    return replace(
        found,
        result=result,
        findings=[*found.findings, *opened.findings, *(f for fit in held for f in fit_findings(fit, unit))],
        inputs=[*found.inputs, *opened.inputs],
        indeterminate=result.undecided,
    )


def _because(held: Sequence[SinkFit], opened: OpenedTables) -> str:
    wrong = [fit.name for fit in held if fit.agrees is False]
    if wrong:
        return f"{', '.join(wrong)}: the findings say what comes twice, or never"
    unknown = [f"{fit.name}: {WHY[fit.why[0]]}" if fit.why else fit.name for fit in held if fit.agrees is None]
    if unknown or opened.unread:
        return "; ".join([*unknown, *(f"{one.name} cannot be read" for one in opened.unread)])
    return "every row is there once after a restart, in every table"
