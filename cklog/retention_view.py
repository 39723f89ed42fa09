"""A retention plan as sentences and rows, as paths, and as a script to review."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from cklog.model import Answer
from cklog.retention import RetentionPlan
from cklog.view import Section, View, section


def retention_view(answer: Answer) -> View:
    plan: RetentionPlan = answer.result
    rows = [(r.path, r.bytes, r.fate, r.rule, r.needed_by or "-") for r in plan.rows]
    data = Section("Files", ("path", "bytes", "fate", "rule", "needed by"), tuple(rows))
    obsolete = [row for row in rows if row[2] == "OBSOLETE"]
    folders = [
        (
            f["folder"],
            f["files"],
            f["bytes"],
            f["obsolete_files"],
            f["obsolete_bytes"],
            ", ".join(f["needed_by"]) or "-",
        )
        for f in plan.folders
    ]
    columns = ("folder", "files", "bytes", "obsolete", "obsolete bytes", "needed by")
    sections = [
        section("By folder", columns, folders),
        section(
            "What nothing needs",
            ("path", "bytes", "fate", "rule"),
            [row[:4] for row in obsolete[:_MOST]],
            _more(obsolete),
        ),
        section("Why", ("rule", "meaning"), list(plan.rules.items())),
    ]
    return View(_headline(plan), tuple(s for s in sections if s.rows), _notes(plan), data=data)


_MOST = 40


def _more(rows: Sequence[object]) -> str:
    return f"and {len(rows) - _MOST} more: --format paths lists them all" if len(rows) > _MOST else ""


def _headline(plan: RetentionPlan) -> str:
    files = sum(total["files"] for total in plan.totals.values())
    free = plan.totals.get("OBSOLETE", {"files": 0, "bytes": 0})
    if not free["files"]:
        return f"All of {files} files must stay."
    return f"{free['files']} of {files} files may go ({free['bytes']} bytes); nothing was deleted."


def _notes(plan: RetentionPlan) -> tuple[str, ...]:
    notes = ["Jobs whose snapshots lie outside PATH are not seen: a plan is right for PATH as the root of all of them."]
    if not plan.jobs_stopped:
        notes.append(
            "What a checkpoint in progress may need, and what tasks may own, stays: --jobs-stopped lets it go."
        )
    return tuple(notes)


def as_paths(answer: Answer) -> str:
    """What may go, one path below PATH a line."""
    plan: RetentionPlan = answer.result
    return "".join(f"{row.path}\n" for row in plan.rows if row.fate == "OBSOLETE")


def as_script(answer: Answer) -> str:
    """A script for `sh`, to be read and then run by a person in PATH: one `rm` a line, each with its reason."""
    plan: RetentionPlan = answer.result
    lines = [
        "#!/bin/sh",
        f"# {_headline(plan)}",
        "# Read it, then run it in the folder that was PATH. It stops at the first file that it cannot delete.",
        "set -eu",
    ]
    for row in plan.rows:
        if row.fate == "OBSOLETE":
            lines.append(f"rm -- {shlex.quote('./' + row.path)}  # {row.bytes} bytes, {row.rule}")
    return "\n".join(lines) + "\n"
