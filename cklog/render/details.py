"""Details of an answer as sections: every list of rows in them, a column for each plain member."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cklog.model.wording import utc
from cklog.render.view import Section, section

_TITLES: Mapping[str, str] = {
    "snapshots": "Snapshots",
    "needs": "Needed outside the job's own folder",
    "in_flight": "In flight, and restored with the checkpoint",
    "in_flight_channels": "In flight by channel",
    "transactions": "Open transactions of sinks",
    "against": "Against the other snapshot, in records",
    "groups": "Groups go on at",
    "committed_difference": "What groups have committed beside the checkpoint",
    "ranges": "To read again",
    "partitions": "Partitions",
    "cuts": "What a restarting broker cuts",
    "stores": "Stores",
}
_NOT_FOR = {"recovery-line": ("in_flight_channels", "ranges"), "replay": ("snapshots", "needs", "in_flight")}
"""What one of the two commands that tell of a line leaves to the other."""

_MOST = 40
"""Rows of a section that are shown; all of them are in the JSON."""


def detail_sections(details: Mapping[str, Any], command: str) -> list[Section]:
    """A section for every list of rows that has a title here, in the order of the titles, but those of `_NOT_FOR`."""
    return [
        rows_section(title, details[name], list | tuple | dict)
        for name, title in _TITLES.items()
        if name not in _NOT_FOR.get(command, ())
        and isinstance(details.get(name), list)
        and details[name]
        and isinstance(details[name][0], dict)
    ]


def rows_section(title: str, rows: list[dict[str, Any]], left_out: Any = list | tuple) -> Section:
    """Rows of one shape as a section; members of the types `left_out` stay in the JSON."""
    columns = tuple(name for name in rows[0] if not any(isinstance(row[name], left_out) for row in rows))
    cells = [tuple(cell(name, row[name]) for name in columns) for row in rows[:_MOST]]
    note = f"and {len(rows) - _MOST} more rows: --json has them all" if len(rows) > _MOST else ""
    return section(title, columns, cells, note)


def cell(name: str, value: Any) -> Any:
    """A value as a table shows it."""
    if value is None:
        return "-"
    if name.endswith("time"):
        return utc(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, int | str) else json.dumps(value)
