"""What links below PATH lead to: it has a second name, by which a checkpoint that stays may need it."""

from __future__ import annotations

import os
import posixpath
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cklog.local_files import is_local, os_name, text_name
from cklog.model.verdict import Draft
from cklog.retention.plan import RetentionPlan, RetentionRow, totals_of
from cklog.storage import Root

_RULE = "linked"
_MEANING = "a link below PATH that stays leads to it, and what needs it by that name was not judged"


def with_linked(draft: Draft[RetentionPlan], root: Root) -> Draft[RetentionPlan]:
    """Return a plan in which nothing may go that a link which stays leads to; `root` is where its rows begin.

    A link that may go is deleted itself, and not what it leads to. One to a folder that it lies in holds nothing.
    """
    plan = draft.result
    base = root.uri("") if is_local(root.path) else ""
    links = {**root.trouble.names, **root.trouble.aliases} if base else {}
    if not links or not any(row.fate == "OBSOLETE" and row.file for row in plan.rows):
        return draft
    going = {posixpath.join(base, row.path) for row in plan.rows if row.fate == "OBSOLETE"}
    staying = {to: link for link, to in sorted(links.items(), reverse=True) if link not in going}
    held = {to: link for to, link in staying.items() if not _real(link, parent=True).startswith(f"{to}/")}
    rows = tuple(_held_row(row, base, held, root) for row in plan.rows)
    if rows == plan.rows:
        return draft
    kept = [row for row, before in zip(rows, plan.rows, strict=True) if row.fate != before.fate]
    rules = {rule: meaning for rule, meaning in plan.rules.items() if any(row.rule == rule for row in rows)}
    made = replace(
        plan,
        rows=rows,
        totals=totals_of(rows, plan.unit),
        folders=_folders_with(plan.folders, kept),
        rules=dict(sorted({**rules, _RULE: _MEANING}.items())),
    )
    return replace(draft, result=made)


def _held_row(row: RetentionRow, base: str, held: Mapping[str, str], root: Root) -> RetentionRow:
    """A row of what may go, that stays if a link leads to it, or to a folder that it lies in."""
    if row.fate != "OBSOLETE" or not row.file:
        return row
    place = _real(posixpath.join(base, row.path))
    while place not in held:
        above = posixpath.dirname(place)
        if above == place:
            return row
        place = above
    return replace(row, fate="KEEP", rule=_RULE, needed_by=root.inside(held[place]))


def _real(path: str, parent: bool = False) -> str:
    """A path without links in it; of a link itself (`parent`) only in what it lies in."""
    if parent:
        return posixpath.join(_real(posixpath.dirname(path)), posixpath.basename(path))
    return text_name(os.path.realpath(os_name(path)))


def _folders_with(folders: Sequence[dict[str, Any]], kept: Sequence[RetentionRow]) -> tuple[dict[str, Any], ...]:
    """The sums of folders, where rows stay that were to go."""
    names = sorted((folder["folder"] for folder in folders), key=lambda name: "" if name == "." else name, reverse=True)
    files: Counter[str] = Counter()
    size: Counter[str] = Counter()
    for row in kept:
        mine = next((name for name in names if name == "." or row.path.startswith(f"{name}/")), None)
        if mine is not None:
            files[mine] += 1
            size[mine] += row.bytes or 0
    return tuple(
        {
            **folder,
            "obsolete_files": folder["obsolete_files"] - files[folder["folder"]],
            "obsolete_bytes": folder["obsolete_bytes"] - size[folder["folder"]],
        }
        for folder in folders
    )
