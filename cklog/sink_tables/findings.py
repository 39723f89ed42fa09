"""What tables say of a restart, as findings and in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cklog.model.findings import Effect, Finding, Severity, Where
from cklog.model.wording import first_few, many
from cklog.sink_tables.model import Fate, Outcome, SinkFit

WHY: Mapping[str, str] = {
    "line-not-read": "there are checkpoints that could not be read, and so no line",
    "not-whole": "its newest metadata is damaged or unknown: it may have taken more, or less",
    "not-numbered": "Spark's commits to Paimon have no batch number: a batch that runs again is taken again",
    "not-stamped": "its commits do not record which batch or checkpoint of the job they belong to",
    "other-writer": "no commit there has the id of this job",
    "other-attempt": "a job that is not here has written newer numbers by the same operator: a later attempt, perhaps",
    "forgotten": "the snapshots that said what this job has written are expired",
    "pending-not-read": "what the state has pending for it was not read",
    "pending-unseen": "files that the state has pending for it are outside PATH (--map OLD=NEW)",
    "pending-not-numbered": "the state does not say under which number it commits what is pending",
}
"""Why it cannot be told whether a table and a line agree."""

_UNITS = {"batch": ("batch", "batches"), "checkpoint": ("checkpoint", "checkpoints")}


def spans_words(outcomes: Sequence[Outcome], most: int = 3) -> str:
    """Return the numbers of outcomes as words.

    >>> spans_words([Outcome("twice", 6, 9), Outcome("twice", 12, None)]), spans_words([Outcome("twice", 8, 8)])
    ('6 to 8, 12 and on', '')
    """
    return first_few([_span_word(one) for one in outcomes if one.to is None or one.to > one.from_], most)


def _span_word(one: Outcome) -> str:
    if one.to is None:
        return f"{one.from_} and on"
    return str(one.from_) if one.to == one.from_ + 1 else f"{one.from_} to {one.to - 1}"


def fit_findings(fit: SinkFit, unit: str) -> Iterable[Finding]:
    """Return what is wrong, or not known, with a restart of which a table has its own account.

    Parameters
    ----------
    unit : what the numbers count: "batch" or "checkpoint"
    """
    lost = _harm(fit, "skipped-wrongly")
    if lost:
        sure = any(one.strength == "sure" for one in lost)
        yield _finding(
            fit,
            "silent-loss",
            "error",
            f"the table remembers {unit} {fit.remembers}, so what a restart writes as {_named(unit, lost)} "
            f"{'is' if sure else 'may be'} dropped without a word, and rows with it",
        )
    twice = _harm(fit, "twice")
    if twice:
        sure = any(one.strength == "sure" for one in twice)
        by = f" by commit {fit.commit}" if fit.commit else ""
        yield _finding(
            fit,
            "taken-twice",
            "error" if fit.agrees is False else "warning",
            f"rows of {_named(unit, twice)} are there{by}, and {'come' if sure else 'may come'} again",
        )
    gone = fit.of("missing")
    if gone:
        known = any(one.strength == "sure" for one in gone)
        reached = "nothing of this job" if fit.taken_to is None else f"this job's rows up to {unit} {fit.taken_to}"
        yield _finding(
            fit,
            "sink-behind",
            "error" if known else "warning",
            f"the line is at {unit} {fit.line}, and the table has {reached}: {_named(unit, gone)} "
            f"{_be(gone) if known else 'may be'} missing, and written by nobody again",
        )
    fails = [one for one in fit.pending if one.fate == "fails"]
    if fails:
        files = [path for one in fails for path in one.missing or ()]
        yield _finding(
            fit,
            "pending-files-gone",
            "error",
            f"a restore commits {unit} {first_few([str(one.number) for one in fails], 3)} again, for the table does "
            f"not remember it, and {many(len(files), 'file')} of it are gone: the restore fails",
            files[:5],
        )
    if "forgotten" in fit.why:
        severity: Severity = "error" if fit.pending else "warning"
        yield _finding(fit, "sink-expired", severity, f"{WHY['forgotten']}; what is pending is committed again")
    others = [word for word in fit.why if word in ("not-numbered", "not-stamped", "other-writer", "other-attempt")]
    if others:
        by_hand = others[0] == "not-stamped" and unit == "batch"
        how = " (as by foreachBatch without txnAppId and txnVersion)" if by_hand else ""
        yield _finding(fit, "unknown-writer", "warning", f"{WHY[others[0]]}{how}{_candidates(fit)}")


def _candidates(fit: SinkFit) -> str:
    streams = [one.writer for one in fit.others if not one.writer.startswith("(")]
    return f"; {first_few(streams, 3)} did: --sink ID=URI, if that is this job" if streams else ""


_EFFECTS: Mapping[str, Effect] = {
    "silent-loss": "data-lost",
    "taken-twice": "data-duplicated",
    "sink-behind": "data-lost",
    "pending-files-gone": "restart-fails",
    "sink-expired": "data-duplicated",
    "unknown-writer": "unknown",
}


def _harm(fit: SinkFit, fate: Fate) -> list[Outcome]:
    return [one for one in fit.of(fate) if one.strength != "unknown"]


def _named(unit: str, outcomes: Sequence[Outcome]) -> str:
    """Return numbers of outcomes with what they count.

    >>> _named("batch", [Outcome("twice", 3, 4)]), _named("batch", [Outcome("twice", 3, 5)])
    ('batch 3', 'batches 3 to 4')
    """
    return f"{_UNITS[unit][0 if _single(outcomes) else 1]} {spans_words(outcomes)}"


def _be(outcomes: Sequence[Outcome]) -> str:
    return "is" if _single(outcomes) else "are"


def _single(outcomes: Sequence[Outcome]) -> bool:
    return len(outcomes) == 1 and outcomes[0].to == outcomes[0].from_ + 1


def _finding(fit: SinkFit, id: str, severity: Severity, what: str, files: Sequence[str] = ()) -> Finding:
    where = (Where(fit.uri), *(Where(file) for file in files))
    return Finding(id, severity, fit.name, f"{fit.name}: {what}", where, effect=_EFFECTS[id])
