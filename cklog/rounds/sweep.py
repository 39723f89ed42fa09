"""`rounds --sweep`: what is left after every node, every rack or every pair of nodes fails, the worst first.

Each failure is a burst of its own (`cklog.rounds.burst`): the nodes are gone, with what lay on their disks. Beside the
domains stands how often such a failure comes in a year, by the model of Meteor Shower's Table I for a data center like
Google's (its section II-B1): node failures of all causes, and whole racks that are cut off at once. The latter are
part of the former.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

from cklog.engine.reading import Reading
from cklog.errors import NotFound, UsageError
from cklog.history.tokens import TokensRead, read_tokens
from cklog.inputs.offers import OffersRecords
from cklog.model.findings import Finding, InputUsed
from cklog.model.question import Question
from cklog.model.verdict import Draft
from cklog.model.wording import many
from cklog.rounds.answer import ReaderWithTokens, RestartFromRound, RoundsQuestion
from cklog.rounds.tuples import PreservedTuples, Tuples
from cklog.runs.records.evidence import Evidence

SweepBy = Literal["node", "rack", "pair"]

_MOST_DOMAINS = 2_000

AFN100 = {"network": 300.0, "environment": 125.0, "ooops": 100.0, "disk": 5.15, "memory": 1.3}
"""Node failures in a year of a hundred nodes, by cause: Table I, Google's data center, the middle of its ranges."""

RACK_FAILURES, RACKS = 20, 30
"""In a year, whole racks that are disconnected at once, of so many: section II-B1. `AFN100` has them as failures of
their nodes, among those of the network."""


@dataclass(frozen=True, slots=True)
class SweepQuestion:
    """What is swept: every `node`, `rack` or `pair` of nodes. Records later than `as_of`, in ms, do not count."""

    by: SweepBy
    as_of: int | None = None


@dataclass(frozen=True, slots=True)
class DomainFailure:
    """What is left when a domain fails.

    Attributes
    ----------
    domain, nodes : its name, and the nodes in it
    round : the one that everything restarts from; None: back to the initial state
    rounds_lost : complete rounds that can be read no more
    lost_ms : how much older this round is than the newest complete one; None: not known
    unreachable : subtasks whose checkpoint of the newest complete round went with the domain
    restarts : subtasks that restart elsewhere; the others roll back
    local_bytes, shared_bytes : to read from nodes' own disks, and from the shared storage
    unknown : subtasks of which it is not known where their checkpoint lies, or how large it is
    replayed, replayed_bytes : tuples that the sources send again, and their bytes; None: not known
    per_year : how often it comes, by the model
    """

    domain: str
    nodes: tuple[str, ...]
    round: int | None
    rounds_lost: int
    lost_ms: int | None
    unreachable: tuple[str, ...]
    restarts: int
    local_bytes: int
    shared_bytes: int
    unknown: int
    replayed: int | None
    replayed_bytes: int | None
    per_year: float | None


@dataclass(frozen=True, slots=True)
class SweepAnswer:
    """The answer of `rounds --sweep`: every failure, the worst first, and the newest complete round.

    `per_year` of all of them together, None of pairs: the model says nothing of nodes that fail together by chance.
    """

    by: SweepBy
    newest: int | None
    subtasks: int
    domains: tuple[DomainFailure, ...]
    per_year: float | None


def sweep_answer(tables: OffersRecords, reading: Reading, asked: SweepQuestion) -> Draft[SweepAnswer]:
    """Let every domain fail by itself, and draft the answer.

    Raises
    ------
    NotFound : no round at all, no node, or no rack
    UsageError : there are too many pairs
    """
    read = read_tokens(tables, reading, asked.as_of)
    evidence = ReaderWithTokens(tables, reading, read).evidence_of(Question(as_of=asked.as_of, everything=True))
    whole = RestartFromRound(evidence, read, tables, RoundsQuestion(as_of=asked.as_of))
    domains, findings = _domains(whole.nodes, tables.manifest, asked.by)
    swept = _Sweep(evidence, read, tables, reading, asked, whole)
    rows = sorted((swept.failure(name, nodes) for name, nodes in domains.items()), key=_badness)
    chance = None if asked.by == "pair" else sum(row.per_year or 0.0 for row in rows)
    result = SweepAnswer(asked.by, whole.number, len(evidence.history.subtasks), tuple(rows), chance)
    bad = [row for row in rows if row.rounds_lost or (row.round is None and whole.number is not None)]
    if bad:
        message = (
            f"{many(len(bad), asked.by)} of {len(rows)} would take checkpoints with them that lie nowhere else, "
            f"{bad[0].domain} the worst: store a second copy outside"
        )
        findings.append(Finding("unreachable-checkpoint", "warning", bad[0].domain, message))
    found = [*evidence.findings, *read.findings, *whole.findings, *findings, *swept.findings]
    inputs = list(dict.fromkeys((*evidence.inputs, *read.inputs, *swept.inputs)))
    return Draft("rounds-sweep", result, list(dict.fromkeys(found)), inputs, unrecoverable=whole.place < 0)


def _badness(row: DomainFailure) -> tuple[Any, ...]:
    """Order failures: without a round first, then by rounds that are lost, subtasks that move, bytes from elsewhere."""
    return row.round is not None, -row.rounds_lost, -row.restarts, -row.shared_bytes, row.domain


def _domains(
    nodes: tuple[str, ...], manifest: Mapping[str, Any], by: SweepBy
) -> tuple[dict[str, tuple[str, ...]], list[Finding]]:
    """Return the domains by name, and what is wrong with racks."""
    if not nodes:
        raise NotFound("it is not known which nodes there are", "job.json: operators[].placement, and nodes")
    if by == "node":
        return {node: (node,) for node in nodes}, []
    if by == "pair":
        count = len(nodes) * (len(nodes) - 1) // 2
        if count > _MOST_DOMAINS:
            raise UsageError(
                f"--sweep pair: {count:,} pairs of {len(nodes)} nodes are too many", "sweep nodes or racks"
            )
        return {f"{a}+{b}": (a, b) for a, b in combinations(nodes, 2)}, []
    racks = manifest.get("racks", {})
    if not isinstance(racks, dict) or not racks:
        raise NotFound("it is not known which racks there are", 'job.json: "racks": {"r1": ["n1", "n2"]}')
    found, findings = {}, []
    for name, members in sorted(racks.items()):
        own = tuple(node for node in nodes if isinstance(members, list) and node in members)
        if own:
            found[str(name)] = own
    housed = {node for members in found.values() for node in members}
    homeless = [node for node in nodes if node not in housed]
    if homeless:
        message = f"job.json: {many(len(homeless), 'node')} in no rack, {homeless[0]} among them: never swept with one"
        findings.append(Finding("bad-placement", "warning", homeless[0], message))
    return found, findings


class _Sweep:
    """The failures of one run, one after the other; logs are read once for each round that is restarted from."""

    def __init__(
        self,
        evidence: Evidence,
        read: TokensRead,
        tables: OffersRecords,
        reading: Reading,
        asked: SweepQuestion,
        whole: RestartFromRound,
    ) -> None:
        self._run = evidence, read, tables
        self._reading, self._asked, self._whole = reading, asked, whole
        self._tuples: dict[int, Tuples] = {}
        self.findings: list[Finding] = []
        self.inputs: list[InputUsed] = []

    def failure(self, name: str, nodes: tuple[str, ...]) -> DomainFailure:
        """Return what is left when some nodes fail."""
        asked = RoundsQuestion(failed_nodes=nodes, as_of=self._asked.as_of)
        left = RestartFromRound(*self._run, asked)
        preserved = self._preserved(left)
        counts, sizes = [row.preserved for row in preserved], [row.bytes for row in preserved]
        loads = [load for load in left.loads() if not load.failed]
        before, now = self._whole.completed, left.completed
        return DomainFailure(
            domain=name,
            nodes=nodes,
            round=left.number,
            rounds_lost=self._whole.complete_rounds - left.complete_rounds,
            lost_ms=None if before is None or now is None else before - now,
            unreachable=left.unreachable_of(self._whole.place),
            restarts=sum(load.restarts for load in loads),
            local_bytes=sum(load.local_bytes for load in loads),
            shared_bytes=sum(load.shared_bytes for load in loads),
            unknown=sum(load.unknown for load in loads),
            replayed=None if None in counts else sum(count or 0 for count in counts),
            replayed_bytes=None if None in sizes else sum(size or 0 for size in sizes),
            per_year=self._per_year(nodes),
        )

    def _preserved(self, left: RestartFromRound) -> tuple[PreservedTuples, ...]:
        """Return what the sources send again after a restart; it depends on the round alone."""
        if left.place not in self._tuples:
            found = left.tuples(self._reading)
            self._tuples[left.place] = found
            self.findings += found.findings
            self.inputs += found.inputs
        return tuple(self._tuples[left.place].preserved)

    def _per_year(self, nodes: tuple[str, ...]) -> float | None:
        if self._asked.by == "pair":
            return None
        return RACK_FAILURES / RACKS if self._asked.by == "rack" else sum(AFN100.values()) / 100
