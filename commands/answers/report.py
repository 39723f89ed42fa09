"""cklog report [PATH]"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cklog.commands.common import Common, command
from cklog.commands.options import LineOptions, RateOptions
from cklog.errors import UsageError
from cklog.model.verdict import Answer
from cklog.run import Run

if TYPE_CHECKING:
    from cklog.report.compose import Composed
    from cklog.report.model import Report


@command
def report(common: Common, line: LineOptions, rate: RateOptions) -> None:
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
    made: list[Composed] = []

    def ask(run: Run) -> Answer[Report]:
        named = ReportQuestion(common.path, (*line.words(), *run.chosen_by()), rate_words(rate.rates))
        made.append(compose(run, named, line.question(rates=rate.rates), line.logs, draws=form == "html"))
        return made[0].answer

    shown = replace(common, brief=False) if brief else common
    forms = {"md": lambda _: (as_message if brief else as_markdown)(made[0]), "html": lambda _: as_html(made[0])}
    shown.answer(ask, forms, complete=True)
