"""A report as a value: the typed results of all questions, what to do, and what the answers rest on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cklog.chains.model import ChainAnswer
from cklog.impact.model import Impact
from cklog.impact.sinks.model import SinkImpact
from cklog.model.actions import Action, RunAction
from cklog.model.checks import Verification
from cklog.model.findings import Finding
from cklog.model.lines import RecoveryLine
from cklog.model.recovery_time import RecoveryRates
from cklog.model.verdict import Verdict
from cklog.protocols.failures_over_time import FailuresOverTime
from cklog.retention.plan import RetentionPlan
from cklog.runbook.model import Runbook

PartName = Literal[
    "recovery-line",
    "recovery-time",
    "runbook",
    "proof",
    "replay",
    "impact",
    "chains",
    "retention",
    "failures",
    "damage",
]


@dataclass(frozen=True, slots=True)
class ReportQuestion:
    """What a report is asked: of which failure, and with which words the commands in it name the run.

    `path` as typed; `options` are those that choose the line and the run, as words of a command line, and `rates` those
    that tell how long a recovery takes.
    """

    path: str
    options: tuple[str, ...] = ()
    rates: tuple[str, ...] = ()


def rate_words(rates: RecoveryRates) -> tuple[str, ...]:
    """Return rates as words of a command line.

    >>> rate_words(RecoveryRates(read=12.5, most_s=60))
    ('--read-rate', '12.5', '--max-recovery-time', '60')
    """
    named = {
        "--read-rate": rates.read,
        "--replay-rate": rates.replay,
        "--input-rate": rates.input,
        "--max-recovery-time": rates.most_s,
    }
    return tuple(word for name, rate in named.items() if rate is not None for word in (name, f"{rate:.15g}"))


@dataclass(frozen=True, slots=True)
class Part:
    """One question of the report.

    Attributes
    ----------
    name : which part
    command : what asks for it alone
    state : answered; refused, where this kind of run has no such answer; failed, where it should have had one
    verdict, exit_code : of its own answer; None: it has none
    why : why it is left out, in a sentence
    left : what is left out of an answer for its size, in a sentence, with the command that has it
    findings : those that the recovery line's answer does not have
    """

    name: PartName
    command: str
    state: Literal["answered", "refused", "failed"]
    verdict: Verdict | None = None
    exit_code: int | None = None
    why: str = ""
    left: str = ""
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class EvidenceFile:
    """A file, or all files below a folder, that the answers may rest on.

    Attributes
    ----------
    path : below PATH; a folder ends in /
    files, bytes : how many, and how large
    sha256 : of a file its bytes'; of a folder that of what `sha256sum` prints of its files in the order of their
        names, as bytes; None: not computed
    """

    path: str
    files: int
    bytes: int
    sha256: str | None


@dataclass(frozen=True, slots=True)
class Report:
    """The one document of an incident.

    Attributes
    ----------
    action, runs : as in the recovery line
    summary : what lies there, in a sentence
    format : what was recognised
    arguments : the words of the command line that the answers depend on
    parts : every question, and what became of it
    damage : findings of all parts that speak of damaged or missing bytes
    evidence : the files that decided; `not_hashed` counts the files that were left out for their size or number
    recovery_line, runbook, proof, replay, impact, chains, retention, failures : the results, the steps of `runbook`
        among them; None: left out, as `parts` says
    """

    action: Action
    runs: tuple[RunAction, ...]
    summary: str
    format: str
    arguments: tuple[str, ...]
    parts: tuple[Part, ...]
    damage: tuple[Finding, ...]
    evidence: tuple[EvidenceFile, ...]
    not_hashed: int
    recovery_line: RecoveryLine
    runbook: Runbook | None
    proof: Verification | None
    replay: RecoveryLine | None
    impact: Impact | SinkImpact | None
    chains: ChainAnswer | None
    retention: RetentionPlan | None
    failures: FailuresOverTime | None
