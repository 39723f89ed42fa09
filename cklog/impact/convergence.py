"""How long results are wrong after a start without state, and how long they must not be trusted.

From operator to operator (paper, sections 3.1 and 3.2): an operator that starts empty at `since` has lost what came
before. A result at t is wrong while its window reaches back to a lost or wrong element; so convergence phases of
operators in a row add up. Trust is merged by minimum: the first element after the restart is untrustworthy, and so
is what merges it. Two places go beyond the paper, where its marks would miss wrong results: a filter may drop the
one marked element, so phases count and not marks; and windows that do not align again are never trusted again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cklog.impact.dataflow import classified
from cklog.impact.elements import Elements, ElementStream, merged
from cklog.impact.model import KINDS, ConvergenceKind, Operator, OperatorClass, Window


@dataclass(frozen=True, slots=True)
class Converging:
    """A stream whose operators started empty, and how long its results are wrong.

    Attributes
    ----------
    kind : whether the convergence phase ends
    end : it ends before that time (ms); None: not known, or nothing is wrong
    last : the last wrong result comes at that time at the latest; None likewise
    marked : time of the last result that merges a marked element, one that must not be trusted; None: there is none
    wrong : how many results are wrong, where windows of elements fix that, at most if not `dense`; None: they do not
    clear : the number of the first result that is right again, likewise
    indefinite : windows of elements, or the machine's clock, on the way: no trust can be derived
    dense : every result of the phase is wrong; False: some may be right
    """

    stream: ElementStream
    kind: ConvergenceKind = "none"
    end: int | None = None
    last: int | None = None
    marked: int | None = None
    wrong: int | None = None
    clear: int | None = None
    indefinite: bool = False
    dense: bool = True


def converging(
    operators: Sequence[Operator], elements: Mapping[str, Elements], since: int, restored: bool
) -> Converging:
    """Return what the last of `operators` yields when all start at `since` (ms).

    Parameters
    ----------
    operators : inputs first
    elements : of each source
    restored : with their states, so that only what is not deterministic may differ; False: empty
    """
    streams: dict[str, Converging] = {}
    for operator in operators:
        if operator.inputs:
            inputs = [streams[name] for name in operator.inputs]
            streams[operator.name] = _converging_after(operator, inputs, elements, since, restored)
        else:
            stream = ElementStream(elements, (operator.name,))
            streams[operator.name] = Converging(stream, marked=stream.marked_from(since))
    return streams[operators[-1].name]


def _converging_after(
    operator: Operator, inputs: list[Converging], elements: Mapping[str, Elements], since: int, restored: bool
) -> Converging:
    """What an operator yields from its inputs."""
    share = "some" if operator.drops else "all"
    stream = merged([i.stream for i in inputs], elements, "any" if operator.joins else share)
    base = _worst_of(stream, inputs)
    if operator.drops:  # how many of the wrong results it keeps is not known, nor the numbers of any
        base = replace(base, dense=False, clear=None)
    recovery = classified(operator).recovery
    if operator.stated == "arbitrary" or recovery == "arbitrary":
        kind: ConvergenceKind = "unknown" if any(w.system for w in operator.windows) else "infinite"
        return replace(base, kind=max(kind, base.kind, key=KINDS.index), end=None, last=None, indefinite=True)
    if operator.stated == "repeatable" or restored:
        return base
    if not operator.windows:
        return _through_stated_class(base, recovery)
    if not operator.joins:
        return _through_window(base, operator.windows[0], since, stream)
    sides = [_through_window(i, w, since, stream) for i, w in zip(inputs, operator.windows, strict=True)]
    return replace(_worst_of(stream, sides), wrong=None, clear=None)  # it pairs each element with any number of others


def _worst_of(stream: ElementStream, inputs: Sequence[Converging]) -> Converging:
    """Several streams as one: the worst of each field."""
    kind = max((i.kind for i in inputs), key=KINDS.index)
    counts = [i.wrong for i in inputs if i.kind != "none"]
    finite = [i for i in inputs if i.kind == "finite"]
    known = kind == "finite" and all(i.end is not None for i in finite)
    return Converging(
        stream,
        kind=kind,
        end=max((i.end for i in finite if i.end is not None), default=None) if known else None,
        last=max((i.last for i in finite if i.last is not None), default=None) if known else None,
        marked=max((i.marked for i in inputs if i.marked is not None), default=None),
        wrong=counts[0] if len(counts) == 1 else None,
        clear=inputs[0].clear if len(inputs) == 1 else None,
        indefinite=any(i.indefinite for i in inputs),
        dense=len({(i.kind, i.end) for i in inputs}) == 1 and all(i.dense for i in inputs),
    )


def _through_stated_class(base: Converging, recovery: OperatorClass) -> Converging:
    """What a stateful operator of a stated class yields whose windows nobody gave.

    >>> base = Converging(ElementStream({}, ()), end=7)
    >>> _through_stated_class(base, "repeatable").end
    7
    >>> [_through_stated_class(base, stated).kind for stated in ("convergent-capable", "deterministic")]
    ['finite', 'unknown']
    """
    if recovery == "repeatable":
        return base
    kind: ConvergenceKind = "finite" if recovery == "convergent-capable" else "unknown"
    return replace(base, kind=max(kind, base.kind, key=KINDS.index), end=None, last=None, wrong=None, marked=None)


def _through_window(given: Converging, window: Window, since: int, made: ElementStream) -> Converging:
    """What a window over an input makes of it; results are `made` at the times of all inputs.

    The window of a result reaches back to the last lost or wrong element (`last`) until `end`, the first time whose
    window holds nothing up to `last`.
    """
    if window.kind == "count":
        return _through_count_window(given, window, since)
    if KINDS.index(given.kind) > KINDS.index("finite"):
        return given
    if given.kind == "finite" and given.last is None:
        return replace(given, wrong=None)
    lost = given.stream.last_before(since)
    last = max((time for time in (lost, given.last) if time is not None), default=None)
    if last is None:
        return given
    aligned = window.start is not None or given.stream.aligned(window.slide, window.start, since)
    if not aligned:
        return replace(given, kind="infinite" if aligned is False else "unknown", end=None, last=None, wrong=None)
    start = window.start if window.start is not None else _first_start(given.stream, since)
    end = _first_without(window, last, start)
    dense = given.dense and given.stream.comes_at(last)
    wrong = made.last_before(end)
    marked = None if given.marked is None else made.last_before(_first_without(window, given.marked, start))
    if wrong is None or wrong < since:
        return replace(given, kind="none", end=None, last=None, marked=marked)
    return replace(given, kind="finite", end=end, last=wrong, marked=marked, wrong=None, clear=None, dense=dense)


def _first_start(stream: ElementStream, since: int) -> int | None:
    """A time that windows of an operator without a logged start are known to align with, None: none is."""
    first = stream.time_of(0) if len(stream.sources) == 1 else None
    return first if first is not None else stream.first_from(since)


def _first_without(window: Window, last: int, start: int | None) -> int:
    """The first time whose window holds nothing up to `last`; a bound, if windows align with no known time."""
    return last + window.size if start is None else window.first_without(last, start)


def _through_count_window(given: Converging, window: Window, since: int) -> Converging:
    """The same by numbers of elements, as far as those are known: windows of n elements that start again at 0.

    `first` is the number of the first element after the start, `lost` of the last lost or wrong one, and `clear` of
    the first one whose window holds nothing up to `lost`.
    """
    found = replace(given, indefinite=True, end=None, last=None, wrong=None, clear=None, kind="unknown")
    if KINDS.index(given.kind) > KINDS.index("finite"):
        return replace(found, kind=given.kind)
    first = given.stream.number(since)
    if first is None:
        if window.slide != 1 or given.kind != "none":
            return found
        fewer = window.size - 1  # so many windows hold too few elements, wherever the stream goes on
        return replace(found, kind="finite" if fewer else "none", wrong=fewer)
    if first == 0 and given.kind == "none":
        return replace(found, kind="none")
    if first % window.slide:
        return replace(found, kind="infinite")
    lost = first - 1
    if given.kind == "finite":
        behind = given.clear
        if behind is None and given.last is not None:
            behind = given.stream.number(given.last + 1)
        if behind is None:
            return replace(found, kind="finite" if window.slide == 1 else "unknown")
        lost = behind - 1
    clear = window.first_without(lost, 0)
    if clear <= first:
        return replace(found, kind="none")
    end, last = given.stream.time_of(clear), given.stream.time_of(clear - 1)
    end = end if end is None or last is None else max(end, last + 1)  # elements of one time may lie on both sides
    return replace(found, kind="finite", end=end, last=last, wrong=clear - first, clear=clear)
