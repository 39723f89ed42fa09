"""`retention` for every kind of run: by what its parser offers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cklog.errors import NotFound, UsageError
from cklog.model.verdict import Answer
from cklog.retention.policy import RetentionPolicy
from cklog.storage import Root


def retention_answer(
    parser: Any, root: Root, analyses: Callable[[], Any], policy: RetentionPolicy, strict: bool = False
) -> Answer:
    """Plan what may be deleted below PATH, and what must stay.

    Raises
    ------
    NotFound : nothing here that a plan could be made of
    UsageError : an option that this kind of run has no use for
    """
    answer: Answer
    if hasattr(parser, "snapshots"):
        answer = analyses().retention(policy)
        return answer
    if policy.jobs_stopped or policy.job_log:
        raise UsageError("--jobs-stopped and --job-log are about Flink's snapshots", f"{root.path} holds none")
    if hasattr(parser, "plan"):
        from cklog.runs.batches.retention import batch_retention

        return batch_retention(parser, root, policy, strict)
    if hasattr(parser, "has") and parser.has("outputs"):
        message = "operators with output queues restart from those, and what they still need is told by the extent"
        raise NotFound(f"{root.path}: {message}", "cklog extent says from which record on a queue is needed")
    if hasattr(parser, "has") and (parser.has("checkpoints") or parser.has("events")):
        from cklog.retention.files import StoredFiles
        from cklog.runs.records.retention import checkpoint_retention

        return checkpoint_retention(analyses(), parser, StoredFiles(root), policy)
    if hasattr(parser, "pieces"):
        from cklog.runs.pieces.retention import version_retention

        return version_retention(parser, policy, strict)
    message = f"a {parser.name} folder holds no checkpoints that could be deleted"
    raise NotFound(f"{root.path}: {message}", "retention reads run folders, Spark and Flink checkpoints, chains")
