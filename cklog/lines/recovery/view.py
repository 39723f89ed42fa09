"""The time of a recovery as a section of the answer about a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cklog.lines.recovery.time import seconds
from cklog.model.recovery_time import PartRecovery, RateUsed, RecoveryTime, Span
from cklog.model.wording import first_few, many
from cklog.render.view import Section, section

_SHOWN = 8
"""Parts that are shown, the slowest; all of them are in the JSON."""

_COLUMNS = ("of", "restore", "replay", "ready", "catch up", "in all")


TITLE = "Time to recover"


def recovery_sections(found: RecoveryTime | None, most: int = _SHOWN) -> list[Section]:
    """Make the section, where anything is known of the time, or somebody set a bound; else none.

    The whole comes first, then the slowest of several parts, `most` of them.
    """
    if found is None or not (found.bound_ms is not None or _tells(found)):
        return []
    alone = found.parts[0] if len(found.parts) == 1 else None
    rows: list[tuple[Any, ...]] = [
        (
            "the whole",
            _cell(found.restore_ms),
            "-" if alone is None else _cell(alone.replay_ms),
            _cell(found.ready_ms),
            "never" if found.catches_up is False else _cell(found.catch_up_ms),
            "never" if found.catches_up is False else _cell(found.total_ms),
        )
    ]
    parts = [] if alone else sorted(found.parts, key=lambda part: -_slow_end(part))
    rows += [_row(part) for part in parts[:most]]
    more = [f"and {many(len(parts) - most, 'other')}: --json has them all"] if len(parts) > most else []
    path = [f"critical path: {first_few(found.critical_path, 6)}"] if found.critical_path else []
    return [section(TITLE, _COLUMNS, rows, "; ".join([*more, *path]))]


def recovery_headline(found: RecoveryTime | None) -> str:
    """Say how long the whole takes in a sentence; a range where rates are guessed."""
    if found is None or found.catches_up is False:
        return "" if found is None else "Never: more arrives than is processed."
    if found.total_ms is not None:
        return f"From the restart on until nothing is left to catch up with: {_cell(found.total_ms)}."
    if found.ready_ms is not None:
        return (
            f"Until what was lost is processed again: {_cell(found.ready_ms)}; how long catching up takes is not known."
        )
    return f"At least {seconds(found.at_least_ms)}; the rest is not known."


def recovery_notes(found: RecoveryTime | None) -> Iterator[str]:
    """Say which rates the section rests on, and what is not known; nothing where there is no section."""
    if not recovery_sections(found) or found is None:
        return
    yield from map(_rate_note, found.rates)
    for reason in found.unknown:
        yield f"Time to recover, not known: {reason}."


def _tells(found: RecoveryTime) -> bool:
    """Whether any time but that of doing nothing is known."""
    spans = [found.restore_ms, found.ready_ms, found.total_ms]
    return any(span is not None and span != Span(0.0, 0.0) for span in spans)


def _row(part: PartRecovery) -> tuple[Any, ...]:
    times = (part.restore_ms, part.replay_ms, part.ready_ms, part.catch_up_ms)
    return (part.name, *map(_cell, times), "-")


def _slow_end(part: PartRecovery) -> float:
    """When a part is ready at the latest, as far as that is known; those without an end come first."""
    if part.ready_ms is not None:
        return float("inf") if part.ready_ms.high is None else part.ready_ms.high
    return 0.0 if part.restore_ms is None else part.restore_ms.high or part.restore_ms.low


def _rate_note(rate: RateUsed) -> str:
    unit = "MB/s" if rate.rate == "read" else "messages/s"
    if rate.high is None:
        numbers = f"{rate.low:,.6g} or more"
    else:
        numbers = f"{rate.low:,.6g}" + (f" to {rate.high:,.6g}" if rate.high != rate.low else "")
    return f"{rate.rate.capitalize()} rate, {numbers} {unit}: {rate.by}."


def _cell(span: Span | None) -> str:
    """A time as a word.

    >>> _cell(Span(53.0, 63.6)), _cell(Span(2000.0, None)), _cell(None)
    ('0.053 to 0.0636 s', '2 s or more', '-')
    """
    if span is None:
        return "-"
    if span.high is None:
        return f"{seconds(span.low)} or more"
    low, high = seconds(span.low), seconds(span.high)
    both = low.endswith(" s") and high.endswith(" s")
    return low if low == high else f"{low.removesuffix(' s') if both else low} to {high}"
