"""All questions about a run, asked one after the other: one that is refused or fails costs the others nothing."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from cklog.chains.answer import ChainQuestion
from cklog.errors import CklogError, NotFound, UsageError, first_line
from cklog.graphs.selection import GraphQuestion
from cklog.impact.answer import ImpactQuestion
from cklog.local_files import told_error
from cklog.model.findings import Finding
from cklog.model.lines import RecoveryLine
from cklog.model.question import KafkaLogs, Question
from cklog.model.verdict import FLAWS, Answer
from cklog.report.evidence import evidence_of
from cklog.report.model import EvidenceFile, Part, PartName, Report, ReportQuestion
from cklog.retention.policy import RetentionPolicy
from cklog.run import Run

if TYPE_CHECKING:
    from cklog.graphs.space_time.diagram import Drawing

R = TypeVar("R")

_NO_EVIDENCE: tuple[tuple[EvidenceFile, ...], int] = ((), 0)
_MISSING = frozenset({"no-metadata", "missing-state-file", "unreadable-file", "unfollowed-link"})
"""Findings that speak of files that are gone or were not read, beside those of damaged bytes."""

_MOST_NEWER = 10_000
"""Checkpoints newer than the line among which a proof looks for a newer line: of more that takes minutes."""

FOLDED_ABOVE = 60
"""Subtasks; of more the picture has a lane for each operator."""


@dataclass(slots=True)
class Composed:
    """A report with what documents need beside its value: the whole answer of every part, and a picture.

    `picture` is None where there is no checkpoint graph, as `no_picture` says.
    """

    answer: Answer[Report]
    answers: dict[PartName, Answer[Any]]
    picture: Drawing | None = None
    no_picture: str = ""
    folded: bool = False


def compose(
    run: Run, asked: ReportQuestion, question: Question, kafka: KafkaLogs = KafkaLogs(), draws: bool = False
) -> Composed:
    """Ask a run everything that a report holds; `draws`: the space-time diagram, too.

    Raises
    ------
    CklogError : the recovery line has no answer, and so there is no report
    """
    with run.kind.reading_once():
        return _compose(run, asked, question, kafka, draws)


def _compose(run: Run, asked: ReportQuestion, question: Question, kafka: KafkaLogs, draws: bool) -> Composed:
    line = run.recovery_line(replace(question, explain=True), kafka)
    asking = _Asking(asked, set(line.findings), {"recovery-line": line})
    asking.parts.append(
        Part("recovery-line", asking.command("recovery-line"), "answered", line.verdict, line.exit_code)
    )
    timed = line.result.recovery_time is not None
    asking.parts.append(
        Part(
            "recovery-time",
            asking.command("recovery-line"),
            "answered" if timed else "refused",
            why="" if timed else "Nothing tells how long a recovery takes.",
        )
    )
    asking.ask("runbook", "runbook", lambda: run.runbook_after(line, question, kafka))
    chosen = replace(question, at=(), earliest=False)
    newer = len(line.result.rolled_back)
    maximal = not question.at and newer <= _MOST_NEWER
    asking.ask("proof", "verify", lambda: run.verify(_as_given(line.result), maximal, chosen))
    if not (maximal or question.at) and "proof" in asking.answers:
        asking.leave(
            f"That no newer line is consistent was not proved: {newer:,} checkpoints are newer than the line, which "
            "takes minutes. cklog verify --line FILE --maximal proves it, FILE being what "
            "cklog recovery-line --json prints."
        )
    asking.ask("replay", "replay", lambda: run.replay(question, kafka))
    asking.ask("impact", "impact", lambda: run.impact(ImpactQuestion(), question, kafka))
    asking.ask("chains", "chain", lambda: run.chain(ChainQuestion()))
    asking.ask("retention", "retention", lambda: run.retention(RetentionPolicy()))
    whole = Question(as_of=question.as_of)
    asking.ask("failures", "recovery-line --failed-at all", lambda: run.failures_over_time(whole, None))
    asking.ask("damage", "inspect", run.inspect)
    inspected = asking.answers.get("damage")
    evidence, not_hashed = asking.tried(lambda: evidence_of(run.root, line), _NO_EVIDENCE)
    found = {name: answer.result for name, answer in asking.answers.items()}
    report = Report(
        action=line.result.action,
        runs=line.result.runs,
        summary="" if inspected is None else inspected.result["summary"],
        format=run.parser.name,
        arguments=("cklog", "report", asked.path, *asked.options, *asked.rates),
        parts=tuple(asking.parts),
        damage=tuple(f for f in asking.findings() if f.id in FLAWS | _MISSING),
        evidence=evidence,
        not_hashed=not_hashed,
        recovery_line=line.result,
        runbook=found.get("runbook"),
        proof=found.get("proof"),
        replay=found.get("replay"),
        impact=found.get("impact"),
        chains=found.get("chains"),
        retention=found.get("retention"),
        failures=found.get("failures"),
    )
    run.spoken[:] = dict.fromkeys(run.spoken)  # most questions say the same of what they read
    answer = Answer("report", line.verdict, line.exit_code, line.inputs, line.findings, report)
    composed = Composed(answer, asking.answers)
    if draws:
        _draw(run, question, composed)
    return composed


@dataclass(slots=True)
class _Asking:
    """The questions that were asked so far, and their answers; `known` are the findings of the line."""

    asked: ReportQuestion
    known: set[Finding]
    answers: dict[PartName, Answer[Any]]
    parts: list[Part] = field(default_factory=list)

    def ask(self, name: PartName, command: str, question: Callable[[], Answer[Any]]) -> None:
        """Ask one question and keep its answer, or why it has none."""
        typed = self.command(command)
        try:
            answer = question()
        except (NotFound, UsageError) as refused:
            self.parts.append(Part(name, typed, "refused", why=_sentence(refused, self.asked.path)))
        except Exception as error:  # an incident waits for no part of its report
            told = told_error(error)
            why = _sentence(told, self.asked.path)
            lost = (Finding(told.id, "error", self.asked.path, f"no {name}: {told.message}", effect="none"),)
            self.parts.append(Part(name, typed, "failed", exit_code=told.exit_code, why=why, findings=lost))
        else:
            new = tuple(f for f in answer.findings if f not in self.known)
            if answer.result is None:
                why = next((f"{f.message}." for f in answer.findings), "Nothing is known of a crash.")
                self.parts.append(Part(name, typed, "refused", answer.verdict, answer.exit_code, why, findings=new))
                return
            self.parts.append(Part(name, typed, "answered", answer.verdict, answer.exit_code, findings=new))
            self.answers[name] = answer

    def leave(self, what: str) -> None:
        """Say what is left out of the part that was asked last."""
        self.parts[-1] = replace(self.parts[-1], left=what)

    def tried(self, make: Callable[[], R], otherwise: R) -> R:
        """Make something that the report can do without."""
        try:
            return make()
        except (CklogError, OSError):
            return otherwise

    def findings(self) -> list[Finding]:
        """Return the findings of all parts, each once."""
        return list(dict.fromkeys(f for answer in self.answers.values() for f in answer.findings))

    def command(self, words: str) -> str:
        """Write the command that asks for one part alone."""
        name, _, more = words.partition(" ")
        options = self.asked.options if name in _TAKE_OPTIONS else ()
        given = shlex.join([self.asked.path, *options, *(self.asked.rates if name in _TAKE_RATES else ())])
        return f"cklog {name} {given}{f' {more}' if more else ''}"


_TAKE_RATES = ("recovery-line", "replay")
_TAKE_OPTIONS = ("recovery-line", "runbook", "replay", "impact")


def _as_given(line: RecoveryLine) -> dict[str, int | None]:
    """Return a line as `verify` is given one.

    Raises
    ------
    NotFound : it is none that could be proved
    """
    if not line.consistent or not line.line:
        raise NotFound("there is no consistent line to prove")
    if any(entry.state == "eventual" for entry in line.line):
        hint = "cklog eventual-checkpoint --forward proves it"
        raise NotFound("the line comes back from output queues, and only stored checkpoints can be proved", hint)
    return {f"{entry.operator}/{entry.subtask}": entry.checkpoint for entry in line.line}


def _sentence(error: CklogError, path: str) -> str:
    """Return what an error says as one sentence."""
    hint = f" ({error.hint})" if error.hint else ""
    message = error.message.removeprefix(f"{path}: ")
    message = message[:1].upper() + message[1:]
    return f"{message}{hint}."


def _draw(run: Run, question: Question, composed: Composed) -> None:
    """Draw the space-time diagram of a run whose subtasks checkpoint one by one."""
    line = composed.answer.result.recovery_line.line
    operators = len({entry.operator for entry in line})
    folded = len(line) > FOLDED_ABOVE >= operators
    asked = GraphQuestion(form="svg", fold=folded, marked=not folded)
    try:
        from cklog.graphs.space_time.diagram import space_time

        composed.picture = space_time(run.graph(question, asked), asked)
        composed.folded = folded
    except CklogError as error:
        composed.no_picture = _sentence(error, run.root.path)
    except Exception as bug:  # as above
        composed.no_picture = f"A bug in cklog: {type(bug).__name__}: {first_line(bug)}."
