"""A retention plan as sentences and rows, as paths, and as a script to review."""

from __future__ import annotations

import posixpath
import shlex
from collections import Counter
from typing import Any

from cklog.errors import UsageError
from cklog.local_files import os_name
from cklog.model.verdict import Answer
from cklog.model.wording import many
from cklog.render.text import visible
from cklog.render.view import MOST_ROWS, Section, View, cut_section, section
from cklog.retention.plan import RetentionPlan, RetentionRow

_COLUMNS = ("path", "bytes", "fate", "rule", "needed by", "checkpoint")


def retention_view(answer: Answer[RetentionPlan]) -> View:
    """Show what may go and what stays, folder by folder and row by row, and why."""
    plan = answer.result
    shown = [row for row in plan.rows if not _is_checksum(row.path)]
    goes = [row for row in shown if row.fate == "OBSOLETE"]
    stays = [row for row in shown if row.fate != "OBSOLETE"] if plan.kind != "snapshots" else []
    sections = [
        _folder_section(plan),
        _rows_section("What may go", goes),
        _rows_section("What stays", stays),
        _trimming_section(plan),
        _rule_section(plan),
    ]
    return View(_headline(plan), tuple(s for s in sections if s.rows), _notes(plan), data=lambda: _data(plan))


def _data(plan: RetentionPlan) -> Section:
    return section("All", _COLUMNS, [_plan_cells(row) for row in plan.rows])


def _rows_section(title: str, rows: list[RetentionRow]) -> Section:
    """The first rows; where there are more, which may be very many, CSV has them."""
    more = f"and {len(rows) - MOST_ROWS:,} more: --format csv lists them all" if len(rows) > MOST_ROWS else ""
    return section(title, _COLUMNS, [_plan_cells(row) for row in rows[:MOST_ROWS]], more)


def _is_checksum(path: str) -> bool:
    """Whether it is a checksum file, which goes with the file that it is of."""
    return path.endswith(".crc")


def _rule_section(plan: RetentionPlan) -> Section:
    """The rules in use with how many rows and bytes follow each; those first by which rows are needed most."""
    fates = {row.rule: row.fate for row in reversed(plan.rows)}
    count = Counter(row.rule for row in plan.rows)
    size: Counter[str] = Counter()
    for row in plan.rows:
        size[row.rule] += row.bytes or 0
    order = {"VALID": 0, "KEEP": 1, "OBSOLETE": 2}
    rules = sorted(plan.rules, key=lambda rule: (order[fates[rule]], rule))
    rows = [(fates[rule], rule, count[rule], size[rule], plan.rules[rule]) for rule in rules]
    return section("Why", ("fate", "rule", plan.unit, "bytes", "meaning"), rows)


def _plan_cells(row: RetentionRow) -> tuple[Any, ...]:
    size = "-" if row.bytes is None else row.bytes
    checkpoint = "-" if row.checkpoint in (None, row.path) else row.checkpoint
    return row.path, size, row.fate, row.rule, row.needed_by or "-", checkpoint


def _folder_section(plan: RetentionPlan) -> Section:
    numbers = ("folder", "files", "bytes", "obsolete_files", "obsolete_bytes")
    folders = [(*(f[name] for name in numbers), ", ".join(f["needed_by"]) or "-") for f in plan.folders]
    columns = ("folder", "files", "bytes", "obsolete", "obsolete bytes", "needed by")
    return section("By folder", columns, folders)


def _trimming_section(plan: RetentionPlan) -> Section:
    def told(value: object) -> object:
        return "-" if value is None or value == "" else value

    if plan.kind == "queues":
        names = ("log", "of", "not needed below", "bytes", "first that stays", "needed by")
        queues = [(t.log, t.channel, *map(told, (t.below, t.bytes, t.place, t.checkpoint))) for t in plan.trimming]
        return cut_section("Log trimming", names, queues, elsewhere=_JSON_HAS_ALL)
    rows = [(t.channel, told(t.below), t.checkpoint) for t in plan.trimming]
    return cut_section("Log trimming", ("channel", "not needed below", "oldest target"), rows, elsewhere=_JSON_HAS_ALL)


_JSON_HAS_ALL = ": --json lists them all"


def _queue_headline(plan: RetentionPlan) -> str:
    queues = [trim for trim in plan.trimming if trim.log == "queue"]
    size = sum(trim.bytes or 0 for trim in queues)
    whole = plan.totals.get("OBSOLETE", {"files": 0})["files"]
    held = sum(trim.place is None for trim in queues)
    kept = f"; nothing of {held} of them may go" if held else ""
    return (
        f"{size:,} bytes of {many(len(queues), 'output queue')} lie before every record that a crash from now on can "
        f"need{kept}. {whole} of {many(len(plan.rows), 'file')} may go as a whole; nothing was deleted."
    )


def _headline(plan: RetentionPlan) -> str:
    if plan.kind == "queues":
        return _queue_headline(plan)
    count = sum(total[plan.unit] for total in plan.totals.values())
    free = plan.totals.get("OBSOLETE", {plan.unit: 0, "bytes": 0})
    if not count:
        return f"There are no {plan.unit} here."
    if not free[plan.unit]:
        return f"All of {count} {plan.unit} must stay." if count > 1 else f"The one {plan.unit[:-1]} here must stay."
    size = f" ({free['bytes']} bytes)" if free["bytes"] else ""
    return f"{free[plan.unit]} of {count} {plan.unit} may go{size}; nothing was deleted."


_DOUBTS = {
    "damaged": "Records are damaged or missing: the true line may be newer than shown, so all from that line on stays.",
    "unproven": "What the line rests on cannot be read or proven, so everything stays.",
    "no-line": "There is nothing here that a restart could go back to for sure: everything stays.",
}


_HELD = ("broken", "torn", "unreadable")
"""Rules of what stays although, or because, something cannot be restored."""


def _notes(plan: RetentionPlan) -> tuple[str, ...]:
    notes = [_DOUBTS[plan.doubt]] if plan.doubt else []
    if plan.kind == "snapshots":
        notes.append(
            "Jobs whose snapshots lie outside PATH are not seen: a plan is right for PATH as the root of all of them."
        )
        if not plan.jobs_stopped:
            notes.append(
                "What a checkpoint in progress may need, and what tasks may own, stays: --jobs-stopped lets it go."
            )
    if any(row.rule in _HELD and row.fate == "KEEP" for row in plan.rows):
        notes.append(
            "What cannot be restored stays, with what it may need, as it may be mended: --drop-broken lets it go."
        )
    if plan.kind == "checkpoints":
        notes.append("It is state that may go. Leave the records: they tell what was sent and received.")
        if plan.trimming and not plan.doubt:
            notes.append("Trimming counts on channels that deliver in order, unless events/ tells otherwise.")
    if plan.kind == "queues":
        notes.append("Who reads a queue outside of this run is not seen: it must have taken what is cut off, too.")
        notes.append("A cut queue holds each window's state once: if a record after the cut is lost, so is its window.")
        notes.append("Checkpoints that lie beside queues are not judged here: they stay.")
    if any(_is_checksum(row.path) for row in plan.rows):
        notes.append("Checksum files (.crc) are counted but not shown: each goes, or stays, with what it is of.")
    if plan.kind == "batches":
        notes.append("Logs of sources and of a file sink, and what is the query's as a whole, are never proposed.")
    return tuple(notes)


def as_paths(answer: Answer[RetentionPlan], null: bool = False, run: str = "") -> str:
    """List what may go, one path below PATH a line, or each ended by a null byte; without one, the checkpoint's name.

    `run` is the folder below PATH in which the plan's own paths begin.

    Raises
    ------
    UsageError : a name has a null byte in it, or a line end, and lines are asked for
    """
    gone = [_below_path(row, run) for row in answer.result.rows if row.fate == "OBSOLETE"]
    for path in gone:
        if not null and ("\n" in path or "\r" in path):
            raise UsageError(f"--format paths: a name has a line end in it: {visible(path)}", "-0 lists it")
        if "\0" in path:  # of no file: a checkpoint's name, of which the rest would be taken for another path
            raise UsageError(f"--format paths: a name has a null byte in it: {visible(path)}", "--json tells of it")
    end = "\0" if null else "\n"
    return "".join(f"{'./' if path.startswith('-') else ''}{os_name(path)}{end}" for path in gone)


def as_script(answer: Answer[RetentionPlan], run: str = "") -> str:
    """Write a script for `sh`, to be read and then run by a person in PATH: one `rm` a line, each with its reason.

    What is no file below PATH is named in a comment; `run` as of `as_paths`.
    """
    plan = answer.result
    lines = [
        "#!/bin/sh",
        f"# {_headline(plan)}",
        "# Read it, then run it in the folder that was PATH. It stops at the first file that it cannot delete.",
        "set -eu",
    ]
    return "\n".join(lines + [_script_line(row, run) for row in plan.rows if row.fate == "OBSOLETE"]) + "\n"


def _below_path(row: RetentionRow, run: str) -> str:
    """A row's path from PATH on; the name of a checkpoint of which there is no file as it is."""
    return posixpath.join(run, row.path) if row.file else row.path


def _script_line(row: RetentionRow, run: str) -> str:
    size = "" if row.bytes is None else f"{row.bytes} bytes, "
    if not row.file:
        return f"# {visible(row.path)}: {size}{row.rule}; no file of it is known below PATH"
    return f"rm -- {shlex.quote('./' + os_name(_below_path(row, run)))}  # {size}{row.rule}"
