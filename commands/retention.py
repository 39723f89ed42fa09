"""cklog retention [PATH]"""

from __future__ import annotations

from typing import Annotated

import typer

from cklog.commands.common import Common, command
from cklog.commands.options import moment
from cklog.retention.policy import RetentionPolicy, duration, marks_of
from cklog.retention.view import as_paths, as_script

Keep = Annotated[
    int | None,
    typer.Option("--keep", metavar="N", help="Keep the N newest that can be restored, of each subtask or job."),
]
WindowOption = Annotated[
    str, typer.Option("--window", metavar="7d", help="Keep what was taken in the time before --now.")
]
Now = Annotated[str, typer.Option("--now", metavar="TIME", help="When --window ends: ms or ISO 8601.")]
Pin = Annotated[
    list[str] | None,
    typer.Option("--pin", metavar="OP/SUB=CKPT", help="Keep this one; of Flink, a folder. Repeatable."),
]
Marked = Annotated[
    list[str] | None,
    typer.Option("--marked", metavar="OP/SUB=CKPT", help="Deleted already, as far as dependants allow; or a file."),
]
Stopped = Annotated[
    bool, typer.Option("--jobs-stopped", help="Of Flink: no job below PATH runs, so nothing is in its hands.")
]
TimesOption = Annotated[
    str, typer.Option("--job-log", metavar="FILE", help="Of Flink: the job manager's log, for --window.")
]


@command
def retention(
    common: Common,
    keep: Keep = None,
    window: WindowOption = "",
    now: Now = "",
    pin: Pin = None,
    marked: Marked = None,
    jobs_stopped: Stopped = False,
    job_log: TimesOption = "",
) -> None:
    """What may be deleted, what must stay, and why: a plan; nothing is deleted.

    --format also takes paths (what may go) and script (the same as rm commands to review).
    """
    marks = marks_of(marked or ())
    policy = RetentionPolicy(
        keep=keep,
        window=duration(window),
        now=moment(now),
        pins=tuple(pin or ()),
        marked=marks,
        jobs_stopped=jobs_stopped,
        job_log=job_log,
    )
    common.answer(lambda run: run.retention(policy), {"paths": as_paths, "script": as_script})
