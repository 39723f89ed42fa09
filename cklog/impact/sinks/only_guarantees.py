"""`cklog impact --guarantee`: what can be kept for each sink or output, and what the next class would need."""

from __future__ import annotations

from dataclasses import dataclass

from cklog.impact.model import Impact, OutputImpact
from cklog.impact.sinks.impact import Class, GuaranteeEvidence, SinkGuarantee, SinkImpact
from cklog.model.verdict import Draft

_STRENGTH: tuple[Class, ...] = ("none", "at-most-once", "at-least-once", "exactly-once")


@dataclass(frozen=True, slots=True)
class Guarantees:
    """One row for each sink or output and kind of reader."""

    guarantees: tuple[SinkGuarantee, ...]


def guarantees_only(found: Draft[Impact | SinkImpact | None]) -> Draft[Guarantees]:
    """Keep the guarantees of what `cklog impact` answers, and nothing else of it."""
    rows = _guarantees(found.result)
    return Draft(
        "impact-guarantee",
        Guarantees(rows),
        found.findings,
        found.inputs,
        unrecoverable=found.unrecoverable,
        indeterminate=found.indeterminate,
        spoken=found.spoken,
    )


def _guarantees(result: Impact | SinkImpact | None) -> tuple[SinkGuarantee, ...]:
    """One for each sink, or output, and kind of reader; none where no crash is known of."""
    if isinstance(result, SinkImpact):
        return result.guarantees
    return () if result is None else tuple(_of_output(output) for output in result.outputs)


def _of_output(output: OutputImpact) -> SinkGuarantee:
    """The strongest class that the evidence supports, and what the next stronger one lacks."""
    kept: list[Class] = [c.guarantee for c in output.classes if not c.missing]
    held: Class = max(kept, key=_STRENGTH.index, default="none")
    above = [c for c in output.classes if _STRENGTH.index(c.guarantee) > _STRENGTH.index(held)]
    following = min(above, key=lambda c: (_STRENGTH.index(c.guarantee), len(c.missing)), default=None)
    if following is None:
        return SinkGuarantee(output.output, "", held, held, None, (), ())
    pieces = tuple(GuaranteeEvidence("input", None, text) for text in following.missing)
    return SinkGuarantee(output.output, "", held, held, following.guarantee, pieces, pieces)
