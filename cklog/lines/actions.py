"""The one action of an answer about a line: what its runs ask for, and the findings that stand in the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cklog.model.actions import RunAction, worst
from cklog.model.findings import Finding
from cklog.model.lines import RecoveryLine
from cklog.model.verdict import UNREAD, Draft

_MOST_BLOCKS = 50


def with_action(draft: Draft[RecoveryLine]) -> Draft[RecoveryLine]:
    """Return a draft whose line has an action, and whose runs name what stands in their way.

    Where evidence is missing, and no run says that it is about it, it may be about any of them.
    """
    line = draft.result
    unsure = draft.indeterminate or any(f.id == UNREAD and f.severity == "error" for f in draft.findings)
    runs = line.runs
    if unsure and all(run.action != "undetermined" for run in runs):
        runs = tuple(replace(run, action="undetermined") for run in runs)
    runs = tuple(replace(run, blocked_by=_blocks(run, draft.findings, len(runs) == 1)) for run in runs)
    return replace(draft, result=replace(line, action=worst(run.action for run in runs), runs=runs))


def _blocks(run: RunAction, findings: Sequence[Finding], alone: bool) -> tuple[str, ...]:
    """Return the errors about a run: all of them where it is the only one."""
    mine = (f for f in findings if f.severity == "error" and (alone or _is_about(run, f)))
    return tuple(dict.fromkeys(f"{f.id} {f.subject}" for f in mine))[:_MOST_BLOCKS]


def _is_about(run: RunAction, finding: Finding) -> bool:
    places = [finding.subject, *(place.path for place in finding.where)]
    named = bool(run.run) and finding.subject.startswith(run.run)
    return named or (run.path != "." and any(f"{place}/".startswith(f"{run.path}/") for place in places))
