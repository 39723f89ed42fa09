"""Findings of an answer about chains, and sentences about links that fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from cklog.chains.model import BrokenLink, ChainAnswer, ChainRow
from cklog.inputs.pieces import subject_of
from cklog.model.findings import Finding, Severity, Where, effect_of_error

_LISTED = 40
"""Findings of one kind that are listed one by one."""


def chain_findings(found: ChainAnswer, unreachable: Sequence[tuple[str, BrokenLink]]) -> Iterator[Finding]:
    """Report broken chains, orphaned deltas, older checkpoints that are lost, and what cannot be restored as asked.

    Parameters
    ----------
    unreachable : the chains that cannot restore the checkpoint asked for, each with the link that fails
    """
    rows = found.chains
    broken = [row for row in rows if row.status == "broken chain"]
    orphaned = [row for row in rows if row.status == "orphaned deltas"]
    older = [row for row in rows if row.status == "intact chain" and row.unrestorable]
    yield from _finding_each("broken-chain", "error", broken, restorable_up_to)
    yield from _finding_each("orphaned-deltas", "error", orphaned, restorable_up_to)
    yield from _finding_each("unrestorable-checkpoints", "warning", older, _older_unrestorable)
    for name, link in unreachable[:_LISTED]:
        message = f"{name}: checkpoint {found.asked} cannot be restored, because {why(link)}"
        yield Finding("not-restorable", "error", name, message, where=_place_of_link(link), effect="restart-fails")
    if len(unreachable) > _LISTED:
        more = len(unreachable) - _LISTED
        yield Finding(
            "not-restorable", "error", f"{more} more chains", f"nor can {more} more chains", effect="restart-fails"
        )
    if found.asked is None and found.restored_together == "run" and found.together[0].checkpoint is None:
        able = sum(row.restorable is not None for row in rows)
        message = f"no checkpoint can be restored by all {len(rows)} chains; {able} of them can restore some"
        yield Finding("no-common-checkpoint", "error", "run", message, effect="older-line")


def chain_name(row: ChainRow) -> str:
    """Return the name of a chain as sentences use it."""
    return subject_of((row.operator, row.subtask, row.store))


def restorable_up_to(row: ChainRow) -> str:
    """Say how far a chain can be restored, and why no further."""
    because = "" if row.because is None else f", because {why(row.because)}"
    if row.restorable is None:
        return f"{chain_name(row)}: no checkpoint can be restored{because}"
    return f"{chain_name(row)}: restorable up to {row.restorable} of {row.newest}{because}"


def why(link: BrokenLink) -> str:
    """Say in words which link fails, and why.

    >>> why(BrokenLink(5, 6, "is not there", None, None))
    'checkpoint 5, on which 6 stands, is not there'
    >>> why(BrokenLink(5, None, "is torn", "checkpoints/a.jsonl", 120))
    'checkpoint 5 is torn (checkpoints/a.jsonl:120)'
    >>> why(BrokenLink(None, 1, "is not there", None, None))
    'checkpoint 1 is a delta, and nothing comes before it'
    """
    if link.checkpoint is None:
        return f"checkpoint {link.needed_by} is a delta, and nothing comes before it"
    stands = "" if link.needed_by is None else f", on which {link.needed_by} stands,"
    offset = "" if link.offset is None else f":{link.offset}"
    place = f" ({link.path}{offset})" if link.path else ""
    return f"checkpoint {link.checkpoint}{stands} {link.flaw}{place}"


def _older_unrestorable(row: ChainRow) -> str:
    """Say that only older checkpoints of a chain cannot be restored."""
    some = f"{row.unrestorable} older {'checkpoint' if row.unrestorable == 1 else 'checkpoints'}"
    return f"{chain_name(row)}: {some} cannot be restored; the newest, {row.restorable}, can"


def _place_of_link(link: BrokenLink | None) -> tuple[Where, ...]:
    return (Where(link.path, link.offset),) if link is not None and link.path else ()


def _finding_each(
    id: str, severity: Severity, rows: Sequence[ChainRow], message: Callable[[ChainRow], str]
) -> Iterator[Finding]:
    """Yield a finding for each chain, up to a limit."""
    for row in rows[:_LISTED]:
        where, effect = _place_of_link(row.because), effect_of_error(severity, "older-line")
        yield Finding(id, severity, chain_name(row), message(row), where=where, effect=effect)
    if len(rows) > _LISTED:
        more = f"{len(rows) - _LISTED} more chains"
        yield Finding(id, severity, more, f"the same of {more}", effect=effect_of_error(severity, "older-line"))
