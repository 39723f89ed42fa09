"""Which recovery classes the evidence supports for an output, and which piece the next one lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cklog.impact.checkpoint import Image
from cklog.impact.dataflow import Dataflow, classified
from cklog.impact.elements import Elements
from cklog.impact.logs import LoggedElements
from cklog.impact.model import RECOVERIES, ClassSupport, ConvergenceKind, GuaranteeClass, Operator, RecoveryClass
from cklog.impact.system import Event


@dataclass(frozen=True, slots=True)
class RecoveryMeans:
    """What there is to recover with: `images` of checkpoints, logs among `elements`, the last element `sent`.

    `images` : the checkpoint that each recovery class goes back to
    `retained` : the first element that a source's log still keeps, where the manifest says so
    """

    images: Mapping[RecoveryClass, Image | None]
    elements: Mapping[str, Elements]
    sent: Mapping[str, Event]
    retained: Mapping[str, int]
    restart: int | None


def supported(
    flow: Dataflow, output: str, pieces: RecoveryMeans, stateless: ConvergenceKind
) -> tuple[ClassSupport, ...]:
    """All four classes for an output with what each lacks; `stateless` is the convergence without the image."""
    operators = flow.above(output)
    unrepeatable = [o.name for o in operators if classified(o).recovery == "arbitrary"]
    missing: dict[RecoveryClass, tuple[str, ...]] = {"gap": ()}
    sources = flow.sources_of(output)
    newest, whole = pieces.images["stateless-rollback"], pieces.images["rollback"]
    missing["stateless-rollback"] = tuple(m for name in sources for m in _input(name, newest, pieces))
    replay = tuple(m for name in sources for m in _input(name, whole, pieces))
    missing["rollback"] = (*replay, *_states(operators, whole))
    missing["precise"] = (*missing["rollback"], *_watermark(operators, output, pieces), *_determinism(unrepeatable))
    delivery = operators[-1].delivery
    return tuple(
        ClassSupport(name, guarantee(name, stateless, delivery != "plain", not unrepeatable), missing[name])
        for name in RECOVERIES
    )


def guarantee(recovery: RecoveryClass, stateless: ConvergenceKind, dedupes: bool, repeats: bool) -> GuaranteeClass:
    """What a recovery class guarantees (paper, sections 3 to 5).

    Without operator states results are complete only if there is no convergence phase; a sink that takes nothing
    twice turns at least once into exactly once; and no replay gives the same results if operators do not repeat.
    """
    if recovery == "gap":
        return "at-most-once"
    if not repeats or (recovery == "stateless-rollback" and stateless != "none"):
        return "none"
    return "exactly-once" if recovery == "precise" or dedupes else "at-least-once"


def _input(source: str, image: Image | None, pieces: RecoveryMeans) -> list[str]:
    """What a replay of a source's elements since a checkpoint lacks."""
    elements = pieces.elements[source]
    span = elements.span() if isinstance(elements, LoggedElements) else None
    if span is None or not isinstance(elements, LoggedElements):
        return [f"an input log of {source}"]
    first = image.positions.get(source) if image is not None else None
    if first is None:
        return [f"the element of {source} that was the last one before a checkpoint"]
    lowest = max(span.first, pieces.retained.get(source, 0))
    if lowest > first:
        return [f"elements {first} to {lowest - 1} of {source}, before the first one that its log keeps"]
    if pieces.restart is not None and span.last_time < pieces.restart:
        return [f"elements of {source} after element {span.last}, where its log ends before the restart"]
    if span.elements < span.last - span.first + 1:
        holes = span.last - span.first + 1 - span.elements
        return [f"{holes} elements of {source} between {span.first} and {span.last}, which its log lacks"]
    return []


def _states(operators: tuple[Operator, ...], image: Image | None) -> list[str]:
    stored = image.states if image is not None else {}
    lacking = [o.name for o in operators if o.stateful and o.name not in stored]
    at = "a checkpoint" if image is None else f"checkpoint {image.number}"
    return [f"the state of {name} at {at}" for name in lacking]


def _watermark(operators: tuple[Operator, ...], output: str, pieces: RecoveryMeans) -> list[str]:
    if output in pieces.sent or operators[-1].delivery != "plain":
        return []
    return [f"the last element that {output} sent before the crash, or a sink that takes nothing twice"]


def _determinism(unrepeatable: list[str]) -> list[str]:
    return [f"an operator in place of {name} that repeats its results" for name in unrepeatable]
