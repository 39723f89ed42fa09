"""Tables among the sinks of a run: which of their rows come twice, once or never after a restart from the line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from cklog.impact.sinks.guarantees import guarantee_of
from cklog.impact.sinks.model import GuaranteeEvidence, OutputInterval, ResultFate, SinkImpact
from cklog.model.verdict import Draft
from cklog.sink_tables.beside import sinks_answered
from cklog.sink_tables.fitting import fits
from cklog.sink_tables.model import HARMS, LOSES, Fate, Outcome, Restart, SinkFit
from cklog.sink_tables.naming import OpenedTables

_FATES: dict[Fate, tuple[ResultFate, ResultFate]] = {
    "skipped": ("skipped", "skipped"),
    "written": ("once", "once"),
    "twice": ("doubled", "may-be-doubled"),
    "skipped-wrongly": ("missing", "may-be-missing"),
    "missing": ("missing", "may-be-missing"),
    "fails": ("missing", "may-be-missing"),
}
"""What readers see, of what is sure and of what may be."""

_ANSWERED = ("pending-gone", "pending-unseen")
"""Evidence about pending files of a sink that the account of its table takes the place of."""


def with_tables(found: Draft[SinkImpact], restart: Restart, unit: str, opened: OpenedTables) -> Draft[SinkImpact]:
    """Add to the impact of a restart what tables say of it: intervals of results, and a guarantee for each table.

    What they find is a finding of the line. Where they tell of a sink, what its state alone lets one fear is left out.
    """
    held = fits(opened.tables, restart)
    told = sinks_answered(held)
    others = [row for row in found.result.guarantees if row.sink not in told | {one.name for one in opened.unread}]
    pieces = [
        piece
        for one in found.result.guarantees
        for piece in one.evidence
        if piece.piece != "output" and not (one.sink in told and piece.because in _ANSWERED)
    ]
    outputs = [*((fit.name, fit.agrees) for fit in held), *((one.name, None) for one in opened.unread)]
    result = replace(
        found.result,
        intervals=(
            *(row for row in found.result.intervals if row.sink not in told),
            *(row for fit in held for row in _intervals(fit, unit)),
            *(_unread(one.name, unit) for one in opened.unread),
        ),
        guarantees=(
            *others,
            *(guarantee_of(name, "", [*_one_of_each(pieces), _output(name, agrees)]) for name, agrees in outputs),
        ),
        transactions=tuple(row for row in found.result.transactions if row.sink not in told),
    )
    return replace(found, result=result)


def _one_of_each(pieces: Sequence[GuaranteeEvidence]) -> Iterable[GuaranteeEvidence]:
    """Of the evidence for input and state, which all sinks share, the weakest of each; none for input is not known."""
    order = {False: 0, None: 1, True: 2}
    if not any(piece.piece == "input" for piece in pieces):
        yield GuaranteeEvidence("input", None, "input-unknown", ())
    for name in ("input", "state"):
        mine = [piece for piece in pieces if piece.piece == name]
        if mine:
            yield min(mine, key=lambda piece: order[piece.holds])


def _output(name: str, agrees: bool | None) -> GuaranteeEvidence:
    why = {True: "table-agrees", False: "table-contradicts", None: "table-unknown"}[agrees]
    return GuaranteeEvidence("output", agrees, why, (name,))


def _unread(name: str, unit: str) -> OutputInterval:
    """Return all results of a table of which nothing is known, because it was not read or not understood."""
    return OutputInterval(name, "", "unknown", unit, 0, None, None, None, "table-unread")


def _intervals(fit: SinkFit, unit: str) -> Iterable[OutputInterval]:
    doubtful = {one.from_ for one in fit.outcomes if one.fate in HARMS and one.from_ == one.to}
    for one in fit.outcomes:
        if one.fate == "written" and one.from_ in doubtful:  # how many of these the table has already is not known
            continue
        sure, may = _FATES[one.fate]
        to = one.to if one.to != one.from_ else None  # it is not known how many there are
        yield OutputInterval(
            sink=fit.name,
            readers="",
            fate=sure if one.strength == "sure" else may,
            of=unit,
            from_=one.from_,
            to=to,
            most=to,
            count=None if to is None else to - one.from_,
            why=_why(one),
        )


def _why(one: Outcome) -> str:
    if one.fate == "twice" and one.strength != "sure":
        return "table-may-have"
    return f"table-{one.fate}" if one.fate in LOSES or one.fate in ("twice", "skipped") else "table-written"
