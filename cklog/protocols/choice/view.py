"""The view of `advise protocol`: what each protocol costs, what is behind that, and what would change the answer."""

from __future__ import annotations

from cklog.model.verdict import Answer
from cklog.model.wording import unit_for
from cklog.protocols.choice.model import ProtocolAdvice, ProtocolCost, TurningPoint
from cklog.render.view import Section, View, section

NAMES = {
    "coor": "coordinated",
    "unc": "uncoordinated",
    "cic-bcs": "BCS",
    "cic-hmnr": "HMNR",
}
"""What protocols are called; the names in JSON are those of `cklog simulate --protocol`."""

_FIELDS = (
    *("protocol", "interval_ms", "usable", "timers", "forced", "useless", "rounds", "round_ms", "worst_round_ms"),
    *("stalled_ms", "postponed", "carried_bytes", "logged_bytes"),
)


def advise_protocol_view(answer: Answer[ProtocolAdvice]) -> View:
    """Show the costs of each protocol, and what would change the answer; as rows, one for each protocol tried."""
    found = answer.result
    sections = [_costs(found), _run(found), _rounds(found), _turns(found), _intervals(found)]
    rows = tuple((*(getattr(cost, name) for name in _FIELDS), *_lost(cost)) for cost in found.costs)
    columns = (*_FIELDS, "lost_ms", "worst_lost_ms", "kept_bytes", "log_bytes", "s_lost_per_hour")
    return View(
        headline=_headline(found),
        sections=tuple(one for one in sections if one is not None),
        notes=_notes(found),
        data=Section("Costs", columns, rows),
    )


def _lost(cost: ProtocolCost) -> tuple[float | None, ...]:
    if cost.rollback is None or cost.lost is None:
        return None, None, None, None, None
    back = cost.rollback
    return back.lost_ms, back.worst_lost_ms, back.kept_bytes, back.log_bytes, cost.lost.total


def _headline(found: ProtocolAdvice) -> str:
    every = "" if found.interval_ms is None else f", every {found.interval_ms / 1000:g} s"
    best = next(c for c in found.costs if (c.protocol, c.interval_ms) == (found.recommended, found.interval_ms))
    lost = best.lost.total if best.lost else 0.0
    rough = "" if found.certainty == "exact" else ", as far as can be estimated"
    return f"Use {NAMES[found.recommended]} checkpoints{every}: {_number(lost)} s are lost in an hour{rough}."


def _name(cost: ProtocolCost) -> str:
    every = "" if cost.interval_ms is None else f" {cost.interval_ms / 1000:g} s"
    return f"{NAMES[cost.protocol]}{every}"


def _costs(found: ProtocolAdvice) -> Section | None:
    rows: list[tuple[str, ...]] = []
    for cost in found.costs:
        if cost.lost is None:
            rows.append((_name(cost), *["-"] * 5))
            continue
        lost = cost.lost
        parts = (lost.timers, lost.forced, lost.messages, lost.failures, lost.total)
        rows.append((_name(cost), *("unknown" if part is None else f"{part:,.4f}" for part in parts)))
    columns = ("protocol", "timers", "forced", "messages", "failures", "in all")
    note = f"a failure every {found.between_failures_h:g} h, {found.log_mb_s:g} MB logged in a second, " + (
        f"{found.checkpoint_ms:,.3g} ms a checkpoint" if found.checkpoint_ms is not None else "checkpoints for nothing"
    )
    return section("Seconds lost in an hour, of each subtask on average", columns, rows, note)


def _run(found: ProtocolAdvice) -> Section | None:
    rows: list[tuple[str, ...]] = []
    unit = unit_for(int(max((c.rollback.log_bytes or 0 for c in found.costs if c.rollback), default=0)))
    size = unit_for(int(max((c.rollback.kept_bytes or 0 for c in found.costs if c.rollback), default=0)))
    for cost in found.costs:
        if cost.rollback is None:
            rows.append((_name(cost), *["-"] * 7))
            continue
        back = cost.rollback
        rows.append(
            (
                _name(cost),
                f"{cost.timers + cost.forced:,}",
                f"{cost.forced:,}",
                f"{cost.useless:,}",
                f"{back.lost_ms / 1000:,.3f}",
                f"{back.worst_lost_ms / 1000:,.3f}",
                "-" if back.kept_bytes is None else size.number(back.kept_bytes),
                "-" if back.log_bytes is None else unit.number(back.log_bytes),
            )
        )
    columns = ("protocol", "taken", "forced", "useless", "back s", "worst s", f"kept {size.name}", f"log {unit.name}")
    note = (
        "back: how far the last subtask goes back, over all moments of a failure; kept, log: the most that checkpoints "
        "and logs which a failure may need take together"
    )
    return section("Along this run", columns, rows, note)


def _rounds(found: ProtocolAdvice) -> Section | None:
    rows = [
        (
            _name(cost),
            f"{cost.rounds:,}",
            f"{cost.round_ms:,.0f}",
            f"{cost.worst_round_ms or 0:,.0f}",
            f"{cost.stalled_ms or 0:,.1f}",
            f"{cost.postponed or 0:,.1f}",
        )
        for cost in found.costs
        if cost.rounds and cost.round_ms is not None
    ]
    columns = ("protocol", "rounds", "ms each", "worst ms", "stall ms", "held up")
    note = "stall: how long a subtask takes nothing from a channel while markers come, and messages that wait"
    return section("Rounds", columns, rows, note) if rows else None


def _turns(found: ProtocolAdvice) -> Section | None:
    rows = [(NAMES[turn.instead], _said(turn)) for turn in found.turns]
    return section("What would change the answer", ("instead", "if"), rows, "") if rows else None


def _said(turn: TurningPoint) -> str:
    more = turn.value > turn.now
    if turn.what == "between-failures-h":
        return f"failures came {'less' if more else 'more'} often than every {_number(turn.value)} h (now {turn.now:g})"
    return f"logs took {'over' if more else 'under'} {_number(turn.value)} MB in a second (now {turn.now:g})"


def _number(value: float) -> str:
    """Return a number with three digits, and none behind the point where it is large."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _intervals(found: ProtocolAdvice) -> Section | None:
    rows = [
        (NAMES[best.protocol], _number(best.checkpoint_s * 1000), _number(best.young_s), _number(best.daly_s))
        for best in found.best_intervals
    ]
    note = "for what a checkpoint takes, and a stall"
    columns = ("protocol", "takes ms", "Young s", "Daly s")
    return section("Best interval by theory", columns, rows, note) if rows else None


def _notes(found: ProtocolAdvice) -> tuple[str, ...]:
    unusable = [
        f"{NAMES[cost.protocol]} checkpoints cannot be advised: {cost.because}" for cost in found.costs if cost.because
    ]
    return tuple(dict.fromkeys(unusable))
