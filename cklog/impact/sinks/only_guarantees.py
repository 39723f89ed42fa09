"""`cklog impact --guarantee`: what can be kept for each sink or output, and what the next class would need."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cklog.impact.model import Impact, OutputImpact
from cklog.impact.sinks.impact import Class, GuaranteeEvidence, SinkGuarantee, SinkImpact
from cklog.model.verdict import Answer

_STRENGTH: tuple[Class, ...] = ("none", "at-most-once", "at-least-once", "exactly-once")


@dataclass(frozen=True, slots=True)
class Guarantees:
    """One row for each sink or output and kind of reader."""

    guarantees: tuple[SinkGuarantee, ...]


def guarantees_only(found: Answer) -> Answer:
    """The guarantees of what `cklog impact` answers, and nothing else of it."""
    result = found.result
    if isinstance(result, SinkImpact):
        rows = result.guarantees
    else:
        rows = tuple(_of_output(output) for output in result.outputs) if isinstance(result, Impact) else ()
    return replace(found, command="impact-guarantee", result=Guarantees(rows))


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
