"""When the system crashed and when it was back: as asked, as the manifest says, or by boots in the system log.

A boot with no shutdown before the next one is a crash (paper, section 3.2, System State); nobody logs its time. It
lies between the last sign of life and that next boot, and the answer is then made of these bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from cklog.errors import NotFound, UsageError
from cklog.impact.model import BoundedTime
from cklog.impact.system import Event, SystemLog
from cklog.model.findings import Finding
from cklog.model.values import is_integer


@dataclass(frozen=True, slots=True)
class Outage:
    """A crash and its restart.

    `restart` : when the system was back, in ms; None: not yet, as far as the log goes
    `before` : the system log's events of the run that crashed, from its boot on
    """

    crash: BoundedTime
    restart: int | None
    before: tuple[Event, ...]
    findings: tuple[Finding, ...] = ()


def outage(
    log: SystemLog, manifest: Mapping[str, Any], crash: int | None, restart: int | None, signs: tuple[int, ...]
) -> Outage | None:
    """Find the crash; return None if times contradict each other or are missing, so that there is no answer.

    Parameters
    ----------
    crash, restart : ms, as asked for; they overrule everything
    signs : other signs of life in ms, such as times of checkpoints

    Raises
    ------
    NotFound : there is no evidence of a crash
    UsageError : the restart asked for is not after the crash
    """
    if crash is None and any(f.id in ("clock-backwards", "no-times") for f in log.findings):
        return None
    stated = manifest.get("failure_time")
    stated = stated if is_integer(stated) else None
    found = _newest_outage(log, stated, crash, restart, signs)
    if restart is not None and restart <= found.crash.least:
        raise UsageError(f"--restart {restart}: not after the crash at {found.crash.least}")
    return found


def _newest_outage(
    log: SystemLog, stated: int | None, crash: int | None, restart: int | None, signs: tuple[int, ...]
) -> Outage:
    """The last crash: as asked for, else by boots, else at the manifest's `stated` time."""
    if crash is not None:
        return _outage_at(log, BoundedTime(crash, crash, "--crash"), restart)
    runs = _crashed_runs(log.events)
    if runs:
        return _outage_of(runs[-1], stated, restart, signs, _several_crashes(runs))
    if stated is not None:
        return _outage_at(log, BoundedTime(stated, stated, "job.json"), restart)
    raise NotFound(
        "no crash: no boot without a shutdown before the next one, and no failure_time in job.json",
        "say when with --crash TIME, and --restart TIME if it is back",
    )


@dataclass(frozen=True, slots=True)
class _CrashedRun:
    """Events from a boot without a shutdown to before the next boot, `next`."""

    events: tuple[Event, ...]
    next: Event


def _crashed_runs(events: tuple[Event, ...]) -> list[_CrashedRun]:
    boots = [i for i, event in enumerate(events) if event.event == "boot"]
    runs = [_CrashedRun(events[start:end], events[end]) for start, end in pairwise(boots)]
    return [run for run in runs if not any(event.event == "shutdown" for event in run.events)]


def _outage_at(log: SystemLog, crash: BoundedTime, restart: int | None) -> Outage:
    """A crash whose time is given: the run that it ended is the last one booted by then."""
    boots = [(i, e.time) for i, e in enumerate(log.events) if e.event == "boot" and e.time is not None]
    before = [i for i, time in boots if time <= crash.least]
    end, again = next(((i, time) for i, time in boots if time > crash.least), (None, None))
    backwards = any(f.id == "clock-backwards" for f in log.findings)
    if restart is None and not backwards:
        restart = again
    return Outage(crash, restart, log.events[before[-1] : end] if before else (), _not_restarted(restart))


def _several_crashes(runs: list[_CrashedRun]) -> tuple[Finding, ...]:
    """A finding about crashes before the last one, if there are any."""
    if len(runs) < 2:
        return ()
    times = ", ".join(str(run.events[0].time) for run in runs[:-1])
    message = (
        f"{len(runs)} runs crashed, and the answer is about the last one. --crash TIME asks for another, booted at "
        f"{times} ms"
    )
    return (Finding("several-crashes", "info", "system/", message, where=tuple(run.events[0].where for run in runs)),)


def _outage_of(
    run: _CrashedRun, stated: int | None, restart: int | None, signs: tuple[int, ...], findings: tuple[Finding, ...]
) -> Outage:
    """The crash of a run that the system log shows: at the `stated` time if that lies in it, else within bounds."""
    booted, booted_again = run.events[0].time, run.next.time
    assert booted is not None, "boots have times, or `outage` has given up"
    assert booted_again is not None
    again = booted_again if restart is None else restart
    if stated is not None and booted <= stated <= booted_again:
        return Outage(BoundedTime(stated, stated, "job.json"), again, run.events, findings)
    times = [e.time for e in run.events if e.time is not None]
    last = max([*times, *(time for time in signs if booted <= time < booted_again)])
    crash = BoundedTime(last, booted_again, "system log")
    message = (
        f"the crash itself is not logged: it lies between the last sign of life at {crash.least} ms and the boot at "
        f"{crash.most} ms; say --crash, or failure_time in job.json"
    )
    where = (run.events[-1].where, run.next.where)
    unknown = Finding("crash-time-unknown", "warning", "system/", message, where=where)
    return Outage(crash, again, run.events, (*findings, unknown))


def _not_restarted(restart: int | None) -> tuple[Finding, ...]:
    if restart is not None:
        return ()
    message = "no restart is logged or asked for: phases that end with it, or begin with it, have no end yet"
    return (Finding("not-restarted", "warning", "system/", message),)
