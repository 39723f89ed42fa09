"""What cklog foretells of a restart into a table, as how often each batch's records are to be there afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.builders.spark_restarts import newest

_ONCE, _NEVER, _TWICE, _ANY = frozenset({1}), frozenset({0}), frozenset({2}), frozenset({0, 1, 2})
_TIMES = {
    "skipped": _ONCE,
    "written": _ONCE,
    "twice": _TWICE,
    "skipped-wrongly": _NEVER,
    "missing": _NEVER,
}


def foretold(
    sinks: Sequence[Mapping[str, Any]], units: int, number_of: Callable[[int], int] = lambda unit: unit
) -> dict[int, frozenset[int]]:
    """How often the records of each unit may be in the table, by the outcomes of its number.

    What is sure leaves one answer; what may be, that or once; what is unknown, any. What nothing is said of is there
    once, unless nothing can be said of the table.

    Parameters
    ----------
    sinks : `sinks` of the answer of `recovery-line --sink`, of one table
    number_of : under which number a unit is offered to the table
    """
    outcomes = [outcome for sink in sinks for outcome in sink["outcomes"]]
    blind = any(word in ("not-stamped", "not-numbered") for sink in sinks for word in sink["why"])
    return {unit: _told(outcomes, number_of(unit)) or (_ANY if blind else _ONCE) for unit in range(units)}


def _told(outcomes: Sequence[Mapping[str, Any]], number: int) -> frozenset[int]:
    """Every number of times that outcomes leave possible."""
    mine = [one for one in outcomes if one["from"] <= number and (one["to"] is None or number < one["to"])]
    allowed: frozenset[int] = frozenset()
    for outcome in mine:
        times = _TIMES[outcome["fate"]]
        allowed |= {"sure": times, "may": times | _ONCE, "unknown": _ANY}[outcome["strength"]]
    return allowed


def offered_under(checkpoint: Path, reads_files: bool) -> Callable[[int], int]:
    """Under which batch the restart of a query offers each of its units.

    A unit is what one batch takes, and its batch is its number. Where the source is files, the first batch that is
    planned anew takes all that the source's log has, and one file more.
    """
    fresh = newest(checkpoint / "offsets") + 1
    logged = newest(checkpoint / "sources/0") if reads_files else -1
    beyond = max(logged + 1 - fresh, 0) if reads_files else 0
    return lambda unit: unit if unit < fresh else max(unit - beyond, fresh)
