"""cklog retention [PATH]"""

from __future__ import annotations

from typing import Annotated

import typer

from cklog.commands.common import Common, command
from cklog.retention_view import as_paths, as_script

Stopped = Annotated[
    bool, typer.Option("--jobs-stopped", help="No job below PATH runs: what nothing names is in no one's hands.")
]


@command
def retention(common: Common, jobs_stopped: Stopped = False) -> None:
    """What may be deleted, what must stay, and why: a plan; nothing is deleted.

    --format also takes paths (what may go) and script (the same as rm commands to review).
    """
    common.answer(lambda run: run.retention(jobs_stopped), {"paths": as_paths, "script": as_script})
