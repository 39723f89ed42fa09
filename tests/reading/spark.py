"""What is said of a Spark checkpoint, without its words."""

from __future__ import annotations

from typing import Any

from cklog.runs.batches.plan import BatchPlan


def shape(plan: BatchPlan) -> tuple[Any, ...]:
    """What the plan says, without its findings."""
    sources = [(s.source, s.kind, s.start, s.end, s.start_known, s.end_known) for s in plan.sources]
    return plan.committed, plan.planned, sources, plan.sink, plan.sink_has_planned


def said(plan: BatchPlan) -> list[tuple[str, str, str]]:
    """Its findings, without their words."""
    return [(finding.severity, finding.id, finding.subject) for finding in plan.findings]
