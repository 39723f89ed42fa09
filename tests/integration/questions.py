"""The samples, and a question of each command with its usual options; PATH stands for a folder."""

from __future__ import annotations

from tests.conftest import SAMPLES

FOLDERS = sorted(path for path in SAMPLES.iterdir() if path.is_dir())

QUESTIONS = (
    "recovery-line PATH",
    "recovery-line PATH --json",
    "recovery-line PATH --explain",
    "recovery-line PATH --failed-at all",
    "replay PATH --json",
    "scan PATH",
    "scan PATH --format prometheus",
    "runbook PATH --json",
    "runbook PATH --format md",
    "inspect PATH",
    "inspect PATH --metrics --json",
    "impact PATH",
    "impact PATH --json",
    "latency PATH",
    "latency PATH --step 0.5 --at 2026-01-01T00:00:05 --json",
    "latency PATH --results sample_logs/sink-latency/results --event-time created",
    "retention PATH",
    "retention PATH --format script",
    "chain PATH",
    "chain PATH --json",
    "rounds PATH",
    "rounds PATH --sweep pair",
    "graph PATH",
    "graph PATH --format svg",
    "graph PATH --kind rollback",
    "z-cycles PATH",
    "z-cycles PATH --audit-cic",
    "extent PATH --operator agg1",
    "extent PATH --operator agg1 --over-time",
    "eventual-checkpoint PATH --operator agg1",
    "advise extent PATH --operator agg1",
    "advise delta PATH",
    "advise timing PATH",
    "advise protocol PATH",
    "compare PATH sample_logs/uncoordinated-join",
)
