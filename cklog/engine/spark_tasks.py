"""What tasks of a scan do on Spark: how many splits have come back, and whether anybody works on them at all.

The tasks that read splits are the last stage with as many tasks as there are to read them: what hands the splits out
comes before it, and what reduces their rows, on as many partitions as the session says, behind it. Spark Connect tells
of stages by itself, every two seconds; a session of this process is asked, by its status tracker.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

from cklog.engine.patience import within
from cklog.progress import Stage

_GROUP = "spark.jobGroup.id"


class Job(Protocol):
    """What runs on Spark. `has_begun`: whether any task has run yet."""

    has_begun: bool

    def is_working(self) -> bool:
        """Tell whether any task runs, or has ended since this was asked last."""

    def cancel(self) -> None:
        """End it, with an error where it is waited for."""


class _Tasks(NamedTuple):
    stage: int
    tasks: int
    running: int
    done: int


@contextmanager
def counted_by_tasks(session: Any, told: Stage, tasks: int) -> Iterator[Job]:
    """Count splits that came back from what runs inside, in so many tasks; yield what runs there."""
    if type(session).__module__.startswith("pyspark.sql.connect"):
        with _told_by_connect(session, told, tasks) as job:
            yield job
    else:
        with _asked_of_tracker(session.sparkContext, told, tasks) as job:
            yield job


class _ConnectJob:
    """What the server has told of the stages of what runs."""

    def __init__(self, session: Any, told: Stage, tasks: int) -> None:
        self._session, self._told, self._tasks = session, told, tasks
        self.has_begun = self._working = False
        self._ended = 0
        self._worked_at = time.monotonic() - _TOLD_SECONDS
        self.done = 0

    def note(self, stages: Any, inflight_tasks: int = 0, **_: object) -> None:
        """Take what the server tells."""
        found = [_Tasks(s.stage_id, s.num_tasks, 0, s.num_completed_tasks) for s in stages or ()]
        ended = sum(stage.done for stage in found)
        self._working = inflight_tasks > 0 or ended != self._ended
        self.has_begun = self.has_begun or self._working
        self._ended = ended
        self.done = max(self.done, _splits_done(found, self._told, self._tasks))

    def is_working(self) -> bool:
        """Tell whether the server has told of any work since this was asked last, or a little before."""
        now, told = time.monotonic(), self._working
        self._working = False  # until it is told again: a server that says nothing any more does nothing
        if told:
            self._worked_at = now
        return now - self._worked_at < _TOLD_SECONDS

    def cancel(self) -> None:
        """Have the server interrupt all that this session runs; one that does not answer is hung up on."""
        with suppress(Exception):  # it is given up either way
            within(_CANCEL_SECONDS, self._session.interruptAll, "interrupting", self._session.client.close)


@contextmanager
def _told_by_connect(session: Any, told: Stage, tasks: int) -> Iterator[Job]:
    """Have the server tell of the stages of what runs."""
    job = _ConnectJob(session, told, tasks)
    session.registerProgressHandler(job.note)
    told.probed_by(lambda: job.done)
    try:
        yield job
    finally:
        session.removeProgressHandler(job.note)


_TOLD_SECONDS = 5.0
"""A server tells of tasks every two seconds."""

_CANCEL_SECONDS = 5.0


class _LocalJob:
    """What the status tracker says of the jobs of a group."""

    def __init__(self, context: Any, group: str, told: Stage, tasks: int) -> None:
        self._context, self._group, self._told, self._tasks = context, group, told, tasks
        self._done = self._ended = 0
        self.has_begun = False

    def _stages(self) -> list[_Tasks]:
        tracker = self._context.statusTracker()
        try:
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group)]
            numbers = {number for job in jobs if job is not None for number in job.stageIds}
            found = [tracker.getStageInfo(number) for number in sorted(numbers)]
        except Exception:  # whatever a session raises that is just being stopped: to be told is no reason to fail
            return []
        return [_Tasks(s.stageId, s.numTasks, s.numActiveTasks, s.numCompletedTasks) for s in found if s is not None]

    def done(self) -> int:
        """Return how many splits have come back."""
        self._done = max(self._done, _splits_done(self._stages(), self._told, self._tasks))
        return self._done

    def is_working(self) -> bool:
        """Tell whether a task runs, or has ended since this was asked last."""
        stages = self._stages()
        ended, before = sum(stage.done for stage in stages), self._ended
        self._ended = ended
        working = ended != before or any(stage.running for stage in stages)
        self.has_begun = self.has_begun or working
        return working

    def cancel(self) -> None:
        """Cancel the jobs of the group."""
        self._context.cancelJobGroup(self._group)


@contextmanager
def _asked_of_tracker(context: Any, told: Stage, tasks: int) -> Iterator[Job]:
    """Let whoever wants to know ask the status tracker for the jobs of a group, which what runs is put into."""
    before, group = context.getLocalProperty(_GROUP), f"cklog-{uuid4()}"
    job = _LocalJob(context, group, told, tasks)
    context.setLocalProperty(_GROUP, group)
    told.probed_by(job.done)
    try:
        yield job
    finally:
        told.probed_by(lambda: told.total or 0)
        with suppress(Exception):  # whatever a session raises that has ended
            context.setLocalProperty(_GROUP, before)


def _splits_done(stages: list[_Tasks], told: Stage, tasks: int) -> int:
    """Return how many splits the tasks that are done are: one each, unless there are very many."""
    reading = max((stage for stage in stages if stage.tasks == tasks), default=None)
    return 0 if reading is None else (told.total or 0) * reading.done // max(tasks, 1)
