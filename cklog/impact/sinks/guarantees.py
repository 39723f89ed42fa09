"""Which guarantee can be kept for a sink, from three pieces of evidence (Brand et al., BTW 2017, sections 3 to 5).

    input     what is processed again is still there, all of it
    state     the state as of the line can be loaded
    output    what the sink has already is dropped, hidden or overwritten when it comes again

Input and state together lose nothing (rollback recovery); with output as well nothing is doubled (precise recovery).
Without input or state results are missing (gap recovery). A piece of which nothing is known counts as not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cklog.impact.sinks.impact import Class, GuaranteeEvidence, SinkGuarantee


def guarantee_of(sink: str, readers: str, pieces: Iterable[GuaranteeEvidence]) -> SinkGuarantee:
    """The strongest class that holds, and what the next one would need.

    >>> kept = [GuaranteeEvidence("input", True, "kept"), GuaranteeEvidence("state", True, "stored")]
    >>> found = guarantee_of("query/0", "", [*kept, GuaranteeEvidence("output", None, "unknown-sink")])
    >>> found.guarantee, found.at_best, found.next, [piece.piece for piece in found.missing]
    ('at-least-once', 'exactly-once', 'exactly-once', ['output'])
    """
    evidence = tuple(pieces)
    held = _class(piece.piece for piece in evidence if piece.holds is not True)
    best = _class(piece.piece for piece in evidence if piece.holds is False)
    following = _NEXT[held]
    needless = "output" if held == "none" else ""
    missing = tuple(piece for piece in evidence if piece.holds is not True and piece.piece != needless)
    return SinkGuarantee(sink, readers, held, best, following, missing, evidence)


_NEXT: Mapping[Class, Class | None] = {
    "none": "at-least-once",
    "at-most-once": "exactly-once",
    "at-least-once": "exactly-once",
    "exactly-once": None,
}


def _class(lacking: Iterable[str]) -> Class:
    """The class that is left without some pieces."""
    without = set(lacking)
    if without <= {"output"}:
        return "at-least-once" if without else "exactly-once"
    return "none" if "output" in without else "at-most-once"


def all_hold(holds: Iterable[bool | None]) -> bool | None:
    """Whether all of several facts hold: one that does not outweighs one that is not known.

    >>> all_hold([True, None]), all_hold([None, False]), all_hold([])
    (None, False, True)
    """
    found = set(holds)
    return False if False in found else None if None in found else True
