"""What an answer about chains found wrong, and the sentences about links that fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from cklog.chains.model import BrokenLink, ChainAnswer, ChainRow
from cklog.inputs.pieces import subject_of
from cklog.model.findings import Finding, Severity, Where

_TOLD = 40
"""Findings of one kind that are told one by one."""


def chain_findings(found: ChainAnswer, unreachable: Sequence[tuple[str, BrokenLink]]) -> Iterator[Finding]:
    """Broken chains, orphaned deltas, older checkpoints that are lost, and what was asked for and cannot be had."""
    rows = found.chains
    broken = [row for row in rows if row.status == "broken chain"]
    orphaned = [row for row in rows if row.status == "orphaned deltas"]
    older = [row for row in rows if row.status == "intact chain" and row.unrestorable]
    yield from _each("broken-chain", "error", broken, restorable_up_to)
    yield from _each("orphaned-deltas", "error", orphaned, restorable_up_to)
    yield from _each("unrestorable-checkpoints", "warning", older, _older)
    for name, link in unreachable[:_TOLD]:
        message = f"{name}: checkpoint {found.asked} cannot be restored, because {why(link)}"
        yield Finding("not-restorable", "error", name, message, _where(link))
    if len(unreachable) > _TOLD:
        more = len(unreachable) - _TOLD
        yield Finding("not-restorable", "error", f"{more} more chains", f"nor can {more} more chains")
    if found.asked is None and found.restored_together == "run" and found.together[0].checkpoint is None:
        able = sum(row.restorable is not None for row in rows)
        message = f"no checkpoint can be restored by all {len(rows)} chains; {able} of them can restore some"
        yield Finding("no-common-checkpoint", "error", "run", message)


def chain_name(row: ChainRow) -> str:
    """A chain as sentences name it."""
    return subject_of((row.operator, row.subtask, row.store))


def restorable_up_to(row: ChainRow) -> str:
    """How far a chain can be restored, and why no further."""
    because = "" if row.because is None else f", because {why(row.because)}"
    if row.restorable is None:
        return f"{chain_name(row)}: no checkpoint can be restored{because}"
    return f"{chain_name(row)}: restorable up to {row.restorable} of {row.newest}{because}"


def why(link: BrokenLink) -> str:
    """The link at which a way down fails, in words.

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


def _older(row: ChainRow) -> str:
    some = f"{row.unrestorable} older {'checkpoint' if row.unrestorable == 1 else 'checkpoints'}"
    return f"{chain_name(row)}: {some} cannot be restored; the newest, {row.restorable}, can"


def _where(link: BrokenLink | None) -> tuple[Where, ...]:
    return (Where(link.path, link.offset),) if link is not None and link.path else ()


def _each(id: str, severity: Severity, rows: Sequence[ChainRow], told: Callable[[ChainRow], str]) -> Iterator[Finding]:
    """A finding for each chain, up to a limit."""
    for row in rows[:_TOLD]:
        yield Finding(id, severity, chain_name(row), told(row), _where(row.because))
    if len(rows) > _TOLD:
        more = f"{len(rows) - _TOLD} more chains"
        yield Finding(id, severity, more, f"the same of {more}")
