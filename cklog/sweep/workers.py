"""Runs asked by processes of this machine, where there are enough for it: one interpreter uses one core only."""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, NamedTuple, cast

from cklog.isolation import DEVNULL, PIPE, own_import_path, start_python
from cklog.progress import Stage, stage
from cklog.storage import Root
from cklog.sweep.asking import HowToAsk, Problem, given_up, problem_row, rows_of
from cklog.sweep.model import ScannedRun

if TYPE_CHECKING:
    import subprocess

_PER_PROCESS = 100
"""Runs for which a process is worth its start: that takes as long as so many small ones."""

_MOST = 64

_KILLED = 9

_GRACE = 5.0
"""Seconds more that a process has, to give up by itself: one that waits for a file system may not."""


class Job(NamedTuple):
    """A run to ask: its folder below a root that is listed, its format, and what it is called."""

    root: Root
    folder: str
    format: str
    shown: str

    def opened(self) -> Root:
        """Return the folder as a root of its own."""
        return self.root.listed_below(self.folder)


def ask_here(jobs: Sequence[Job], how: HowToAsk) -> list[ScannedRun]:
    """Ask every run, in this process or in as many as are worth their start; rows come in no order."""
    processes = min(os.cpu_count() or 1, len(jobs) // _PER_PROCESS, _MOST)
    with stage("asking runs", "runs", len(jobs)) as told:
        if processes < 2 or not sys.executable:
            return [row for job in jobs for row in _asked_here(job, how, told)]
        waiting = _Waiting(jobs)
        from concurrent.futures import ThreadPoolExecutor  # slow to import, and few runs need no processes

        with ThreadPoolExecutor(processes) as threads:
            parts = [threads.submit(_ask_by_process, waiting, how, told) for _ in range(processes)]
            try:
                return [row for part in parts for row in part.result()]
            except BaseException:
                waiting.stop()
                raise


def _asked_here(job: Job, how: HowToAsk, told: Stage) -> list[ScannedRun]:
    rows = rows_of(job.opened(), job.format, job.shown, how)
    told.advance(1)
    return rows


class _Waiting:
    """Jobs that nobody has taken yet, for several threads."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._jobs = iter(jobs)
        self._lock = threading.Lock()
        self._stopped = False

    def __iter__(self) -> Iterator[Job]:
        while True:
            with self._lock:
                job = None if self._stopped else next(self._jobs, None)
            if job is None:
                return
            yield job

    def stop(self) -> None:
        """Hand out no more."""
        self._stopped = True


def _ask_by_process(waiting: _Waiting, how: HowToAsk, told: Stage) -> list[ScannedRun]:
    """Ask runs by one process after another: one that a run has killed is followed by the next."""
    from cklog.sweep.worker import job_line

    rows: list[ScannedRun] = []
    worker = _Worker()
    try:
        for job in waiting:
            if not worker.is_ready:  # such as on a machine without room for another process
                rows += _asked_here(job, how, told)
                continue
            line = worker.answered(job_line(job.opened(), job.format, job.shown, how), how.seconds)
            if line:
                rows += _read_rows(line)
            else:
                why = given_up(how.seconds) if line is None else worker.why_it_ended()
                rows.append(problem_row(job.shown, job.format, why))
                worker.close()
                worker = _Worker()
            told.advance(1)
    finally:
        worker.close()
    return rows


def _read_rows(line: bytes) -> list[ScannedRun]:
    import json

    return [ScannedRun.of(told) for told in json.loads(line)]


class _Worker:
    """A process that asks runs. It ends with this one, for its input ends then."""

    def __init__(self) -> None:
        from cklog.sweep.worker import READY

        self.is_ready = False
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._process = start_python(
                ["-m", "cklog.sweep.worker"],
                own_import_path(),
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                start_new_session=True,  # a Ctrl-C is told to this process, not to that
            )
        except OSError:
            return
        self.is_ready = self._out.readline() == READY

    @property
    def _out(self) -> IO[bytes]:
        return cast("IO[bytes]", cast("subprocess.Popen[bytes]", self._process).stdout)

    def answered(self, line: bytes, seconds: float) -> bytes | None:
        """Hand over a job and return what it says; nothing where it has ended, None where it does not even give up."""
        into = cast("IO[bytes]", cast("subprocess.Popen[bytes]", self._process).stdin)
        try:
            into.write(line)
            into.flush()
            if seconds and not select.select([self._out], [], [], seconds + _GRACE)[0]:
                return None
            told = self._out.readline()
        except OSError:
            return b""
        return told if told.endswith(b"\n") else b""

    def why_it_ended(self) -> Problem:
        """Return what the row of the run says that ended it."""
        code = cast("subprocess.Popen[bytes]", self._process).wait()
        if code == -_KILLED:
            return Problem("over-budget", "the process that read it was killed, as happens where memory runs out", 65)
        return Problem("self-check-failed", f"a bug: the process that read it ended with {code}", 3)

    def close(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
