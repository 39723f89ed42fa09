"""Files of a file sink that are younger than a snapshot: a later checkpoint has committed them, and readers see them.

The writer of a bucket numbers its files: `part-UUID-7` comes after `part-UUID-6`. A file whose number is higher than
those that the snapshot has pending, or in progress, was begun after it. So the snapshot is not the newest that was
complete, and a restart from it writes the rows of that file again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from cklog.inputs.offers import OffersSnapshots
from cklog.model.findings import Finding, Where
from cklog.model.wording import many
from cklog.runs.snapshots.findings import name_of
from cklog.runs.snapshots.verdicts import JudgedSnapshot
from cklog.runs.snapshots.waiting import FILES, named_by_sink

if TYPE_CHECKING:  # a line needs nothing of it
    from cklog.impact.sinks.model import SinkTransaction

_NUMBERED = re.compile(r"(.*-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}-)([0-9]{1,18})(?:\D.*)?")


def shown_since(parser: OffersSnapshots, folder: str, table: pa.Table) -> dict[str, list[str]]:
    """Return the files that a checkpoint after the snapshot in a folder has committed, sorted, by sink."""
    last: dict[tuple[str, str, str], int] = {}
    for sink, target in named_by_sink(table, FILES):
        above, _, name = target.rpartition("/")
        numbered = _NUMBERED.fullmatch(name)
        if numbered is not None:
            key = (sink, above, numbered[1])
            last[key] = max(last.get(key, -1), int(numbered[2]))
    listed = {above: parser.beside(folder, f"{above}/") for _, above, _ in last}
    found: dict[str, list[str]] = {}
    for (sink, above, writer), number in last.items():
        names = [name for name in listed[above] if (at := _NUMBERED.fullmatch(name)) and at[1] == writer]
        later = [f"{above}/{name}" for name in names if int(_NUMBERED.sub(r"\2", name)) > number]
        if later:
            found.setdefault(sink, []).extend(place.path for place in parser.places(folder, later))
    return {sink: sorted(files) for sink, files in sorted(found.items())}


def shown_findings(judged: JudgedSnapshot, shown: Mapping[str, Sequence[str]]) -> list[Finding]:
    """Say for each sink what it shows that a restart from a snapshot writes again."""
    return [_shown(judged, sink, files) for sink, files in shown.items()]


def _shown(judged: JudgedSnapshot, sink: str, files: Sequence[str]) -> Finding:
    message = (
        f"{name_of(judged)}: sink {sink} has {many(len(files), 'file')} that a later checkpoint has committed (first "
        f"{files[0]}). A restart from {name_of(judged)} writes the same rows again. Look for the later checkpoint, "
        "or move the files out of the sink's folder before the restart"
    )
    return Finding("files-committed-since", "error", sink, message, tuple(map(Where, files)), effect="data-duplicated")


def add_shown(told: dict[str, list[SinkTransaction]], shown: Mapping[str, Sequence[str]]) -> None:
    """Add what each sink shows, to sinks of which no newer snapshot tells what it was to commit."""
    from cklog.impact.sinks.model import SinkTransaction

    for sink, files in shown.items():
        rows = told.setdefault(sink, [])
        if not any(row.fate == "visible" for row in rows):
            rows.append(SinkTransaction(sink, many(len(files), "file"), None, None, "visible"))
