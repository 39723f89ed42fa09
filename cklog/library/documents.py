"""What puts many answers into one: the report of an incident, and a row about every run below some folders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from os import fspath
from typing import TYPE_CHECKING, Literal

from cklog.errors import UsageError
from cklog.library.results import Result
from cklog.library.values import Moment, Place, maps_of, ms_of
from cklog.report.model import Report
from cklog.run import Options, Run, open_run
from cklog.sweep.model import TIME_LIMIT

if TYPE_CHECKING:
    from cklog.model.question import KafkaLogs, Question
    from cklog.report.compose import Composed
    from cklog.sweep.model import ScanAnswer


@dataclass(frozen=True, slots=True, repr=False)
class ReportResult(Result[Report]):
    """Hold the report of an incident, which is a document too: Markdown, or a page of HTML."""

    composed: Composed = field(kw_only=True, compare=False)

    def to_markdown(self, *, brief: bool = False) -> str:
        """Write the report as Markdown; `brief`: as a message that fits a chat."""
        from cklog.report.markdown import as_markdown, as_message

        return as_message(self.composed) if brief else as_markdown(self.composed)

    def to_html(self) -> str:
        """Write the report as one page that loads nothing, with the diagram where there is one."""
        from cklog.report.html import as_html

        return as_html(self.composed)


def report_of(
    run: Run, path: str, question: Question, kafka: KafkaLogs, spoken: Callable[[], tuple[str, ...]]
) -> ReportResult:
    """Ask a run for its report, with the words of the command line that asks the same."""
    from cklog.report.compose import compose
    from cklog.report.model import ReportQuestion, rate_words

    given = [
        *(("--failed", ",".join(question.failed)) if question.failed else ()),
        *(("--as-of", str(question.as_of)) if question.as_of is not None else ()),
        *(word for name, number in question.at for word in ("--at", f"{name}={number}")),
        *(() if question.check_files else ("--no-check-files",)),
        *(("--kafka", kafka.folder) if kafka.folder else ()),
        *(word for one in kafka.channels for word in ("--channel", one)),
        *(("--group", kafka.group) if kafka.group else ()),
        *(word for one in question.sinks for word in ("--sink", one)),
        *(word for one in question.source_from for word in ("--source-from", one)),
        *(word for one in question.taken for word in ("--taken", one)),
        *run.chosen_by(),
    ]
    asked = ReportQuestion(path, tuple(given), rate_words(question.rates))
    composed = compose(run, asked, question, kafka, draws=True)
    found = composed.answer
    parts = (found.command, found.verdict, found.exit_code, found.inputs, found.findings, found.result)
    return ReportResult(*parts, spoken(), composed=composed)


def scan(
    *roots: Place,
    since: Moment = None,
    sort: Literal["path", "format", "action", "newest", "age", "size", "findings"] = "path",
    time_limit: float = TIME_LIMIT,
    engine: Literal["auto", "local", "spark"] = "auto",
    maps: Mapping[str, str] | None = None,
    store: Mapping[str, str] | None = None,
    source: str = "",
    strict: bool = False,
    follow_links: bool = False,
    master: str = "",
    remote: str = "",
    spark_conf: Mapping[str, str] | None = None,
    max_memory: int = Options().max_memory,
    engine_timeout: float = Options().engine_timeout,
    ship: bool = False,
    io_threads: int = Options().io_threads,
) -> Result[ScanAnswer]:
    """Say of every run below some folders what to do: a row each, and none that fails costs another.

    Runs whose own logs tell of nothing since `since` are left out; one that takes longer than `time_limit` seconds is
    given up (0: none is). The other options are those of `open`.
    """
    from cklog.sweep.model import ScanQuestion

    if not roots:
        raise UsageError("scan: no folder is named", 'such as cklog.scan("/srv/jobs")')
    options = Options(
        engine=engine,
        maps=maps_of(maps or {}),
        store=tuple((store or {}).items()),
        source=source,
        strict=strict,
        follow_links=follow_links,
        master=master,
        remote=remote,
        spark_conf=tuple((spark_conf or {}).items()),
        max_memory=max_memory,
        engine_timeout=engine_timeout,
        ship=ship,
        io_threads=io_threads,
    )
    with ExitStack() as opened:
        first, *others = [opened.enter_context(open_run(fspath(root), options)) for root in roots]
        answer = first.scan(ScanQuestion(ms_of(since), sort, time_limit), others)
        parts = (answer.command, answer.verdict, answer.exit_code, answer.inputs, answer.findings, answer.result)
        return Result(*parts, tuple(dict.fromkeys([*first.notes(), *(line for run in others for line in run.spoken)])))
