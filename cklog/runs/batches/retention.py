"""Which files of a micro-batch query's checkpoint (Spark) no batch needs that a restart may go back to.

A restart after batch b reads offsets/b-1, offsets/b and commits/b, and loads version b+1 of every state store. What is
newer than the line is never proposed: a restart overwrites it, or it tells what happened.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cklog.chains.restorable import Chains, chains_of
from cklog.errors import NotFound, UsageError
from cklog.inputs.batches import Batch
from cklog.inputs.offers import OffersBatches
from cklog.inputs.stored_state import StoredState
from cklog.model.findings import Finding, InputUsed
from cklog.model.verdict import Draft
from cklog.retention.links import without_flaws
from cklog.retention.plan import RetentionFate, RetentionPlan, RetentionRow, rules_of, totals_of
from cklog.retention.policy import RetentionPolicy, named
from cklog.runs.batches.line import QUERY as OPERATOR
from cklog.runs.batches.plan import BatchPlan, all_pieces, plan_of
from cklog.runs.batches.state_line import can_all_load, chains_required
from cklog.storage import Root

RULES: Mapping[str, str] = {
    "line": "a restart of the query reads it",
    "in-flight": "the plan of the batch in flight, which a restart runs again",
    "newer": "newer than the line: a restart writes it anew, or it tells what was done",
    "pin": "the batch that needs it is one that --pin names",
    "keep": "the batch that needs it is one of the newest that --keep asks for",
    "window": "the batch that needs it was planned within the time that --window asks for",
    "no-time": "nothing tells when the batch that needs it was planned: it may be within --window",
    "repairable": "damage or a gap keeps the batch that needs it from being restored; mended, it would be kept",
    "query": "it is the query's, not a batch's",
    "source-log": "the log of a source, which the source itself cleans",
    "sst": "a file of RocksDB's: Spark removes those that no snapshot names any more",
    "unjudged": "whether a batch needs this part of the state cannot be told",
    "no-line": "no batch is here that a restart could go back to, so nothing is proposed",
    "obsolete": "no batch that stays needs it",
}
_STRENGTH = {rule: place for place, rule in enumerate(RULES)}
_VALID = ("line", "in-flight", "query")
_PLACE = re.compile(r"(metadata|sources/.*|state/.*|(?P<log>offsets|commits)/(?P<batch>[0-9]{1,18}))", re.DOTALL)
_SUM = re.compile(r"\.?(.+?)(?:\.crc)+", re.DOTALL)
QUERY = f"{OPERATOR}/0"
_DIGITS = re.compile(r"([0-9]+)")


class _Stores(NamedTuple):
    """The versions of all stores, and which of them a batch needs."""

    chains: Chains
    stored: StoredState


@dataclass(frozen=True, slots=True)
class _Targets:
    """Batches that a restart may go back to: why each stays, and whether all that it needs is there.

    `line` is the newest that can be restored, None if none can.
    """

    why: dict[int, str]
    line: int | None


def batch_retention(parser: OffersBatches, root: Root, policy: RetentionPolicy) -> Draft[RetentionPlan]:
    """Plan what may be deleted of a checkpoint folder.

    Raises
    ------
    UsageError : marks, which nothing in such a folder stands for
    NotFound : there is no such batch as pinned
    """
    if policy.marked:
        raise UsageError("--marked: Spark marks nothing as deleted", "leave it out")
    plan = plan_of(parser)
    findings: tuple[Finding, ...] = plan.findings
    inputs: tuple[InputUsed, ...] = plan.inputs
    state: _Stores | None = None
    prefix = next(used.path for used in plan.inputs if used.path.endswith("offsets")).removesuffix("offsets")
    if plan.stores and not plan.unjudged:
        stored, (table, more, used, *_) = all_pieces(parser)
        state = _Stores(chains_of(table), stored)
        findings, inputs = (*findings, *more, *state.chains.findings), tuple(dict.fromkeys([*inputs, *used]))
    targets = _targets(plan, state, policy)
    rows = list(_rows(root, prefix, plan, state, targets))
    made = RetentionPlan(
        kind="batches",
        unit="files",
        rows=tuple(rows),
        totals=totals_of(rows, "files"),
        folders=(),
        rules=rules_of(rows, RULES),
        jobs_stopped=False,
        doubt="" if targets.line is not None else "no-line",
    )
    return Draft("retention", made, findings, inputs, indeterminate=bool(plan.unjudged))


def _targets(plan: BatchPlan, state: _Stores | None, policy: RetentionPolicy) -> _Targets:
    """What stays: the line, the newest, those of the window, and pins, whether or not those can be restored.

    What cannot be restored but is newer than the oldest of those counted stays too: mended, it would be one of them.
    """
    by_number = {b.batch: b for b in plan.batches}
    judged = () if plan.unjudged else plan.batches  # what was not judged may need any of them
    whole = [b for b in reversed(judged) if _is_whole(b, by_number, plan) and _has_state(state, b.batch)]
    numbers = {*by_number, *plan.rolled_back}
    why = dict.fromkeys((_pinned(numbers, text) for text in policy.pins), "pin")
    if not whole:
        return _Targets(why, None)
    why[whole[0].batch] = "line"
    for b in whole[1 : policy.keep or 1]:
        why.setdefault(b.batch, "keep")
    for b in whole if policy.since is not None else []:
        if b.time is None or b.time >= (policy.since or 0):
            why.setdefault(b.batch, "no-time" if b.time is None else "window")
    floor = whole[policy.keep - 1 if policy.keep else 0].batch if len(whole) >= (policy.keep or 1) else -1
    versions = [] if state is None else np.unique(state.chains.version).tolist()
    for number in sorted(({*numbers, *(version - 1 for version in versions)}) - {b.batch for b in whole}):
        time = by_number[number].time if number in by_number else None
        in_window = policy.since is not None and (time is None or time >= policy.since)
        if 0 <= number < whole[0].batch and (number > floor or in_window):
            why.setdefault(number, "repairable")
    return _Targets(why, whole[0].batch)


def _is_whole(b: Batch, by_number: Mapping[int, Batch], plan: BatchPlan) -> bool:
    """Whether offsets and commits allow a restart after a batch, here and now or once later ones are removed.

    A restart also reads the offsets before the newest ones, which are those of the batch itself if one is in flight.
    """
    before = by_number.get(_before(b.batch, by_number, plan))
    starts = b.batch == 0 or (before is not None and before.offsets is not None)
    in_flight = b.batch == plan.committed and plan.planned is not None
    return b.committed and b.offsets is not None and (starts or in_flight)


def _before(batch: int, numbers: Iterable[int], plan: BatchPlan) -> int:
    """The batch whose plan says where another starts."""
    found = (number for number in numbers if number < batch) if plan.asynchronous else ()
    return max(found, default=batch - 1)


def _has_state(state: _Stores | None, batch: int) -> bool:
    """Whether every store can load what batch `batch` left."""
    return state is None or can_all_load(state.stored, state.chains, batch)


def _pinned(known: Set[int], text: str) -> int:
    name, number = named("--pin", text)
    if name != QUERY:
        raise NotFound(f"--pin {text}: a Spark checkpoint has the one subtask {QUERY}")
    if number not in known:
        there = f"batches {min(known)} to {max(known)}" if known else "no batch"
        raise NotFound(f"--pin {text}: no such batch", f"here are {there}")
    return number


def _rows(root: Root, prefix: str, plan: BatchPlan, state: _Stores | None, targets: _Targets) -> Iterator[RetentionRow]:
    """Every file of the checkpoint; a checksum file goes with the file that it is of."""
    in_flight = plan.planned if plan.committed == targets.line else None
    numbers = [b.batch for b in plan.batches]
    needs = _Needs(state, targets, in_flight, {batch: _before(batch, numbers, plan) for batch in targets.why})
    for entry in sorted(root.list(), key=lambda entry: _natural(entry.path)):
        if not entry.path.startswith(prefix):
            continue
        inside = entry.path[len(prefix) :]
        folder, slash, name = inside.rpartition("/")
        owner = _owner(name)
        found = _PLACE.fullmatch(folder + slash + owner)
        if found is None:
            continue
        rule, batch = needs.of(found, prefix + folder + slash + owner)
        fate: RetentionFate = "VALID" if rule in _VALID else "OBSOLETE" if rule == "obsolete" else "KEEP"
        yield RetentionRow(
            path=entry.path,
            bytes=entry.size,
            fate=fate,
            rule=rule,
            needed_by=None if batch is None else f"{QUERY}={batch}",
        )


def _owner(name: str) -> str:
    """The file that a checksum file is of; of any other itself.

    >>> _owner(".5.delta.crc"), _owner("5_0a.changelog.crc"), _owner(".5_0a.changelog.crc.crc"), _owner("5.delta")
    ('5.delta', '5_0a.changelog', '5_0a.changelog', '5.delta')
    """
    found = _SUM.fullmatch(name)
    return name if found is None else found[1]


def _natural(path: str) -> list[tuple[int, str]]:
    """A sort key by which 9.delta comes before 10.delta, and a checksum file next to what it is of."""
    folder, slash, name = path.rpartition("/")
    parts = _DIGITS.split(folder + slash + _owner(name))
    return [*((int(part) if i % 2 else 0, "" if i % 2 else part) for i, part in enumerate(parts)), (0, path)]


class _Needs:
    """The rule of a file, and the batch that needs it."""

    def __init__(
        self, state: _Stores | None, targets: _Targets, in_flight: int | None, before: Mapping[int, int]
    ) -> None:
        self._targets = targets
        self._in_flight = in_flight
        self._before = before
        self._logs = self._of_logs()
        self._state = {} if state is None else self._of_state(state)
        self._judged = {} if state is None else _versions(state.chains)

    def of(self, found: re.Match[str], path: str) -> tuple[str, int | None]:
        if found["log"]:
            batch = int(found["batch"])
            if found["log"] == "offsets" and batch == self._in_flight:
                return "in-flight", None
            if found["log"] == "offsets":
                return self._older(self._logs.get(batch), batch)
            return self._older((self._targets.why[batch], batch) if batch in self._targets.why else None, batch)
        if found[1].startswith("state/"):
            return self._of_store(path)
        return ("query" if found[1] == "metadata" else "source-log"), None

    def _of_store(self, path: str) -> tuple[str, int | None]:
        if path in self._judged:
            return self._older(self._state.get(path), self._judged[path] - 1)
        place = _OF_STORE.search(path)
        if place is None:
            return "query", None
        line = self._targets.line
        if line is not None and place["version"] and int(place["version"]) > line + 1:
            return "newer", None
        return ("sst" if place["name"].startswith("SSTs/") else "unjudged"), None

    def _older(self, needed: tuple[str, int] | None, batch: int) -> tuple[str, int | None]:
        """The rule of a file of `batch`, by what is known to need it."""
        if self._targets.line is None:
            return "no-line", None
        if batch > self._targets.line and (needed is None or needed[0] != "line"):
            return "newer", None
        return needed if needed is not None else ("obsolete", None)

    def _of_logs(self) -> dict[int, tuple[str, int]]:
        """By batch, what needs its offsets: a restart after it, and one after the batch that follows."""
        found: dict[int, tuple[str, int]] = {}
        for batch, rule in self._targets.why.items():
            for number in (batch, self._before[batch]):
                _note(found, number, rule, batch)
        return found

    def _of_state(self, state: _Stores) -> dict[str, tuple[str, int]]:
        """By path, what needs a state file, or would if nothing were damaged: where a link is missing, all before."""
        chains = state.chains
        found: dict[str, tuple[str, int]] = {}
        paths = chains.table["path"].to_pylist()
        versions = chains.table["version"].to_pylist()
        mended, by_chain = without_flaws(chains), _rows_by_chain(chains)
        for batch, rule in self._targets.why.items():
            for chain in chains_required(state.stored, chains, batch):
                rows = chains.reading(chain, batch + 1)
                for row in rows:
                    _note(found, paths[row], rule, batch)
                whole = mended.reading(chain, batch + 1)
                for row in whole or rows or (r for r in by_chain[chain] if versions[r] <= batch + 1):
                    _note(found, paths[row], "repairable" if rule in _VALID else rule, batch)
        return found


_OF_STORE = re.compile(
    r"(?:^|/)state/[^/]+/[0-9]+/(?!_)(?:(?!SSTs/)[^/]+/)?(?P<name>(?P<version>[0-9]{1,18})?.*)",
    re.DOTALL,
)


def _note(found: dict[Any, tuple[str, int]], key: Any, rule: str, batch: int) -> None:
    """Remember the strongest rule, and of one rule the newest batch."""
    known = found.get(key)
    if known is None or (_STRENGTH[rule], -batch) < (_STRENGTH[known[0]], -known[1]):
        found[key] = rule, batch


def _versions(chains: Chains) -> dict[str, int]:
    """The version that each file of a state store is a piece of."""
    return dict(zip(chains.table["path"].to_pylist(), chains.table["version"].to_pylist(), strict=True))


def _rows_by_chain(chains: Chains) -> list[list[int]]:
    """The rows of the pieces of each chain."""
    index = {tuple(name): i for i, name in enumerate(chains.names)}
    found: list[list[int]] = [[] for _ in chains.names]
    names = (chains.table[name].to_pylist() for name in ("operator", "subtask", "store"))
    for row, name in enumerate(zip(*names, strict=True)):
        found[index[name]].append(row)
    return found
