"""cklog retention [PATH]"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from cklog.commands.common import Common, command
from cklog.commands.options import moment
from cklog.errors import UsageError
from cklog.model.verdict import Answer
from cklog.retention.plan import RetentionPlan
from cklog.retention.policy import RetentionPolicy, duration, marks_of
from cklog.retention.view import as_paths, as_script
from cklog.run import Run

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
DropOption = Annotated[
    bool, typer.Option("--drop-broken", help="Let go of what cannot be restored, where something else can be.")
]
TimesOption = Annotated[
    str, typer.Option("--job-log", metavar="FILE", help="Of Flink: the job manager's log, for --window.")
]
NullOption = Annotated[bool, typer.Option("--null", "-0", help="Of --format paths: end each with a null byte.")]


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
    null: NullOption = False,
    drop_broken: DropOption = False,
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
        drop_broken=drop_broken,
    )
    if null and common.form != "paths":
        raise UsageError("-0: only of --format paths", "cklog retention --format paths -0 | xargs -0 ls -l --")
    below: list[str] = []

    def ask(run: Run) -> Answer[RetentionPlan]:
        found = run.retention(policy)
        below.append(run.below_path)
        return found

    forms: dict[str, Callable[[Answer[RetentionPlan]], str]] = {
        "paths": lambda found: as_paths(found, null, below[0]),
        "script": lambda found: as_script(found, below[0]),
    }
    common.answer(ask, forms)
