"""Every run below some folders: found, asked, chosen and sorted."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Sequence
from dataclasses import replace

from cklog.errors import CklogError, NotFound, UsageError
from cklog.inputs.trouble import link_findings
from cklog.local_files import is_local, os_name, without_file_scheme
from cklog.model.actions import ACTIONS, worst
from cklog.model.findings import Finding, InputUsed
from cklog.model.verdict import VERDICTS, Answer, Draft, conclude
from cklog.storage import Root
from cklog.sweep.asking import problem_row, told_problem
from cklog.sweep.finding import Place, places_below
from cklog.sweep.model import COLUMNS, ScanAnswer, ScannedRun, ScanQuestion, counted
from cklog.sweep.workers import Job

ReadRuns = Callable[[Sequence[Job]], Sequence[ScannedRun]]
"""Reads every run, and returns their rows in any order."""


def scan_answer(
    roots: Sequence[Root], asked: ScanQuestion, read_runs: ReadRuns, source: str = ""
) -> Answer[ScanAnswer]:
    """Say of every run below some folders what to do.

    Raises
    ------
    UsageError : there is no such column to sort by, or the time limit is no length of time
    NotFound : no folder is there, or there is no run in any
    """
    if asked.sort not in COLUMNS:
        raise UsageError(f"--sort {asked.sort}: not one of {', '.join(COLUMNS)}")
    if not asked.seconds >= 0:
        raise UsageError(f"--time-limit {asked.seconds:g}: seconds, or 0 for none")
    rows: list[ScannedRun] = []
    jobs: dict[tuple[str, str], Job] = {}
    inputs, findings = [], []
    errors: list[CklogError] = []
    for root in sorted(roots, key=lambda one: one.path):
        try:
            root.require()
            places = places_below(root, source)
        except CklogError as error:
            errors.append(error)
            rows.append(problem_row(_shown(root, ""), "", told_problem(error, root)))
            continue
        files = root.tree().files
        inputs.append(InputUsed(root.path, "folder", sum(entry.size for entry in files), None))
        findings += _links_outside(root, places)
        for place in places:
            shown = _shown(root, place.folder)
            if place.problem is not None:
                rows.append(problem_row(shown, place.format, place.problem))
            else:
                key = _identity(root, place.folder, alone=len(roots) == 1), place.format
                jobs.setdefault(key, Job(root, place.folder, place.format, shown))
    if len(errors) == len(roots):
        raise errors[0]
    if not jobs and not rows:
        raise NotFound(f"{', '.join(root.path for root in roots)}: no run is below it that cklog knows")
    rows += read_runs([*jobs.values()])
    return _concluded(rows, [root.path for root in roots], asked, findings, inputs)


def _concluded(
    rows: Sequence[ScannedRun],
    roots: Sequence[str],
    asked: ScanQuestion,
    findings: Sequence[Finding],
    inputs: Sequence[InputUsed],
) -> Answer[ScanAnswer]:
    """Choose and sort rows; a run that tells no time is never left out, for nothing says that it is old."""
    since = asked.since
    shown = [row for row in rows if since is None or row.last_time is None or row.last_time >= since]
    shown.sort(key=_total_order)
    shown.sort(key=_KEYS[asked.sort])
    runs = tuple(shown)
    result = ScanAnswer(
        action=worst(row.action for row in runs) if runs else "restart",
        roots=tuple(sorted(dict.fromkeys(roots))),
        since=since,
        sort=asked.sort,
        found=len(rows),
        untimed=sum(row.last_time is None for row in runs),
        actions=counted(runs),
        runs=runs,
    )
    answer = conclude(Draft("scan", result, findings, inputs))
    code = max([answer.exit_code, *(5 if row.action == "undetermined" else row.exit for row in runs)])
    if code:
        return replace(answer, verdict=VERDICTS[code], exit_code=code)
    warned = any(row.warnings for row in runs)
    return replace(answer, verdict="findings") if warned else answer


def _total_order(row: ScannedRun) -> tuple[str, ...]:
    return row.path, row.format, row.run, row.chosen or "", row.newest or "", row.message or ""


_KEYS: dict[str, Callable[[ScannedRun], tuple[object, ...]]] = {
    "path": lambda row: (row.path,),
    "format": lambda row: (row.format,),
    "action": lambda row: (-ACTIONS.index(row.action),),
    "newest": lambda row: (row.chosen_time is None, row.chosen_time or 0),
    "age": lambda row: (row.age_ms is None, -(row.age_ms or 0)),
    "size": lambda row: (-row.bytes,),
    "findings": lambda row: (-row.errors, -row.warnings, -row.infos),
}
"""What needs a look first: the gravest action, the oldest line, the greatest age and size, the most findings."""


def _shown(root: Root, folder: str) -> str:
    """What a folder is called: as `cklog recovery-line` takes it from where this is asked."""
    path = root.below(folder).path
    return path if "://" in path else posixpath.normpath(path)


def _identity(root: Root, folder: str, alone: bool) -> str:
    """What tells a folder from any other, by whatever names it is reached; below one root each has but one."""
    if alone:
        return folder
    path = root.below(folder).path
    return os.path.realpath(os_name(without_file_scheme(path))) if is_local(path) else path.rstrip("/")


def _links_outside(root: Root, places: Sequence[Place]) -> list[Finding]:
    """Links that were not followed and lie in no run: runs may be there."""
    folders = {place.folder for place in places}
    outside = {}
    for path, to in root.trouble.links.items():
        inner = root.inside(path) or ""
        parts = inner.split("/")
        if "" not in folders and not any("/".join(parts[:i]) in folders for i in range(1, len(parts))):
            outside[_shown(root, inner)] = to
    return [*link_findings(outside)]
