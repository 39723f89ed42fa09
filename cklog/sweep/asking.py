"""One run asked for its line, as `recovery-line` is, and told in rows; whatever goes wrong is told there, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from cklog.engine.local import LocalEngine
from cklog.engine.reading import Reading
from cklog.errors import (
    CorruptInput,
    NotFinished,
    NotFound,
    SelfCheckFailed,
)
from cklog.inputs.trouble import refuse_unread, with_trouble
from cklog.kinds.kind import Opened
from cklog.kinds.opening import PARSERS, kind_of, logs_below, parser_class
from cklog.local_files import told_error
from cklog.model.about import findings_by_run
from cklog.model.actions import RunAction
from cklog.model.findings import Finding
from cklog.model.lines import RecoveryLine
from cklog.model.question import KafkaLogs, Question
from cklog.model.verdict import Answer, conclude
from cklog.storage import Root
from cklog.sweep.model import ScannedRun
from cklog.sweep.time_limit import TimeUp, at_most

if TYPE_CHECKING:
    from cklog.impact.annotate import TimedResults
    from cklog.kafka_logs.logs import PartitionLogs

_WORST = 5
"""Ids of findings that a row names at the most."""

_LONGEST = 500
"""Characters of a message in a row."""


class Problem(NamedTuple):
    """Why a run has no answer: the error's id, what it says, and its exit code."""

    id: str
    message: str
    exit: int


@dataclass(frozen=True, slots=True)
class HowToAsk:
    """How runs are read: what tasks and other processes are told.

    `seconds` : after which a run is given up; 0: never
    `io_threads` : requests to an object store at a time, for one run
    """

    split_bytes: int
    strict: bool
    memory: int
    seconds: float = 0.0
    io_threads: int = 1


def rows_of(root: Root, form: str, shown: str, how: HowToAsk) -> list[ScannedRun]:
    """Ask the run of a format in a folder what to do, and return a row for each job; `shown` is the folder's name."""
    sizes = (0, 0)
    try:
        with at_most(how.seconds):
            sizes = _sizes(root)
            answer = _line(root, form, how)
    except TimeUp:
        return [problem_row(shown, form, given_up(how.seconds), sizes)]
    except (Exception, MemoryError) as error:  # of hostile input anything may come: it costs this row and no other
        return [problem_row(shown, form, told_problem(error, root, shown), sizes)]
    runs = answer.result.runs
    about = findings_by_run(runs, answer.findings)
    return [_row(answer, action, found, shown, form, root) for action, found in zip(runs, about, strict=True)]


def problem_row(shown: str, form: str, problem: Problem, sizes: tuple[int, int] = (0, 0)) -> ScannedRun:
    """Return the row of a folder that gave no answer."""
    return ScannedRun(
        path=shown,
        format=form,
        run="",
        action="undetermined",
        exit=problem.exit,
        newest=None,
        newest_time=None,
        chosen=None,
        chosen_time=None,
        last_time=None,
        age_ms=None,
        files=sizes[0],
        bytes=sizes[1],
        errors=1,
        warnings=0,
        infos=0,
        worst=(problem.id,),
        unchecked=0,
        error_id=problem.id,
        message=problem.message[:_LONGEST],
    )


def given_up(seconds: float) -> Problem:
    """Return what a row says of a run that took too long: nothing is known of it."""
    error = NotFinished(f"not finished in {seconds:g} s: --time-limit gives it longer")
    return Problem(error.id, error.message, error.exit_code)


def told_problem(error: BaseException, root: Root, shown: str = "") -> Problem:
    """Return what a row says of an error; a folder is called there what it is called in the row."""
    told = told_error(error)
    message = told.message
    for place in dict.fromkeys((root.uri("").rstrip("/"), root.path.rstrip("/"))):
        message = message.replace(place, shown) if shown else message
    return Problem(told.id, message, 3 if isinstance(told, SelfCheckFailed) else told.exit_code)


def _line(root: Root, form: str, how: HowToAsk) -> Answer[RecoveryLine]:
    """The line of a run, as the façade finds and concludes it; this process scans its logs, however large they are."""
    try:
        reading = Reading(lambda size: LocalEngine(how.io_threads), how.split_bytes, how.strict)
        kind = kind_of(parser_class(PARSERS[form])(root), Opened(root, reading, _logs_in(root, reading), _no_results))
        line = kind.recovery_line(kind.asked(Question()), KafkaLogs())
        return conclude(with_trouble(line, root), how.strict)
    except (CorruptInput, NotFound, OSError):
        refuse_unread(root)
        raise


def _logs_in(root: Root, reading: Reading) -> Any:
    def opened(folder: str) -> PartitionLogs | None:
        return logs_below(root if folder == root.path else replace(root, path=folder), reading)

    return opened


def _no_results(path: str) -> TimedResults:
    _never(path)


def _never(path: str) -> NoReturn:
    raise AssertionError(f"a line needs no results: {path}")


def _sizes(root: Root) -> tuple[int, int]:
    """Files and bytes below a folder."""
    try:
        files = root.tree().files
    except Exception:  # as the row says already
        return 0, 0
    return len(files), sum(entry.size for entry in files)


def _row(
    answer: Answer[RecoveryLine], action: RunAction, mine: Sequence[Finding], shown: str, form: str, root: Root
) -> ScannedRun:
    files, size = _sizes_below(root, action.path if len(answer.result.runs) > 1 else ".")
    told = None if action.age_ms is None or action.chosen_time is None else action.chosen_time + action.age_ms
    last = max((t for t in (told, action.newest_time, action.chosen_time) if t is not None), default=None)
    counts = {severity: [f.id for f in mine if f.severity == severity] for severity in ("error", "warning", "info")}
    worst = counts["error"] or counts["warning"]
    return ScannedRun(
        path=shown,
        format=form,
        run=action.run,
        action=action.action,
        exit=answer.exit_code,
        newest=action.newest,
        newest_time=action.newest_time,
        chosen=action.chosen,
        chosen_time=action.chosen_time,
        last_time=last,
        age_ms=action.age_ms,
        files=files,
        bytes=size,
        errors=len(counts["error"]),
        warnings=len(counts["warning"]),
        infos=len(counts["info"]),
        worst=tuple(dict.fromkeys(worst))[:_WORST],
        unchecked=len(action.unchecked),
        error_id=None,
        message=None,
    )


def _sizes_below(root: Root, folder: str) -> tuple[int, int]:
    return _sizes(root) if folder == "." else _sizes(root.listed_below(folder))


def as_told(row: ScannedRun) -> dict[str, Any]:
    """Return a row as another process tells it."""
    return asdict(row)
