"""The view of `advise extent`: sentences, and rows that fit 80 columns."""

from __future__ import annotations

from cklog.advise.extent.answer import Comparison, ExtentAdvice, Outcome, worst
from cklog.model.verdict import Answer
from cklog.policies.check_records import CHECK_COST_US
from cklog.render.view import Section, View

_MEGABYTE = 1_000_000


def advise_extent_view(answer: Answer[ExtentAdvice]) -> View:
    """Show the setting to take, or the trade-off; every setting; the cost-benefit policy against Q and U."""
    found = answer.result
    rows = tuple(_setting_row(found, outcome) for outcome in found.settings)
    columns = ("setting", "checks/s", "extent", "MB", "% time", "mean s", "worst s", "mark")
    note = f"means over {found.seconds:,.1f} s of the log, the worst recovery too; " + (
        "* least time for its worst recovery" if found.max_recovery_s is None else "<- the cheapest that is fast enough"
    )
    sections = [Section("Settings", columns, rows, note)]
    if found.comparisons:
        sections.append(_comparison_section(found))
    return View(_headline(found), tuple(sections), tuple(_notes(found)))


def _headline(found: ExtentAdvice) -> str:
    name = f"{found.operator}/{found.subtask}"
    by_name = {o.setting.name: o for o in found.settings}
    if found.chosen is not None:
        chosen = by_name[found.chosen]
        return (
            f"{name}: {_setting_name(chosen)} recovers within {found.max_recovery_s:g} s (at worst "
            f"{chosen.recovery_max:.1f} s) and is the cheapest: {_percent(chosen)} % of the time for "
            f"{chosen.checks_per_second:,.0f} checks/s."
        )
    if found.max_recovery_s is not None:
        return f"{name}: no setting of the grid keeps every recovery within {found.max_recovery_s:g} s."
    best = [o for o in found.settings if o.pareto]
    first = min(best, key=lambda o: (o.checkpointing_share, o.setting.kind != "none", o.setting.name))
    last = min(best, key=lambda o: (worst(o), o.checkpointing_share, o.setting.kind != "none", o.setting.name))
    if first.setting.name == last.setting.name:
        return f"{name}: {_setting_name(first)} is the cheapest and recovers fastest."
    return f"{name}: from {_priced(first)} to {_priced(last)}; say --max-recovery-time to choose."


def _priced(outcome: Outcome) -> str:
    most = f"up to {outcome.extent.max:,} records" if outcome.recovery_max is None else f"{outcome.recovery_max:.1f} s"
    return f"{_setting_name(outcome)} ({_percent(outcome)} % of the time, {most} to recover)"


def _setting_name(outcome: Outcome) -> str:
    setting = outcome.setting
    in_full = f" ({setting.q:,.0f} records)" if setting.q is not None and "x" in setting.name else ""
    return f"{setting.name}{in_full}"


def _setting_row(found: ExtentAdvice, outcome: Outcome) -> tuple[str, ...]:
    replay = "-" if outcome.replay_bytes is None else f"{outcome.replay_bytes.mean / _MEGABYTE:,.1f}"
    return (
        outcome.setting.name,
        f"{outcome.checks_per_second:,.0f}",
        f"{outcome.extent.mean:,.0f}",
        replay,
        _percent(outcome),
        "-" if outcome.recovery_mean is None else f"{outcome.recovery_mean:.1f}",
        "-" if outcome.recovery_max is None else f"{outcome.recovery_max:.1f}",
        _mark(found, outcome),
    )


def _mark(found: ExtentAdvice, outcome: Outcome) -> str:
    if outcome.setting.name == found.chosen:
        return "<-"
    return "*" if outcome.pareto and not found.max_recovery_s else ""


def _percent(outcome: Outcome) -> str:
    return f"{100 * outcome.checkpointing_share:.2f}"


def _comparison_section(found: ExtentAdvice) -> Section:
    rows = tuple(
        (c.setting, f"{c.cost:.2f}", c.other, f"{c.other_cost:.2f}", "wins" if c.wins else "no better", _dominance(c))
        for c in found.comparisons
    )
    columns = ("policy", "s/h", "best of Q, U", "s/h", "", "dominates")
    note = "s/h: time for checks in an hour + crashes in an hour * mean recovery time"
    return Section("Cost-benefit against Q and U", columns, rows, note)


def _dominance(comparison: Comparison) -> str:
    if comparison.dominated_by:
        return f"is dominated by {comparison.dominated_by[0]}"
    return f"{len(comparison.dominates)} of them" if comparison.dominates else "none"


def _notes(found: ExtentAdvice) -> list[str]:
    load, replay, size = found.load_rate, found.replay_rate, found.tuple_bytes
    notes = [benefit_sentence(found.comparisons)] if found.comparisons else []
    notes.append(f"loading: {_load_words(found)} ({load.source})")
    speed = "unknown" if replay.value is None else f"{replay.value:,.0f} tuples/s"
    notes.append(f"replay: {speed} ({replay.source}), {size.value:,.0f} bytes a tuple ({size.source})")
    implied = " (implied by the paper's Figure 6, which states none)" if found.check_cost_us == CHECK_COST_US else ""
    notes.append(f"checks: {found.check_cost_us:g} µs each{implied}")
    warm = "nothing" if found.warm_up_ms is None else f"the first {found.warm_up_ms / 1000:,.1f} s"
    notes.append(f"{found.open_windows:,.0f} windows are open on average; {warm} is left out as warm-up")
    return [*notes, *found.notes]


def _load_words(found: ExtentAdvice) -> str:
    if found.load_rate.value is not None:
        return f"{found.load_rate.value:,.0f} records/s"
    records, seconds = found.load_points[0]
    return f"by the size of the extent, {records / seconds:,.0f} records/s up to {records:,.0f}, fewer beyond"


def benefit_sentence(comparisons: tuple[Comparison, ...]) -> str:
    """Say where the cost-benefit policy wins by expected cost, and where it loses."""
    wins = [f"{c.mtbf_h:g} h" for c in comparisons if c.wins]
    rest = [f"{c.mtbf_h:g} h (to {c.other})" for c in comparisons if not c.wins]
    if not rest:
        return f"by expected cost the cost-benefit policy wins at every MTBF tried: {', '.join(wins)}"
    if not wins:
        return f"by expected cost the cost-benefit policy wins nowhere; it loses at {', '.join(rest)}"
    return (
        f"by expected cost the cost-benefit policy wins at an MTBF of {', '.join(wins)} and loses at {', '.join(rest)}"
    )
