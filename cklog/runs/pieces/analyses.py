"""A store that holds chains of base and delta checkpoints and nothing else: what is in it, and which may go.

The newest checkpoint of each operator that can be restored is what recovery needs; what that and others asked for stand
on stays with them. Marks are those of US patent 9,471,438: a checkpoint that is marked as deleted goes with the last
one that is a delta on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cklog.arrays.types import Ints, Mask
from cklog.chains.restorable import Chains, chains_of
from cklog.errors import NotFound, UsageError
from cklog.inputs.offers import OffersPieces
from cklog.model.findings import Finding
from cklog.model.inspection import Inspection
from cklog.model.verdict import Draft
from cklog.model.wording import many
from cklog.retention.links import floors, links_between, without_flaws
from cklog.retention.plan import RetentionFate, RetentionPlan, RetentionRow, rules_of, totals_of
from cklog.retention.policy import RetentionPolicy, named

RULES: Mapping[str, str] = {
    "line": "the newest of its operator that can be restored",
    "pin": "--pin names it",
    "keep": "one of the newest of its operator that --keep asks for",
    "repairable": "it cannot be restored; mended, it would be one of the newest that stay",
    "last": "it cannot be restored, but nothing else of its operator can be either",
    "chain": "the checkpoint that needs it is a delta on it",
    "marked": "marked as deleted; it goes with the last checkpoint that is a delta on it",
    "deletable": "marked as deleted, and nothing that stays depends on it",
    "broken": "it cannot be restored, and newer ones can",
    "obsolete": "newer ones can be restored, and nobody asked for it",
}


_FREE = frozenset({"deletable", "obsolete", "broken"})
"""Rules of what may go; what is broken only where `--drop-broken` asks."""


class _Checkpoints(NamedTuple):
    """The n checkpoints of a store, sorted by owner and number.

    `names` of their owners; `owner`, `number`, `whole` (it can be restored, with all that it holds), `bytes` (-1: not
    known), shape (n,) each; `of` is the checkpoint of each version of the chains.
    """

    names: list[str]
    owner: Ints
    number: Ints
    whole: Mask
    bytes: Ints
    of: Ints


def version_retention(parser: OffersPieces, policy: RetentionPolicy) -> Draft[RetentionPlan]:
    """Plan what may be deleted of a checkpoint store.

    Raises
    ------
    UsageError : a window; nothing tells when checkpoints were taken
    NotFound : there is no such checkpoint as pinned or marked
    """
    if policy.since is not None:
        raise UsageError("--window: such a store does not tell when a checkpoint was taken", "--keep N counts them")
    table, findings, inputs = parser.pieces()[:3]
    chains = chains_of(table)
    found = _checkpoints(chains, parser.restored_together)
    marked = _named(found, "--marked", policy.marked)
    masks = _masks(found, policy, marked)
    free = _FREE if policy.drop_broken else _FREE - {"broken"}
    children = links_between(without_flaws(chains), found.of).kept_by(_any(masks))
    rows, warnings = _rows(found, masks, marked, children, free)
    totals = totals_of(rows, "checkpoints")
    plan = RetentionPlan(
        kind="versions",
        unit="checkpoints",
        rows=tuple(rows),
        totals=totals,
        folders=(),
        rules=rules_of(rows, RULES),
        jobs_stopped=False,
    )
    return Draft("retention", plan, [*findings, *chains.findings, *warnings], inputs)


def _checkpoints(chains: Chains, together: str) -> _Checkpoints:
    """Versions of chains as checkpoints: of a subtask each, or of the run where all go back to one."""
    owners = [name[:2] if together == "subtask" else ("run", 0) for name in chains.names]
    names = sorted(set(owners))
    place = {name: i for i, name in enumerate(names)}
    owner = np.array([place[name] for name in owners] or [0], np.int64)[chains.chain]
    distinct = np.unique(chains.version)
    keys, of = np.unique(owner * max(len(distinct), 1) + np.searchsorted(distinct, chains.version), return_inverse=True)
    can = np.bincount(of, weights=chains.restorable, minlength=len(keys))
    held = np.bincount(of, minlength=len(keys))
    whole = can == (held if together == "subtask" else len(chains.names))
    size = np.zeros(len(keys), np.int64)
    stored = chains.table["bytes"].take(chains.row).fill_null(0).to_numpy()
    np.add.at(size, of, np.maximum(stored, 0))
    of_owner, number = np.divmod(keys, max(len(distinct), 1))
    return _Checkpoints(
        names=[f"{op}/{sub}" for op, sub in names],
        owner=of_owner,
        number=distinct[number],
        whole=whole,
        bytes=size,
        of=of,
    )


def _masks(found: _Checkpoints, policy: RetentionPolicy, marked: Mask) -> dict[str, Mask]:
    """Which checkpoints each rule speaks of, the strongest rule first."""
    total = np.bincount(found.owner[found.whole], minlength=len(found.names))
    rank = np.cumsum(total)[found.owner] - np.cumsum(found.whole) if len(found.owner) else found.owner
    newest = np.full(len(found.names), -1)
    newest[found.owner[found.whole]] = found.number[found.whole]
    floor = floors(found.owner, found.number, found.whole, policy.keep, len(found.names))
    newer = ~found.whole & (found.number > floor[found.owner])
    return {
        "line": found.whole & (rank == 0),
        "pin": _named(found, "--pin", policy.pins),
        "keep": found.whole & (rank < (policy.keep or 0)) & ~marked,
        "repairable": newer & (newest >= 0)[found.owner],
        "last": newer & (newest < 0)[found.owner],
    }


def _any(masks: Mapping[str, Mask]) -> Mask:
    found: Mask = np.logical_or.reduce(list(masks.values()))
    return found


def _named(found: _Checkpoints, option: str, texts: Sequence[str]) -> Mask:
    """The checkpoints that an option names as OP/SUB=CKPT."""
    chosen = np.zeros(len(found.number), np.bool_)
    place = {name: i for i, name in enumerate(found.names)}
    for text in texts:
        name, number = named(option, text)
        mine = found.owner == place.get(name, -1)
        at = mine & (found.number == number)
        if not at.any():
            there = ", ".join(map(str, found.number[mine][-8:].tolist()))
            hint = f"the last ones are {there}" if there else f"there are {', '.join(found.names[:8])}"
            raise NotFound(f"{option} {text}: no such checkpoint", hint)
        chosen |= at
    return chosen


def _rows(
    found: _Checkpoints, masks: Mapping[str, Mask], marked: Mask, dependants: Ints, free: Set[str]
) -> tuple[list[RetentionRow], list[Finding]]:
    rows, findings = [], []
    for i, dependant in enumerate(dependants.tolist()):
        name = _name(found, i)
        rule = next((rule for rule, mask in masks.items() if mask[i]), "")
        by = None
        if not rule and dependant >= 0:
            rule, by = ("marked" if marked[i] else "chain"), _name(found, dependant)
        rule = rule or ("deletable" if marked[i] else "obsolete" if found.whole[i] else "broken")
        fate: RetentionFate = "VALID" if rule == "line" else "KEEP"
        if rule in free:
            fate = "OBSOLETE"
        if marked[i] and rule == "line":
            message = f"{name} is marked as deleted, but recovery needs it: {RULES[rule]}"
            findings.append(Finding("marked-but-needed", "warning", name, message))
        rows.append(
            RetentionRow(
                path=name, bytes=int(found.bytes[i]), fate=fate, rule=rule, needed_by=by, checkpoint=name, file=False
            )
        )
    return rows, findings


def _name(found: _Checkpoints, i: int) -> str:
    return f"{found.names[found.owner[i]]}={found.number[i]}"


OperatorChains = TypedDict(
    "OperatorChains",
    {
        "operator": str,
        "checkpoints": int,
        "from": int,
        "to": int,
        "variables": int,
        "deltas": int,
        "bytes": int,
        "flawed": int,
    },
)
"""What is stored of an operator's checkpoints: their number, the first and last, and how many parts are damaged."""


class PiecesInspection(Inspection):
    """What is here of chains of base and delta checkpoints."""

    operators: list[OperatorChains]


def inspect_pieces(parser: OffersPieces) -> Draft[PiecesInspection]:
    """Say which operators' chains are here, and what is stored of each."""
    table, findings, inputs = parser.pieces()[:3]
    operators = _operators(table)
    versions = sum(row["checkpoints"] for row in operators)
    summary = f"Chains of {many(len(operators), 'operator')}: {many(versions, 'checkpoint')} in all."
    result: PiecesInspection = {"summary": summary, "formats": [parser.name], "operators": operators}
    return Draft("inspect", result, findings, inputs)


def _operators(table: pa.Table) -> list[OperatorChains]:
    """A row for each operator, by name."""
    rows: list[OperatorChains] = []
    for operator in sorted(pc.unique(table["operator"]).to_pylist()):
        of = table.filter(pc.equal(table["operator"], operator))
        stores = set(pc.unique(of["store"]).to_pylist()) - {""}
        span = pc.min_max(of["version"]).as_py()
        flawed = of.filter(pc.is_valid(of["flaw"]))
        rows.append(
            {
                "operator": operator,
                "checkpoints": pc.count_distinct(of["version"]).as_py(),
                "from": span["min"],
                "to": span["max"],
                "variables": len(stores),
                "deltas": pc.sum(pc.equal(of["form"], "delta")).as_py(),
                "bytes": pc.sum(of["bytes"]).as_py() or 0,
                "flawed": len(flawed),
            }
        )
    return rows
