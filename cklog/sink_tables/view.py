"""What tables say of a line, as sections and sentences of 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cklog.model.wording import first_few, many, utc
from cklog.render.view import Section, section
from cklog.sink_tables.beside import SinkLine
from cklog.sink_tables.findings import spans_words
from cklog.sink_tables.model import Fate, SinkFit

_WORDS = {True: "yes", False: "NO", None: "cannot tell"}


def sink_sections(details: Mapping[str, Any]) -> list[Section]:
    """Show of each table up to where it has taken, what becomes of the rest, and what goes back to what."""
    fits: Sequence[SinkFit] = details.get("sinks", ())
    if not fits:
        return []
    rows = [
        (
            fit.name,
            "-" if fit.taken_to is None else fit.taken_to,
            _cell(fit, "skipped"),
            _cell(fit, "twice"),
            _cell(fit, "skipped-wrongly"),
            _cell(fit, "missing", "fails"),
            _WORDS[fit.agrees],
            fit.guarantee,
        )
        for fit in fits
    ]
    columns = ("sink", "taken", "skipped", "twice", "lost", "missing", "agrees", "guarantee")
    lost = "lost: dropped by the sink, though the table does not have these rows"
    legend = [lost] if any(fit.of("skipped-wrongly") for fit in fits) else []
    legend += (
        ["?: it may be so"] if any(cell.endswith("?") for row in rows for cell in row if isinstance(cell, str)) else []
    )
    found = [section("Tables that it writes to", columns, rows, "; ".join(legend))]
    told: SinkLine | None = details.get("sink_line")
    backs = [] if told is None else told.rollbacks
    if backs:
        found.append(
            section(
                "Tables to take back first",
                ("sink", "from", "to", "of", "undoes", "of others"),
                [
                    (
                        one.sink,
                        one.head or "-",
                        one.to.commit,
                        utc(one.to.time),
                        first_few([str(a) if b == a + 1 else f"{a} to {b - 1}" for a, b in one.to.undoes], 3) or "-",
                        len(one.to.undoes_others),
                    )
                    for one in backs
                ],
            )
        )
    return found


def _cell(fit: SinkFit, *fates: Fate) -> str:
    found = fit.of(*fates)
    doubt = "" if any(one.strength == "sure" for one in found) else "?"
    return f"{spans_words(found, 2)}{doubt}" if found else "-"


def sink_notes(details: Mapping[str, Any]) -> list[str]:
    """Say which line fits, how tables go back, and what of other writers that undoes."""
    told: SinkLine | None = details.get("sink_line")
    if told is None:
        return []
    return [*_line_notes(told), *(note for fit in details.get("sinks", ()) for note in _fit_notes(fit))]


def _line_notes(told: SinkLine) -> Iterable[str]:
    if told.agrees:
        yield f"By state {told.by_state} is the newest line, and the tables agree with it."
    if told.agrees is not False:
        return
    if told.fits is not None:
        yield f"By state {told.by_state} is the newest line; the newest that the tables agree with is {told.fits}."
    for one in told.rollbacks:
        others = one.to.undoes_others
        also = f" It undoes {many(len(others), 'commit')} of other writers: {first_few(others, 3)}." if others else ""
        said = [f"in {where}: {text}" for where, text in one.to.statements.items()]
        how = "; ".join(said) or "by the format's own tool"
        yield f"To restart from {told.by_state}, take {one.sink} back to {one.to.commit} first, {how}.{also}"


def _fit_notes(fit: SinkFit) -> Iterable[str]:
    if fit.pending:
        told = [f"{one.number} ({one.fate or 'cannot tell'})" for one in fit.pending]
        yield f"{fit.name}: the state has pending: {first_few(told, 5)}."
    if fit.others:
        seen = [f"{one.writer} ({many(one.commits, 'commit')})" for one in fit.others]
        yield f"{fit.name}: others wrote meanwhile: {first_few(seen, 3)}."
