"""The impact of a restart with the findings and the action of the line that it restarts from.

An error of the line weighs on results, whether or not an interval shows it: one of which nothing is known, one that
stops the restart, or one that loses records. Where no interval shows it, guarantees lose what they rest on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from cklog.impact.sinks.guarantees import guarantee_of
from cklog.impact.sinks.model import GuaranteeEvidence, OutputInterval, ResultFate, SinkGuarantee, SinkImpact
from cklog.model.findings import Effect, Finding
from cklog.model.lines import RecoveryLine
from cklog.model.verdict import Draft

LOST, DOUBLED = ("missing", "may-be-missing"), ("doubled", "may-be-doubled")


def with_line(found: Draft[SinkImpact], line: Draft[RecoveryLine]) -> Draft[SinkImpact]:
    """Add to an impact what the line of the same question has found, and the line, whose action it is to say."""
    findings = list(dict.fromkeys([*line.findings, *found.findings]))
    read = {used.path for used in found.inputs}
    result = replace(
        found.result,
        intervals=(*found.result.intervals, *_never_read(found.result, line.result)),
        guarantees=tuple(_weakened(found.result, [f for f in findings if f.blocks])),
    )
    return replace(
        found,
        result=result,
        findings=findings,
        inputs=[*found.inputs, *(used for used in line.inputs if used.path not in read)],
        unrecoverable=line.unrecoverable or found.unrecoverable,
        indeterminate=line.indeterminate or found.indeterminate,
        line=line.result,
    )


def _never_read(found: SinkImpact, line: RecoveryLine) -> Iterable[OutputInterval]:
    """Yield what a restart skips of topics that were created again under the name of those that the line has read.

    Which sink gets the results of a source is not known where there are several. What a reader does whose offset lies
    beyond the log's end depends on its settings.
    """
    sinks = list(dict.fromkeys(row.sink for row in found.guarantees))
    for row in line.details.get("recreated_topics", ()):
        start, end = row["start"], min(row["stored"], row["end"])
        fate: ResultFate = "missing" if len(sinks) == 1 and row["stored"] <= row["end"] else "may-be-missing"
        for sink in sinks:
            yield OutputInterval(sink, "", fate, row["source"], start, end, end, end - start, "another-log")


def not_shown(found: SinkImpact, errors: Iterable[Finding]) -> list[Finding]:
    """Return the errors whose effect on results no interval and no evidence of an impact shows.

    Evidence that the errors of the line are themselves shows nothing of them.
    """
    fates: set[str] = {row.fate for row in found.intervals}
    pieces = (piece for row in found.guarantees for piece in row.evidence)
    lacks = {piece.piece for piece in pieces if piece.holds is False and piece.because != "line-errors"}
    shown: dict[Effect, bool] = {
        "data-lost": not fates.isdisjoint(LOST) or not lacks.isdisjoint(("input", "state")),
        "data-duplicated": not fates.isdisjoint(DOUBLED) or "output" in lacks,
        "older-line": True,
    }
    return [error for error in errors if not shown.get(error.effect, False)]


def _weakened(found: SinkImpact, errors: Sequence[Finding]) -> Iterable[SinkGuarantee]:
    """Take from every guarantee what errors that nothing else shows take from it."""
    evidence = list(_evidence(not_shown(found, errors)))
    for row in found.guarantees:
        yield guarantee_of(row.sink, row.readers, [*row.evidence, *evidence]) if evidence else row


def _evidence(errors: Collection[Finding]) -> Iterable[GuaranteeEvidence]:
    lost = _named(errors, "data-lost")
    doubled = _named(errors, "data-duplicated")
    open_ = _named(errors, "unknown", "restart-fails")
    if lost:
        yield GuaranteeEvidence("state", False, "line-errors", lost)
    if doubled:
        yield GuaranteeEvidence("output", False, "line-errors", doubled)
    if open_:
        yield GuaranteeEvidence("state", None, "line-errors", open_)


def _named(errors: Iterable[Finding], *effects: Effect) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"{f.id} of {f.subject}" for f in errors if f.effect in effects))
