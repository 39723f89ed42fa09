"""How far a failure would have gone back at every moment: a headline, a curve, and a row per moment."""

from __future__ import annotations

from typing import Any

from cklog.model.verdict import Answer
from cklog.model.wording import utc
from cklog.protocols.failures_over_time import FailureAt, FailuresOverTime
from cklog.render.curve import figure
from cklog.render.view import Section, View

_SHOWN = 10
"""Moments in a table: of a longer history those that would have cost most."""


def failures_view(answer: Answer[FailuresOverTime]) -> View:
    """The worst moments in order of time; as rows, all of the answer's."""
    found = answer.result
    names = ("time", "stored", "rolled_past", "subtasks_back", "farthest", "distance", "lost_s", "at_initial")
    costly = sorted(found.moments, key=lambda m: (-m.rolled_past, m.time))[:_SHOWN]
    rows = tuple(_row(m) for m in sorted(costly, key=lambda m: m.time))
    rest = len(found.moments) - len(rows)
    note = f"and {rest} moments that would have cost no more; --json and --format csv have them" if rest else ""
    every = Section("Moments", names, tuple(_row(m) for m in found.moments))
    shown = Section("Failures", tuple(name.replace("_", " ") for name in names), rows, note)
    return View(_headline(found), (shown,), figures=_figures(found), data=every)


def _row(moment: FailureAt) -> tuple[Any, ...]:
    return (
        utc(moment.time),
        moment.stored,
        moment.rolled_past,
        moment.subtasks_back,
        moment.farthest or "-",
        moment.distance,
        "-" if moment.lost_ms is None else f"{moment.lost_ms / 1000:.3f}",
        moment.at_initial,
    )


def _headline(found: FailuresOverTime) -> str:
    worst = found.worst
    if worst is None or not worst.rolled_past:
        return f"At none of {found.times} moments would a failure of everything have rolled past a stored checkpoint."
    text = (
        f"The worst of {found.times} moments is {utc(worst.time)}: a failure of everything would have rolled past "
        f"{worst.rolled_past} of {worst.stored} stored checkpoints, {worst.farthest} furthest, by {worst.distance}."
    )
    if found.total_dominoes:
        plural = "s" if found.total_dominoes > 1 else ""
        text += f" At {found.total_dominoes} moment{plural} nothing but initial states would have been left."
    return text


def _figures(found: FailuresOverTime) -> tuple[str, ...]:
    """Checkpoints rolled past against the seconds since the first moment; none without a curve to see."""
    start = found.moments[0].time
    pairs = [(found.moments[max(i - 1, 0)], m) for i, m in enumerate(found.moments)]
    seconds = [(now.time - start) / 1000 for _, now in pairs for _ in range(2)]  # a step: nothing changes in between
    values = [m.rolled_past for pair in pairs for m in pair]
    if max(seconds) <= 0 or max(values) <= 0:
        return ()
    return (figure("Checkpoints that a failure would have rolled past", seconds, values, None),)
