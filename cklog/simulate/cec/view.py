"""The view of `cklog simulate cec --paper`: every number of the paper beside cklog's, those that disagree first."""

from __future__ import annotations

from cklog.model.verdict import Answer
from cklog.render.view import Section, View
from cklog.simulate.cec.figures import FigureRow, LoadRow, PaperFigures

_DISAGREES = 0.1
"""From here on a deviation is told in the headline."""


def paper_view(answer: Answer[PaperFigures]) -> View:
    """Show the numbers of Figures 6 to 9, then the load times, then what was fitted."""
    found = answer.result
    numbers = ("figure", "setting", "quantity", "paper", "cklog", "off by", "if the cost differs", "how", "the text")
    loads = ("figure", "setting", "records", "paper s", "fitted s", "off by", "advised s")
    sections = (
        Section("Numbers of the text", numbers, tuple(map(_figure_cells, found.rows))),
        Section("Load times", loads, tuple(map(_load_cells, found.loads)), "advised: what `advise extent` counts with"),
    )
    return View(_headline(found), sections, _notes(found))


def _headline(found: PaperFigures) -> str:
    compared = [row for row in found.rows if row.deviation is not None]
    predicted, by_cost = ([row for row in compared if row.how == how] for how in ("predicted", "by cost"))
    off = [row for row in predicted if abs(row.deviation or 0.0) >= _DISAGREES]
    return (
        f"Of {len(compared)} numbers of the paper's Figures 6 to 9, {len(predicted)} are predicted: nothing was fitted "
        f"to them; {len(off)} of these are off by {_DISAGREES:.0%} or more. {len(by_cost)} more depend on the cost of "
        "a check, which was fitted to the extent at Q=1x."
    )


def _figure_cells(row: FigureRow) -> tuple[str, ...]:
    unit = f" {row.unit}" if row.unit else ""
    paper = "-" if row.paper is None else f"{row.paper:,g}{unit}"
    width = "-" if row.low is None or row.high is None else f"{_number(row.low)} to {_number(row.high)}"
    off = "-" if row.deviation is None else f"{row.deviation:+.1%}"
    return row.figure, row.setting, row.quantity, paper, f"{_number(row.cklog)}{unit}", off, width, row.how, row.words


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:,.1f}"


def _load_cells(row: LoadRow) -> tuple[str, ...]:
    cells = (f"{row.records:,}", f"{row.paper:g}", f"{row.fitted:.2f}", f"{row.deviation:+.1%}", f"{row.advised:g}")
    return row.figure, row.setting, *cells


def _notes(found: PaperFigures) -> tuple[str, ...]:
    low, high = found.costs_us
    rounds = ", ".join(f"{ms:.1f} ms at CP={cp}" for cp, ms in found.round_ms.items())
    return (
        f"fitted to Figure 8: rounds take {found.round_factor:.2f} times their interval; each response alone asks for "
        f"{rounds}, of a CI of 10 ms",
        f"fitted to the load times: {found.fitted_a_us:.1f} µs for each record and {found.fitted_b_ps:.0f} ps for each "
        "pair of records",
        f"Figure 8 leaves the cost of a check open between {low:.2f} and {high:.1f} µs; cklog's numbers are for "
        f"{found.check_cost_us:g} µs, at which Q=1x has its extent",
        "3.5 and 2.5 s, 25 and 20 MB: Q=1x and U=125000 are the same run, as no target is met in either; so the "
        "paper's own numbers differ by 40% and 25%",
        f"runs of {found.tuples:,} tuples; averages after the first 40%, where the paper has one crash per run",
    )
