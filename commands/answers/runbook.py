"""cklog runbook [PATH]"""

from __future__ import annotations

from cklog.commands.common import Common, command
from cklog.commands.options import LineOptions
from cklog.runbook.script import as_script
from cklog.runbook.view import as_markdown


@command
def runbook(common: Common, line: LineOptions) -> None:
    """What to do, step by step: stop, copy, check, restore, verify; each with its check and its undo.

    --format md is a page to follow, --format script the same for sh: it stops at the first doubt.
    """
    forms = {"md": as_markdown, "script": as_script}
    common.answer(lambda run: run.runbook(line.question(), line.logs), forms)
