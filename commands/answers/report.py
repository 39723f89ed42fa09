"""cklog report [PATH]"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cklog.commands.common import Common, command
from cklog.commands.options import (
    AsOf,
    At,
    ChannelOption,
    CheckContents,
    Failed,
    GroupOption,
    InputRate,
    KafkaOption,
    MaxRecoveryTime,
    NoCheckFiles,
    ReadRate,
    ReplayRate,
    kafka_logs,
    question,
)
from cklog.errors import UsageError
from cklog.model.recovery_time import RecoveryRates
from cklog.model.verdict import Answer
from cklog.run import Run

if TYPE_CHECKING:
    from cklog.report.compose import Composed
    from cklog.report.model import Report


@command
def report(
    common: Common,
    failed: Failed = None,
    as_of: AsOf = "",
    at: At = None,
    no_check_files: NoCheckFiles = False,
    check_contents: CheckContents = False,
    kafka: KafkaOption = "",
    channel: ChannelOption = None,
    group: GroupOption = "",
    read_rate: ReadRate = None,
    replay_rate: ReplayRate = None,
    input_rate: InputRate = None,
    max_recovery_time: MaxRecoveryTime = None,
) -> None:
    """The one document of an incident: what to do, in order, why, and what the answer rests on.

    --format md (with --brief: a message for a chat), json, or html: one file that opens offline.
    """
    from cklog.report.compose import compose
    from cklog.report.html import as_html
    from cklog.report.markdown import as_markdown, as_message
    from cklog.report.model import ReportQuestion, rate_words

    form = "json" if common.as_json else common.form
    if form in ("csv", "jsonl") and not common.table:
        raise UsageError(f"--format {form}: a report is no table", "md, json or html; or --table findings, line, …")
    brief = common.brief and form == "md"
    rates = RecoveryRates(read_rate, replay_rate, input_rate, max_recovery_time)
    asked = question(failed, as_of, at, check_files=not no_check_files, check_contents=check_contents, rates=rates)
    logs = kafka_logs(kafka, channel, group)
    given = [
        *(("--failed", ",".join(failed)) if failed else ()),
        *(("--as-of", as_of) if as_of else ()),
        *(word for one in at or () for word in ("--at", one)),
        *(("--no-check-files",) if no_check_files else ()),
        *(("--check-contents",) if check_contents else ()),
        *(("--kafka", kafka) if kafka else ()),
        *(word for one in channel or () for word in ("--channel", one)),
        *(("--group", group) if group else ()),
    ]
    made: list[Composed] = []

    def ask(run: Run) -> Answer[Report]:
        named = ReportQuestion(common.path, (*given, *run.chosen_by()), rate_words(rates))
        made.append(compose(run, named, asked, logs, draws=form == "html"))
        return made[0].answer

    shown = replace(common, brief=False) if brief else common
    forms = {"md": lambda _: (as_message if brief else as_markdown)(made[0]), "html": lambda _: as_html(made[0])}
    shown.answer(ask, forms, complete=True)
