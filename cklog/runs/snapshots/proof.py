"""A line of snapshots, given or restored, proved against what each of them is."""

from __future__ import annotations

from collections.abc import Mapping

from cklog.engine.reading import Reading
from cklog.errors import NotFound
from cklog.inputs.offers import OffersSnapshots
from cklog.local_files import plain_reason
from cklog.model.audits import Restored, RestoredAudit, audit_of, entry_of
from cklog.model.checks import Check, Verification, refutations, unless_hidden, verification
from cklog.model.question import Question
from cklog.model.verdict import Draft
from cklog.runs.snapshots.findings import name_of
from cklog.runs.snapshots.lineage import Candidates
from cklog.runs.snapshots.plan import is_hidden, job_named, may_be_older, plan_snapshots
from cklog.runs.snapshots.verdicts import VERDICTS, JudgedSnapshot

_OF_CONTENTS = ("corrupt-file", "unreadable-file", "contents-not-checked")
"""Findings of looking into state files, which an answer about one snapshot rests on too."""


def verify_snapshots(
    parser: OffersSnapshots, reading: Reading, line: Mapping[str, int | None], maximal: bool, question: Question
) -> Draft[Verification]:
    """Prove or refute that each snapshot of a line is whole, and the newest that is."""
    plan = plan_snapshots(parser, reading, question)
    checks: list[Check] = []
    for name, number in line.items():
        group = job_named(parser, plan.groups, name)
        judged = next((j for j in group.snapshots if number is not None and j.id == number), None)
        checks += _checks(name, number, judged, group, plan.chosen[group.job], maximal)
    about = {name_of(j) for group in plan.groups for j in group.snapshots if j.id in line.values()}
    seen = [f for f in plan.findings if f.id in _OF_CONTENTS and (f.subject in about or f.severity == "info")]
    result, findings = verification(checks), [*seen, *refutations(checks)]
    return Draft("verify", result, findings, plan.survey.inputs, indeterminate=result.undecided)


def audit_snapshots(
    parser: OffersSnapshots, reading: Reading, restored: Restored, question: Question
) -> Draft[RestoredAudit]:
    """Say of each restored snapshot whether it is whole, and which one was the newest that could be restored."""
    plan = plan_snapshots(parser, reading, question)
    checks: list[Check] = []
    entries = []
    for name, number in restored.line.items():
        group = job_named(parser, plan.groups, name)
        latest = restored.newest.get(name)
        there = [j for j in group.snapshots if latest is None or j.id is None or j.id <= latest]
        judged = next((j for j in there if number is not None and j.id == number), None)
        best = next((j for j in there if j.verdict == "restorable"), None)
        checks += _checks(name, number, judged, group._replace(snapshots=tuple(there)), best, maximal=True)
        entries.append(entry_of(name, number, best.id if best is not None else None, none_is_oldest=True))
    result = audit_of(checks, (), entries)
    findings = [*plan.findings, *refutations(checks)]
    return Draft("verify-restored", result, findings, plan.survey.inputs, indeterminate=result.undecided)


def restored_in(parser: OffersSnapshots, log: str) -> Restored:
    """Return what a job manager's log says was restored last.

    Raises
    ------
    NotFound : there is no such file, or it tells of no restore
    """
    try:
        found = parser.last_restore(log)
    except OSError as error:
        raise NotFound(f"--from-log {log}: {plain_reason(error)}") from None
    if found is None:
        raise NotFound(f"--from-log {log}: it tells of no restore", "give the log of the job manager that restored")
    job, checkpoint, newest = found
    return Restored({job: checkpoint}, {} if newest is None else {job: newest})


def _checks(
    name: str,
    number: int | None,
    judged: JudgedSnapshot | None,
    group: Candidates,
    best: JudgedSnapshot | None,
    maximal: bool,
) -> list[Check]:
    if judged is None and number is not None:
        return [Check("restorable", False, f"{name} has no snapshot {number}")]
    if judged is None:
        checks = [Check("restorable", True, f"{name} starts anew")]
    else:
        holds = None if judged.verdict == "unchecked" else judged.verdict == "restorable"
        checks = [Check("restorable", holds, f"{name_of(judged)} ({judged.verdict}): {VERDICTS[judged.verdict]}")]
    if maximal:
        told = f"the newest that can be restored is {name_of(best)}" if best is not None else "there is no other"
        newest = best is judged or best is None
        hidden = is_hidden(group, judged) or (judged is not None and may_be_older(group, judged))
        checks += unless_hidden([Check("maximal", newest, told)], hidden)
    return checks
