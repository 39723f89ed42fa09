"""Which guarantee can be kept for a sink, from three pieces of evidence (Brand et al., BTW 2017, sections 3 to 5).

    input     what is processed again is still there, all of it
    state     the state as of the line can be loaded
    output    what the sink has already is dropped, hidden or overwritten when it comes again

Input and state together lose nothing (rollback recovery); with output as well nothing is doubled (precise recovery).
Without input or state results are missing (gap recovery). A piece of which nothing is known counts as not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cklog.impact.model import GUARANTEES, GuaranteeClass, Impact, OutputImpact
from cklog.impact.sinks.model import GuaranteeEvidence, SinkGuarantee, SinkImpact
from cklog.model.verdict import Draft


def guarantee_of(sink: str, readers: str, pieces: Iterable[GuaranteeEvidence]) -> SinkGuarantee:
    """Return the strongest guarantee that the evidence supports, and what the next one would need.

    >>> kept = [GuaranteeEvidence("input", True, "kept"), GuaranteeEvidence("state", True, "stored")]
    >>> found = guarantee_of("query/0", "", [*kept, GuaranteeEvidence("output", None, "unknown-sink")])
    >>> found.guarantee, found.at_best, found.next, [piece.piece for piece in found.missing]
    ('at-least-once', 'exactly-once', 'exactly-once', ['output'])
    """
    evidence = tuple(pieces)
    held = _guarantee_without(piece.piece for piece in evidence if piece.holds is not True)
    needless = "output" if held == "none" else ""
    return SinkGuarantee(
        sink=sink,
        readers=readers,
        guarantee=held,
        at_best=_guarantee_without(piece.piece for piece in evidence if piece.holds is False),
        next=_NEXT[held],
        missing=tuple(piece for piece in evidence if piece.holds is not True and piece.piece != needless),
        evidence=evidence,
    )


_NEXT: Mapping[GuaranteeClass, GuaranteeClass | None] = {
    "none": "at-least-once",
    "at-most-once": "exactly-once",
    "at-least-once": "exactly-once",
    "exactly-once": None,
}


def _guarantee_without(lacking: Iterable[str]) -> GuaranteeClass:
    """The guarantee that is left without some pieces.

    >>> _guarantee_without([]), _guarantee_without(["output"]), _guarantee_without(["state"])
    ('exactly-once', 'at-least-once', 'at-most-once')
    """
    without = set(lacking)
    if without <= {"output"}:
        return "at-least-once" if without else "exactly-once"
    return "none" if "output" in without else "at-most-once"


def all_hold(holds: Iterable[bool | None]) -> bool | None:
    """Return whether all of several facts hold: one that does not outweighs one that is not known.

    >>> all_hold([True, None]), all_hold([None, False]), all_hold([])
    (None, False, True)
    """
    found = set(holds)
    if False in found:
        return False
    return None if None in found else True


# --- `cklog impact --guarantee`: the guarantees and nothing else


@dataclass(frozen=True, slots=True)
class Guarantees:
    """The answer of `cklog impact --guarantee`: one row for each sink or output and kind of reader."""

    guarantees: tuple[SinkGuarantee, ...]


def guarantees_only(found: Draft[Impact | SinkImpact | None]) -> Draft[Guarantees]:
    """Keep the guarantees of what `cklog impact` answers, and nothing else of it."""
    return Draft(
        "impact-guarantee",
        Guarantees(_guarantees_in(found.result)),
        found.findings,
        found.inputs,
        unrecoverable=found.unrecoverable,
        indeterminate=found.indeterminate,
        spoken=found.spoken,
    )


def _guarantees_in(result: Impact | SinkImpact | None) -> tuple[SinkGuarantee, ...]:
    """One for each sink, or output, and kind of reader; none where no crash is known of."""
    if isinstance(result, SinkImpact):
        return result.guarantees
    return () if result is None else tuple(_output_guarantee(output) for output in result.outputs)


def _output_guarantee(output: OutputImpact) -> SinkGuarantee:
    """The strongest guarantee that the evidence supports, and what the next stronger one lacks."""
    kept = [c.guarantee for c in output.classes if not c.missing]
    held: GuaranteeClass = max(kept, key=GUARANTEES.index, default="none")
    stronger = [c for c in output.classes if GUARANTEES.index(c.guarantee) > GUARANTEES.index(held)]
    following = min(stronger, key=lambda c: (GUARANTEES.index(c.guarantee), len(c.missing)), default=None)
    pieces = () if following is None else tuple(GuaranteeEvidence("input", None, text) for text in following.missing)
    return SinkGuarantee(
        sink=output.output,
        readers="",
        guarantee=held,
        at_best=held,
        next=None if following is None else following.guarantee,
        missing=pieces,
        evidence=pieces,
    )
