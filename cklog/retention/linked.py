"""What links below PATH lead to: it has a second name, by which a checkpoint that stays may need it."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping
from dataclasses import replace

from cklog.local_files import is_local, os_name, text_name
from cklog.model.verdict import Draft
from cklog.retention.plan import RetentionPlan, RetentionRow, with_rows
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
    return draft if rows == plan.rows else replace(draft, result=with_rows(plan, rows, {_RULE: _MEANING}))


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
