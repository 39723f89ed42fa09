"""Let nothing go where the line depends on a file whose version cklog does not know."""

from __future__ import annotations

from dataclasses import replace

from cklog.model.verdict import UNKNOWN_VERSION, Draft
from cklog.retention.plan import RetentionPlan, with_rows

_RULE = "unknown-version"
_MEANING = "the line depends on a file whose version cklog does not know, and which other files that needs is not known"


def with_unknown(draft: Draft[RetentionPlan]) -> Draft[RetentionPlan]:
    """Keep every file of a plan if the line depends on a file of an unknown version."""
    if not any(finding.id == UNKNOWN_VERSION and finding.severity == "error" for finding in draft.findings):
        return draft
    plan = draft.result
    rows = tuple(replace(row, fate="KEEP", rule=_RULE) if row.fate == "OBSOLETE" else row for row in plan.rows)
    return replace(draft, result=replace(with_rows(plan, rows, {_RULE: _MEANING}), trimming=()))
