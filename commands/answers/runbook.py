"""cklog runbook [PATH]"""

from __future__ import annotations

from cklog.commands.common import Common, command
from cklog.commands.options import (
    AsOf,
    At,
    ChannelOption,
    CheckContents,
    Failed,
    GroupOption,
    KafkaOption,
    NoCheckFiles,
    kafka_logs,
    question,
)
from cklog.runbook.script import as_script
from cklog.runbook.view import as_markdown


@command
def runbook(
    common: Common,
    failed: Failed = None,
    as_of: AsOf = "",
    at: At = None,
    no_check_files: NoCheckFiles = False,
    check_contents: CheckContents = False,
    kafka: KafkaOption = "",
    channel: ChannelOption = None,
    group: GroupOption = "",
) -> None:
    """What to do, step by step: stop, copy, check, restore, verify; each with its check and its undo.

    --format md is a page to follow, --format script the same for sh: it stops at the first doubt.
    """
    asked = question(failed, as_of, at, check_files=not no_check_files, check_contents=check_contents)
    logs = kafka_logs(kafka, channel, group)
    common.answer(lambda run: run.runbook(asked, logs), {"md": as_markdown, "script": as_script})
