"""How many splits of a scan have come back from Spark: by the tasks of its first stage, which are done.

Spark Connect tells them itself, every two seconds; a session of this process is asked, by its status tracker. Both only
if somebody watches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from cklog.progress import Stage, is_watched

_GROUP = "spark.jobGroup.id"


@contextmanager
def counted_by_tasks(session: Any, told: Stage) -> Iterator[None]:
    """Count splits that came back from what runs inside."""
    if not is_watched():
        yield
    elif type(session).__module__.startswith("pyspark.sql.connect"):
        with _told_by_connect(session, told):
            yield
    else:
        with _asked_of_tracker(session.sparkContext, told):
            yield


@contextmanager
def _told_by_connect(session: Any, told: Stage) -> Iterator[None]:
    """Have the server tell of the stages of what runs."""
    done = 0

    def note(stages: Iterable[Any] | None, **_: object) -> None:
        nonlocal done
        first = min(stages or (), key=lambda stage: stage.stage_id, default=None)
        if first is not None:
            done = max(done, _splits(told, first.num_completed_tasks, first.num_tasks))

    session.registerProgressHandler(note)
    told.probed_by(lambda: done)
    try:
        yield
    finally:
        session.removeProgressHandler(note)


@contextmanager
def _asked_of_tracker(context: Any, told: Stage) -> Iterator[None]:
    """Let whoever wants to know ask the status tracker for the jobs of a group, which what runs is put into."""
    before, group = context.getLocalProperty(_GROUP), f"cklog-{uuid4()}"
    context.setLocalProperty(_GROUP, group)
    told.probed_by(_probe(context.statusTracker(), group, told))
    try:
        yield
    finally:
        told.probed_by(lambda: told.total or 0)
        context.setLocalProperty(_GROUP, before)


def _probe(tracker: Any, group: str, told: Stage) -> Callable[[], int]:
    """Return what asks the tracker for the splits that came back."""
    done = 0

    def ask() -> int:
        nonlocal done
        try:
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
            numbers = [number for job in jobs if job is not None for number in job.stageIds]
            first = tracker.getStageInfo(min(numbers)) if numbers else None
        except Exception:  # whatever a session raises that is just being stopped: progress is no reason to fail
            return done
        if first is not None:
            done = max(done, _splits(told, first.numCompletedTasks, first.numTasks))
        return done

    return ask


def _splits(told: Stage, done: int, tasks: int) -> int:
    """Return how many splits so many of the tasks are: one each, unless there are very many."""
    return (told.total or 0) * done // max(tasks, 1)
